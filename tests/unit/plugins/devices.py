"""Claims, slices and classes in one line, and a scheduler's handle over them."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from plugins.dynamic_resources.plugin import DynamicResources
from scheduler import framework as fw
from scheduler.api.decoding import reread
from scheduler.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from scheduler.api.unstructured import Unstructured
from scheduler.api.wording.text import to_json
from scheduler.framework.cycle_state import GroupCycleState
from scheduler.framework.errors import ApiError
from scheduler.framework.groups.pod_groups import PodGroups
from scheduler.framework.nodes.resources import KNOWN
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.objects import ObjectStore
from scheduler.state.simulated_api import merged
from scheduler.testing import a_node, pod_from_dict
from tests.controlplane.objects import a_pod
from tests.fakes import a_handle
from tests.unit.plugins.claims import RESOURCES
from tests.unit.plugins.cluster import a_cluster

DRIVER = "gpu.example.com"
NODES = a_cluster(a_node("n1"), a_node("n2"))
Json = dict[str, Any]


def a_device(name: str, **fields: Any) -> Json:
    """A device; `model="A100"` is an attribute, `memory="40Gi"` a capacity, anything else a field of the API."""
    made: Json = {"name": name}
    for key, value in fields.items():
        if key == "model":
            made.setdefault("attributes", {})[key] = {"string": value}
        elif key == "memory":
            made.setdefault("capacity", {})[key] = {"value": value}
        else:
            made[key] = value
    return made


def a_slice(name: str, *devices: Json, driver: str = DRIVER, pool: str = "", of: int = 1, **spec: Any) -> ResourceSlice:
    """A slice of the pool `pool`, which has `of` slices; for the node of its name unless `spec` says otherwise."""
    places = {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"}
    if not places & spec.keys():
        spec["nodeName"] = name
    generation = spec.pop("generation", 1)
    whole = {
        "driver": driver,
        "pool": {"name": pool or name, "generation": generation, "resourceSliceCount": of},
        "devices": list(devices),
        **spec,
    }
    return msgspec.convert({"metadata": {"name": name, "uid": f"slice-{name}"}, "spec": whole}, ResourceSlice)


def a_request(name: str = "q", cls: str = "any", *expressions: str, **fields: Any) -> Json:
    selectors = {"selectors": [{"cel": {"expression": each}} for each in expressions]} if expressions else {}
    return {"name": name, "exactly": {"deviceClassName": cls, **selectors, **fields}}


def a_claim(
    name: str, *requests: Json, status: Json | None = None, version: str = "1", **devices: Any
) -> ResourceClaim:
    metadata = {"name": name, "namespace": "default", "uid": f"claim-{name}", "resourceVersion": version}
    spec = {"devices": {"requests": list(requests or (a_request(),)), **devices}}
    return reread({"metadata": metadata, "spec": spec, "status": status or {}}, ResourceClaim)


def a_class(name: str, *expressions: str, **spec: Any) -> DeviceClass:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    content = {"metadata": {"name": name, "uid": f"class-{name}"}, "spec": {"selectors": selectors, **spec}}
    return reread(content, DeviceClass)


def a_taint_rule(name: str, effect: str = "NoSchedule", **selector: str) -> DeviceTaintRule:
    """A rule for all devices that are named; without any name it has an empty selector."""
    spec = {"deviceSelector": selector, "taint": {"key": name, "effect": effect}}
    return reread({"metadata": {"name": name, "uid": f"rule-{name}"}, "spec": spec}, DeviceTaintRule)


def allocated(*devices: str, node: str = "", reserved_for: tuple[str, ...] = (), **result: Any) -> Json:
    """The status of a claim that has devices, `pool/device`, for pods of these UIDs."""
    results = [
        {"request": "q", "driver": DRIVER, "pool": pool, "device": device, **result}
        for pool, device in (each.split("/") for each in devices)
    ]
    allocation: Json = {"devices": {"results": results}}
    if node:
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    consumers = [{"resource": "pods", "name": uid, "uid": uid} for uid in reserved_for]
    return {"allocation": allocation, "reservedFor": consumers}


def claiming(name: str, *claims: str, **status: Any) -> fw.Pod:
    """A pod with these claims; one that ends in `*` is made from a template, of that name."""
    written = [
        {"name": each.rstrip("*"), ("resourceClaimTemplateName" if each[-1] == "*" else "resourceClaimName"): each}
        for each in claims
    ]
    whole = a_pod(name, "default", resourceClaims=written)
    whole["metadata"]["uid"] = name
    return pod_from_dict({**whole, "status": status})


class Api:
    """An ApiWriter over an ObjectStore, which shows at once what is written, unless it is `late`."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.patches: list[tuple[str, Json]] = []
        self.pod_patches: list[Json] = []
        self.created: list[Json] = []
        self.deleted: list[str] = []
        self.errors: list[ApiError] = []
        """What to answer next, before anything succeeds."""
        self.late = False
        self.drops_pod_status = False
        """Whether the feature gate of the fields that are written there is off."""
        self.versions = 100
        self.hidden: dict[str, Any] = {}
        """Name → newest version of what the watch has not shown yet."""

    async def create(self, resource: str, content: Mapping[str, Any]) -> Any:
        self.created.append(json.loads(to_json(content)))
        if self.errors:
            raise self.errors.pop(0)
        metadata = content["metadata"]
        name = metadata["name"]
        if self.store.get(resource, name, metadata["namespace"]) is not None:
            raise ApiError(409, "already exists")
        self.versions += 1
        stamp = {"metadata": {"uid": f"claim-{name}", "resourceVersion": str(self.versions)}}
        return self._written(resource, reread(merged(content, stamp), ResourceClaim))

    async def delete(self, resource: str, name: str, namespace: str, uid: str) -> None:
        self.deleted.append(name)
        if self.errors:
            raise self.errors.pop(0)
        self.hidden.pop(name, None)
        self.store.remove(resource, uid)

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> Any:
        raise NotImplementedError

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> Any:
        patch = json.loads(to_json(patch))
        if resource == fw.POD:
            self.pod_patches.append(dict(patch))
        else:
            self.patches.append((subresource, dict(patch)))
        if self.errors:
            raise self.errors.pop(0)
        if resource == fw.POD:
            kept = {} if self.drops_pod_status else patch["status"]
            return Unstructured.from_dict({"metadata": {"name": name, "namespace": namespace}, "status": kept})
        current = self.hidden.get(name) or self.store.get(resource, name, namespace)
        if current is None:
            raise ApiError(404, "not found")
        if patch["metadata"]["resourceVersion"] != current.metadata.resource_version:
            raise ApiError(409, "the object has been modified")
        self.versions += 1
        written: Json = merged(
            merged(reread(current, object), patch), {"metadata": {"resourceVersion": str(self.versions)}}
        )
        return self._written(resource, reread(written, type(current)))

    def _written(self, resource: str, new: ResourceClaim) -> ResourceClaim:
        if self.late:
            self.hidden[new.metadata.name] = new
        else:
            self.store.set(resource, new)
        return new

    def show(self) -> None:
        """Let the watch catch up."""
        for new in self.hidden.values():
            self.store.set(fw.RESOURCE_CLAIM, new)
        self.hidden.clear()


