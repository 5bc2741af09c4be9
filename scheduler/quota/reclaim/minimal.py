"""The fewest victims of a sequence of candidates so that a claim fits, by quota and on nodes.

Kueue's way (pkg/scheduler/preemption/preemption.go, getTargets and fillBackWorkloads): candidates are taken off in
their order until the claim fits; then each is put back, the last first, if it fits all the same. Kueue looks at quota
alone. Here the caller also says whether the claim `fits` on nodes, which may take long, so it is asked only where
quota suffices, and for several candidates at a time: first in steps that double, then by halves. With n candidates,
of which m are needed, that is about log n + m·log(n/m) questions, and the answer is that of one candidate at a time,
as long as a claim that fits also fits with more of them gone.
"""

from collections.abc import Callable, Generator, Iterator, Sequence

from scheduler.quota.reclaim.units import Unit, Victim
from scheduler.quota.tree import ShareTree

Fits = Callable[[Sequence[Unit]], bool]
"""Says whether a claim finds its nodes if these units are gone."""


def quota_is_all(_: Sequence[Unit]) -> bool:
    """Find nodes for everything: the claim fits as soon as quota suffices."""
    return True


def minimal_victims(
    tree: ShareTree, candidates: Generator[Victim, None, None], quota_fits: Callable[[], bool], fits: Fits
) -> list[Victim]:
    """Return the victims, in the order of the candidates; none if the claim fits as it is, or does not with all gone.

    Each candidate is off the tree before the next one is asked for, and the tree is as it was in the end.
    `quota_fits` looks at the tree.
    """
    if quota_fits() and fits(()):
        return []
    taken: list[Victim] = []
    is_back: list[bool] = []
    try:
        is_last_needed = _take(tree, candidates, taken, is_back, quota_fits, fits)
        candidates.close()
        if is_last_needed is None:
            return []
        _put_back(tree, taken, is_back, len(taken) - is_last_needed, quota_fits, fits)
        return [victim for victim, back in zip(taken, is_back, strict=True) if not back]
    finally:
        for victim, back in zip(taken, is_back, strict=True):
            if not back:
                _add(tree, victim.unit)


def _take(
    tree: ShareTree,
    candidates: Iterator[Victim],
    taken: list[Victim],
    is_back: list[bool],
    quota_fits: Callable[[], bool],
    fits: Fits,
) -> bool | None:
    """Take candidates off until the claim fits; say whether the last one is needed for sure; None: it never fits."""
    ask_at, step, asked = 1, 1, 0
    for victim in candidates:
        _remove(tree, victim.unit)
        taken.append(victim)
        is_back.append(False)
        if len(taken) < ask_at:
            continue
        if quota_fits():
            if fits([each.unit for each in taken]):
                return asked == len(taken) - 1
            ask_at, step = len(taken) + step, step * 2
        asked = len(taken)
    if asked < len(taken) and quota_fits() and fits([each.unit for each in taken]):
        return asked == len(taken) - 1
    return None


def _put_back(
    tree: ShareTree,
    taken: Sequence[Victim],
    is_back: list[bool],
    end: int,
    quota_fits: Callable[[], bool],
    fits: Fits,
) -> None:
    """Put back what the claim can spare of the first `end`, the last first; note of each one whether it is back."""
    parts = [(0, end // 2), (end // 2, end)]
    while parts:
        start, end = parts.pop()
        if start == end:
            continue
        added, suffices = _add_while(tree, taken, start, end, quota_fits)
        is_back[added:end] = [True] * (end - added)
        if suffices and fits([each.unit for each, back in zip(taken, is_back, strict=True) if not back]):
            continue
        for index in range(added, end):
            _remove(tree, taken[index].unit)
        is_back[added:end] = [False] * (end - added)
        if suffices:
            middle = (start + end) // 2
            parts += [(start, middle), (middle, end)] if end - start > 1 else []
        elif added == end - 1:
            parts.append((start, added))
        else:
            parts += [(start, added + 1), (added + 1, end)]


def _add_while(
    tree: ShareTree, taken: Sequence[Victim], start: int, end: int, quota_fits: Callable[[], bool]
) -> tuple[int, bool]:
    """Add units from the end while quota suffices; return the last one's index, and whether it suffices with all."""
    for index in reversed(range(start, end)):
        _add(tree, taken[index].unit)
        if not quota_fits():
            return index, False
    return start, True


def _add(tree: ShareTree, unit: Unit) -> None:
    if unit.share in tree.shares:
        tree.add(unit.share, unit.usage)


def _remove(tree: ShareTree, unit: Unit) -> None:
    """Take a unit off the tree; one without quota is in none."""
    if unit.share in tree.shares:
        tree.remove(unit.share, unit.usage)
