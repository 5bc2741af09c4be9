"""The pods on each node in order of importance, as flat columns: what a preemption asks of thousands of nodes at once.

    pod ─► shape (priority, requests) ─► code;  node ─► codes and start times, the most important pod first

Rule: MoreImportantPod in pkg/scheduler/util/utils.go at v1.36.3: the highest priority, then the longest running.
"""

from array import array
from collections.abc import Hashable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import numpy as np

from scheduler.api.pod import Pod
from scheduler.framework.nodes import Aspect, Int32Column, Int64Column, Rows
from scheduler.runtime.answers.columns import ChangingColumns

NOT_STARTED: Final = 2**62
"""The start of a pod that has not started: it is taken to start now, later than all that have."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SHAPES: Final = 2**14
"""From so many shapes on those that no pod has any more are forgotten, once they are half of all or more."""


def importance(pod: Pod) -> tuple[int, int]:
    """Sort by this for the most important pod first."""
    return -pod.priority, started(pod)


def started(pod: Pod) -> int:
    """When a pod started, in microseconds since 1970."""
    start = pod.status.start_time
    return NOT_STARTED if start is None else (start - _EPOCH) // _MICROSECOND


class Shapes:
    """What there is to know of a pod beside its start, by code."""

    def __init__(self) -> None:
        self._codes: dict[Hashable, int] = {}
        self._pods: list[Pod] = []
        self._amounts: dict[str, Int64Column] = {}
        self._priorities: Int64Column = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._pods)

    def code(self, pod: Pod) -> int:
        """Raises ValueError for a quantity that cannot be read."""
        key = pod.priority, tuple(pod.requests.items())
        found = self._codes.get(key)
        if found is None:
            found = self._codes[key] = len(self._pods)
            self._pods.append(pod)
        return found

    def priorities(self) -> Int64Column:
        """By code."""
        if len(self._priorities) < len(self._pods):
            self._priorities = np.array([pod.priority for pod in self._pods], np.int64)
        return self._priorities

    def amounts(self, resource: str) -> Int64Column:
        """What pods of each shape ask for, by code."""
        found = self._amounts.get(resource)
        if found is None or len(found) < len(self._pods):
            found = np.array([pod.requests.get(resource, 0) for pod in self._pods], np.int64)
            self._amounts[resource] = found
        return found


class _OnNode(NamedTuple):
    codes: bytes
    """int32."""
    starts: bytes
    """int64."""


class RankedPods:
    """All pods on nodes. A node is read when it is asked about, and again when its pods have changed."""

    def __init__(self, nodes: ChangingColumns) -> None:
        self._nodes = nodes
        self._log = nodes.change_log(Aspect.STARTS)
        self._shapes = Shapes()
        self._on_nodes: dict[int, _OnNode] = {}
        self._position = self._log.position

    def below(self, priority: int, rows: Rows) -> "LowerPods":
        """Return the pods of a lower priority on each of `rows`, which are nodes. Raises ValueError as `code` does."""
        self._catch_up()
        on_nodes = [self._on(row) for row in rows.tolist()]
        codes = np.frombuffer(b"".join([each.codes for each in on_nodes]), np.int32)
        starts = np.frombuffer(b"".join([each.starts for each in on_nodes]), np.int64)
        ends = np.cumsum([len(each.codes) // 4 for each in on_nodes], dtype=np.int64)
        lower = self._shapes.priorities()[codes] < priority
        ends = np.concatenate([[0], np.cumsum(lower)])[ends]
        return LowerPods(self._shapes, codes[lower], starts[lower], ends)

    def _catch_up(self) -> None:
        if len(self._shapes) > _SHAPES and len(self._shapes) > 2 * int(self._nodes.pod_count.sum()):
            self._shapes = Shapes()
            self._on_nodes.clear()
        changed = self._log.since(self._position)
        self._position = self._log.position
        if changed is None:
            self._on_nodes.clear()
            return
        for row in changed:
            self._on_nodes.pop(row, None)

    def _on(self, row: int) -> _OnNode:
        found = self._on_nodes.get(row)
        if found is None:
            # What `importance` says, each start worked out once.
            pods, code = self._nodes.info(row).pods, self._shapes.code
            ranked = sorted([(-pod.priority, started(pod), i, code(pod)) for i, pod in enumerate(pods)])
            codes, starts = array("i", [each[3] for each in ranked]), array("q", [each[1] for each in ranked])
            found = self._on_nodes[row] = _OnNode(codes.tobytes(), starts.tobytes())
        return found


class LowerPods:
    """The pods of lower priority on some nodes, node after node, on each the most important first."""

    def __init__(self, shapes: Shapes, codes: Int32Column, starts: Int64Column, ends: Int64Column) -> None:
        """`codes` and `starts` by pod; `ends`: by node the place after its last pod."""
        self._shapes = shapes
        self._codes = codes
        self.starts = starts
        """By pod, in microseconds since 1970."""
        self.counts: Int64Column = np.diff(ends, prepend=0)
        """How many there are on each node."""
        self.first: Int64Column = ends - self.counts
        """By node the place of its first pod."""

    @property
    def priorities(self) -> Int64Column:
        """By pod."""
        return self._shapes.priorities()[self._codes]

    def amounts(self, resource: str) -> Int64Column:
        """By pod, what it asks for."""
        return self._shapes.amounts(resource)[self._codes]

    def sums(self, resource: str) -> Int64Column:
        """By node, what all of them ask for; beyond int64 it wraps as in Go."""
        so_far = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.amounts(resource))])

        sums: Int64Column = so_far[self.first + self.counts] - so_far[self.first]
        return sums
