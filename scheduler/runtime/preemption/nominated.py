"""Finds the pods nominated to nodes on which they are not running yet, to which a pod that is to be placed yields."""

from typing import Final

from scheduler.api.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.handle import PodNominator
from scheduler.framework.nodes import BoolColumn
from scheduler.framework.nominated import NominatedPods
from scheduler.runtime.live_nodes import LiveNodes

_KEY: Final = "pods nominated to nodes"


class NominatedFinder:
    """Finds the nominated pods for each pod that is to be placed."""

    def __init__(self, nodes: LiveNodes, nominator: PodNominator) -> None:
        self._nodes = nodes
        self._nominator = nominator

    def of(self, state: CycleState, pod: Pod) -> NominatedPods:
        """Return the nominated pods of all nodes, found once in the cycle of a pod: nothing changes within it."""
        found = state.get(_KEY, NominatedPods)
        if found is None:
            found = NominatedPods(self.on(self._nodes.in_use, pod), self._nodes.size)
            state.write(_KEY, found)
        return found

    def on(self, asked: BoolColumn, pod: Pod) -> dict[int, list[Pod]]:
        """Return those of the rows that are `asked`, by row: pods of the same or a higher priority, or that are kept.

        A pod that is on its node already, because the end of its nomination was not reported yet, is left out.
        """
        by_row: dict[int, list[Pod]] = {}
        priority, uid, kept = pod.priority, pod.uid, self._nominator.kept
        row_of, has_pod = self._nodes.row_of, self._nodes.has_pod
        for name, nominated in self._nominator.by_node():
            row = row_of(name)
            if row is None or not asked[row]:
                continue
            coming = [
                other
                for other in nominated
                if (other.priority >= priority or other.uid in kept)
                and other.uid != uid
                and not has_pod(row, other.uid)
            ]
            if coming:
                by_row[row] = coming
        return by_row
