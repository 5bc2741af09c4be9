"""Candidates of a claim by priority and place in the tree: Kueue's classical preemption.

Source: pkg/scheduler/preemption/classical_strategy.go and preemption/classical/ of Kueue. From the claim's share up
to its root, units of shares that use more than they are guaranteed are candidates, as long as every share between
them and the common ancestor does so, too. If the request fits into what is guaranteed to a subtree that holds the
claim, the claim has an advantage over all units outside of it, whatever their priority (as far as
`reclaim_within_cohort` lets it evict them). Others may be evicted while the claim's share borrows only if
`borrow_within_cohort` says so. Two things differ from Kueue: a unit is safe from a claim that then borrows if
its share, or one between, would have less than it is guaranteed without it, as that share could take back at once; and
those whose eviction breaks a PodDisruptionBudget come last.
"""

import heapq
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from scheduler.shares.reclaim.units import (
    Budgets,
    Claim,
    Order,
    Policy,
    Preemption,
    Reason,
    Running,
    Unit,
    Victim,
    cuts_guarantee,
    may_free,
)
from scheduler.shares.tree import ShareTree


class _Source(msgspec.Struct, frozen=True):
    """A share whose units are candidates."""

    name: str
    path: tuple[str, ...]
    """The share and its ancestors below the common one: all must use more than they are guaranteed."""

    has_advantage: bool
    """Whether the claim has an advantage over its units."""


