"""The victims for a group of pods as a whole, chosen once from all nodes.

    all units of lower priority leave ─► does the group fit? ─► they come back one by one where it fits nevertheless

The question is asked as often as there are units. For a group of alike pods it is answered by counting; for others each
answer is a decision about all members, and where that takes too long, units come back many at a time. Those that come
first still have the better chance; the victims can differ from those found one by one only if a group fits with some
units and would not fit with fewer of them.

Tens of thousands may have to be asked about, so all is done in steps, of a unit each.

For a group of Kubernetes' own, its pods get their nodes once, without all of the units: a unit comes back where the
pods fit those nodes nevertheless. Those that are left come back where as many of its pods fit other nodes.

Rules: framework/preemption/podgrouppreemption.go and types.go at v1.37.2.
"""

from collections.abc import Collection, Generator, Sequence
from itertools import compress
from typing import Final, TypeAlias, TypeVar

import numpy as np

from plugins.shared.eviction.budgets import Budgets
from plugins.shared.eviction.units import WithoutUnits, importance
from scheduler import framework as fw
from scheduler.framework.preemption.victims import Unit, group_that_goes, needed, pods_of, priority_of

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]

NO_VICTIMS: Final = fw.unresolvable("No preemption victims found for incoming preemptor")

TOO_LONG: Final = fw.unschedulable("preemption takes too long for so many pods that are not alike")

MAX_NAMED: Final = 3
"""Budgets that a message names."""

MAX_DECISIONS: Final = 40_000
"""For the victims of one group: a leader has 10 seconds to renew its Lease."""


def select_victims(
    group: fw.PodGroup, groups: fw.PodGroups, budgets: Budgets, what_if: fw.GroupWhatIf
) -> Steps[fw.Victims | fw.Status]:
    """Return the pods without which the group fits, the most important first, or why it cannot be."""
    giving_way = groups.giving_way(group)
    units = yield from _units(group.priority, groups, giving_way, what_if)
    if not units:
        return NO_VICTIMS
    for unit in units:
        what_if.remove(unit.pods)
        yield
    refusal = what_if.refusal()
    if refusal is not None:
        return refusal
    units = yield from _in_order(units)
    violates, tally = list[int](), budgets.tally()
    for unit in units:
        violates.append(sum([tally.use((pod,)) for pod in unit.pods]))
        yield
    violations = dict(zip((unit.uid for unit in units), violates, strict=True))
    if giving_way and (protected := [unit for unit in compress(units, violates) if unit.priority >= group.priority]):
        for unit in protected:
            what_if.put_back(unit.pods)
        if what_if.refusal() is not None:
            return _protected(protected[0], budgets)
        violates = [answer for unit, answer in zip(units, violates, strict=True) if unit not in protected]
        units = [unit for unit in units if unit not in protected]
    ordered = [*compress(units, violates), *compress(units, [not each for each in violates])]
    is_quick = len(units) * what_if.decisions <= MAX_DECISIONS
    without = WithoutUnits(what_if, MAX_DECISIONS, None if group.is_ours else what_if.keeps_its_nodes)
    victims = yield from needed([[unit] for unit in ordered] if is_quick else [ordered], without)
    if without.is_too_long:
        return TOO_LONG
    if not group.is_ours and len(victims) > 1:
        without.ask(what_if.has_other_nodes)
        victims = yield from needed([[unit] for unit in victims], without)
    victims = yield from _in_order(victims)
    others = _left_of([unit for unit in victims if unit.priority >= group.priority], groups)
    return fw.Victims([*pods_of(victims), *others], sum(violations[unit.uid] for unit in victims))


def _left_of(given_up: Sequence[Unit], groups: fw.PodGroups) -> list[fw.Pod]:
    """Return the other pods of groups that are given up: those on nodes that do not matter here."""
    chosen = {pod.uid for pod in pods_of(given_up)}
    return [pod for unit in given_up for pod in groups.members(unit.pods[0]).scheduled if pod.uid not in chosen]


def _protected(unit: Unit, budgets: Budgets) -> fw.Status:
    return fw.unschedulable(
        f"a PodDisruptionBudget protects it: {', '.join(budgets.violated_by(unit.pods)[:MAX_NAMED])}"
    )


def _units(
    priority: int, groups: fw.PodGroups, giving_way: Collection[fw.GroupKey], what_if: fw.GroupWhatIf
) -> Steps[list[Unit]]:
    """Return the units of a lower priority, and the groups that give way, as they are."""
    units: list[Unit] = []
    together: dict[str, tuple[fw.PodGroup, list[fw.Pod]]] = {}
    for pods in what_if.pods_by_node():
        for pod in pods:
            group = groups.of(pod) if giving_way and groups.key_of(pod) in giving_way else group_that_goes(groups, pod)
            if group is not None:
                together.setdefault(group.uid, (group, []))[1].append(pod)
            elif (its := priority_of(groups, pod)) < priority:
                units.append(Unit.of_pod(pod, its, is_of_group=bool(groups.name_of(pod))))
        yield
    goes = [each for each in together.values() if each[0].priority < priority or each[0].key in giving_way]
    return units + [Unit.of_group(group, of) for group, of in goes]


def _in_order(units: Sequence[Unit]) -> Steps[list[Unit]]:
    """Return the most important units first, equal ones in the order in which they come."""
    ranks = []
    for unit in units:
        ranks.append(importance(unit))
        yield
    columns = []
    for place in reversed(range(4)):
        columns.append(np.fromiter((each[place] for each in ranks), np.int64, len(units)))
        yield
    return [units[place] for place in np.lexsort(columns).tolist()]
