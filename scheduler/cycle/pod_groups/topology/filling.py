"""In which order the nodes of a domain are filled: a narrower domain before the next, so that neighbours are near."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from scheduler.cycle.pod_groups.topology.domains import Domains
from scheduler.framework.columns import BoolColumn, Int64Column, Rows


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
    """The parts of a domain while members are placed in it: which one is next for each kind of them."""

    def __init__(self, parts: Sequence[Rows], whole: BoolColumn) -> None:
        """`whole`: the domain itself, for what the parts have no space for."""
        self.whole: Final = whole
        self._parts = parts
        self._masks: dict[int, BoolColumn] = {}
        self._at: dict[object, int] = {}
        """Kind of member → the first part that may take one."""

    def options(self, kind: object) -> Iterator[BoolColumn]:
        """Yield the parts in which a member may be placed, until it is; the whole domain is the last.

        What refused one cannot take the next one of its kind either.
        """
        while (at := self._at.get(kind, 0)) < len(self._parts):
            yield self._mask(at)
            self._at[kind] = at + 1
        yield self.whole

    def _mask(self, at: int) -> BoolColumn:
        mask = self._masks.get(at)
        if mask is None:
            mask = self._masks[at] = np.zeros(len(self.whole), np.bool_)
            mask[self._parts[at]] = True
        return mask
