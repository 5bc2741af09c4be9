"""The amounts that pods need free on a node, those that are free there, and whether that is enough for a group at all.

    minResources of its object ─► is as much free in the cluster?
    tried in vain before ───────► do nodes take as many of its smallest pods as it needs, without those it may evict?

A no is final; after a yes the group is tried. So a waiting group costs little when an event helps one of its pods.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import CPU, PODS
from scheduler.framework.groups.pod_groups import GroupMembers, PodGroup
from scheduler.framework.nodes.columns import Int64Column
from scheduler.framework.nodes.nodes import NodeColumns
from scheduler.framework.plugin import DemandPlugin
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable


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


MAX_NAMED: Final = 5
"""Resources that a message names."""


def resource_gap(table: NodeTable, group: PodGroup, members: GroupMembers) -> str:
    """Say which of the resources that a group needs together the cluster lacks; empty if none.

    What the group has already counts as free. Rule: CheckClusterResource in scheduler-plugins' pkg/coscheduling/core.
    """
    scheduled, lacking = members.scheduled, []
    for name, amount in sorted({**group.resources, PODS: group.minimum}.items()):
        free = free_of(table, name).clip(0)
        own = len(scheduled) if name == PODS else sum(pod.requests.get(name, 0) for pod in scheduled)
        gap = amount - own - int(free[table.in_use].sum())
        if gap > 0:
            lacking.append(f"{name}: {gap}m" if name == CPU else f"{name}: {gap}")
    more = f", and {len(lacking) - MAX_NAMED} more" if len(lacking) > MAX_NAMED else ""
    return f"resource gap: {', '.join(lacking[:MAX_NAMED])}{more}" if lacking else ""


def may_have_space(framework: Framework, table: NodeTable, group: PodGroup, members: GroupMembers) -> bool:
    """Return whether nodes may take as many members without a node as the group needs, if it evicts all that it may."""
    if framework.handle.pod_groups.giving_way(group):
        return True  # what is left of these
    pods = members.unscheduled
    shares = framework.handle.shares
    if any((key := shares.key_of(pod)) is not None and shares.takes_back(key) for pod in islice(pods, 1)):
        return True  # from pods of any priority
    needed = max(group.minimum - members.scheduled_count, 1)
    rows = np.flatnonzero(table.in_use)
    lower = None
    if group.may_preempt(pods):
        lower = framework.handle.dry_runs.lower_pods(group.priority, rows)
    capacity = np.full(len(rows), needed, np.int64)
    for name, amount in _smallest(framework, pods).items():
        free = free_of(table, name)[rows]
        if lower is not None:
            free = free + (lower.counts if name == PODS else lower.sums(name))
        np.minimum(capacity, free.clip(0) // amount, out=capacity)
    return int(capacity.sum()) >= needed


def _smallest(framework: Framework, pods: Iterable[Pod]) -> Mapping[str, int]:
    """Return resource → the least that any of these pods needs free, of those that all need."""
    smallest: dict[str, int] | None = None
    seen: set[int] = set()
    for pod in pods:
        if id(pod.resources) not in seen:  # shared by those that are alike
            seen.add(id(pod.resources))
            demand = demand_of(framework, pod)
            if smallest is None:
                smallest = dict(demand)
            else:
                smallest = {name: min(amount, demand[name]) for name, amount in smallest.items() if name in demand}
    return smallest or {}
