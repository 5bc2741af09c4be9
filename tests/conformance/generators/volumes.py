"""Volumes: claims, disks of the old in-tree kinds, zones, CSI drivers and how much they can attach."""

from collections.abc import Callable, Sequence
from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned

NAMESPACES: Final = ("default", "team")
CLAIMS: Final = tuple(f"claim-{i}" for i in range(8))
VOLUMES: Final = tuple(f"pv-{i}" for i in range(10))
DISKS: Final = ("disk-a", "disk-b", "disk-c")
EBS, PD, OTHER_DRIVER = "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disks.example.com"
DRIVERS: Final = (EBS, PD, "disk.csi.azure.com", "cinder.csi.openstack.org", "pxd.portworx.com", OTHER_DRIVER)
PROVISIONERS: Final = {
    "wait": (OTHER_DRIVER, "WaitForFirstConsumer"),
    "wait-old": ("kubernetes.io/gce-pd", "WaitForFirstConsumer"),
    "wait-ebs": (EBS, "WaitForFirstConsumer"),
    "now": (OTHER_DRIVER, "Immediate"),
    "now-older": ("kubernetes.io/vsphere-volume", "Immediate"),
    "none": ("kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
}
ZONES: Final = ("zone-a", "zone-b", "zone-c")
ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
SIZES: Final = ("1Gi", "5Gi", "10Gi")
OWN: Final = "own"
"""The name of the volumes for which a claim is made."""

TEMPLATE: Final[Json] = {
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeMode": "Filesystem",
    }
}
MODES: Final = ("ReadWriteOnce", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


class Volumes(Topic):
    """What pods mount, and what is known of it."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        claims = [claim(draw, space, name) for space in NAMESPACES for name in CLAIMS if draw.chance(0.95)]
        own = [made_for(draw, space, pod) for space in NAMESPACES for pod in owners() if draw.chance(0.85)]
        return [
            *(storage_class(name) for name in PROVISIONERS if draw.chance(0.95)),
            *(volume(draw, name) for name in VOLUMES if draw.chance(0.96)),
            *claims,
            *own,
            *(csi_node(draw, name) for name in cluster.node_names if draw.chance(0.85)),
            *attachments(draw, cluster),
        ]

    def dress_node(self, draw: Draw, node: Json) -> None:
        labels = node["metadata"]["labels"]
        if draw.chance(0.2):
            labels[BETA_ZONE] = draw.choice(ZONES)
        if draw.chance(0.15):
            labels[draw.choice((REGION, BETA_REGION))] = draw.choice(("east", "west"))

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        found = [pod_volume(draw, f"v{i}", pod) for i in range(draw.choice((0, 1, 1, 2, 3)))]
        if draw.chance(0.15):
            found.append({"name": OWN, "ephemeral": {"volumeClaimTemplate": TEMPLATE}})
        if found:
            pod["spec"].setdefault("volumes", []).extend(found)


def pod_volume(draw: Draw, name: str, pod: Json) -> Json:
    """A claim mostly, or one of the other kinds."""
    choice = draw.random()
    if choice < 0.5:
        # The claims of a running pod are there, or it would not run; but they may have been deleted since.
        return {"name": name, "persistentVolumeClaim": {"claimName": draw.choice(CLAIMS[: 6 if assigned(pod) else 8])}}
    if choice < 0.55:
        return {"name": name, "emptyDir": {}}
    return {"name": name, **draw.choice(IN_TREE)(draw)}


def gce(draw: Draw) -> Json:
    return {"gcePersistentDisk": {"pdName": draw.choice(DISKS), **read_only(draw)}}


def ebs(draw: Draw) -> Json:
    return {"awsElasticBlockStore": {"volumeID": ebs_id(draw)}}


def ebs_id(draw: Draw) -> str:
    return draw.choice(("vol-1", "aws://zone-a/vol-1", "aws:///vol-2", "vol-3"))


def azure(draw: Draw) -> Json:
    uri = f"/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/{draw.choice(DISKS)}"
    return {"azureDisk": {"diskName": "disk", "diskURI": uri, "kind": "Managed"}}


def cinder(draw: Draw) -> Json:
    return {"cinder": {"volumeID": draw.choice(DISKS)}}


def portworx(draw: Draw) -> Json:
    return {"portworxVolume": {"volumeID": draw.choice(DISKS)}}


def vsphere(draw: Draw) -> Json:
    return {"vsphereVolume": {"volumePath": draw.choice(DISKS)}}


def azure_file(draw: Draw) -> Json:
    return {"azureFile": {"secretName": "azure-storage-account-a-secret", "shareName": draw.choice(DISKS)}}


def iscsi(draw: Draw) -> Json:
    iqn = f"iqn.2026-01.com.example:{draw.choice(DISKS)}"
    return {"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": iqn, "lun": 0, **read_only(draw)}}


def rbd(draw: Draw) -> Json:
    monitors = draw.several(("10.0.0.1:6789", "10.0.0.2:6789", "10.0.0.3:6789"), most=2)
    pool = draw.choice(("rbd", "rbd", "other"))
    return {"rbd": {"monitors": monitors, "pool": pool, "image": draw.choice(DISKS[:2]), **read_only(draw)}}


IN_TREE: Final[Sequence[Callable[[Draw], Json]]] = (
    gce,
    gce,
    gce,
    ebs,
    ebs,
    iscsi,
    iscsi,
    rbd,
    rbd,
    azure,
    cinder,
    portworx,
    vsphere,
    azure_file,
)


def read_only(draw: Draw) -> Json:
    """Half of them only read."""
    return {"readOnly": True} if draw.chance(0.5) else {}


def storage_class(name: str) -> Json:
    provisioner, mode = PROVISIONERS[name]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        "reclaimPolicy": "Delete",
    }


def volume(draw: Draw, name: str) -> Json:
    """A persistent volume, of a CSI driver mostly, in one zone, several or none."""
    spec: Json = {
        "capacity": {"storage": draw.choice(SIZES)},
        "accessModes": draw.several(("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"), most=2),
        "persistentVolumeReclaimPolicy": "Delete",
        "volumeMode": "Filesystem",
        "storageClassName": draw.choice((*PROVISIONERS, "")),
        **source(draw, name),
    }
    made: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"phase": "Available"},
    }
    labels = {}
    if draw.chance(0.3):
        labels[draw.choice((ZONE, BETA_ZONE))] = draw.choice((*ZONES, "zone-a__zone-b", "zone-b__zone-c"))
    if draw.chance(0.1):
        labels[draw.choice((REGION, BETA_REGION))] = draw.choice(("east", "west"))
    if labels:
        made["metadata"]["labels"] = labels
    return made


def source(draw: Draw, name: str) -> Json:
    """What is behind a persistent volume; two of them may be the same disk."""
    choice = draw.random()
    if choice < 0.6:
        handle = name if draw.chance(0.8) else draw.choice(("vol-1", "vol-2", "disk-a"))
        return {"csi": {"driver": draw.choice(DRIVERS), "volumeHandle": handle}}
    return draw.choice((gce, ebs, azure, cinder, portworx, vsphere, host_path))(draw)


def host_path(draw: Draw) -> Json:
    return {"hostPath": {"path": "/data"}}


def claim(draw: Draw, namespace: str, name: str) -> Json:
    """A claim, bound mostly; some wait for their first pod, and some for ever."""
    spec: Json = {
        "accessModes": [draw.choice(MODES)],
        "resources": {"requests": {"storage": draw.choice(SIZES)}},
        "volumeMode": "Filesystem",
    }
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"uid-of-{namespace}-{name}"}
    status: Json = {"phase": "Pending"}
    waits = [name for name, (_, mode) in PROVISIONERS.items() if mode == "WaitForFirstConsumer"]
    class_name = draw.choice((*waits, *waits, *waits, *PROVISIONERS, "", None, "gone"))
    if draw.chance(0.1):
        metadata["annotations"] = {"volume.beta.kubernetes.io/storage-class": draw.choice(tuple(PROVISIONERS))}
    if class_name is not None:
        spec["storageClassName"] = class_name
    if draw.chance(0.7):
        spec["volumeName"] = draw.choice((*VOLUMES, "pv-gone") if draw.chance(0.1) else VOLUMES)
        metadata.setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
        status["phase"] = "Bound"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def owners() -> list[str]:
    """Names that pods have."""
    return [*(f"waiting-{i}" for i in range(8)), *(f"running-{i}" for i in range(12))]


def made_for(draw: Draw, namespace: str, pod: str) -> Json:
    """The claim of a pod's ephemeral volume; rarely somebody else's that has its name."""
    made = claim(draw, namespace, f"{pod}-{OWN}")
    owner = pod if draw.chance(0.97) else "somebody-else"
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": f"uid-of-{owner}", "controller": True}
    ]
    return made


def csi_node(draw: Draw, name: str) -> Json:
    """A node's drivers: low limits, none at all, or no word of them."""
    drivers = []
    for driver in draw.some(DRIVERS, most=5):
        made: Json = {"name": driver, "nodeID": name, "topologyKeys": []}
        if draw.chance(0.85):
            made["allocatable"] = {"count": draw.choice((0, 0, 1, 1, 1, 2, 8))} if draw.chance(0.95) else {}
        drivers.append(made)
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": drivers},
    }


def attachments(draw: Draw, cluster: Cluster) -> list[Json]:
    """Volumes that are attached, also some that no pod uses (any more)."""
    if not cluster.node_names:
        return []
    return [attachment(draw, f"attachment-{i}", cluster) for i in range(draw.choice((0, 0, 2, 5, 12)))]


def attachment(draw: Draw, name: str, cluster: Cluster) -> Json:
    of: Json = {"persistentVolumeName": draw.choice((*VOLUMES, "pv-gone"))}
    if draw.chance(0.1):
        spec = {"csi": {"driver": EBS, "volumeHandle": "vol-9"}, "accessModes": ["ReadWriteOnce"]}
        of = {"inlineVolumeSpec": spec | {"capacity": {"storage": "1Gi"}}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": name},
        "spec": {"attacher": draw.choice(DRIVERS), "nodeName": draw.choice(cluster.node_names), "source": of},
    }
