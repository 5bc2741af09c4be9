"""The pods on each node in order of importance, as flat columns: a preemption asks about thousands of nodes at once.

    pod ─► kind (priority, requests) ─► code;  node ─► codes and start times, the most important pod first

The order is that of api/pods/importance.py.
"""

from array import array
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from scheduler.api.pods.importance import started
from scheduler.api.pods.pod import Pod
from scheduler.api.recent_caches import weight_of
from scheduler.framework.nodes.columns import locked
from scheduler.framework.nodes.nodes import Aspect, BoolColumn, Int32Column, Int64Column, Rows
from scheduler.runtime.live_nodes import LiveNodes

_MAX_KINDS: Final = 2**14
"""Beyond this many kinds, those without pods are dropped once they are at least half of all."""
_KIND_BYTES: Final = 16 << 20
"""The same once they take more memory than this, and twice as much as those of all pods did."""


class PodKinds:
    """Pods of the same priority and requests, by code."""

    def __init__(self) -> None:
        self._codes: dict[Hashable, int] = {}
        self._asked: list[tuple[int, Mapping[str, int]]] = []
        """Priority and requests."""
        self._amounts: dict[str, Int64Column] = {}
        self._priorities: Int64Column = np.zeros(0, np.int64)
        self.bytes = 0
        """About how much memory they take."""

    def __len__(self) -> int:
        return len(self._asked)

    def code(self, pod: Pod) -> int:
        """Raises ValueError for a quantity that cannot be read."""
        key = pod.priority, tuple(pod.requests.items())
        found = self._codes.get(key)
        if found is None:
            found = self._codes[key] = len(self._asked)
            self._asked.append((pod.priority, pod.requests))
            self.bytes += weight_of(key, pod.requests)
        return found

    def priorities(self) -> Int64Column:
        """By code."""
        if len(self._priorities) < len(self._asked):
            self._priorities = np.array([priority for priority, _ in self._asked], np.int64)
        return self._priorities

    def amounts(self, resource: str) -> Int64Column:
        """The requests of each kind of pods, by code."""
        found = self._amounts.get(resource)
        if found is None or len(found) < len(self._asked):
            found = np.array([requests.get(resource, 0) for _, requests in self._asked], np.int64)
            self._amounts[resource] = found
        return found


class _OnNode(NamedTuple):
    pods: Sequence[Pod]
    codes: bytes
    """int32."""
    starts: bytes
    """int64."""


class RankedPods:
    """All pods on nodes. A node is read when it is asked about, and again when its pods have changed."""

    def __init__(self, nodes: LiveNodes) -> None:
        self._nodes = nodes
        self._log = nodes.change_log(Aspect.STARTS)
        self._kinds = PodKinds()
        self._on_nodes: dict[int, _OnNode] = {}
        self._position = self._log.position
        self._rebuild_at = _KIND_BYTES
        self._least: tuple[int, int, Rows] | None = None
        """A priority below which there was no pod, the position of that time, and the rows."""

    def below(self, priority: int, rows: Rows) -> "RankedLowerPods":
        """Return the pods of a lower priority on each of `rows`, which are nodes. Raises ValueError as `code` does."""
        self._catch_up()
        known, least = self._on_nodes, self._least
        if least is not None and priority <= least[0] and self._position == least[1] and np.array_equal(rows, least[2]):
            return self._none(len(rows))
        on_nodes = [known.get(row) or self._read(row) for row in rows.tolist()]
        if not self._rebuild_at:
            self._rebuild_at = max(_KIND_BYTES, 2 * self._kinds.bytes)
        if not (self._kinds.priorities() < priority).any():  # asked for each group that waits
            self._least = priority, self._position, rows
            return self._none(len(rows))
        codes = np.frombuffer(b"".join([each.codes for each in on_nodes]), np.int32)
        starts = np.frombuffer(b"".join([each.starts for each in on_nodes]), np.int64)
        ends = np.cumsum([len(each.codes) // 4 for each in on_nodes], dtype=np.int64)
        lower = self._kinds.priorities()[codes] < priority
        ends = np.concatenate([[0], np.cumsum(lower)])[ends]
        return RankedLowerPods(self._kinds, [each.pods for each in on_nodes], codes[lower], starts[lower], ends)

    def _none(self, nodes: int) -> "RankedLowerPods":
        nothing, ends = np.zeros(0, np.int64), np.zeros(nodes, np.int64)
        return RankedLowerPods(self._kinds, [()] * nodes, nothing.astype(np.int32), nothing, ends)

    def _catch_up(self) -> None:
        too_many = len(self._kinds) > _MAX_KINDS and len(self._kinds) > 2 * int(self._nodes.pod_count.sum())
        if too_many or self._kinds.bytes > self._rebuild_at:
            self._kinds = PodKinds()
            self._on_nodes.clear()
            self._rebuild_at = 0  # until the next pods were read
        changed = self._log.since(self._position)
        self._position = self._log.position
        if changed is None:
            self._on_nodes.clear()
            return
        for row in changed:
            self._on_nodes.pop(row, None)

    def _read(self, row: int) -> _OnNode:
        # What `importance` says, each start worked out once.
        pods, code = tuple(self._nodes.info(row).pods), self._kinds.code
        ranked = sorted([(-pod.priority, started(pod), i, code(pod)) for i, pod in enumerate(pods)])
        codes, starts = array("i", [each[3] for each in ranked]), array("q", [each[1] for each in ranked])
        in_order = [pods[each[2]] for each in ranked]
        found = self._on_nodes[row] = _OnNode(in_order, codes.tobytes(), starts.tobytes())
        return found


class RankedLowerPods:
    """Implements scheduler.framework.preemption.dry_run_filter.LowerPods."""

    def __init__(
        self,
        kinds: PodKinds,
        on_nodes: Sequence[Sequence[Pod]],
        codes: Int32Column,
        starts: Int64Column,
        ends: Int64Column,
    ) -> None:
        """`on_nodes`: all pods of each, these last; `codes`, `starts`: by pod; `ends`: by node, after its last pod."""
        self._kinds = kinds
        self._on_nodes = on_nodes
        self._codes = codes
        self.starts = starts
        """By pod, in microseconds since 1970."""
        self.counts: Int64Column = locked(np.diff(ends, prepend=0))
        """How many there are on each node."""
        self.first: Int64Column = ends - self.counts
        """By node the place of its first pod."""

    @cached_property
    def pods(self) -> Sequence[Pod]:
        """All of them, node after node."""
        found: list[Pod] = []
        for pods, count in zip(self._on_nodes, self.counts.tolist(), strict=True):
            found += pods[len(pods) - count :]
        return found

    def on(self, nodes: BoolColumn) -> "RankedLowerPods":
        """Return those on some of the nodes."""
        there, ends = np.repeat(nodes, self.counts), np.cumsum(self.counts[nodes])
        on_nodes = list(compress(self._on_nodes, nodes))
        return RankedLowerPods(self._kinds, on_nodes, self._codes[there], self.starts[there], ends)

    @property
    def priorities(self) -> Int64Column:
        """By pod."""
        return self._kinds.priorities()[self._codes]

    def amounts(self, resource: str) -> Int64Column:
        return self._kinds.amounts(resource)[self._codes]

    def sums(self, resource: str) -> Int64Column:
        so_far = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.amounts(resource))])
        sums: Int64Column = so_far[self.first + self.counts] - so_far[self.first]
        return sums
