"""Claims that have still to be bound: volumes that are there, and volumes that can be made.

No two volumes are of one size, for kube-scheduler takes any of equal ones; and at most one is meant for a claim.
"""

from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned

NAMESPACES: Final = ("default", "team")
CLAIMS: Final = tuple(f"data-{i}" for i in range(6))
LOCAL, MADE, ROOMY, LATE, NOW = "local", "made", "roomy", "late", "at-once"
CLASSES: Final = (LOCAL, MADE, ROOMY, LATE, NOW)
DRIVER, COUNTING_DRIVER = "volumes.example.com", "counting.example.com"
DRIVERS: Final = (DRIVER, COUNTING_DRIVER)
PROVISIONERS: Final = {
    LOCAL: "kubernetes.io/no-provisioner",
    MADE: DRIVER,
    ROOMY: COUNTING_DRIVER,
    LATE: "kubernetes.io/gce-pd",
    NOW: DRIVER,
}
ZONES: Final = ("zone-a", "zone-b", "zone-c")
ZONE, HOST, DISK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "disk"
MODES: Final = ("ReadWriteOnce", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany")
GOLD: Final = "gold"
"""A class of attributes."""


class VolumeBinding(Topic):
    """What pods mount, and where volumes for it are."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        claims = [claim(draw, space, name) for space in NAMESPACES for name in CLAIMS if draw.chance(0.97)]
        volumes = [volume(draw, i, cluster) for i in range(draw.choice((0, 4, 10, 25)))]
        for each in claims:
            bind(draw, each, volumes)
        return [
            *(storage_class(draw, name) for name in CLASSES if draw.chance(0.96)),
            *(csi_driver(draw, name) for name in DRIVERS if draw.chance(0.9)),
            *(capacity(draw, i, cluster) for i in range(draw.choice((0, 2, 6)))),
            *claims,
            *volumes,
            *(csi_node(name) for name in cluster.node_names if draw.chance(0.3)),
        ]

    def dress_node(self, draw: Draw, node: Json) -> None:
        if draw.chance(0.5):
            node["metadata"]["labels"][DISK] = draw.choice(("ssd", "hdd", "7"))

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        if assigned(pod):
            return
        names = [draw.choice(CLAIMS) for _ in range(draw.choice((0, 1, 1, 1, 2, 3)))]
        found = [{"name": f"d{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(names)]
        if draw.chance(0.2):
            found.append({"name": "inline", "csi": {"driver": draw.choice(DRIVERS)}})
        if found:
            pod["spec"].setdefault("volumes", []).extend(found)

    def arguments(self, draw: Draw) -> dict[str, Json]:
        return {"VolumeBinding": {"bindTimeoutSeconds": draw.choice((0, 30))}} if draw.chance(0.3) else {}


def storage_class(draw: Draw, name: str) -> Json:
    made: Json = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": PROVISIONERS[name],
        "volumeBindingMode": "Immediate" if name == NOW else "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }
    if draw.chance(0.5) and name != LOCAL:
        made["allowedTopologies"] = [topology(draw) for _ in range(draw.randint(1, 2))]
    return made


def topology(draw: Draw) -> Json:
    expressions = [{"key": ZONE, "values": draw.several(ZONES, most=2)}]
    if draw.chance(0.3):
        expressions.append({"key": DISK, "values": draw.several(("ssd", "hdd"), most=2)})
    return {"matchLabelExpressions": expressions}


def csi_driver(draw: Draw, name: str) -> Json:
    counts = name == COUNTING_DRIVER and draw.chance(0.9)
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": name},
        "spec": {"storageCapacity": counts},
    }


def capacity(draw: Draw, number: int, cluster: Cluster) -> Json:
    made: Json = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": f"room-{number}", "namespace": "kube-system"},
        "storageClassName": draw.choice((ROOMY, ROOMY, ROOMY, MADE)),
    }
    if draw.chance(0.9):
        made["capacity"] = draw.choice(("0", "1Gi", "6Gi", "100Gi"))
    if draw.chance(0.4):
        made["maximumVolumeSize"] = draw.choice(("500Mi", "4Gi", "50Gi"))
    if draw.chance(0.9):
        made["nodeTopology"] = node_topology(draw, cluster)
    return made


def node_topology(draw: Draw, cluster: Cluster) -> Json:
    choice = draw.random()
    if choice < 0.1:
        return {}
    if choice < 0.5 and cluster.node_names:
        return {"matchLabels": {HOST: draw.choice(cluster.node_names)}}
    if choice < 0.8:
        return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": draw.several(ZONES, most=2)}]}
    return {"matchLabels": {ZONE: draw.choice(ZONES)}, "matchExpressions": [{"key": DISK, "operator": "Exists"}]}


def volume(draw: Draw, number: int, cluster: Cluster) -> Json:
    """A volume on one node, in one zone, or anywhere; free mostly."""
    spec: Json = {
        "capacity": {"storage": f"{(number * 7) % 31 + 1}Gi"},
        "accessModes": draw.several(("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"), most=3),
        "persistentVolumeReclaimPolicy": "Delete",
        "volumeMode": "Block" if draw.chance(0.1) else "Filesystem",
        "storageClassName": draw.choice((LOCAL, LOCAL, MADE, ROOMY, LATE, "")),
        **source(draw, number),
    }
    if draw.chance(0.1):
        spec["volumeAttributesClassName"] = GOLD
    terms = node_terms(draw, cluster)
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    metadata: Json = {"name": f"volume-{number:02}", "uid": f"uid-of-volume-{number}"}
    if draw.chance(0.3):
        metadata["labels"] = {"tier": draw.choice(("fast", "slow"))}
    if draw.chance(0.2):
        metadata.setdefault("labels", {})[ZONE] = draw.choice((*ZONES, "zone-a__zone-b"))
    status = {"phase": draw.choice(("Available",) * 9 + ("Released",))}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": status}


def source(draw: Draw, number: int) -> Json:
    """Of a driver, mostly; some are of a kind that drivers have taken over on some nodes."""
    choice = draw.random()
    if choice < 0.15:
        return {"gcePersistentDisk": {"pdName": f"disk-{number}"}}
    if choice < 0.2:
        return {"awsElasticBlockStore": {"volumeID": draw.choice(("vol-1", "aws://zone-a/vol-2", "aws://zone-a/bad"))}}
    return {"csi": {"driver": DRIVER, "volumeHandle": f"handle-{number}"}}


def node_terms(draw: Draw, cluster: Cluster) -> list[Json]:
    choice = draw.random()
    if choice < 0.35 and cluster.node_names:
        return [term(HOST, "In", draw.several(cluster.node_names, most=2))]
    if choice < 0.6:
        return [term(ZONE, "In", draw.several(ZONES, most=2))]
    if choice < 0.7:
        both = term(ZONE, "In", [draw.choice(ZONES)])
        both["matchExpressions"] += term(DISK, draw.choice(("Exists", "DoesNotExist")))["matchExpressions"]
        return [both]
    if choice < 0.75:
        return [term(DISK, "Gt", ["5"]), term(ZONE, "NotIn", ["zone-a"])]
    if choice < 0.8 and cluster.node_names:
        name = {"key": "metadata.name", "operator": "In", "values": [draw.choice(cluster.node_names)]}
        return [{"matchFields": [name]}]
    return []


def term(key: str, operator: str, values: list[str] | None = None) -> Json:
    expression: Json = {"key": key, "operator": operator}
    if values:
        expression["values"] = values
    return {"matchExpressions": [expression]}


def claim(draw: Draw, namespace: str, name: str) -> Json:
    spec: Json = {
        "accessModes": [draw.choice(MODES)],
        "resources": {"requests": {"storage": draw.choice(("1Gi", "2Gi", "5Gi", "12Gi", "1500Mi"))}},
        "volumeMode": "Block" if draw.chance(0.05) else "Filesystem",
        "storageClassName": draw.choice((LOCAL, LOCAL, LOCAL, MADE, MADE, ROOMY, ROOMY, LATE, NOW)),
    }
    if draw.chance(0.1):
        spec["volumeAttributesClassName"] = GOLD
    if draw.chance(0.1):
        spec["selector"] = {"matchLabels": {"tier": "fast"}}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{namespace}-{name}"}
    status = {"phase": "Lost" if draw.chance(0.02) else "Pending"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}


def bind(draw: Draw, made: Json, volumes: list[Json]) -> None:
    """Bind the claim, keep a volume for it, choose its node already, or leave it as it is."""
    choice = draw.random()
    metadata, spec = made["metadata"], made["spec"]
    free = [each for each in volumes if "claimRef" not in each["spec"]]
    if choice < 0.1:
        metadata["annotations"] = {"volume.kubernetes.io/selected-node": draw.choice(("n001", "n002", "gone"))}
    elif choice < 0.2 and free:
        chosen = draw.choice(free)
        chosen["spec"]["claimRef"] = {"namespace": metadata["namespace"], "name": metadata["name"]}
        if draw.chance(0.6):
            chosen["spec"]["storageClassName"] = spec["storageClassName"]
        if draw.chance(0.3):
            chosen["spec"]["claimRef"]["uid"] = draw.choice((metadata["uid"], "uid-of-another"))
    elif choice < 0.35:
        spec["volumeName"] = "volume-gone"
        if free and draw.chance(0.93):
            taken = draw.choice(free)
            spec["volumeName"] = taken["metadata"]["name"]
            taken["spec"]["claimRef"] = {key: metadata[key] for key in ("namespace", "name", "uid")}
            taken["status"]["phase"] = "Bound"
        if draw.chance(0.9):
            metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            made["status"]["phase"] = "Bound"
    elif choice < 0.37:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        metadata["finalizers"] = ["kubernetes.io/pvc-protection"]


def csi_node(name: str) -> Json:
    """A node on which drivers have taken over."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": name,
            "annotations": {
                "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"
            },
        },
        "spec": {"drivers": []},
    }
