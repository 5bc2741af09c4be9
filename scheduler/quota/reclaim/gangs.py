"""Gangs are broken last: within a priority, units that no gang needs go first, such as spare members."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

import msgspec

from scheduler.quota.reclaim.units import QuotaUnit

MAX_PUT_OFF: Final = 1_000
"""Units that are put off until there is no other one of their priority: some 10 µs each."""

SpareOf = Callable[[QuotaUnit], tuple[str, int] | None]
"""Returns the UID of a unit's gang, and how many of its pods may go; None without a gang."""


def spare_first(units: Iterable[QuotaUnit], spare_of: SpareOf) -> Iterator[QuotaUnit]:
    """Yield units, which come by priority, in their order, but those last that break a gang, gang by gang."""
    left: dict[str, int] = {}
    put_off: dict[str, list[QuotaUnit]] = {}
    count, priority = 0, 0
    for unit in units:
        if put_off and (unit.priority != priority or count == MAX_PUT_OFF):
            yield from chain(*put_off.values())
            put_off.clear()
            count = 0
        priority = unit.priority
        found = spare_of(unit)
        if found is None or left.setdefault(*found) > 0:
            if found is not None:
                left[found[0]] -= 1
            yield unit
        else:
            put_off.setdefault(found[0], []).append(msgspec.structs.replace(unit, breaks_gang=True))
            count += 1
    yield from chain(*put_off.values())
