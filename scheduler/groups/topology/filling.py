"""The order in which the nodes of a domain are filled: narrower domains one by one, so that neighbours are near.

Neighbours are members of successive ranks, which talk most with each other.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.columns import BoolColumn, Int64Column, Rows
from scheduler.groups.topology.domains import Domains

RANKS: Final = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
"""Labels that indexed Jobs and StatefulSets give their pods."""

NO_RANK: Final = 2**31
"""The rank of a pod without one: after all others."""

_LONGEST: Final = 9


def rank_of(pod: Pod) -> int:
    """Return a pod's rank in its group, 0 first."""
    for key in RANKS:
        text = pod.labels.get(key, "")
        if text.isascii() and text.isdigit() and len(text) <= _LONGEST:
            return int(text)
    return NO_RANK


class Schedule(Protocol):
    """Chooses a node for a member, as Algorithm.schedule does."""

    def __call__(
        self,
        state: CycleState,
        pod: Pod,
        attempt: int,
        *,
        runs_post_filter: bool = ...,
        placement: BoolColumn | None = ...,
    ) -> Placed | Unplaced: ...


def parts_of(
    rows: Rows, narrower: Sequence[Domains], capacity: Int64Column, wanted: int, running: Int64Column
) -> list[Rows]:
    """Return the parts of `rows` that are filled, in this order; `wanted`: how many pods are to be placed in them.

    `narrower`: the levels inside, the widest first. `capacity`: about how many pods each row takes. `running`: how many
    of the group it has. Where pods run, others join them; then come large parts, and the last is as small as may be.
    """
    if not narrower:
        return [rows]
    within, further = narrower[0], narrower[1:]
    parts: list[Rows] = []
    left = wanted
    for part in _in_turn(within, rows, capacity, wanted, running):
        takes = int(capacity[part].sum())
        parts += parts_of(part, further, capacity, min(takes, left), running)
        left -= takes
    return parts


def _in_turn(domains: Domains, rows: Rows, capacity: Int64Column, wanted: int, running: Int64Column) -> Iterator[Rows]:
    """Yield the domains among `rows` until they hold all that are wanted."""
    numbers = domains.numbers[rows]
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    groups = [rows[part] for part in np.split(order, starts)[1:]]
    takes = np.add.reduceat(capacity[rows[order]], starts) if len(starts) else np.zeros(0, np.int64)
    there = np.add.reduceat(running[rows[order]], starts) if len(starts) else np.zeros(0, np.int64)
    names = [domains.names[numbers[order[start]]] for start in starts]
    queue = sorted(np.flatnonzero(takes).tolist(), key=lambda each: (-there[each], -takes[each], names[each]))
    left = wanted
    for place, largest in enumerate(queue):
        if left <= 0:
            return
        chosen = largest
        if not there[largest] and takes[largest] >= left:
            enough = [each for each in queue[place:] if takes[each] >= left]
            chosen = min(enough, key=lambda each: (takes[each], names[each]))
        left -= int(takes[chosen])
        yield groups[chosen]


class Filling:
    """The parts of a domain while members are placed in it."""

    def __init__(
        self,
        parts: Sequence[Rows],
        size: int,
        whole: BoolColumn | None,
        kinds: Mapping[str, Hashable],
        may_fail: int = 0,
    ) -> None:
        """`whole`: the domain itself, for what the parts cannot take; None for all nodes.

        `size`: the number of rows of the node table. `kinds`: UID → kind of member. `may_fail`: how many members need
        not fit for the group to be placed; once more of them do not, the others are not tried.
        """
        self._parts = parts
        self._size = size
        self._whole = whole
        self._kinds = kinds
        self._may_fail = may_fail
        self._mask_of: tuple[int, BoolColumn] | None = None
        self._at: dict[Hashable, int] = {}
        """Kind of member → the first part that may take one."""
        self._hopeless: Unplaced | None = None

    def schedule(self, schedule: Schedule, state: CycleState, pod: Pod, attempt: int) -> Placed | Unplaced:
        """Place a member in the first part that takes it. Raises PluginError.

        A part that refused one is not asked for the next one of its kind either.
        """
        if self._hopeless is not None:
            return self._hopeless
        kind = self._kinds[pod.uid]
        while (at := self._at.get(kind, 0)) < len(self._parts):
            decision = schedule(state, pod, attempt, runs_post_filter=False, placement=self._mask(at))
            if isinstance(decision, Placed):
                return decision
            self._at[kind] = at + 1
        decision = schedule(state, pod, attempt, placement=self._whole)
        if isinstance(decision, Unplaced) and not decision.nominated_node_name:
            self._may_fail -= 1
            if self._may_fail < 0:
                self._hopeless = decision
        return decision

    def _mask(self, at: int) -> BoolColumn:
        """Return the rows of a part. Only the last one is kept: there may be as many parts as nodes."""
        if self._mask_of is None or self._mask_of[0] != at:
            mask = np.zeros(self._size, np.bool_)
            mask[self._parts[at]] = True
            self._mask_of = at, mask
        return self._mask_of[1]
