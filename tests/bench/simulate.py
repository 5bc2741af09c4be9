"""How long `loadmaster simulate` takes over a large dump, and how much memory: `python -m tests.bench.simulate`.

The dump is what `kubectl get nodes,pods -A` prints of a cluster with 5,000 nodes and 20,000 pods, 400 of which wait:
every field that the API server, the kubelet and the controllers fill in is there. It is made once, under `build/bench`.
Each case is a process of its own. Printed are the seconds of CPU that it takes, which is how long it runs where the
machine has nothing else to do, as it has one thread, and the most memory that it had. Exit code 1: one is above
its aim.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

NODES: Final = 5000
PODS: Final = 20_000
PENDING: Final = 400
URGENT: Final = 900
FOLDER: Final = Path("build/bench/simulate")
MIB: Final = 1 << 20


class Case(NamedTuple):
    """A run, and what it may take."""

    name: str
    arguments: tuple[str, ...]
    seconds: float
    mebibytes: float


CASES: Final = (
    Case("json", ("cluster.json",), 4, 600),
    Case("yaml", ("cluster.yaml",), 20, 800),
    Case("explain", ("cluster.json", "--explain", "-o", "json"), 12, 1024),
    Case(
        "copies", ("cluster.json", "--of", "team-0/app-0-7d4b9c6f5d-00400", "--count", "10000", "-o", "json"), 10, 600
    ),
    Case("preempt", ("cluster.json", "urgent.json"), 10, 600),
    Case("drain", ("cluster.json", *(f"--drain=node-{number:05}" for number in range(100))), 6, 600),
)


def a_node(number: int) -> dict[str, Any]:
    """A node as a cloud's kubelet reports it."""
    name, zone = f"node-{number:05}", f"eu-west-1{'abc'[number % 3]}"
    seen = {"lastHeartbeatTime": "2026-05-04T10:00:00Z", "lastTransitionTime": "2026-05-01T08:00:00Z"}
    amounts = {"cpu": "8", "ephemeral-storage": "101430960Ki", "hugepages-2Mi": "0", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "annotations": {
                "csi.volume.kubernetes.io/nodeid": json.dumps({"ebs.csi.aws.com": f"i-0{number:016x}"}),
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "creationTimestamp": "2026-05-01T08:00:00Z",
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "m5.2xlarge",
                "topology.kubernetes.io/region": "eu-west-1",
                "topology.kubernetes.io/zone": zone,
            },
            "name": name,
            "resourceVersion": f"{number + 1000}",
            "uid": f"00000000-0000-4000-8000-{number:012x}",
        },
        "spec": {"podCIDR": f"10.{number // 256}.{number % 256}.0/24", "providerID": f"aws:///{zone}/i-0{number:016x}"}
        | ({"taints": [{"effect": "NoSchedule", "key": "dedicated", "value": "gpu"}]} if number % 10 == 0 else {}),
        "status": {
            "addresses": [
                {"address": f"10.{number // 256}.{number % 256}.1", "type": "InternalIP"},
                {"address": name, "type": "Hostname"},
            ],
            "allocatable": {**amounts, "cpu": "7910m", "memory": "30Gi"},
            "capacity": amounts,
            "conditions": [
                {
                    **seen,
                    "message": f"kubelet says {type_}",
                    "reason": f"Kubelet{type_}",
                    "status": status,
                    "type": type_,
                }
                for type_, status in (
                    ("MemoryPressure", "False"),
                    ("DiskPressure", "False"),
                    ("PIDPressure", "False"),
                    ("Ready", "True"),
                )
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": [
                {
                    "names": [
                        f"registry.example.com/team/app-{image}@sha256:{image:064x}",
                        f"registry.example.com/team/app-{image}:v1.{image}",
                    ],
                    "sizeBytes": 10_000_000 + 1_000_000 * image,
                }
                for image in range(number % 7, number % 7 + 10)
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": f"00000000-0000-4000-9000-{number:012x}",
                "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.12.0-cloud-amd64",
                "kubeletVersion": "v1.36.3",
                "operatingSystem": "linux",
                "osImage": "Debian GNU/Linux 13 (trixie)",
                "systemUUID": f"00000000-0000-4000-a000-{number:012x}",
            },
        },
    }


