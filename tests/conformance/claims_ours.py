"""Which devices the claims of pending pods would get on each feasible node, by our own allocator."""

from typing import Any, Final

import msgspec

from plugins.dynamic_resources.allocator import Allocator
from plugins.dynamic_resources.catalog import DeviceCatalog
from plugins.dynamic_resources.pod_claims import resource_claims_of
from plugins.dynamic_resources.pools import DevicesError
from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.framework.events import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from scheduler.framework.resources import KNOWN
from scheduler.simulate.objects import OtherObjects
from scheduler.state.objects import ObjectStore

Json = dict[str, Any]
RESOURCES: Final = {name: KNOWN[name] for name in (RESOURCE_CLAIM, RESOURCE_SLICE, DEVICE_CLASS)}


def add_claims(verdict: Json, pods: list[Pod], nodes: list[Node], others: OtherObjects) -> None:
    """Add `claims` to the feasible nodes of pods that have claims, as the oracle does."""
    objects = ObjectStore()
    objects.watch(RESOURCES)
    for resource, found in others.take(RESOURCES):
        objects.set(resource, found)
    catalog = DeviceCatalog(objects)
    by_name = {node.name: node for node in nodes}
    with_claims = {(pod.namespace, pod.name): pod for pod in pods if pod.spec.resource_claims}
    for said in verdict["pods"]:
        pod = with_claims.get((said["namespace"], said["name"]))
        if pod is None or said.get("gated"):
            continue
        # Where the plugin is not enabled, nobody asked for devices: there is no score of its then.
        feasible = [name for name, answer in said["nodes"].items() if "DynamicResources" in answer.get("scores", ())]
        if not feasible:
            continue
        claims = [claim for claim in resource_claims_of(pod, catalog) if claim.status.allocation is None]
        allocator = Allocator(catalog, claims, catalog.allocated())
        for name in feasible:
            try:
                solution = allocator.allocate(by_name[name], lambda: None)
            except DevicesError:
                solution = None
            if solution is None:
                continue  # the profile leaves Filter out
            claims_here: Json = {}
            for claim, allocation in zip(claims, solution.allocations, strict=True):
                # A pod may name a claim twice: the first allocation counts.
                claims_here.setdefault(str(claim), msgspec.json.decode(msgspec.json.encode(allocation)))
            if claims_here:
                said["nodes"][name]["claims"] = claims_here
