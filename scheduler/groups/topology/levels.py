"""Decides about a group that names a level of a topology: the domains to try, and the order of their nodes.

    shapes of the members ─► domains that hold them, by columns ─► a what-if in the best ─┬─ all fit ──► that one
                                                                                      ▲  └─ not all ─► the next, then
                                                                                      └────────────────┘ the best so far

No what-if is made for a group that no domain holds. At most TRIES are made for one decision; if there are more domains,
the next attempt goes on with them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import msgspec
import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Algorithm, Unplaced
from scheduler.cycle.steps import Steps, in_one_go
from scheduler.framework.cycle_state import GroupCycleState
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.framework.nodes.columns import BoolColumn, Rows
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code, unschedulable
from scheduler.groups.decision import GroupDecision, MemberOutcome
from scheduler.groups.placements import failed
from scheduler.groups.rejector_events import TOPOLOGY_LEVELS
from scheduler.groups.topology.capacity import Capacity, NearMiss, Shapes, kinds_of, nearest_miss, shapes_of
from scheduler.groups.topology.domains import Domains, Range, all_nodes, domains_of, range_of
from scheduler.groups.topology.filling import Filling, parts_of
from scheduler.runtime.framework import Framework


@dataclass(frozen=True, slots=True)
class Outlook:
    """A group, and where it may fit."""

    range: Range
    levels: Sequence[Domains]
    shapes: Shapes
    capacity: Capacity
    needed: int
    """How many members need a node for the group to be placed."""

    running: Rows
    """The row of each member that has its node."""

    problem: str = ""
    """Why it fits nowhere, whatever is free."""

    @property
    def refusing(self) -> frozenset[str]:
        """Those named as plugins that refuse its members: what they wait for may help it."""
        return self.shapes.refusing | {TOPOLOGY_LEVELS}


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A domain that may hold the group, or all nodes."""

    level: int
    """The place of its level among all, the widest first; -1: all nodes."""

    fits: int
    """How many members it holds, at most."""

    domains: Domains | None = None
    number: int = 0

    @property
    def name(self) -> str:
        """The name of the domain; empty for all nodes."""
        return "" if self.domains is None else self.domains.names[self.number]

    @property
    def rows(self) -> BoolColumn | None:
        """Its nodes; None for all."""
        return None if self.domains is None else self.domains.rows(self.number)


def candidates(outlook: Outlook) -> Iterator[Candidate]:
    """Yield the domains in the order in which they are tried.

    From the level tried first to the wider one tried last: those that hold all members; then those of the last that
    hold the needed ones at least, or all nodes if all are to be tried.
    """
    levels, last, capacity, needed = outlook.levels, outlook.range.last, outlook.capacity, outlook.needed
    for level in range(outlook.range.first, max(last, 0) - 1, -1):
        domains = levels[level]
        holding = np.flatnonzero(capacity.fits(domains) == capacity.wanted)
        if len(holding):
            order = _order(domains, holding, capacity, outlook.running)
            yield from (Candidate(level, capacity.wanted, domains, each) for each in order)
    if last < 0:
        yield Candidate(-1, capacity.wanted)
        return
    domains = levels[last]
    fits = capacity.fits(domains)
    some = np.flatnonzero((fits < capacity.wanted) & (fits >= max(needed, 1))).tolist()
    for each in sorted(some, key=lambda each: (-fits[each], domains.names[each])):
        yield Candidate(last, int(fits[each]), domains, each)


def _order(domains: Domains, numbers: Rows, capacity: Capacity, running: Rows) -> list[int]:
    """Return domains that hold all members: where most of the running ones are; where nodes take them now; fullest."""
    now = capacity.fits(domains, now=True) == capacity.wanted
    spare, there = capacity.in_domains(domains), domains.count(running)
    return sorted(
        numbers.tolist(),
        key=lambda each: (-there[each], not now[each], spare[each], domains.node_counts[each], domains.names[each]),
    )


TRIES: Final = 8
"""What-ifs of one decision."""

NO_LEVELS: Final = Range((), -1, -1)

NAMED: Final = 3
"""Domains that a message names."""

