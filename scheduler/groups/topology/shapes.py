"""Alike members of a group, with their requests and the nodes that refuse them: one search for all of a kind."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Algorithm, Search
from scheduler.cycle.steps import Steps
from scheduler.framework.cycle_state import GroupCycleState
from scheduler.framework.nodes.nodes import Aspect
from scheduler.framework.plugin import DemandPlugin
from scheduler.groups.amounts import demand_of
from scheduler.groups.topology.capacity import Shape
from scheduler.runtime.answers.pod_classes import KnownSpec
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable

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
