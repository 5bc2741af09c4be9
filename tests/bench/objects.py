"""The objects of a workload, made from scheduler_perf's templates. Pure except for reading the files.

What is done to a template beyond filling in its fields is told at each function with its place in scheduler_perf.
"""

import copy
import itertools
import uuid
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from tests.bench.api import Object
from tests.bench.gotemplate import Template
from tests.bench.operations import CreateNodes, CreatePodGroups
from tests.bench.workloads import Loader

HOSTNAME: Final = "kubernetes.io/hostname"
POD_GROUPS: Final = "scheduling.k8s.io/v1beta1"
AMOUNTS: Final = {"cpu": "4", "memory": "32Gi", "pods": "110"}

BASE_NODE: Final[Object] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"generateName": "node-"},
    "status": {
        "capacity": AMOUNTS,
        "allocatable": AMOUNTS,
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
"""makeBaseNode in util.go."""

BASE_POD: Final[Object] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10.2",
                "ports": [{"containerPort": 80}],
                "resources": {amounts: {"cpu": "100m", "memory": "500Mi"} for amounts in ("limits", "requests")},
            }
        ]
    },
}
"""makeBasePod in util.go, with MakePodSpec of test/utils/runners.go."""


class Names:
    """Names for objects that have only `generateName`: chosen here, so that each pod is known when it is seen bound."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def give(self, obj: Object) -> str:
        """The name of an object, which it gets if it has none."""
        meta: Object = obj.setdefault("metadata", {})
        if not meta.get("name"):
            meta["name"] = f"{meta.pop('generateName', 'object-')}{next(self._numbers):05}"
        name: str = meta["name"]
        return name


class ObjectTemplate:
    """Makes objects, all alike or each from its own text."""

    def __init__(self, text: str) -> None:
        self._template = Template(text)
        self._fixed = None if self._template.varies else parse(text)

    def make(self, index: int, count: int) -> Object:
        """A new object, for the caller to change."""
        return copy.deepcopy(self._fixed) if self._fixed else parse(self._template.render(index, count))


@lru_cache
def template_of(path: Path) -> ObjectTemplate:
    """The template in a file."""
    return ObjectTemplate(path.read_text())


def parse(text: str) -> Object:
    """An object from YAML."""
    obj: Object = yaml.load(text, Loader)
    for constraint in obj.get("spec", {}).get("topologySpreadConstraints", ()) if obj["kind"] == "Pod" else ():
        # Go decodes field names whatever their case, and one template has `NodeAffinityPolicy`.
        for name in [name for name in constraint if name[0].isupper()]:
            constraint[name[0].lower() + name[1:]] = constraint.pop(name)
    return obj


def make(path: Path | None, base: Object, index: int = 0, count: int = 1) -> Object:
    """An object of a template, or of `base` if there is none."""
    return template_of(path).make(index, count) if path else copy.deepcopy(base)


def nodes_of(operation: CreateNodes, names: Names) -> Iterator[list[Object]]:
    """Each node with what belongs to it (PrepareNodes in node_util.go, the strategies in test/utils/runners.go).

    There, labels are patched in when all nodes are there; here, nodes are created with them.
    """
    labels = operation.label_node_prepare_strategy
    unique = operation.unique_node_label_strategy
    volumes = operation.node_allocatable_strategy
    for index in range(operation.count):
        node = make(operation.node_template_path, BASE_NODE, index, operation.count)
        name = names.give(node)
        own: dict[str, str] = node["metadata"].setdefault("labels", {})
        own[HOSTNAME] = name
        if labels:
            own[labels["labelKey"]] = labels["labelValues"][index % len(labels["labelValues"])]
        if unique:
            own[unique["labelKey"]] = str(uuid.uuid4())
        if volumes:
            # The patch there is to the node and not to its status, so that only the CSINode has an effect.
            yield [node, csi_node(name, volumes)]
        else:
            yield [node]


def gangs_of(operation: CreatePodGroups) -> Iterator[Object]:
    """Gangs for the pods of an operation: none is placed without all others of its gang."""
    for first in range(0, operation.pods, operation.size) if operation.size else ():
        yield {
            "apiVersion": POD_GROUPS,
            "kind": "PodGroup",
            "metadata": {"name": group_name(first, operation.size)},
            "spec": {"schedulingPolicy": {"gang": {"minCount": min(operation.size, operation.pods - first)}}},
        }


def group_name(pod: int, size: int) -> str:
    """The group of a pod, by its number."""
    return f"gang-{pod // size}"


def csi_node(name: str, strategy: Mapping[str, Any]) -> Object:
    """What the node says about its CSI drivers."""
    limits: Mapping[str, Any] = strategy.get("csiNodeAllocatable", {})
    migrated = ",".join(strategy.get("migratedPlugins", ()))
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": migrated}},
        "spec": {
            "drivers": [{"name": driver, "nodeID": name, "allocatable": limit} for driver, limit in limits.items()]
        },
    }


def for_scheduler(obj: Object, scheduler_name: str) -> Object:
    """Name the scheduler, if it is a pod: the one change to what the workload says. The object itself is changed."""
    if obj["kind"] == "Pod":
        obj["spec"]["schedulerName"] = scheduler_name
    return obj


def bound_volume(volume: Object, claim: Object, namespace: str, index: int) -> tuple[Object, Object]:
    """A volume and its claim as if a controller had bound them (CreatePodWithPersistentVolume in runners.go)."""
    claim["metadata"] = {**claim.get("metadata", {}), "name": f"pvc-{index}"}
    name = f"{namespace}-vol-{index}"
    volume["metadata"] = {**volume.get("metadata", {}), "name": name}
    source: Object = volume["spec"]
    if "csi" in source:
        source["csi"]["volumeHandle"] = name
    if "awsElasticBlockStore" in source:
        source["awsElasticBlockStore"]["volumeID"] = f"vol-{index}"
    source["claimRef"] = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": namespace,
        "name": claim["metadata"]["name"],
    }
    claim["spec"]["volumeName"] = name
    return volume, claim


def with_claim(pod: Object, claim: Object) -> Object:
    """The pod with the claim as its only volume."""
    source = {"claimName": claim["metadata"]["name"]}
    pod["spec"]["volumes"] = [{"name": "vol", "persistentVolumeClaim": source}]
    return pod


def resource_slice(driver: str, node: str, devices: int) -> Object:
    """What a DRA driver says about a node (resourceSlice in dra.go)."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 0, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"instance-{number}",
                    "attributes": {
                        "model": {"string": "A100"},
                        "family": {"string": "GPU"},
                        "driverVersion": {"version": "1.2.3"},
                        "dra.example.com/numa": {"int": number},
                    },
                    "capacity": {"memory": {"value": "1Gi"}},
                }
                for number in range(devices)
            ],
        },
    }
