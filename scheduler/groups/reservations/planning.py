"""Chooses the nodes on which a group that does not fit now would fit earliest.

    nodes that do not refuse its pods ─► their pods: which leave when? ─► domain by domain, or all nodes as one:

        as many fit at a known time:   the earliest such time, and of the nodes as few as hold the group then
        not before others leave:       at an unknown time; the nodes that need the fewest of those to leave

What is free already comes first: a node that has become free since the last choice is chosen again. How many fit is
counted by amounts, as for levels of a topology (`topology/capacity.py`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import chain
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np

from scheduler.api.groups.owners import is_of_daemon_set, is_static
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import PODS
from scheduler.cycle.steps import Steps
from scheduler.framework.nodes.columns import Int64Column, Rows
from scheduler.groups.amounts import free_of, size_of, total_of
from scheduler.groups.reservations.run_times import NEVER, RunTimes
from scheduler.groups.topology.capacity import MANY, Shape
from scheduler.groups.topology.domains import Domains, all_nodes
from scheduler.groups.topology.levels import Outlook
from scheduler.state.nodes.node_table import NodeTable

MAX_PODS: Final = 30_000
"""On the nodes that are looked at. More are if these could not hold twice the group."""

MAX_LATE: Final = 10
"""Pods past their promise that are named."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The nodes on which a group would fit earliest."""

    kept: Mapping[str, Mapping[str, int]]
    """Node → resource → what is kept for the group there."""

    seconds: float
    """From now until it fits; infinite if unknown."""

    needed: int
    """Pods that need a node."""

    fitting: int
    """How many of them fit on these nodes now."""

    leaving: int
    """Pods with an unknown end, some or all of which have to leave."""

    late: Sequence[str] = ()
    """Some of these, which had promised an earlier end."""

    @property
    def rank(self) -> tuple[bool, float, int, int]:
        """The less, the better."""
        return self.seconds == NEVER, 0.0 if self.seconds == NEVER else self.seconds, self.leaving, len(self.kept)


_first: Final = itemgetter(0)


