"""Candidates of a preemptor by priority and by their shares in the tree: Kueue's classical preemption.

Source: pkg/scheduler/preemption/classical_strategy.go and preemption/classical/ of Kueue. From the preemptor's share up
to its root, units of shares that use more than they are guaranteed are candidates if every share between them and the
common ancestor does so, too. If the request fits within the guarantee of a subtree that holds the preemptor, it has an
advantage over all units outside of that subtree: it may evict them whatever their priority, within
`reclaim_within_cohort`. Others may be evicted while the preemptor's share borrows only if `borrow_within_cohort` says
so. Two things differ from Kueue: a unit is safe from a preemptor that then borrows if its share, or one between, would
have less than it is guaranteed without it, as that share could take back at once; and those whose eviction breaks a
PodDisruptionBudget come last.
"""

import heapq
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from scheduler.framework.shares import DisruptionBudgets
from scheduler.quota.policies import Policy, Preemption, may_free
from scheduler.quota.reclaim.running import Preemptor, QuotaUnit, Running, cuts_guarantee, gives_back
from scheduler.quota.tree import ShareTree


class Source(msgspec.Struct, frozen=True):
    """A share whose units are candidates."""

    name: str
    path: tuple[str, ...]
    """The share and its ancestors below the common one: all must use more than they are guaranteed."""

    has_advantage: bool
    """Whether the preemptor has an advantage over its units."""

    policy: Policy
    """Which of its units may be evicted."""


class Classical:
    """The candidates of one preemptor; the tree changes while they are taken off."""

    def __init__(
        self,
        tree: ShareTree,
        running: Running,
        preemptor: Preemptor,
        preemption: Preemption,
        sources: Mapping[str, Source],
    ) -> None:
        self._tree = tree
        self._running = running
        self._preemptor = preemptor
        self._preemption = preemption
        self._heads: dict[str, Iterator[QuotaUnit]] = {}
        """By share, the candidates that were read to find out whether it has any, until they are used."""
        found = (sources.get(name) for name in running.names())
        some = [source for source in found if source is not None and self._has_candidates(source)]
        self._others = [source for source in some if source.name != preemptor.share]
        self._own = [source for source in some if source.name == preemptor.share]

    def plans(self) -> tuple[bool, ...]:
        """Return whether the preemptor's share may borrow, in the order in which that is to be tried."""
        preemptor = self._preemptor
        lacking = {each: preemptor.request.get(each, 0) for each in preemptor.contested}
        if self._preemption.needs_quota and not may_free(self._tree, self._preemption, preemptor.share, lacking):
            return ()
        has_preferred = any(source.has_advantage for source in self._others)
        may_borrow = self._preemption.borrow_within_cohort
        if not self._others or not (may_borrow or self._is_below_quota()):
            return (True,)
        return (True, False) if may_borrow or has_preferred else (False, True)

    def candidates(self, begun: Callable[[], DisruptionBudgets], *, borrows: bool) -> Generator[QuotaUnit, None, None]:
        """Yield candidates in order; each is off the tree before the next one is asked for."""
        budgets, done = begun(), set[str]()
        breaking: list[tuple[QuotaUnit, Source]] = []
        cutting: list[tuple[QuotaUnit, Source]] = []
        for unit, source in self._ordered(done, borrows=borrows):
            if borrows and source.path and not source.has_advantage and not self._may_borrow_from(unit):
                continue
            if not source.path:
                yield from self._due(cutting, borrows=borrows)
                cutting.clear()
            if not self._is_above_quota(source):
                done.add(source.name)
            elif source.path and not gives_back(self._tree, source.path, unit, self._preemptor.contested):
                continue
            elif not budgets.allow(unit.pods):
                breaking.append((unit, source))
            elif self._cuts(unit, source):
                cutting.append((unit, source))
            else:
                budgets.use(unit.pods)
                yield unit
        breaking.sort(key=lambda entry: self._cuts(*entry))
        yield from self._due(cutting + breaking, borrows=borrows)

    def _due(self, deferred: Sequence[tuple[QuotaUnit, Source]], *, borrows: bool) -> Iterator[QuotaUnit]:
        """Yield what was put off and is a candidate still; what cuts a guarantee only if quota does not suffice."""
        for unit, source in deferred:
            is_covered = not borrows or not source.path or source.has_advantage
            if self._is_above_quota(source) and (
                not self._cuts(unit, source)
                or (is_covered and not self._tree.fits(self._preemptor.share, self._preemptor.request))
            ):
                yield unit

    def _ordered(self, done: set[str], *, borrows: bool) -> Iterator[tuple[QuotaUnit, Source]]:
        """Yield those over which the preemptor has an advantage first."""
        may_borrow = not borrows or self._preemption.borrow_within_cohort
        kinds = (
            [source for source in self._others if source.has_advantage],
            [source for source in self._others if not source.has_advantage and may_borrow],
            self._own,
        )
        for sources in kinds:
            streams = [self._stream(source, done) for source in sources]
            yield from heapq.merge(*streams, key=lambda entry: entry[0].order) if len(streams) > 1 else chain(*streams)

    def _stream(self, source: Source, done: set[str]) -> Iterator[tuple[QuotaUnit, Source]]:
        for unit in self._heads.pop(source.name, None) or self._units(source):
            if source.name in done:
                return
            yield unit, source

    def _units(self, source: Source) -> Iterator[QuotaUnit]:
        return self._running.candidates(source.name, source.policy, self._preemptor)

    def _has_candidates(self, source: Source) -> bool:
        units = self._units(source)
        first = next(units, None)
        if first is not None:
            self._heads[source.name] = chain((first,), units)
        return first is not None

    def _may_borrow_from(self, unit: QuotaUnit) -> bool:
        """Say whether a unit of another share may be evicted although the preemptor's share borrows then."""
        threshold = self._preemption.max_priority_threshold
        is_low = unit.priority < self._preemptor.priority and (threshold is None or unit.priority <= threshold)
        return self._preemption.borrow_within_cohort and is_low

    def _is_above_quota(self, source: Source) -> bool:
        """Say whether a source and all shares up to the common ancestor still use more than they are guaranteed."""
        return all(self._tree.holds_more(name, self._preemptor.contested) for name in source.path)

    def _cuts(self, unit: QuotaUnit, source: Source) -> bool:
        return cuts_guarantee(self._tree, source.path, unit, self._preemptor.contested)

    def _is_below_quota(self) -> bool:
        """Say whether the preemptor's share uses less than it is guaranteed of everything that is contested."""
        tree, name = self._tree, self._preemptor.share
        return all(tree.usage(name, each) < tree.quota(name, each) for each in self._preemptor.contested)


