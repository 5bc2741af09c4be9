"""The victims for a group of pods as a whole, chosen once from all nodes.

    all units of lower priority leave ─► does the group fit? ─► they come back one by one where it fits nevertheless

The question is asked as often as there are units. For a group of alike pods it is answered by counting; for others each
answer is a decision about all members, and where that takes too long, units come back many at a time. Those that come
first still have the better chance; only if a group fits with others and would not fit with some of them, other victims
may be found than one by one.

Tens of thousands may have to be asked about, so all is done in steps, of a unit each.

A unit is a pod, or all pods of a group that is disrupted together. Rule: framework/preemption/podgrouppreemption.go and
types.go at v1.36.3.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, TypeAlias, TypeVar

import numpy as np

from plugins.shared.eviction.budgets import Budgets
from scheduler import framework as fw
from scheduler.api.importance import started
from scheduler.framework.sparing import needed

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]

NEVER: Final = fw.unschedulable("not eligible due to preemptionPolicy=Never.")
NO_VICTIMS: Final = fw.unresolvable("No preemption victims found for incoming preemptor")

TOO_LONG: Final = fw.unschedulable("preemption takes too long for so many pods that are not alike")

MAX_DECISIONS: Final = 40_000
"""How many pods are decided about for the victims of one group, 0.15 ms each: meanwhile nothing else happens, and a
leader has 10 seconds to renew its Lease."""


@dataclass(slots=True, eq=False)
class Unit:
    """Pods that are evicted together."""

    pods: list[fw.Pod]
    priority: int
    start: int
    """When the first of its pods started."""

    is_of_group: bool

    @property
    def importance(self) -> tuple[int, bool, int, int]:
        """Sort by this for the most important unit first. Rule: moreImportantVictim."""
        return -self.priority, not self.is_of_group, -len(self.pods) if self.is_of_group else 0, self.start


def select_victims(
    group: fw.PodGroup, pods: Sequence[fw.Pod], groups: fw.PodGroups, budgets: Budgets, what_if: fw.GroupWhatIf
) -> Steps[Sequence[fw.Pod] | fw.Status]:
    """Return the pods without which the group fits, the most important first, or why it cannot be."""
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return NEVER
    units = yield from _units(group.priority, groups, what_if)
    if not units:
        return NO_VICTIMS
    for unit in units:
        what_if.remove(unit.pods)
        yield
    refusal = what_if.refusal()
    if refusal is not None:
        return refusal
    units = yield from _in_order(units)
    violates = []
    for answer in budgets.violating(unit.pods for unit in units):
        violates.append(answer)
        yield
    in_turn = [*compress(units, violates), *compress(units, [not each for each in violates])]
    is_quick = len(units) * what_if.decisions <= MAX_DECISIONS
    try:
        victims = yield from needed([[unit] for unit in in_turn] if is_quick else [in_turn], _Without(what_if))
    except TimeoutError:
        return TOO_LONG
    victims = yield from _in_order(victims)
    return [pod for unit in victims for pod in unit.pods]


class _Without:
    """Implements framework.sparing.WithoutSome."""

    def __init__(self, what_if: fw.GroupWhatIf) -> None:
        self._what_if = what_if
        self._decisions_left = MAX_DECISIONS

    def put_back(self, some: Sequence[Unit]) -> None:
        self._what_if.put_back([pod for unit in some for pod in unit.pods])

    def remove(self, some: Sequence[Unit]) -> None:
        self._what_if.remove([pod for unit in some for pod in unit.pods])

    def fits(self) -> bool:
        """Say whether the group fits. Raises TimeoutError if that has been asked too often."""
        self._decisions_left -= self._what_if.decisions
        if self._decisions_left < 0:
            raise TimeoutError
        return self._what_if.refusal() is None


def _units(priority: int, groups: fw.PodGroups, what_if: fw.GroupWhatIf) -> Steps[list[Unit]]:
    """Return the units of a lower priority."""
    units: list[Unit] = []
    together: dict[str, Unit] = {}
    for pods in what_if.pods_by_node():
        for pod in pods:
            name = groups.name_of(pod)
            group = groups.of(pod) if name else None
            if group is None or not group.is_disrupted_together:
                if pod.priority < priority:
                    units.append(Unit([pod], pod.priority, started(pod), bool(name)))
            elif (known := together.get(group.uid)) is not None:
                known.pods.append(pod)
                known.start = min(known.start, started(pod))
            else:
                together[group.uid] = Unit([pod], group.priority, started(pod), True)
        yield
    return units + [unit for unit in together.values() if unit.priority < priority]


def _in_order(units: Sequence[Unit]) -> Steps[list[Unit]]:
    """Return the most important units first, equal ones in the order in which they come."""
    importance = []
    for unit in units:
        importance.append(unit.importance)
        yield
    columns = []
    for place in reversed(range(4)):
        columns.append(np.fromiter((each[place] for each in importance), np.int64, len(units)))
        yield
    return [units[place] for place in np.lexsort(columns).tolist()]
