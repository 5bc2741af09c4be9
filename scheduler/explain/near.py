"""Names that may have been meant, of many: looked for a little at a time, as others wait for the event loop meanwhile.

To compare two long names may take milliseconds, and who creates pods chooses the names.
"""

import asyncio
import time
from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from typing import Final

LIKE: Final = 0.6
"""The least likeness that is called near: difflib's own."""

SECONDS_AT_A_STRETCH: Final = 0.003
SECONDS: Final = 0.5
"""For all of it; those that are looked at by then will have to do."""


async def near(wanted: str, names: Iterable[str], count: int) -> list[str]:
    """Return those most like `wanted`, at most `count`, the best first."""
    matcher = SequenceMatcher(b=wanted)
    found: list[tuple[float, str]] = []
    began = since = time.perf_counter()
    for name in names:
        matcher.set_seq1(name)
        if matcher.real_quick_ratio() >= LIKE and matcher.quick_ratio() >= LIKE and (ratio := matcher.ratio()) >= LIKE:
            found.append((ratio, name))
        now = time.perf_counter()
        if now - began > SECONDS:
            break
        if now - since > SECONDS_AT_A_STRETCH:
            await asyncio.sleep(0)
            since = time.perf_counter()
    return [name for _, name in nlargest(count, found)]
