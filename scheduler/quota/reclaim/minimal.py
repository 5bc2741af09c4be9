"""The fewest victims of a sequence of candidates so that a preemptor fits, by quota and on nodes.

Kueue's way (pkg/scheduler/preemption/preemption.go, getTargets and fillBackWorkloads): candidates are taken off in
their order until the preemptor fits; then each is put back, the last first, if it fits all the same. Kueue considers
quota alone. Here the caller also says whether the preemptor `fits` on nodes, which may take long, so it is asked only
where quota suffices, and for several candidates at a time: first in steps that double, then as in
`framework/preemption/victims.py`.
"""

from collections.abc import Callable, Generator, Iterator, Sequence

from scheduler.cycle.steps import in_one_go
from scheduler.framework.preemption.victims import needed
from scheduler.quota.reclaim.running import QuotaUnit
from scheduler.quota.tree import ShareTree

Fits = Callable[[Sequence[QuotaUnit]], bool]
"""Says whether a preemptor finds its nodes if these units are gone."""


def minimal_victims(
    tree: ShareTree, candidates: Generator[QuotaUnit, None, None], quota_fits: Callable[[], bool], fits: Fits
) -> list[QuotaUnit]:
    """Return the victims, in the order of the candidates; none if it fits as it is, or does not even with all gone.

    Each candidate is off the tree before the next one is asked for, and the tree is as it was in the end.
    `quota_fits` asks the tree.
    """
    gone = _Gone(tree, quota_fits, fits)
    if quota_fits() and fits(()):
        return []
    try:
        is_last_needed = _take(gone, candidates)
        candidates.close()
        if is_last_needed is None:
            return []
        in_one_go(needed([gone.taken[::-1][is_last_needed:]], gone))
        return gone.victims
    finally:
        gone.end()


class _Gone:
    """Implements framework.victims.WithoutSome: a tree without the victims so far."""

    def __init__(self, tree: ShareTree, quota_fits: Callable[[], bool], fits: Fits) -> None:
        self._tree = tree
        self._nodes_fit = fits
        self.quota_fits = quota_fits
        self.taken: list[QuotaUnit] = []
        self._back: set[str] = set()
        """The UIDs of those of them that are back."""
        self._back_again: list[QuotaUnit] = []
        """Those that came back last."""
        self._suffices = True
        """Whether quota suffices with these."""

    @property
    def victims(self) -> list[QuotaUnit]:
        return [each for each in self.taken if each.uid not in self._back]

    def take(self, unit: QuotaUnit) -> None:
        self.taken.append(unit)
        self._count(unit, is_back=False)

    def end(self) -> None:
        """Let all come back."""
        for each in self.victims:
            self._count(each, is_back=True)

    def put_back(self, some: Sequence[QuotaUnit]) -> None:
        """Let these come back, up to the first for which quota has no space."""
        self._back_again = []
        for each in some:
            self._count(each, is_back=True)
            self._back_again.append(each)
            self._suffices = self.quota_fits()
            if not self._suffices:
                break

    def remove(self, some: Sequence[QuotaUnit]) -> None:
        for each in self._back_again:
            self._count(each, is_back=False)

    def fits(self) -> bool:
        return self._suffices and self.nodes_fit()

    def _count(self, unit: QuotaUnit, *, is_back: bool) -> None:
        (self._back.add if is_back else self._back.discard)(unit.uid)
        if unit.share in self._tree.shares:  # one without quota is in none
            (self._tree.add if is_back else self._tree.remove)(unit.share, unit.usage)

    def nodes_fit(self) -> bool:
        return self._nodes_fit(self.victims)


def _take(gone: _Gone, candidates: Iterator[QuotaUnit]) -> bool | None:
    """Let candidates go until the preemptor fits; say whether the last one is needed for sure; None: it never fits."""
    ask_at, step, asked = 1, 1, 0
    for unit in candidates:
        gone.take(unit)
        count = len(gone.taken)
        if count < ask_at:
            continue
        if gone.quota_fits():
            if gone.nodes_fit():
                return asked == count - 1
            ask_at, step = count + step, step * 2
        asked = count
    count = len(gone.taken)
    return asked == count - 1 if asked < count and gone.fits() else None
