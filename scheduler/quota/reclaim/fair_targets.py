"""The share of the next victim under fair sharing: from the root down to the one that borrows most.

Source: pkg/scheduler/preemption/fairsharing/ordering.go and least_common_ancestor.go of Kueue. The child with the
largest dominant resource share comes first, then its child, and so on; shares that do not borrow, or have no
candidates left, are passed over from then on.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

from scheduler.quota.dominant import Ancestry, DominantShare, dominant_share
from scheduler.quota.reclaim.running import QuotaUnit
from scheduler.quota.tree import ShareTree

Key = tuple[float, float]
"""The type of `DominantShare.key`."""

Reckon = Callable[[ShareTree, str], DominantShare]
"""Returns the dominant resource share of a share of a tree."""

NO_KEY: Final[Key] = (-1.0, 0.0)
"""Below that of any share."""


class Piles:
    """Candidates by share, least important first; those that come last are put aside."""

    def __init__(
        self, find: Callable[[str], Iterable[QuotaUnit]], comes_last: Callable[[QuotaUnit], bool] | None = None
    ) -> None:
        """Without `comes_last` nothing is put aside."""
        self.aside: dict[str, list[QuotaUnit]] = {}
        self._find = find
        self._comes_last = comes_last
        self._left: dict[str, tuple[deque[QuotaUnit], Iterator[QuotaUnit]]] = {}
        self._refused: dict[str, list[Iterable[QuotaUnit]]] = {}

    def head(self, share: str) -> QuotaUnit | None:
        if share not in self._left:
            self._left[share] = deque(), iter(self._find(share))
        seen, unseen = self._left[share]
        while not seen or (self._comes_last is not None and self._comes_last(seen[0])):
            if seen:
                self.aside.setdefault(share, []).append(seen.popleft())
            unit = next(unseen, None)
            if unit is None:
                return None
            seen.append(unit)
        return seen[0]

    def pop(self, share: str) -> QuotaUnit:
        """Take the head off; raise IndexError if `head` found none."""
        return self._left[share][0].popleft()

    def refuse(self, share: str, units: Iterable[QuotaUnit]) -> None:
        """Keep units that were taken off, and did not go, for the next strategy."""
        self._refused.setdefault(share, []).append(units)

    def refuse_all(self, share: str) -> None:
        """Keep whatever is left of a share's pile, which is empty then."""
        if share in self._left:
            self.refuse(share, chain(*self._left.pop(share)))
            self._left[share] = deque(), iter(())

    def again(self) -> "Piles":
        """Return piles of what was refused; what comes last joins what is aside already."""
        piles = Piles(self._rest, self._comes_last)
        piles.aside = self.aside
        return piles

    def of_aside(self, order: Callable[[QuotaUnit], tuple[bool, bool]]) -> "Piles":
        """Return piles of what is aside; before it goes what else was refused of the same shares."""
        return Piles(
            lambda share: chain(self._rest(share), sorted(aside, key=order)) if (aside := self.aside.get(share)) else ()
        )

    def _rest(self, share: str) -> Iterator[QuotaUnit]:
        return chain(*self._refused.get(share, ()))


class Targets:
    """The shares that victims come from: those that borrow most first.

    Before the next one the head of the share's pile has to go, or the share itself.
    """

    def __init__(self, tree: ShareTree, ancestry: Ancestry, piles: Piles, reckon: Reckon = dominant_share) -> None:
        self._tree = tree
        self._reckon = reckon
        self._piles = piles
        self._share, self._path = ancestry.share, ancestry.path
        self._pruned: set[str] = set()
        self._keys: dict[str, Key] = {}

    def __iter__(self) -> Iterator[str]:
        root = self._path[-1]
        if root == self._share:
            while self._piles.head(root) is not None and root not in self._pruned:
                yield root
            return
        while root not in self._pruned:
            target = self._next(root)
            if target:
                yield target

    def drop(self, share: str) -> None:
        self._pruned.add(share)

    def key(self, share: str) -> Key:
        """Return what orders shares by their dominant resource share; kept until `forget`."""
        found = self._keys.get(share)
        if found is None:
            found = self._keys[share] = self._reckon(self._tree, share).key
        return found

    def forget(self, share: str) -> None:
        """Have a share's dominant resource share reckoned again, and its ancestors'."""
        while share:
            self._keys.pop(share, None)
            share = self._tree.shares[share].parent

    def _next(self, node: str) -> str:
        """Return the share that borrows most below a node; empty if there was none, and something was pruned."""
        while True:
            leaf, leaf_key = self._highest_leaf(node)
            inner, inner_key = self._highest_inner(node)
            if not inner and not leaf:
                self._pruned.add(node)
                return ""
            if inner_key < leaf_key:
                return leaf
            node = inner

    def _highest_leaf(self, node: str) -> tuple[str, Key]:
        """Return a node's child that has candidates and borrows most; of equal ones that with the first candidate."""
        highest, highest_key = "", NO_KEY
        for child in self._tree.children[node]:
            if child in self._pruned or self._tree.children[child]:
                continue
            if self._piles.head(child) is None:
                self._pruned.add(child)
                continue
            key = self.key(child)
            if key[0] == 0 and child != self._share and not self._borrows(child):
                self._pruned.add(child)
            elif key > highest_key or (key == highest_key and self._goes_before(child, highest)):
                highest, highest_key = child, key
        return highest, highest_key

    def _highest_inner(self, node: str) -> tuple[str, Key]:
        """Return a node's child with children that borrows most; one that holds the preemptor need not borrow."""
        highest, highest_key = "", NO_KEY
        for child in self._tree.children[node]:
            if child in self._pruned or not self._tree.children[child]:
                continue
            key = self.key(child)
            if key[0] == 0 and child not in self._path and not self._borrows(child):
                self._pruned.add(child)
            elif key >= highest_key:
                highest, highest_key = child, key
        return highest, highest_key

    def _borrows(self, share: str) -> bool:
        """Say whether a share uses more than it is guaranteed; its key is 0 then, too, if its parent lends nothing."""
        return self._tree.holds_more(share, self._tree.resources_of(share))

    def _goes_before(self, share: str, other: str) -> bool:
        """Say which of two shares that borrow alike has the candidate that comes first."""
        head, rival = self._piles.head(share), self._piles.head(other)
        if head is None or rival is None:
            return rival is None
        mine, theirs = share == self._share, other == self._share
        return (mine, *head.order) < (theirs, *rival.order)