@dataclass(slots=True, eq=False)
class _Node:
    """A node, its free amounts now and later, and how much of it is kept for the group."""

    name: str
    free: Mapping[str, int]
    ends: list[tuple[float, Mapping[str, int]]] = field(default_factory=list)
    """Seconds from now, and the amounts that are free then, in this order."""

    unknown: dict[str, int] = field(default_factory=dict)
    """The amounts of pods with an unknown end."""

    unknown_count: int = 0
    late: list[str] = field(default_factory=list)
    """Some of these, which had promised an earlier end."""

    kept: dict[str, int] = field(default_factory=dict)

    def fits(self, demand: Mapping[str, int], seconds: float, most: int) -> int:
        """Return how many members fit after so many seconds; after NEVER, on what all others have left."""
        free = dict(self.free)
        for end, amounts in self.ends:
            if end > seconds:
                break
            _add(free, amounts)
        if seconds == NEVER:
            _add(free, self.unknown)
        fits = min((free[resource] - self.kept.get(resource, 0)) // amount for resource, amount in demand.items())
        return max(0, min(fits, most))


class Planner:
    """Plans for groups, with the nodes as they are."""

    def __init__(self, table: NodeTable, run_times: RunTimes, now: float) -> None:
        """`now`: seconds since 1970."""
        self._table = table
        self._run_times = run_times
        self._now = now

    def plan(self, outlook: Outlook, pods: Sequence[Pod], own: Iterable[Pod]) -> Steps[Plan | None]:
        """Return the best plan for the members without a node, `pods`; None if they would not fit on any empty nodes.

        `own`: the members that run. Between the steps, nodes and pods may change: then the plan is about as good.
        """
        needs = _needs(outlook)
        if outlook.problem or outlook.shapes.is_refused or not needs or not all(need.demand for need in needs):
            return None
        last = outlook.range.last
        domains = outlook.levels[last] if last >= 0 else all_nodes(self._table)
        nodes = yield from self._nodes(outlook, needs, domains, {pod.uid for pod in own})
        most = 1 if any(_is_one_a_node(pod) for pod in pods[:1]) else MANY
        best: Plan | None = None
        large_first = sorted(needs, key=lambda need: -size_of(self._table, need.demand))
        for those in nodes.values():
            found = yield from _plan_in(those, needs, most)
            if found is None and large_first != needs:
                found = yield from _plan_in(those, large_first, most)
            if found is not None and (best is None or found.rank < best.rank):
                best = found
        return best

    def _nodes(
        self, outlook: Outlook, needs: Sequence[Shape], domains: Domains, own: Collection[str]
    ) -> Steps[Mapping[int, list[_Node]]]:
        """Return the nodes of each domain that may take members once others have left."""
        names, found = self._table.names(), defaultdict[int, list[_Node]](list)
        resources = frozenset(resource for need in needs for resource in need.demand)
        rows, capacity = self._rows(outlook, needs, domains)
        left, wanted = MAX_PODS, 2 * sum(need.count for need in needs)
        for row in rows:
            if left <= 0 and wanted <= 0:
                break
            name = names[row]
            pods = tuple(self._table.pods_on(name))
            left -= len(pods) + 1
            wanted -= int(capacity[row])
            found[int(domains.numbers[row])].append(self._node(row, name, pods, resources, own))
            yield
        return found

    def _rows(self, outlook: Outlook, needs: Sequence[Shape], domains: Domains) -> tuple[Sequence[int], Int64Column]:
        """Return the rows that may take members once others have left, and how many each takes when it is empty.

        They are in the order of their domains, that with the largest share free first, and so within each domain.
        """
        table = self._table
        capacity, share = np.zeros(table.size, np.int64), np.ones(table.size)
        for need in needs:
            fits = np.where(need.possible & outlook.capacity.within & (domains.numbers >= 0), need.count, 0)
            for resource, amount in need.demand.items():
                there = total_of(table, resource)
                np.minimum(fits, there // amount, out=fits)
                np.minimum(share, free_of(table, resource) / np.maximum(there, 1), out=share)
            np.maximum(capacity, fits, out=capacity)
        rows = np.flatnonzero(capacity > 0)
        numbers = domains.numbers[rows]
        count = len(domains.names)
        total = np.bincount(numbers, share[rows], count) / np.maximum(np.bincount(numbers, minlength=count), 1)
        order: Rows = rows[np.lexsort((-share[rows], numbers, -total[numbers]))]
        return order.tolist(), capacity

    def _node(
        self, row: int, name: str, pods: Iterable[Pod], resources: Collection[str], own: Collection[str]
    ) -> _Node:
        node = _Node(name, {resource: int(free_of(self._table, resource)[row]) for resource in resources})
        for pod in pods:
            if pod.uid in own or is_of_daemon_set(pod) or is_static(pod):
                continue  # it stays
            amounts = {each: 1 if each == PODS else pod.requests.get(each, 0) for each in resources}
            end = self._run_times.end(pod, self._now)
            if end.seconds != NEVER:
                node.ends.append((end.seconds, amounts))
                continue
            _add(node.unknown, amounts)
            node.unknown_count += 1
            if end.is_late and len(node.late) < MAX_LATE:
                node.late.append(str(pod))
        node.ends.sort(key=_first)
        return node


def _needs(outlook: Outlook) -> list[Shape]:
    """Return as many members as are needed, those first of which most are alike; empty if there are fewer."""
    needs, missing = list[Shape](), outlook.needed
    for shape in outlook.shapes.shapes:
        needs.append(replace(shape, count=min(shape.count, missing)))
        missing -= needs[-1].count
        if not missing:
            return needs
    return []


def _is_one_a_node(pod: Pod) -> bool:
    """Return whether two such pods are probably not on one node: the targets of its anti-affinity are not checked."""
    return bool(pod.host_ports or pod.affinity_terms.required_anti_affinity)


def _plan_in(nodes: Sequence[_Node], needs: Sequence[Shape], most: int) -> Steps[Plan | None]:
    """Plan for one domain: kind after kind, each on what those before it have left. `most`: on one node."""
    seconds, fitting = 0.0, 0
    emptied: dict[_Node, None] = {}
    for node in nodes:
        node.kept = {}
    for need in needs:
        chosen = yield from _choose(nodes, need, most)
        if chosen is None:
            return None
        until, counts, to_empty = chosen
        seconds = max(seconds, until)
        emptied |= dict.fromkeys(to_empty)
        for node, count in counts.items():
            fitting += min(count, node.fits(need.demand, 0.0, most))
            for resource, amount in need.demand.items():
                node.kept[resource] = node.kept.get(resource, 0) + amount * count
    return Plan(
        {node.name: node.kept for node in nodes if node.kept},
        seconds,
        sum(need.count for need in needs),
        fitting,
        sum(node.unknown_count for node in emptied),
        tuple(chain.from_iterable(node.late for node in emptied))[:MAX_LATE],
    )


_Chosen: TypeAlias = tuple[float, Mapping[_Node, int], Collection[_Node]]
"""Seconds until members that are alike fit, how many go to each node, and the nodes that are to be emptied for them."""


def _choose(nodes: Sequence[_Node], need: Shape, most: int) -> Steps[_Chosen | None]:
    """Choose nodes for members that are alike; None if they do not fit even where all others have left."""
    count, demand, counts = need.count, need.demand, dict[_Node, int]()
    for node in nodes:
        counts[node] = min(count, node.fits(demand, 0.0, most))
        yield
    total = sum(counts.values())
    if total >= count:
        return 0.0, _fewest(counts, count), ()
    for seconds, node in merge(*([(seconds, node) for seconds, _ in node.ends] for node in nodes), key=_first):
        fits = min(count, node.fits(demand, seconds, most))
        total += fits - counts[node]
        counts[node] = fits
        if total >= count:
            return seconds, _fewest(counts, count), ()
        yield
    # All that is known is not enough: empty those nodes where the fewest have to leave for each member more.
    gains: dict[_Node, int] = {}
    for node in nodes:
        if node.unknown_count and (gain := min(count, node.fits(demand, NEVER, most)) - counts[node]) > 0:
            gains[node] = gain
        yield
    emptied: dict[_Node, int] = {}
    for node in sorted(gains, key=lambda node: node.unknown_count / gains[node]):
        if total >= count:
            break
        emptied[node] = counts.pop(node) + gains[node]
        total += gains[node]
    if total < count:
        return None
    others = _fewest(counts, count - sum(emptied.values()))
    return NEVER, _fewest(emptied, count) | others, emptied


def _fewest(counts: Mapping[_Node, int], count: int) -> dict[_Node, int]:
    """Return those nodes that take most, until so many members have one."""
    found: dict[_Node, int] = {}
    for node in sorted(counts, key=lambda node: -counts[node]):
        taken = min(counts[node], count)
        if taken <= 0:
            break
        found[node] = taken
        count -= taken
    return found


def _add(amounts: dict[str, int], more: Mapping[str, int]) -> None:
    for resource, amount in more.items():
        amounts[resource] = amounts.get(resource, 0) + amount
