"""Dominant resource share, as Kueue computes it: what a share borrows of all that its parent could lend, by weight.

Fair sharing compares those of two children of the lowest common ancestor of a preemptor's share and another.
"""

import math
from collections.abc import Callable, Mapping

import msgspec

from scheduler.api.quota.quota_amounts import MAX
from scheduler.quota.tree import ShareTree


class DominantShare(msgspec.Struct, frozen=True):
    """The resource of which a share borrows most, and how much."""

    ratio: float
    """In thousandths of what the parent could lend, without the weight."""

    resource: str
    """Empty if nothing is borrowed that the parent could lend."""

    is_borrowing: bool
    weight: float

    @property
    def weighted(self) -> float:
        """Infinite for a share that borrows although its weight is 0."""
        if self.weight == 0:
            return math.inf if self.is_borrowing or self.ratio else 0.0
        return self.ratio / self.weight

    @property
    def key(self) -> tuple[float, float]:
        """Orders shares: the least goes first; those that are infinite by what they borrow."""
        weighted = self.weighted
        return weighted, self.ratio if weighted == math.inf else 0.0


def dominant_share(tree: ShareTree, name: str, resource_of: Callable[[str], str] = str) -> DominantShare:
    """Return a share's dominant resource share; a root's is 0.

    `resource_of`: which resource one of the tree's is; amounts of the same resource in several flavors are added.
    """
    share = tree.shares[name]
    more = {key: tree.usage(name, key) - tree.quota(name, key) for key in (tree.resources if share.parent else ())}
    return _dominant(tree, share.parent, more, share.weight, resource_of)


def dominant_share_of_own_pods(tree: ShareTree, name: str, resource_of: Callable[[str], str] = str) -> DominantShare:
    """Return the same for the pods of a share that has children, as if they were in one more of these.

    It is guaranteed nothing, and has the weight 1.
    """
    return _dominant(tree, name, {key: tree.used_by_own_pods(name, key) for key in tree.resources}, 1.0, resource_of)


def _dominant(
    tree: ShareTree, parent: str, more: Mapping[str, int], weight: float, resource_of: Callable[[str], str]
) -> DominantShare:
    borrowed: dict[str, int] = {}
    for key, amount in more.items():
        if amount > 0:
            resource = resource_of(key)
            borrowed[resource] = borrowed.get(resource, 0) + amount
    lendable = dict.fromkeys(borrowed, 0)
    for key in tree.resources if borrowed else ():
        resource = resource_of(key)
        if resource in lendable:
            lendable[resource] = min(MAX, lendable[resource] + tree.potential(parent, key))
    ratio, dominant = 0.0, ""
    for resource in sorted(borrowed):
        if lendable[resource] > 0 and borrowed[resource] * 1000 / lendable[resource] > ratio:
            ratio, dominant = borrowed[resource] * 1000 / lendable[resource], resource
    return DominantShare(ratio, dominant, bool(borrowed), weight)


class Ancestry:
    """The ancestors of a preemptor's share."""

    def __init__(self, tree: ShareTree, share: str) -> None:
        self.share = share
        self.path = [share]
        """From the share to its root."""

        while parent := tree.shares[self.path[-1]].parent:
            self.path.append(parent)
        self._tree = tree
        self._found: dict[str, tuple[str, tuple[str, ...]]] = {}

    def below_common_ancestor(self, share: str) -> tuple[str, tuple[str, ...]]:
        """Return the preemptor's child of the lowest common ancestor, and the path from a share up to its own."""
        found = self._found.get(share)
        if found is None:
            path = [share]
            while (parent := self._tree.shares[path[-1]].parent) not in self.path:
                path.append(parent)
            found = self._found[share] = self.path[self.path.index(parent) - 1], tuple(path)
        return found
