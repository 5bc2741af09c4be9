"""The amounts that pods need free on a node, and those that are free there."""

from collections.abc import Mapping

from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import PODS
from scheduler.framework.nodes.columns import Int64Column
from scheduler.framework.nodes.nodes import NodeColumns
from scheduler.framework.plugin import DemandPlugin
from scheduler.runtime.framework import Framework


def demand_of(framework: Framework, pod: Pod) -> Mapping[str, int]:
    """Return what a pod needs free on its node."""
    off = framework.breaker.off(pod.namespace) if framework.breaker.paused else ()
    demand: dict[str, int] = {}
    for plugin in framework.plugins.of("filter", DemandPlugin):
        for resource, amount in plugin.demand(pod).items() if plugin.name not in off else ():
            if amount > demand.get(resource, 0):
                demand[resource] = amount
    return demand


def free_of(nodes: NodeColumns, resource: str) -> Int64Column:
    """Return the free amount of a resource on each row; less than 0 where more is requested than the node has."""
    if resource == PODS:
        return nodes.allowed_pods - nodes.pod_count
    return nodes.allocatable(resource) - nodes.requested(resource)


def total_of(nodes: NodeColumns, resource: str) -> Int64Column:
    """Return what each row has of a resource, used or not."""
    return nodes.allowed_pods if resource == PODS else nodes.allocatable(resource)


def size_of(nodes: NodeColumns, demand: Mapping[str, int]) -> float:
    """Return the largest share of what all nodes have of a resource that a pod needs."""
    return max((amount / max(int(total_of(nodes, name).sum()), 1) for name, amount in demand.items()), default=0.0)
