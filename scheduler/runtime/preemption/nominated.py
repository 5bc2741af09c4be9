"""Finds the pods nominated to nodes on which they are not running yet, to which a pod that is to be placed yields."""

from collections.abc import Collection
from typing import Final, Protocol

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.handle import PodNominator
from scheduler.framework.nodes.change_log import BoundedLog, LogReader
from scheduler.framework.nodes.nodes import Aspect, BoolColumn
from scheduler.framework.preemption.nominated import NominatedPods, yields_to
from scheduler.runtime.live_nodes import LiveNodes

_KEY: Final = "pods nominated to nodes"


class LiveNominator(PodNominator, Protocol):
    """The nominator as a profile reads it. Implemented in scheduler.state.nominator."""

    @property
    def changes(self) -> BoundedLog[str]:
        """The nodes whose nominated pods changed."""


class NominatedFinder:
    """Finds the nominated pods for each pod that is to be placed."""

    def __init__(self, nodes: LiveNodes, nominator: LiveNominator) -> None:
        self._nodes = nodes
        self._nominator = nominator
        self._logs = LogReader((nodes.change_log(Aspect.PODS),))
        self._position = nominator.changes.position
        self._newest: tuple[int, NominatedPods] | None = None
        """The last answer and its priority: pods of one priority come one after the other."""

    def of(self, state: CycleState, pod: Pod) -> NominatedPods:
        """Return the nominated pods of all nodes, found once in the cycle of a pod: nothing changes within it."""
        found = state.get(_KEY, NominatedPods)
        if found is None:
            found = self._found(pod)
            state.write(_KEY, found)
        return found

    def _found(self, pod: Pod) -> NominatedPods:
        nodes, nominator = self._nodes, self._nominator
        if nominator.node_of(pod.uid) or pod.uid in nominator.kept:  # it does not yield to itself, nor to later ones
            return NominatedPods(self.on(nodes.in_use, pod), nodes.size)
        rows = self._logs.stale_rows()
        names = nominator.changes.since(self._position)
        self._position = nominator.changes.position
        newest = self._newest
        if rows is None or names is None or newest is None or newest[0] != pod.priority or newest[1].size != nodes.size:
            found = NominatedPods(self.on(nodes.in_use, pod), nodes.size)
        else:
            changed = {*rows, *(row for name in names if (row := nodes.row_of(name)) is not None)}
            found = newest[1].with_rows({row: self._on(row, pod) for row in changed}) if changed else newest[1]
        self._newest = pod.priority, found
        return found

    def _on(self, row: int, pod: Pod) -> list[Pod]:
        if not self._nodes.in_use[row]:
            return []
        name = self._nodes.names()[row]
        return self._coming(row, name, self._nominator.nominated_pods(name), pod)

    def on(self, asked: BoolColumn, pod: Pod) -> dict[int, list[Pod]]:
        """Return those of the rows that are `asked`, by row: pods of the same or a higher priority, or that are kept.

        A pod that is on its node already, because the end of its nomination was not reported yet, is left out.
        """
        by_row: dict[int, list[Pod]] = {}
        row_of = self._nodes.row_of
        for name, nominated in self._nominator.by_node():
            row = row_of(name)
            if row is None or not asked[row]:
                continue
            coming = self._coming(row, name, nominated, pod)
            if coming:
                by_row[row] = coming
        return by_row

    def _coming(self, row: int, name: str, nominated: Collection[Pod], pod: Pod) -> list[Pod]:
        has_pod, nominator = self._nodes.has_pod, self._nominator
        return [other for other in nominated if yields_to(pod, other, name, nominator) and not has_pod(row, other.uid)]
