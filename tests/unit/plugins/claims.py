"""Claims and the volumes for them, a plugin that looks at them, and an API server for what it writes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from plugins.volumes.volume_binding import VolumeBinding
from scheduler import framework as fw
from scheduler.api.objects import ObjectMeta
from scheduler.api.storage.volumes import (
    BIND_COMPLETED,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler.api.unstructured import Unstructured
from scheduler.framework.nodes.resources import KNOWN, STRUCTS
from scheduler.process.metrics import Metrics
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.objects import ObjectStore
from scheduler.state.simulated_api import merged
from scheduler.testing import a_node, pod_from_dict, started
from tests.fakes import a_handle
from tests.unit.plugins.cluster import a_cluster, every_row

STATIC, MADE = "static", "made"
"""Classes that wait for the pod: volumes that are there, and volumes that are made."""


def a_claim(
    name: str = "data", size: str = "1Gi", class_name: str | None = STATIC, **parts: Any
) -> PersistentVolumeClaim:
    """`volume`: bound to it. `annotations`, `uid`, `owner`, `phase`, `deleted`; the rest goes into the spec."""
    annotations = dict(parts.pop("annotations", {}))
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": parts.pop("uid", f"uid-{name}")}
    phase = parts.pop("phase", "Pending")
    if "volume" in parts:
        parts["volumeName"] = parts.pop("volume")
        annotations[BIND_COMPLETED] = "yes"
        phase = "Bound"
    if "owner" in parts:
        metadata["ownerReferences"] = [{"kind": "Pod", "uid": parts.pop("owner"), "controller": True}]
    if parts.pop("deleted", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    metadata |= {"resourceVersion": str(parts.pop("version", 1)), "annotations": annotations}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **parts}
    if class_name is not None:
        spec["storageClassName"] = class_name
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, PersistentVolumeClaim)


def a_volume(name: str = "pv", size: str = "1Gi", class_name: str = STATIC, **parts: Any) -> PersistentVolume:
    """`on`: label → values of nodes that reach it. `claim`: its claimRef. `phase`, `labels`, `annotations`."""
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(parts.pop("version", 1))}
    metadata |= {key: parts.pop(key) for key in ("labels", "annotations", "deletionTimestamp") if key in parts}
    phase = parts.pop("phase", "Available")
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "storageClassName": class_name, **parts}
    if "on" in spec:
        expressions = [{"key": key, "operator": "In", "values": values} for key, values in spec.pop("on").items()]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    if "claim" in spec:
        spec["claimRef"] = spec.pop("claim")
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, PersistentVolume)


def a_class(name: str = STATIC, mode: str | None = "WaitForFirstConsumer", **parts: Any) -> StorageClass:
    """STATIC has no provisioner, all others have some driver."""
    provisioner = "kubernetes.io/no-provisioner" if name == STATIC else "disks.example.com"
    metadata = {"name": name, "uid": f"uid-{name}"}
    return msgspec.convert(
        {"metadata": metadata, "provisioner": provisioner, "volumeBindingMode": mode, **parts}, StorageClass
    )


def a_driver(*, counts: bool | None = None, name: str = "disks.example.com", **spec: Any) -> CSIDriver:
    whole = {"metadata": {"name": name, "uid": name}, "spec": {"storageCapacity": counts, **spec}}
    return msgspec.convert(whole, CSIDriver)


def room(name: str, class_name: str = MADE, **parts: Any) -> CSIStorageCapacity:
    content = {"metadata": {"name": name, "uid": name}, "storageClassName": class_name, **parts}
    return msgspec.convert(content, CSIStorageCapacity)


def a_csi_node(name: str, migrated: str = "") -> CSINode:
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return msgspec.convert({"metadata": {"name": name, "uid": name, "annotations": annotations}}, CSINode)


def a_pod_with(
    *claims: str, ephemeral: bool = False, name: str = "web", namespace: str = "default", **source: Any
) -> fw.Pod:
    """A pod with these claims; with `ephemeral`, one that has a claim made for it besides."""
    volumes: list[dict[str, Any]] = [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}} for i, claim in enumerate(claims)
    ]
    if ephemeral:
        volumes.append({"name": "own", "ephemeral": {"volumeClaimTemplate": {}}})
    if source:
        volumes.append({"name": "other", **source})
    return pod_from_dict(
        {"metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": {"volumes": volumes}}
    )


RESOURCES = {struct: resource for resource, struct in STRUCTS.items()}


class World:
    """Nodes `a` and `b`, each its own host and zone, some objects, and an API server that takes what is written."""

    def __init__(self, *objects: Any, nodes: Mapping[str, Mapping[str, str]] | None = None, timeout: int = 600) -> None:
        labels = nodes or {name: {"host": name, "zone": f"zone-{name}"} for name in ("a", "b")}
        self.table: NodeTable = a_cluster(*(a_node(name, labels=each) for name, each in labels.items()))
        self.store = ObjectStore()
        self.store.watch(KNOWN)
        self.put(*objects)
        self.pods: dict[str, fw.Pod] = {}
        self.metrics = Metrics()
        self.written: list[tuple[str, str, Any]] = []
        self.refusal: fw.ApiError | None = None
        self._version = 100
        handle = replace(
            a_handle(), nodes=self.table, objects=self.store, pods=self.pods, metrics=self.metrics, api=self
        )
        self.plugin = started(VolumeBinding(bind_timeout_seconds=timeout), handle)

    def put(self, *objects: Any) -> None:
        for each in objects:
            self.store.set(RESOURCES[type(each)], each)

    def gone(self, thing: Any) -> None:
        self.store.remove(RESOURCES[type(thing)], thing.metadata.uid)

    async def create(self, resource: str, content: Mapping[str, Any]) -> Any:
        raise AssertionError("only patches are expected")

    async def delete(self, resource: str, name: str, namespace: str, uid: str) -> None:
        raise AssertionError("only patches are expected")

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> Any:
        raise AssertionError("only patches are expected")

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> Any:
        """Take a patch; the store learns of it only by `show`."""
        if self.refusal is not None:
            raise self.refusal
        self._version += 1
        self.written.append((resource, name, patch))
        metadata = ObjectMeta(name=name, resource_version=str(self._version))
        return Unstructured(metadata, {})

    def show(self, thing: Any, **changes: Any) -> Any:
        """Let the watch tell of a new version: `metadata`, `spec` and `status` as merge patches."""
        self._version += 1
        stamp = {"metadata": {"resourceVersion": str(self._version)}}
        new = msgspec.convert(merged(merged(msgspec.to_builtins(thing), changes), stamp), type(thing))
        self.put(new)
        return new

    def pre_filter(self, pod: fw.Pod, state: fw.CycleState | None = None) -> Any:
        return self.plugin.pre_filter(state or fw.CycleState(), pod, self.table)

    def refusals(self, pod: fw.Pod) -> dict[str, tuple[str, ...]]:
        """Node → why it is refused."""
        state = fw.CycleState()
        assert self.pre_filter(pod, state) is None
        return self._refused(state, pod)

    def _refused(self, state: fw.CycleState, pod: fw.Pod) -> dict[str, tuple[str, ...]]:
        codes = self.plugin.filter_nodes(state, pod, self.table, every_row(self.table))
        if codes is None:
            return {}
        found = {}
        for name, code in zip(self.table.names(), codes.tolist(), strict=True):
            if name and code:
                status = self.plugin.status_of(state, pod, code)
                assert status.code is fw.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
                found[name] = status.reasons
        return found

    def reserve(self, pod: fw.Pod, node: str) -> fw.CycleState:
        """Decide for a node that is not refused."""
        state = fw.CycleState()
        assert self.pre_filter(pod, state) is None
        assert node not in self._refused(state, pod)
        assert self.plugin.reserve(state, pod, node) is None
        self.pods[pod.uid] = pod
        return state
