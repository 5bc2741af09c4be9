"""The number of members of a group that fit, by node: from columns, without trying any; never too low."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from scheduler.cycle.algorithm import Algorithm, Search
from scheduler.cycle.steps import Steps
from scheduler.framework.cycle_state import GroupCycleState
from scheduler.framework.nodes.columns import BoolColumn, Int64Column
from scheduler.framework.nodes.nodes import Aspect, NodeColumns
from scheduler.framework.plugin import DemandPlugin
from scheduler.groups.amounts import demand_of, free_of, total_of
from scheduler.groups.topology.domains import Domains
from scheduler.runtime.answers.pod_classes import KnownSpec
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable

_EVERYWHERE = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE, PODS))
"""If several are used up, one that only some nodes have says more."""

MANY: Final = 2**31
"""The capacity of a node for pods that ask for nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Members of a group that no plugin distinguishes."""

    count: int
    demand: Mapping[str, int]
    """Resource → amount that each takes of what is free on its node, the pod itself as one of `pods`; never 0."""

    possible: BoolColumn
    """The nodes that do not refuse them for what they are, by labels or taints for example, whatever pods they have."""

    feasible: BoolColumn
    """The nodes that take one now. Pods of the group may change that, for others or for the better."""


class Capacity:
    """The number of members that fit on each node, and in each domain."""

    def __init__(self, nodes: NodeColumns, shapes: Sequence[Shape], within: BoolColumn | None = None) -> None:
        """`within`: the rows that count; None for all. The most frequent shape is first."""
        self.shapes: Final = shapes
        self.wanted: Final = sum(shape.count for shape in shapes)
        """How many members there are."""
        self._nodes = nodes
        self.within: Final = nodes.in_use if within is None else nodes.in_use & within
        self._free = {resource: free_of(nodes, resource).clip(0) for shape in shapes for resource in shape.demand}
        self.by_shape: Final = [self._capacity_for(shape) for shape in shapes]
        """Of each shape, how many fit on each row if no other member does."""

    @property
    def on_rows(self) -> Int64Column:
        """About how many members each row takes."""
        return self.by_shape[0]

    def in_domains(self, domains: Domains) -> Int64Column:
        """About how many members each domain takes, even if that is more than there are."""
        return domains.sum(self.by_shape[0])

    def fits(self, domains: Domains, *, now: bool = False) -> Int64Column:
        """Return how many members fit into each domain at most; `now`: on nodes only that take one of them now."""
        fits = np.zeros(len(domains.names), np.int64)
        for shape, capacity in zip(self.shapes, self.by_shape, strict=True):
            counted = np.minimum(capacity, shape.count)
            fits += np.minimum(domains.sum(np.where(shape.feasible, counted, 0) if now else counted), shape.count)
        if len(self.shapes) > 1:
            possible = np.logical_or.reduce([shape.possible for shape in self.shapes]) & self.within
            for resource, free in self._free.items():
                np.minimum(fits, self._fits_by(resource, domains.sum(np.where(possible, free, 0))), out=fits)
        return fits

    def tightest(self, shape: Shape, rows: BoolColumn) -> str:
        """Return the resource of which the rows have least for pods of a shape; empty if all rows refuse them."""
        rows = rows & shape.possible & self.within
        capacity = {
            resource: int(np.minimum(self._free[resource][rows] // amount, shape.count).sum())
            for resource, amount in shape.demand.items()
        }
        order = sorted(capacity, key=lambda each: (capacity[each], each in _EVERYWHERE, each))
        return order[0] if order and rows.any() else ""

    def _capacity_for(self, shape: Shape) -> Int64Column:
        capacity = np.full(self._nodes.size, MANY, np.int64)
        for resource, amount in shape.demand.items():
            np.minimum(capacity, self._free[resource] // amount, out=capacity)
        return np.where(shape.possible & self.within, capacity, 0)

    def _fits_by(self, resource: str, free: Int64Column) -> Int64Column:
        """Return how many members share what is free of one resource in each domain: those first that ask for least."""
        fits, left = np.zeros(len(free), np.int64), free.copy()
        for amount, count in sorted((shape.demand.get(resource, 0), shape.count) for shape in self.shapes):
            taken = np.minimum(left // amount, count) if amount else np.full(len(free), count, np.int64)
            fits += taken
            left -= taken * amount
        return fits


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A domain that does not hold a group: "rack r7 lacks 2 nodes with 8 gpus"."""

    label: str
    """The label of its level, `example.com/rack`; empty for all nodes."""

    domain: str
    """Its name, `r7`; empty for all nodes."""

    fits: int
    """How many of the members without a node it holds, at most."""

    needed: int
    """How many of them need one before any is bound."""

    node_count: int
    """How many nodes it has."""

    refusing_count: int
    """How many of them refuse the members for what they are, by labels or taints, whatever is free on them."""

    resource: str = ""
    """The resource that it has least of, `nvidia.com/gpu`; empty if every node of it refuses the members."""

    lacking_nodes: int = 0
    """How many nodes more would do, with `amount_each` of the resource free on each. About: the largest counts."""

    amount_each: int = 0
    """In the resource's own unit: thousandths of a core, bytes, or pieces."""

    is_fixed: bool = False
    """Whether other pods of the group run there, so that it cannot go elsewhere."""