class Classical:
    """The candidates of one claim; the tree changes while they are taken off."""

    def __init__(self, tree: ShareTree, running: Running, claim: Claim, preemption: Preemption) -> None:
        self._tree = tree
        self._running = running
        self._claim = claim
        self._preemption = preemption
        self._own = _Source(claim.share, (), has_advantage=False)
        sources = list(self._sources())
        own = () if preemption.within_share is Policy.NEVER else (self._own,)
        self.giving = {source.name: self._policy(source) for source in (*sources, *own)}
        """The shares whose units may be candidates, and which of them."""
        self._others = [source for source in sources if self._has_candidates(source)]

    def plans(self) -> tuple[bool, ...]:
        """Return whether the claim's share may borrow, in the order in which that is to be tried."""
        claim = self._claim
        lacking = {each: claim.request.get(each, 0) for each in claim.contested}
        if self._preemption.needs_quota and not may_free(self._tree, self._preemption, claim.share, lacking):
            return ()
        has_preferred = any(source.has_advantage for source in self._others)
        may_borrow = self._preemption.borrow_within_cohort
        if not self._others or not (may_borrow or self._is_below_quota()):
            return (True,)
        return (True, False) if may_borrow or has_preferred else (False, True)

    def candidates(self, allowed: Mapping[str, int], *, borrows: bool) -> Generator[Victim, None, None]:
        """Yield candidates in order; each is off the tree before the next one is asked for."""
        budgets, done = Budgets(allowed), set[str]()
        breaking: list[tuple[Victim, _Source]] = []
        cutting: list[tuple[Victim, _Source]] = []
        for unit, source in self._ordered(done):
            reason = self._reason(unit, source, borrows=borrows)
            if reason is None:
                continue
            if source is self._own and not unit.is_evicted:
                yield from self._due(cutting, borrows=borrows)
                cutting.clear()
            if not self._is_above_quota(source):
                done.add(source.name)
            elif not budgets.allow(unit):
                breaking.append((Victim(unit, reason), source))
            elif self._cuts(unit, source):
                cutting.append((Victim(unit, reason), source))
            else:
                budgets.use(unit)
                yield Victim(unit, reason)
        breaking.sort(key=lambda entry: self._cuts(entry[0].unit, entry[1]))
        yield from self._due(cutting + breaking, borrows=borrows)

    def _due(self, deferred: Sequence[tuple[Victim, _Source]], *, borrows: bool) -> Iterator[Victim]:
        """Yield what was put off and is a candidate still; what cuts a guarantee only if quota does not suffice."""
        for victim, source in deferred:
            is_covered = not (borrows and victim.reason is Reason.RECLAIM_WHILE_BORROWING)
            if self._is_above_quota(source) and (
                not self._cuts(victim.unit, source)
                or (is_covered and not self._tree.fits(self._claim.share, self._claim.request))
            ):
                yield victim

    def _sources(self) -> Iterator[_Source]:
        """Yield the shares outside the claim's own that use more of what is contested than they are guaranteed."""
        if self._preemption.reclaim_within_cohort is Policy.NEVER:
            return
        tree, below = self._tree, self._claim.share
        rest = dict(self._claim.request)
        has_advantage = self._fits_in_quota(below, rest)
        while ancestor := tree.shares[below].parent:
            found: list[tuple[str, tuple[str, ...]]] = [(ancestor, ())]
            for name, path in found:
                for child in tree.children[name]:
                    if child == below or not self._uses_more(child):
                        continue
                    if tree.children[child]:
                        found.append((child, (*path, child)))
                    else:
                        yield _Source(child, (*path, child), has_advantage)
            has_advantage = self._fits_in_quota(ancestor, rest) or has_advantage
            below = ancestor

    def _fits_in_quota(self, name: str, rest: dict[str, int]) -> bool:
        """Say whether the rest of the request fits into a subtree's quota; take off it what only this share can use."""
        fits, lending = True, self._tree.shares[name].lending_limit
        for resource, amount in rest.items():
            usage, quota = self._tree.usage(name, resource), self._tree.quota(name, resource)
            fits = fits and usage + amount <= quota
            local = max(0, quota - lending[resource]) if resource in lending else 0
            rest[resource] = max(0, amount - max(0, local - usage))
        return fits

    def _ordered(self, done: set[str]) -> Iterator[tuple[Unit, _Source]]:
        """Yield evicted units first; of both kinds those over which the claim has an advantage first."""
        kinds = (
            [source for source in self._others if source.has_advantage],
            [source for source in self._others if not source.has_advantage],
            [self._own],
        )
        for evicted in (True, False):
            for sources in kinds:
                some = [source for source in sources if self._running.has(source.name, evicted=evicted)]
                streams = [self._stream(source, done, evicted=evicted) for source in some]
                yield from heapq.merge(*streams, key=_unit_order) if len(streams) > 1 else chain(*streams)

    def _stream(self, source: _Source, done: set[str], *, evicted: bool) -> Iterator[tuple[Unit, _Source]]:
        for unit in self._running.candidates(source.name, self._policy(source), self._claim, evicted=evicted):
            if source.name in done:
                return
            yield unit, source

    def _policy(self, source: _Source) -> Policy:
        preemption = self._preemption
        return preemption.within_share if source is self._own else preemption.reclaim_within_cohort

    def _has_candidates(self, source: _Source) -> bool:
        return any(next(self._stream(source, set(), evicted=evicted), None) is not None for evicted in (False, True))

    def _reason(self, unit: Unit, source: _Source, *, borrows: bool) -> Reason | None:
        """Return why a unit would be evicted; None if it may not be while the claim's share borrows."""
        if source is self._own:
            return Reason.IN_SHARE
        if source.has_advantage:
            return Reason.RECLAMATION
        threshold = self._preemption.max_priority_threshold
        if (
            not self._preemption.borrow_within_cohort
            or unit.priority >= self._claim.priority
            or (threshold is not None and unit.priority > threshold)
        ):
            return None if borrows else Reason.RECLAMATION
        return Reason.RECLAIM_WHILE_BORROWING

    def _is_above_quota(self, source: _Source) -> bool:
        """Say whether a source and all shares up to the common ancestor still use more than they are guaranteed."""
        return all(self._uses_more(name) for name in source.path)

    def _cuts(self, unit: Unit, source: _Source) -> bool:
        return not unit.is_evicted and cuts_guarantee(self._tree, source.path, unit, self._claim.contested)

    def _uses_more(self, name: str) -> bool:
        tree = self._tree
        return any(tree.usage(name, each) > tree.quota(name, each) for each in self._claim.contested)

    def _is_below_quota(self) -> bool:
        """Say whether the claim's share uses less than it is guaranteed of everything that is contested."""
        tree, name = self._tree, self._claim.share
        return all(tree.usage(name, each) < tree.quota(name, each) for each in self._claim.contested)


def _unit_order(entry: tuple[Unit, _Source]) -> Order:
    return entry[0].order