WhatIf: TypeAlias = Callable[[Sequence[QueuedPod], Filling], Steps[GroupDecision]]
"""The decision about the members, in this order, where a filling says in which nodes each is tried."""


class TopologyLevels:
    """Places groups by levels of a topology."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._configured: Sequence[str] = ()
        self._algorithm = algorithm

    def use(self, configured: Sequence[str]) -> None:
        """Have the levels with these labels from now on, the widest first."""
        self._configured = configured

    def decide(
        self, framework: Framework, group: PodGroup, members: Sequence[QueuedPod], what_if: WhatIf
    ) -> Steps[GroupDecision]:
        """Decide about a group that names a level, its members in this order. Raises nothing that a plugin raises."""
        try:
            outlook = yield from self.outlook(framework, group, [queued.pod for queued in members])
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - only this group is affected
            return failed(framework, members[0].pod, error)
        if outlook.problem:
            return _refused(members, outlook.problem, outlook)
        found = list(candidates(outlook))
        if not found:
            nearest = self._nearest_miss(outlook)
            assert nearest is not None, "no domain holds the group"
            return msgspec.structs.replace(_refused(members, _none_holds(nearest), outlook), near_miss=nearest)
        return (yield from self._try(outlook, found, members, what_if))

    def _try(
        self, outlook: Outlook, found: Sequence[Candidate], members: Sequence[QueuedPod], what_if: WhatIf
    ) -> Steps[GroupDecision]:
        """Try the group in one domain after the other until all fit; return the best decision."""
        tried: list[Candidate] = []
        best: GroupDecision | None = None
        for candidate in _in_turn(found, members[0].attempts):
            if best is not None and best.status is None and candidate.fits <= _placed(best):
                break
            there = what_if(members, self._filling(outlook, candidate))
            decision = msgspec.structs.replace((yield from there), placement=candidate.name)
            tried.append(candidate)
            if decision.code is Code.ERROR or _placed(decision) == len(members):
                return decision
            best = max(best or decision, decision, key=lambda each: (each.status is None, _placed(each)))
        assert best is not None, "there is a candidate at least"
        if best.is_rejected:
            _widen(best, outlook.refusing)
            if outlook.range.last >= 0:
                return msgspec.structs.replace(best, status=unschedulable(_none_took(outlook, tried, len(found))))
        return best

    def nearest_miss(self, framework: Framework, group: PodGroup, pods: Sequence[Pod]) -> NearMiss | None:
        """Return what comes nearest to holding the members that have no node: the best domain of the group's required
        level, or all nodes as one domain if it has none; None if something holds them, by columns.

        For explanations: about a millisecond for 5,000 nodes, and nothing is tried. Raises what a plugin raises.
        """
        return self._nearest_miss(in_one_go(self.outlook(framework, group, pods)))

    def _nearest_miss(self, outlook: Outlook) -> NearMiss | None:
        table, last = self._algorithm.table, outlook.range.last
        domains = outlook.levels[last] if last >= 0 else all_nodes(table)
        miss = nearest_miss(table, domains, outlook.capacity, outlook.needed)
        is_fixed = last >= 0 and len(outlook.running) > 0
        return replace(miss, is_fixed=True) if miss is not None and is_fixed else miss

    def outlook(self, framework: Framework, group: PodGroup, pods: Sequence[Pod]) -> Steps[Outlook]:
        kinds = yield from kinds_of(framework, pods)
        table = self._algorithm.table
        found = NO_LEVELS
        if group.required_level or group.preferred_level:
            found = range_of(self._configured, group.required_level, group.preferred_level)
        levels = domains_of(table, found.labels)
        there = framework.handle.pod_groups.members(pods[0]).scheduled
        needed = max(group.minimum - len(there), 1)
        running = table.rows_of([pod.node_name for pod in there])
        problem, within = "", None
        if found.last >= 0:
            lost = next((pod.node_name for pod in there if table.row_of(pod.node_name) is None), "")
            problem, within = self._of_running(levels[found.last], running, lost)
        shapes = shapes_of(framework, self._algorithm, kinds)
        return Outlook(found, levels, shapes, Capacity(table, shapes.shapes, within), needed, running, problem)

    def _of_running(self, domains: Domains, running: Rows, lost: str) -> tuple[str, BoolColumn | None]:
        """Return what keeps the group from its required level, and the rows to which it may go.

        `lost`: a node of its pods that does not exist, or not for the moment; empty if there is none.
        """
        level = f"one domain of {domains.label}"
        if not domains.names:
            return f"the pod group requires {level}, and no node has that label", None
        numbers = np.unique(domains.numbers[running])
        if not len(numbers):
            text = f"the pod group requires {level}, and one of its pods runs on node {lost}, which does not exist"
            return text if lost else "", domains.numbers >= 0
        if numbers[0] < 0:
            row = running[domains.numbers[running] < 0][0]
            name = self._algorithm.table.names()[row]
            lost = f"one of its pods runs on node {name}, which has no such label"
            return f"the pod group requires {level}, and {lost}", None
        if len(numbers) > 1:
            names = _listed([domains.names[number] for number in numbers.tolist()])
            return f"the pod group requires {level}, and its pods run in {len(numbers)}: {names}", None
        return "", domains.rows(int(numbers[0]))

    def _filling(self, outlook: Outlook, candidate: Candidate) -> Filling:
        table, whole, capacity = self._algorithm.table, candidate.rows, outlook.capacity
        rows = np.flatnonzero(capacity.within if whole is None else whole)
        running = np.bincount(outlook.running, minlength=table.size)
        narrower = outlook.levels[candidate.level + 1 :]
        parts = parts_of(rows, narrower, capacity.on_rows, capacity.wanted, running) if narrower else ()
        may_fail = capacity.wanted - outlook.needed
        return Filling(parts, table.size, whole, outlook.shapes.kinds, may_fail)


def _in_turn(found: Sequence[Candidate], attempt: int) -> Sequence[Candidate]:
    """Return the domains to try in an attempt, counted from 1: all nodes in any case."""
    domains, others = [each for each in found if each.level >= 0], [each for each in found if each.level < 0]
    if len(domains) > TRIES:
        start = max(attempt - 1, 0) * TRIES % len(domains)
        domains = [*domains[start:], *domains[:start]][:TRIES]
    return [*domains, *others]


def _placed(decision: GroupDecision) -> int:
    return sum(outcome.is_placed for outcome in decision.members)


def _refused(members: Sequence[QueuedPod], text: str, outlook: Outlook) -> GroupDecision:
    """Return the decision about a group for which nothing is tried."""
    refusal = Unplaced(text, outlook.refusing)
    outcomes = [MemberOutcome(queued, GroupCycleState(), refusal) for queued in members]
    return GroupDecision(outcomes, unschedulable(text))


def _none_holds(nearest: NearMiss) -> str:
    if nearest.is_fixed:
        of, fits = f"{nearest.domain}, a domain of {nearest.label}", f"{nearest.fits} of the {nearest.needed}"
        return f"the other pods of the group run in {of}: it holds {fits} that are needed"
    return (
        f"no domain of {nearest.label} holds the {nearest.needed} pods that are needed at once: "
        f"the nearest, {nearest.domain}, holds {nearest.fits}"
    )


def _widen(decision: GroupDecision, refusing: frozenset[str]) -> None:
    """Let the members that were refused in one domain wait for what helps in any."""
    for outcome in decision.members:
        if isinstance(outcome.decision, Unplaced):
            plugins = outcome.decision.unschedulable_plugins | refusing
            outcome.decision = replace(outcome.decision, unschedulable_plugins=plugins)


def _none_took(outlook: Outlook, tried: Sequence[Candidate], found: int) -> str:
    label = outlook.levels[outlook.range.last].label
    names = _listed([candidate.name for candidate in tried])
    of = "with enough free" if len(tried) == found else f"that were tried, of {found} with enough free"
    return f"the pod group fits in none of the {len(tried)} domains of {label} {of}: {names}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*names[:NAMED], "..."] if len(names) > NAMED else names)
