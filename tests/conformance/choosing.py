"""Choose, of many cases with their verdicts, few that together show all there is to see."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.recorded import to_line, write_cases

Json = dict[str, Any]


def record(
    path: Path, known: Sequence[Json], features: Callable[[Json], Iterable[str]], wanted: int, weight: int = 0
) -> None:
    """Write so many cases to a file that together have as many features as can be.

    Greedily the case that adds most features for its size; once all are shown, another one for each, and so on.
    `weight`: bytes that any case costs: without it only the tiniest are chosen.
    """
    left = [(each, set(features(each)), len(to_line(each))) for each in known]
    every = set().union(*(found for _, found, _ in left))
    chosen: list[Json] = []
    shown: set[str] = set()
    seen: set[str] = set()
    while left and len(chosen) < wanted:
        best = max(left, key=lambda item: len(item[1] - shown) / (item[2] + weight))
        if not best[1] - shown:
            if not shown:
                break  # what is left shows nothing
            shown = set()  # everything is shown: begin again, with other cases
            continue
        left.remove(best)
        shown |= best[1]
        seen |= best[1]
        chosen.append(best[0])
    write_cases(path, chosen)
    print(f"{len(chosen)} cases show {len(seen)} of {len(every)} features; {path}: {path.stat().st_size:,} bytes")