class OneGroup(PodGroups):
    """All pods are of one group."""

    def key_of(self, pod: fw.Pod) -> fw.GroupKey:
        return fw.GroupKey("default", fw.POD_GROUP, "g")


class Attempt:
    """One pod's way through the plugin."""

    def __init__(
        self, plugin: DynamicResources, pod: fw.Pod, nodes: NodeTable = NODES, *, with_its_group: bool = False
    ) -> None:
        self.plugin, self.pod, self.nodes = plugin, pod, nodes
        self.state = GroupCycleState() if with_its_group else fw.CycleState()
        self.pre_filter = plugin.pre_filter(self.state, pod, nodes)

    def answers(self) -> dict[str, fw.Status | None]:
        """What Filter says of each node."""
        rows = np.flatnonzero(self.nodes.in_use)
        codes = self.plugin.filter_nodes(self.state, self.pod, self.nodes, rows)
        assert codes is not None
        found = [self.plugin.status_of(self.state, self.pod, int(code)) if code else None for code in codes]
        return dict(zip((self.nodes.names()[row] for row in rows.tolist()), found, strict=True))

    def refusals(self) -> dict[str, fw.Status]:
        return {name: status for name, status in self.answers().items() if status is not None}

    def filter(self, name: str) -> fw.Status | None:
        rows = np.array([self.nodes.row_of(name)], np.intp)
        codes = self.plugin.filter_nodes(self.state, self.pod, self.nodes, rows)
        return self.plugin.status_of(self.state, self.pod, int(codes[0])) if codes is not None and codes[0] else None

    def reserve(self, name: str) -> fw.Status | None:
        return self.plugin.reserve(self.state, self.pod, name)

    def assumed(self, name: str) -> fw.Pod:
        return self.plugin.completed(self.state, self.pod.bound_to(name), name)

    def unreserve(self, name: str) -> None:
        self.plugin.unreserve(self.state, self.pod, name)

    async def pre_bind(self, name: str) -> fw.Status | None:
        return await self.plugin.pre_bind(self.state, self.pod, name)

    def post_filter(self) -> fw.Status | None:
        return self.plugin.post_filter(self.state, self.pod, {})[1]

    def scores(self) -> list[int]:
        found = self.plugin.score_nodes(self.state, self.pod, self.nodes, np.arange(self.nodes.size))
        return [] if found is None else found[np.flatnonzero(self.nodes.in_use)].tolist()


def a_world(*objects: Any) -> tuple[fw.Handle, ObjectStore, Api]:
    """A handle over these slices, claims and classes, and a class `any` that has every device."""
    store = ObjectStore()
    store.watch(KNOWN)
    for each in (a_class("any"), *objects):
        put(store, each)
    api = Api(store)
    return dataclasses.replace(a_handle(), objects=store, api=api), store, api


def put(store: ObjectStore, thing: Any) -> None:
    store.set(RESOURCES[type(thing)], thing)
