"""What devices pending pods would get on each feasible node, and take of it, by our own plugin's search."""

import dataclasses
from typing import Any, Final

import msgspec
import numpy as np

from plugins.dynamic_resources.allocation.catalog import catalog_of
from plugins.dynamic_resources.allocation.pools import DevicesError
from plugins.dynamic_resources.claim_state import ClaimState
from plugins.dynamic_resources.plugin import DynamicResources
from scheduler import framework as fw
from scheduler.api.devices import DeviceRequest
from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.framework.events import DEVICE_CLASS, DEVICE_TAINT_RULE, RESOURCE_CLAIM, RESOURCE_SLICE
from scheduler.framework.nodes.resources import KNOWN
from scheduler.simulate.other_objects import OtherObjects
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_cluster, a_handle, started

Json = dict[str, Any]
RESOURCES: Final = {name: KNOWN[name] for name in (RESOURCE_CLAIM, RESOURCE_SLICE, DEVICE_CLASS, DEVICE_TAINT_RULE)}


def add_claims(verdict: Json, pods: list[Pod], nodes: list[Node], others: OtherObjects, gates: frozenset[str]) -> None:
    """Add `claims` and `extended` to the feasible nodes of pods that need devices, as the oracle does."""
    objects = ObjectStore()
    objects.watch(RESOURCES)
    cluster = a_cluster(*nodes)
    handle = dataclasses.replace(a_handle(cluster, objects), feature_gates=gates)
    plugin = started(DynamicResources(), handle)
    for resource, found in others.take(RESOURCES):
        objects.set(resource, found)
    by_name = {(pod.namespace, pod.name): pod for pod in pods}
    for said in verdict["pods"]:
        # Where the plugin is not enabled, nobody asked for devices: there is no score of its then.
        feasible = [name for name, answer in said["nodes"].items() if "DynamicResources" in answer.get("scores", ())]
        pod = by_name.get((said["namespace"], said["name"]))
        if pod is None or said.get("gated") or not feasible:
            continue
        for name in feasible:
            said["nodes"][name] |= devices_on(plugin, pod, cluster, name)


def devices_on(plugin: DynamicResources, pod: Pod, cluster: NodeTable, name: str) -> Json:
    """What the pod's claims would get on a node, and what its claim for extended resources would be."""
    state = fw.CycleState()
    if plugin.pre_filter(state, pod, cluster) is not None:
        return {}
    row = cluster.row_of(name)
    try:
        codes = plugin.filter_nodes(state, pod, cluster, np.array([row]))
        if codes is None or codes[0] or plugin.reserve(state, pod, name) is not None:
            return {}  # the profile leaves Filter out
    except DevicesError:
        return {}
    said = state.read(plugin.name, ClaimState, "{key}")
    amounts = plugin.completed(state, pod, name).status.node_allocatable_resource_claim_statuses
    found: Json = {"amounts": written(amounts)} if plugin.completes_pods else {}
    for i, allocation in said.reserved.items():
        claim = said.claims[i]
        catalog_of(plugin.handle).allocations.release(claim.uid)
        if i == said.of_extended:
            found["extended"] = {
                "requests": [request_of(each) for each in claim.requests],
                "mappings": [each.written() for each in said.mappings],
                "allocation": written(allocation),
            }
        else:
            # A pod may name a claim twice: the first allocation counts.
            found.setdefault("claims", {}).setdefault(str(claim), written(allocation))
    return found


def request_of(request: DeviceRequest) -> Any:
    """A request with the defaults that its encoding leaves out."""
    assert request.exactly is not None
    spelled = {"allocationMode": request.exactly.allocation_mode, "count": request.exactly.count}
    return {"name": request.name, "exactly": written(request.exactly) | spelled}


def written(thing: Any) -> Any:
    """A struct as JSON."""
    return msgspec.json.decode(msgspec.json.encode(thing))
