"""The victims for a group of pods as a whole, chosen once from all nodes.

    all units of lower priority leave ─► does the group fit? ─► they come back one by one where it fits nevertheless

A unit is a pod, or all pods of a group that is disrupted together. Rule: framework/preemption/podgrouppreemption.go and
types.go at v1.36.3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from plugins.default_preemption.budgets import Budgets
from scheduler import framework as fw
from scheduler.api.importance import started

NEVER: Final = fw.unschedulable("not eligible due to preemptionPolicy=Never.")
NO_VICTIMS: Final = fw.unresolvable("No preemption victims found for incoming preemptor")


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
    group: fw.PodGroup,
    pods: Sequence[fw.Pod],
    nodes: fw.NodeColumns,
    groups: fw.PodGroups,
    budgets: Budgets,
    what_if: fw.GroupWhatIf,
) -> Sequence[fw.Pod] | fw.Status:
    """Return the pods without which the group fits, the most important first, or why it cannot be."""
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return NEVER
    units = [unit for unit in _units(nodes, groups) if unit.priority < group.priority]
    if not units:
        return NO_VICTIMS
    for unit in units:
        what_if.remove(unit.pods)
    refusal = what_if.refusal()
    if refusal is not None:
        return refusal
    units.sort(key=lambda unit: unit.importance)
    violates = budgets.violating([unit.pods for unit in units])
    victims = []
    for unit, _ in sorted(zip(units, violates, strict=True), key=lambda each: not each[1]):
        what_if.put_back(unit.pods)
        if what_if.refusal() is not None:
            what_if.remove(unit.pods)
            victims.append(unit)
    victims.sort(key=lambda unit: unit.importance)
    return [pod for unit in victims for pod in unit.pods]


def _units(nodes: fw.NodeColumns, groups: fw.PodGroups) -> Iterator[Unit]:
    together: dict[str, Unit] = {}
    for row in nodes.in_use.nonzero()[0].tolist():
        for pod in nodes.info(row).pods:
            name = groups.name_of(pod)
            group = groups.of(pod) if name else None
            if group is None or not group.is_disrupted_together:
                yield Unit([pod], pod.priority, started(pod), bool(name))
            elif (known := together.get(group.uid)) is not None:
                known.pods.append(pod)
                known.start = min(known.start, started(pod))
            else:
                together[group.uid] = Unit([pod], group.priority, started(pod), True)
    yield from together.values()
