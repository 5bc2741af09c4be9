"""The images that a node has from the start: Kubernetes' components, and the pods' network, names and volumes.

Each is one static program. Those that change the kernel's packet filter, and the shell scripts, are on a small system
of Debian's packages.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.controlplane.build import COREDNS, LOCAL_PATH, build
from tests.image.debian import kept_system, run
from tests.image.pause import compile_pause
from tests.kind.archive import Image
from tests.kind.kubernetes import Kubernetes

KINDNET: Final = "localhost/kindnet:1"
PROVISIONER: Final = "localhost/local-path-provisioner:1"
HELPER: Final = "localhost/local-path-helper:1"
CONSTANTS: Final = {"kindnetdImage": KINDNET, "storageProvisionerImage": PROVISIONER, "storageHelperImage": HELPER}
"""How kind's manifests call the images that we make, by the names of kind's constants."""
SANDBOX: Final = "registry.k8s.io/pause:3.10"
"""What the container runtime's configuration on a kind node calls it; kubeadm has another version in its list."""
NETWORK_PACKAGES: Final = ("busybox-static", "iptables", "nftables", "netbase")
LIST: Final = ("config", "images", "list")
COMPONENTS: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
KINDNET_SCRIPT: Final = Path(__file__).parent / "node" / "kindnet.sh"


def images(kubernetes: Kubernetes, work: Path) -> list[Image]:
    """All images of a node, under the names that kubeadm and kind's manifests use. Raises ImageError and BuildError."""
    names = expected(run([str(kubernetes.binary("kubeadm")), *LIST, f"--kubernetes-version={kubernetes.version}"]))
    network = kept_system(work, "network", NETWORK_PACKAGES, "extract")
    filters = {f"/usr/sbin/{name}": "xtables-nft-multi" for name in packet_filters()}
    shell = {f"/bin/{name}": "busybox" for name in ("sh", "cat", "ip", "mkdir", "mv", "rm", "seq", "sleep")}
    proxy = {"/usr/local/bin/kube-proxy": kubernetes.binary("kube-proxy")}
    kindnet = {"/usr/local/bin/kubectl": kubernetes.binary("kubectl"), "/kindnet.sh": KINDNET_SCRIPT}
    provisioner = {"/usr/local/bin/local-path-provisioner": build(LOCAL_PATH) / "local-path-provisioner"}
    return [
        *(Image((names[name],), {f"/usr/local/bin/{name}": kubernetes.binary(name)}) for name in COMPONENTS),
        Image((names["kube-proxy"],), proxy, filters, network),
        Image((names["coredns"],), {"/coredns": build(COREDNS) / "coredns"}, entrypoint=("/coredns",)),
        Image((names["pause"], SANDBOX), {"/pause": compile_pause(work)}, entrypoint=("/pause",)),
        Image((KINDNET,), kindnet, filters | shell, network, ("/kindnet.sh",)),
        Image((PROVISIONER,), provisioner),
        Image((HELPER,), links=shell, base=network),
    ]


def expected(listing: str) -> dict[str, str]:
    """The images in kubeadm's listing by what they contain.

    >>> expected("registry.k8s.io/kube-proxy:v1.36.3\\nregistry.k8s.io/coredns/coredns:v1.14.2\\n")
    {'kube-proxy': 'registry.k8s.io/kube-proxy:v1.36.3', 'coredns': 'registry.k8s.io/coredns/coredns:v1.14.2'}
    """
    return {line.rpartition("/")[2].partition(":")[0]: line for line in listing.split()}


def packet_filters() -> list[str]:
    return [f"{family}{command}" for family in ("iptables", "ip6tables") for command in ("", "-save", "-restore")]


def manifests(kind_source: Path) -> dict[str, str]:
    """What kind installs in a new cluster, with our images, by the files' names on the node."""
    directory = kind_source / "pkg" / "build" / "nodeimage"
    return {
        "default-cni.yaml": go_constant((directory / "const_cni.go").read_text(), "defaultCNIManifest", CONSTANTS),
        "default-storage.yaml": go_constant(
            (directory / "const_storage.go").read_text(), "defaultStorageManifest", CONSTANTS
        ),
    }


def go_constant(source: str, name: str, constants: Mapping[str, str]) -> str:
    """The value of a constant in Go's source that consists of raw strings and of these other constants."""
    raw = r"`[^`]*`"
    match = re.search(rf"^const {name} = ({raw}(?: \+ (?:\w+|{raw}))*)", source, re.MULTILINE)
    if match is None:
        raise LookupError(f"kind's source has no constant {name} of raw strings")
    parts = re.findall(rf"{raw}|\w+(?= \+|$)", match[1])
    return "".join(part[1:-1] if part.startswith("`") else constants[part] for part in parts)
