"""Small clusters of which it is asked what would be if."""

from typing import Any

import plugins
from scheduler.config.documents import Document
from scheduler.config.types import Config
from scheduler.simulate.cluster import SimulatedCluster, cluster_of
from scheduler.simulate.engine import adopted
from scheduler.simulate.what_if.answers import answered
from scheduler.simulate.what_if.questions import Questions
from tests.fakes.config import config_with

Json = dict[str, Any]

CONFIG = config_with(plugins.IN_TREE)


def a_node(name: str, cpu: int | str = 4, zone: str = "", **fields: Any) -> Json:
    labels = {"kubernetes.io/hostname": name, **({"topology.kubernetes.io/zone": zone} if zone else {})}
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": 110, **fields.pop("amounts", {})}
    metadata = {"name": name, "labels": {**labels, **fields.pop("labels", {})}, "resourceVersion": "1"}
    return {"kind": "Node", "metadata": metadata, "spec": fields, "status": {"capacity": amounts}}


def a_spec(cpu: int | str = 1, **fields: Any) -> Json:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **fields}


def a_pod(name: str, cpu: int | str = 1, **fields: Any) -> Json:
    """A new one."""
    return {"kind": "Pod", "metadata": {"name": name}, "spec": a_spec(cpu, **fields)}


def on(node: str, name: str, kind: str = "", owner: str = "", cpu: int | str = 1, **fields: Any) -> Json:
    """A pod that runs, of a controller if a kind is given."""
    metadata: Json = {"name": name, "uid": f"uid of {name}", "resourceVersion": "1", "labels": {"app": owner or name}}
    if kind:
        of = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid of {owner}", "controller": True}
        metadata["ownerReferences"] = [of]
    metadata |= fields.pop("metadata", {})
    status = {"phase": "Running", **fields.pop("status", {})}
    return {"kind": "Pod", "metadata": metadata, "spec": a_spec(cpu, nodeName=node, **fields), "status": status}


def a_workload(kind: str, name: str, spec: Json, version: str = "apps/v1", stored: bool = False, **fields: Any) -> Json:
    labels = {"app": name}
    selector = labels if kind == "ReplicationController" else {"matchLabels": labels}
    whole = {"selector": selector, "template": {"metadata": {"labels": labels}, "spec": spec}, **fields}
    metadata = {"name": name, **({"resourceVersion": "1"} if stored else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": whole}


def a_budget(name: str, app: str, status: Json | None = None, **spec: Any) -> Json:
    selector = {"matchLabels": {"app": app}}
    whole = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "generation": 1}}
    return {**whole, "spec": {"selector": selector, **spec}, **({} if status is None else {"status": status})}


def an_object(kind: str, version: str, name: str = "", **fields: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name or kind.lower()}, **fields}


def a_class(name: str = "s", mode: str = "Immediate", provisioner: str = "p") -> Json:
    """A StorageClass."""
    storage = "storage.k8s.io/v1"
    return an_object("StorageClass", storage, name, provisioner=provisioner, volumeBindingMode=mode)


def a_claim_spec(storage_class: str = "s", **spec: Any) -> Json:
    """What a claim asks for."""
    resources = {"requests": {"storage": "1Gi"}}
    return {"accessModes": ["ReadWriteOnce"], "resources": resources, "storageClassName": storage_class, **spec}


def a_volume(name: str, *values: str, key: str = "kubernetes.io/hostname", **spec: Any) -> Json:
    """A PersistentVolume that nodes can use whose label has one of these values."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
    whole = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "s",
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        **spec,
    }
    return an_object("PersistentVolume", "v1", name, spec=whole, status={"phase": "Available"})


def a_bound_volume(name: str, claim: str, node: str) -> list[Json]:
    """A volume on a node, and the claim to which it is bound."""
    volume = a_volume(name, node, claimRef={"namespace": "default", "name": claim, "uid": claim})
    bound = an_object("PersistentVolumeClaim", "v1", claim, spec=a_claim_spec(volumeName=name))
    bound["metadata"] |= {"uid": claim, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    for each in (volume, bound):
        each["metadata"]["resourceVersion"] = "1"
        each["status"] = {"phase": "Bound"}
    return [volume, bound]


DEVICES = an_object("DeviceClass", "resource.k8s.io/v1", "gpu", spec={})
A_DEVICE: Json = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}


def a_slice(node: str) -> Json:
    """A device of the class `gpu` on a node."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": node, "pool": pool, "devices": [{"name": "gpu"}]}
    return an_object("ResourceSlice", "resource.k8s.io/v1", f"slice-{node}", spec=spec)


def read(*objects: Json) -> tuple[SimulatedCluster, list[str]]:
    """A cluster of files with an object on each line, and what is wrong with these."""
    problems: list[str] = []
    return cluster_of([Document(f"f:{line}", each) for line, each in enumerate(objects, 1)], problems), problems


def cluster_with(*objects: Json) -> SimulatedCluster:
    cluster, problems = read(*objects)
    assert problems == []
    pods = tuple(adopted(cluster.pods, CONFIG))
    return SimulatedCluster(cluster.nodes, pods, cluster.others, cluster.notes, cluster.creation)


def asked(*objects: Json, config: Config = CONFIG, **questions: Any) -> Json:
    """The whole document."""
    return answered(cluster_with(*objects), Questions(**questions), config, plugins.IN_TREE)


def placed(document: Json) -> dict[str, str | None]:
    """Pod, or the one for which it comes → node."""
    return {pod.get("replaces", f"{pod['namespace']}/{pod['name']}"): pod["node"] for pod in document["pods"]}