def a_pod(number: int) -> dict[str, Any]:
    """A pod of a Deployment, with everything that defaulting, admission and the kubelet have added."""
    app, namespace = f"app-{number % 200}", f"team-{number % 20}"
    name = f"{app}-7d4b9c6f5d-{number:05}"
    is_pending = number < PENDING
    then = "2026-05-02T09:00:00Z"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {"prometheus.io/scrape": "true"},
            "creationTimestamp": then,
            "generateName": f"{app}-7d4b9c6f5d-",
            "generation": 1,
            "labels": {"app": app, "pod-template-hash": "7d4b9c6f5d", "tier": f"tier-{number % 3}"},
            "name": name,
            "namespace": namespace,
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": "ReplicaSet",
                    "name": f"{app}-7d4b9c6f5d",
                    "uid": f"00000000-0000-4000-b000-{number % 200:012x}",
                }
            ],
            "resourceVersion": f"{number + 100_000}",
            "uid": f"00000000-0000-4000-c000-{number:012x}",
        },
        "spec": {
            "containers": [
                {
                    "env": [
                        {
                            "name": "POD_NAME",
                            "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
                        }
                    ],
                    "image": f"registry.example.com/team/app-{number % 17}:v1.{number % 17}",
                    "imagePullPolicy": "IfNotPresent",
                    "livenessProbe": {
                        "failureThreshold": 3,
                        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
                        "periodSeconds": 10,
                        "successThreshold": 1,
                        "timeoutSeconds": 1,
                    },
                    "name": "app",
                    "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                    "resources": {
                        "limits": {"memory": "1Gi"},
                        "requests": {"cpu": "64" if is_pending and number % 2 else "500m", "memory": "1Gi"},
                    },
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "volumeMounts": [
                        {
                            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                            "name": "kube-api-access",
                            "readOnly": True,
                        }
                    ],
                }
            ],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            **({} if is_pending else {"nodeName": f"node-{number % NODES:05}"}),
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "serviceAccount": "default",
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {
                    "effect": "NoExecute",
                    "key": f"node.kubernetes.io/{what}",
                    "operator": "Exists",
                    "tolerationSeconds": 300,
                }
                for what in ("not-ready", "unreachable")
            ],
            "topologySpreadConstraints": [
                {
                    "labelSelector": {"matchLabels": {"app": app}},
                    "maxSkew": 1,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                }
            ],
            "volumes": [
                {
                    "name": "kube-api-access",
                    "projected": {
                        "defaultMode": 420,
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                            {
                                "configMap": {
                                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                                    "name": "kube-root-ca.crt",
                                }
                            },
                        ],
                    },
                }
            ],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"} if is_pending else _running_status(number, then),
    }


def _running_status(number: int, then: str) -> dict[str, Any]:
    image = f"registry.example.com/team/app-{number % 17}"
    return {
        "conditions": [
            {
                "lastProbeTime": None,
                "lastTransitionTime": then,
                "observedGeneration": 1,
                "status": "True",
                "type": kind,
            }
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [
            {
                "containerID": f"containerd://{number:064x}",
                "image": f"{image}:v1.{number % 17}",
                "imageID": f"{image}@sha256:{number % 17:064x}",
                "lastState": {},
                "name": "app",
                "ready": True,
                "restartCount": 0,
                "started": True,
                "state": {"running": {"startedAt": then}},
            }
        ],
        "hostIP": f"10.0.{number % 250}.1",
        "phase": "Running",
        "podIP": f"10.1.{number // 250}.{number % 250}",
        "qosClass": "Burstable",
        "startTime": then,
    }


def objects() -> Iterator[dict[str, Any]]:
    """All of them, in kubectl's order."""
    yield from map(a_node, range(NODES))
    yield from map(a_pod, range(PODS))


def urgent() -> Iterator[dict[str, Any]]:
    """Pods that fit nowhere unless others go, and budgets for every third application that runs."""
    yield {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    for number in range(0, 200, 3):
        app = f"app-{number}"
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app, "namespace": f"team-{number % 20}"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": 1},
        }
    for number in range(URGENT):
        container = {"name": "main", "image": "urgent", "resources": {"requests": {"cpu": "7"}}}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"urgent-{number}", "namespace": "default"},
            "spec": {"priorityClassName": "urgent", "containers": [container]},
        }


def write_dumps(folder: Path) -> None:
    """Write `cluster.json` and `cluster.yaml` as kubectl does, object by object: all at once would take 2 GB."""
    folder.mkdir(parents=True, exist_ok=True)
    end = {"kind": "List", "metadata": {"resourceVersion": ""}}
    (folder / "urgent.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*urgent()]}))
    with (folder / "cluster.json").open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for number, obj in enumerate(objects()):
            text = json.dumps(obj, indent=4).replace("\n", "\n        ")
            file.write((",\n" if number else "") + "        " + text)
        file.write("\n    ],\n" + json.dumps(end, indent=4)[2:] + "\n")
    with (folder / "cluster.yaml").open("w") as file:
        file.write("apiVersion: v1\nitems:\n")
        for obj in objects():
            text = yaml.dump(obj, Dumper=yaml.CSafeDumper, width=10_000)
            file.write("- " + text.rstrip("\n").replace("\n", "\n  ") + "\n")
        file.write(yaml.dump(end, Dumper=yaml.CSafeDumper))


def run(case: Case, folder: Path) -> tuple[float, float]:
    """Seconds of CPU, and the most memory in MiB. Raises SystemExit if the run fails."""
    command = [sys.executable, "-m", "scheduler", "simulate", *case.arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{case.name}: exit code {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / MIB


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.simulate", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(case.name for case in CASES))
    options = parser.parse_args()
    if not all((FOLDER / name).exists() for name in ("cluster.yaml", "urgent.json")):
        write_dumps(FOLDER)
    is_missed = False
    for case in CASES:
        if options.cases and case.name not in options.cases:
            continue
        seconds, mebibytes = run(case, FOLDER)
        is_missed |= seconds > case.seconds or mebibytes > case.mebibytes
        print(
            f"{case.name:8} {seconds:6.1f} s (aim {case.seconds:g}) {mebibytes:6.0f} MiB (aim {case.mebibytes:g})",
            flush=True,
        )
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())
