"""Storage whose free capacity counts in scores, drivers that must be there, and options of mounts."""

from typing import Final

from tests.conformance.generators.resources import shape
from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned, containers
from tests.conformance.generators.volume_binding import node_topology

NAMESPACES: Final = ("default", "team")
FILLED, SPARE, DISKS = "filled", "spare", "disks"
CLASSES: Final = (FILLED, SPARE, DISKS)
DRIVERS: Final = {FILLED: "filled.example.com", SPARE: "spare.example.com"}
CLAIMS: Final = {FILLED: ("filled-0", "filled-1"), SPARE: ("spare-0", "spare-1"), DISKS: ("disks-0", "disks-1")}
CAPACITIES: Final = ("3Gi", "10Gi", "50Gi", "200Gi")


class NewerStorage(Topic):
    """Claims that wait for a node: of some the node's volumes count, of others what its driver can make."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        return [
            *(storage_class(name) for name in CLASSES),
            *(driver(draw, name) for name in DRIVERS.values() if draw.chance(0.95)),
            *(capacity(draw, i, cluster) for i in range(draw.choice((2, 6, 12)))),
            *(disk(draw, i, name) for i, name in enumerate([*cluster.node_names] * 2) if draw.chance(0.6)),
            *(claim(draw, space, of, name) for space in NAMESPACES for of, names in CLAIMS.items() for name in names),
            *(csi_node(draw, name) for name in cluster.node_names if draw.chance(0.9)),
        ]

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        if assigned(pod):
            return
        wanted = draw.several(CLASSES, most=2)
        names = [name for of in wanted for name in draw.several(CLAIMS[of], most=2)]
        found = [{"name": f"newer-{name}", "persistentVolumeClaim": {"claimName": name}} for name in names]
        pod["spec"].setdefault("volumes", []).extend(found)

    def arguments(self, draw: Draw) -> dict[str, Json]:
        return {"VolumeBinding": {"shape": shape(draw)}} if draw.chance(0.4) else {}


class MountOptions(Topic):
    """Mounts with options, for which a kubelet must know them."""

    def dress_node(self, draw: Draw, node: Json) -> None:
        if draw.chance(0.5):
            declared = node["status"].setdefault("declaredFeatures", [])
            node["status"]["declaredFeatures"] = sorted({*declared, "VolumeBindMountOptions"})

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        pod["spec"].setdefault("volumes", []).append({"name": "scratch", "emptyDir": {}})
        mount: Json = {"name": "scratch", "mountPath": "/scratch"}
        if draw.chance(0.5):
            mount["bindMountOptions"] = draw.choice(([], ["noexec"]))
        draw.choice(containers(pod)).setdefault("volumeMounts", []).append(mount)


def storage_class(name: str) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": DRIVERS.get(name, "kubernetes.io/no-provisioner"),
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }


def driver(draw: Draw, name: str) -> Json:
    spec: Json = {"storageCapacity": draw.chance(0.85)}
    if draw.chance(0.5):
        spec["preventPodSchedulingIfMissing"] = draw.chance(0.8)
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def capacity(draw: Draw, number: int, cluster: Cluster) -> Json:
    """What can be made on some nodes; now and then only how large one volume may be."""
    made: Json = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": f"capacity-{number}", "namespace": draw.choice(("kube-system", "storage"))},
        "storageClassName": draw.choice((FILLED, SPARE)),
        "nodeTopology": node_topology(draw, cluster),
    }
    if draw.chance(0.85):
        made["capacity"] = draw.choice(CAPACITIES)
    if "capacity" not in made or draw.chance(0.2):
        made["maximumVolumeSize"] = draw.choice(("2Gi", "20Gi"))
    return made


def disk(draw: Draw, number: int, node: str) -> Json:
    """A volume on one node, of a size of its own."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"disk-{number:03}", "uid": f"uid-of-disk-{number}"},
        "spec": {
            "capacity": {"storage": f"{draw.randint(2, 40) * 1000 + number}Mi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "volumeMode": "Filesystem",
            "storageClassName": DISKS,
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
        "status": {"phase": "Available"},
    }


def claim(draw: Draw, namespace: str, of: str, name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-of-{namespace}-{name}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": draw.choice(("1Gi", "3Gi", "9Gi", "1500Mi"))}},
            "volumeMode": "Filesystem",
            "storageClassName": of,
        },
        "status": {"phase": "Pending"},
    }


def csi_node(draw: Draw, name: str) -> Json:
    drivers = [{"name": each, "nodeID": name, "topologyKeys": []} for each in draw.some(tuple(DRIVERS.values()), 2)]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": drivers},
    }
