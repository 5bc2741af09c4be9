"""Pods of Kubernetes' own groups as victims of a single pod: with their group's priority, and some only as a whole.

Rule: getCrossNodesVictims in framework/preemption/types.go, and SelectVictimsOnNode in
defaultpreemption/default_preemption.go at v1.37.2.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Final

import numpy as np

from plugins.shared.eviction.budgets import Budgets
from scheduler import framework as fw
from scheduler.framework.preemption.victims import Unit, pods_of


def importance(unit: Unit) -> tuple[int, int, int, int]:
    """Sort by this for the most important unit first. Rule: MoreImportantVictim."""
    return -unit.priority, -unit.is_of_group - unit.is_of_groups, -len(unit.pods), unit.started


class GroupUnits:
    """The units that have pods of groups on the nodes."""

    def __init__(self, groups: Iterable[tuple[fw.PodGroup, Iterable[fw.Pod]]], nodes: fw.NodeColumns) -> None:
        self._unit_of: dict[str, Unit] = {}
        rows: set[int] = set()
        for group, pods in groups:
            there = sorted((pod for pod in pods if nodes.row_of(pod.node_name) is not None), key=str)
            together = Unit.of_group(group, there) if group.is_disrupted_together and there else None
            for pod in there:
                self._unit_of[pod.uid] = together or Unit.of_pod(pod, group.priority, is_of_group=True)
                rows.add(nodes.row_of(pod.node_name) or 0)
        self.rows: Final = np.array(sorted(rows), np.intp)
        """The nodes on which any is."""

    def on(self, pods: Iterable[fw.Pod]) -> list[Unit]:
        """Return the units of the pods of a node, each once."""
        units = [self._unit_of.get(pod.uid) or Unit.of_pod(pod, pod.priority, is_of_group=False) for pod in pods]
        return list({unit.uid: unit for unit in units}.values())


NO_UNITS: Final = GroupUnits((), None)  # type: ignore[arg-type]


def victims_among(
    node: fw.NodeSimulation, units: Sequence[Unit], here: Iterable[fw.Pod], budgets: Budgets
) -> tuple[Sequence[fw.Pod], int] | fw.Status:
    """Return those that have to leave, the most important first, and how many of these violate a budget.

    A status says why not even all of them would be enough. `here`: the pods of the node.
    """
    on_node = {pod.uid for pod in here}
    counted = {unit.uid: [pod for pod in unit.pods if node.depends_on_others or pod.uid in on_node] for unit in units}
    for pods in counted.values():
        node.remove(pods)
    refusal = node.refusal()
    if refusal is not None:
        return refusal
    ordered, tally = sorted(units, key=importance), budgets.tally()
    violating = [sum([tally.use((pod,)) for pod in unit.pods]) for unit in ordered]
    leaving: list[Unit] = []
    violations = 0
    counts = dict(zip((unit.uid for unit in ordered), violating, strict=True))
    for unit in (*compress(ordered, violating), *compress(ordered, [not each for each in violating])):
        if not node.takes_back(counted[unit.uid]):
            leaving.append(unit)
            violations += counts[unit.uid]
    return pods_of(sorted(leaving, key=importance)), violations


class WithoutUnits:
    """Implements framework.victims.WithoutSome on all nodes."""

    def __init__(self, what_if: fw.GroupWhatIf, max_decisions: int, fits: Callable[[], bool] | None = None) -> None:
        """`max_decisions`: how many pods may be decided about, 0.15 ms each: meanwhile no others are.

        `fits`: one of the questions of `what_if`; its refusal if None is given.
        """
        self._what_if = what_if
        self._fits = fits or (lambda: what_if.refusal() is None)
        self._decisions_left = max_decisions
        self.is_too_long = False
        """Whether it took too long: then nothing fits any more."""

    def put_back(self, some: Sequence[Unit]) -> None:
        self._what_if.put_back(pods_of(some))

    def remove(self, some: Sequence[Unit]) -> None:
        self._what_if.remove(pods_of(some))

    def fits(self) -> bool:
        self._decisions_left -= self._what_if.decisions
        self.is_too_long = self._decisions_left < 0
        return not self.is_too_long and self._fits()

    def ask(self, fits: Callable[[], bool]) -> None:
        """Go on with another question."""
        self._fits = fits