def sources_of(tree: ShareTree, preemptor: Preemptor, preemption: Preemption) -> dict[str, Source]:
    """Return the shares whose units may be candidates, by name: those that use more than they are guaranteed of what
    is contested, and the preemptor's own, if the policies let any be evicted.
    """
    found: dict[str, Source] = {}
    if preemption.reclaim_within_cohort is not Policy.NEVER:
        found = {source.name: source for source in _others(tree, preemptor, preemption.reclaim_within_cohort)}
    if preemption.within_share is not Policy.NEVER:
        found[preemptor.share] = Source(preemptor.share, (), has_advantage=False, policy=preemption.within_share)
    return found


def _others(tree: ShareTree, preemptor: Preemptor, policy: Policy) -> Iterator[Source]:
    below, rest = preemptor.share, dict(preemptor.request)
    has_advantage = _fits_in_quota(tree, below, rest)
    while ancestor := tree.shares[below].parent:
        found: list[tuple[str, tuple[str, ...]]] = [(ancestor, ())]
        for name, path in found:
            for child in tree.children[name]:
                if child == below or not tree.holds_more(child, preemptor.contested):
                    continue
                if tree.children[child]:
                    found.append((child, (*path, child)))
                else:
                    yield Source(child, (*path, child), has_advantage, policy)
        has_advantage = _fits_in_quota(tree, ancestor, rest) or has_advantage
        below = ancestor


def _fits_in_quota(tree: ShareTree, name: str, rest: dict[str, int]) -> bool:
    """Say whether a request fits into a subtree's quota; take off its `rest` what only this share can use."""
    fits, lending = True, tree.shares[name].lending_limit
    for resource, amount in rest.items():
        usage, quota = tree.usage(name, resource), tree.quota(name, resource)
        fits = fits and usage + amount <= quota
        local = max(0, quota - lending[resource]) if resource in lending else 0
        rest[resource] = max(0, amount - max(0, local - usage))
    return fits
