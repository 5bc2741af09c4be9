"""The configuration files of containerd, the kubelet and the pods' network. Pure: nothing is started here."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.realnode.images import PAUSE
from tests.realnode.requirements import cni_plugins


def containerd(directory: Path) -> str:
    """containerd with the images of the tests only: nothing is pulled."""
    return f"""\
version = 2
root = "{directory}/containerd"
state = "/run/containerd"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
restrict_oom_score_adj = true # a container of the tests' own may lack CAP_SYS_RESOURCE
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni_plugins()}"
conf_dir = "{directory}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def pod_network(directory: Path, gateway: str) -> str:
    """A bridge, with addresses from the /24 of `gateway`."""
    subnet = gateway.rpartition(".")[0] + ".0/24"
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": subnet, "gateway": gateway}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": f"{directory}/ipam",
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "ipam": ipam}
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]})


def kubelet(directory: Path, cgroup: str) -> str:
    """A kubelet that keeps all of its files in `directory` and never evicts for want of disk or memory."""
    threshold = "0%"
    configuration: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "enforceNodeAllocatable": ["pods"],
        "evictionHard": {
            "imagefs.available": threshold,
            "memory.available": threshold,
            "nodefs.available": threshold,
            "nodefs.inodesFree": threshold,
        },
        "failCgroupV1": False,
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "nodeStatusUpdateFrequency": "5s",
        "podLogsDir": f"{directory}/pod-logs",
        "readOnlyPort": 0,
        "syncFrequency": "5s",  # a changed ConfigMap is in its pods this soon, instead of within a minute
        "volumePluginDir": f"{directory}/volume-plugins",
    }
    return yaml.safe_dump(configuration, sort_keys=False)
