"""Names that may have been meant, of many: looked for a little at a time, as others wait for the event loop meanwhile.

To compare two long names may take milliseconds, and who creates pods chooses the names.
"""

from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from typing import Final

from scheduler.process.time_slice import TimeSlice

LIKE: Final = 0.6
"""The least likeness that is called near: difflib's own."""

SECONDS: Final = 0.5
"""For all of it; those that are looked at by then will have to do."""


async def near(wanted: str, names: Iterable[str], count: int) -> list[str]:
    """Return those most like `wanted`, at most `count`, the best first."""
    matcher = SequenceMatcher(b=wanted)
    found: list[tuple[float, str]] = []
    whole, time_slice = TimeSlice(SECONDS), TimeSlice()
    for name in names:
        matcher.set_seq1(name)
        if matcher.real_quick_ratio() >= LIKE and matcher.quick_ratio() >= LIKE and (ratio := matcher.ratio()) >= LIKE:
            found.append((ratio, name))
        if whole.is_over:
            break
        await time_slice.give_way()
    return [name for _, name in nlargest(count, found)]