def nearest_miss(nodes: NodeColumns, domains: Domains, capacity: Capacity, needed: int) -> NearMiss | None:
    """Return the domain that comes nearest to holding the `needed` members, of those that do not, and what it lacks.

    Found by columns alone: what else refuses pods is not seen.
    """
    all_fits, spare = capacity.fits(domains), capacity.in_domains(domains)
    missing = (domains.count(np.flatnonzero(capacity.within)) > 0) & (all_fits < needed)
    number = min(
        np.flatnonzero(missing).tolist(),
        key=lambda each: (-all_fits[each], -spare[each], domains.names[each]),
        default=None,
    )
    if number is None:
        return None
    rows, fits = domains.rows(number) & capacity.within, int(all_fits[number])
    short = [
        shape.count - min(int(by_row[rows].sum()), shape.count)
        for shape, by_row in zip(capacity.shapes, capacity.by_shape, strict=True)
    ]
    shape = capacity.shapes[int(np.argmax(short))]
    # Each shape may fit by itself, but not all of them.
    lacking = min(max(short) or needed, needed - fits)
    resource = capacity.tightest(shape, rows)
    on_one = _on_one_node(nodes, shape, rows if (rows & shape.possible).any() else capacity.within)
    return NearMiss(
        label=domains.label,
        domain=domains.names[number],
        fits=fits,
        needed=needed,
        node_count=int(np.count_nonzero(rows)),
        refusing_count=int(np.count_nonzero(rows & ~shape.possible)),
        resource=resource,
        lacking_nodes=-(-lacking // on_one),
        amount_each=shape.demand[resource] * min(lacking, on_one) if resource else 0,
    )


def _on_one_node(nodes: NodeColumns, shape: Shape, rows: BoolColumn) -> int:
    """Return how many pods of a shape the largest of these nodes takes while it is empty; 1 at least."""
    most = np.full(nodes.size, MANY, np.int64)
    for resource, amount in shape.demand.items():
        np.minimum(most, total_of(nodes, resource) // amount, out=most)
    return max(int(most[rows & shape.possible].max(initial=0)), 1)


MOST_SHAPES: Final = 16
"""Kinds of members that are counted, the most frequent first: of further ones any number may fit anywhere."""

PODS_A_STEP: Final = 200

OF_NODES: Final = Aspect.NAME | Aspect.ALLOCATABLE | Aspect.LABELS | Aspect.TAINTS | Aspect.IMAGES | Aspect.NODE
"""Facts that no pod changes: a refusal for one of them lasts, no matter which pods come to the node or leave it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Members that are alike."""

    pod: Pod
    """One of them."""

    state: GroupCycleState
    known: KnownSpec
    demand: Mapping[str, int]
    uids: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shapes:
    """The members of a group by kind."""

    shapes: Sequence[Shape]
    """The most frequent first; those that are not counted are one, the last."""

    kinds: Mapping[str, object]
    """UID → kind of member."""

    refusing: frozenset[str]
    """The plugins that refuse members on some node: what they wait for may help the group."""

    is_refused: bool = False
    """Whether a plugin refuses members as a whole, whatever nodes there are."""


def shapes_of(framework: Framework, algorithm: Algorithm, kinds: Collection[Kind]) -> Shapes:
    """Find the shapes of the members. Raises what a plugin raises."""
    kinds = sorted(kinds, key=lambda kind: -len(kind.uids))
    shapes: list[Shape] = []
    refusing: set[str] = set()
    is_refused = False
    for kind in kinds[:MOST_SHAPES]:
        search = algorithm.search(framework, kind.state, kind.pod, nominated_first=False, only=algorithm.table.in_use)
        shapes.append(_shape(kind, search, algorithm.table))
        is_refused |= search.outcome is None
        refusing |= {step.name for step, _ in search.outcome.codes} if search.outcome is not None else set()
        refusing |= search.diagnosis.unschedulable_plugins
    refusing |= {plugin.name for plugin in framework.plugins.of("filter", DemandPlugin)}
    if others := sum(len(kind.uids) for kind in kinds[MOST_SHAPES:]):
        shapes.append(Shape(others, {}, algorithm.table.in_use, algorithm.table.in_use))
    return Shapes(
        shapes, {uid: at for at, kind in enumerate(kinds) for uid in kind.uids}, frozenset(refusing), is_refused
    )


def kinds_of(framework: Framework, pods: Sequence[Pod]) -> Steps[Collection[Kind]]:
    """Divide the members by kind: some hundreds in each step. Raises what a plugin raises."""
    kinds: dict[Hashable, Kind] = {}
    seen: dict[int, tuple[KnownSpec, Kind]] = {}
    """The identity of what is known of a spec, which is kept meanwhile so that no other has it."""
    for place, pod in enumerate(pods, start=1):
        state = GroupCycleState()
        known = framework.classify(state, pod)
        if id(known) not in seen:
            demand = demand_of(framework, pod)
            key = known.pod_class.key, frozenset(demand.items()), known.excess
            seen[id(known)] = known, kinds.setdefault(key, Kind(pod, state, known, demand))
        seen[id(known)][1].uids.append(pod.uid)
        if place % PODS_A_STEP == 0:
            yield
    return kinds.values()


def _shape(kind: Kind, search: Search, table: NodeTable) -> Shape:
    possible, feasible = table.in_use.copy(), np.zeros(table.size, np.bool_)
    if search.outcome is not None:
        feasible[search.outcome.feasible] = True
        for step, codes in search.outcome.codes:
            # What is not signed is known of one pod only, not of all that are alike.
            if step.name in kind.known.pod_class.signatures and all(aspect in OF_NODES for aspect in step.aspects):
                possible &= codes == 0
    return Shape(len(kind.uids), kind.demand, possible, feasible)
