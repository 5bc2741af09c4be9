"""Dominant resource share, as Kueue reckons it: how much a share borrows of what its parent could lend, by weight."""

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from scheduler.shares.tree import ShareTree

_NOTHING: Final[Mapping[str, int]] = {}


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
        if self.is_borrowing and self.weight == 0:
            return math.inf
        return self.ratio / self.weight if self.ratio else 0.0

    @property
    def key(self) -> tuple[float, float]:
        """Orders shares: the least goes first; those that are infinite by what they borrow."""
        weighted = self.weighted
        return weighted, self.ratio if weighted == math.inf else 0.0


def dominant_share(tree: ShareTree, name: str, request: Mapping[str, int] = _NOTHING) -> DominantShare:
    """Return a share's dominant resource share, with a request on top of its usage; a root's is 0.

    Every key is a resource of its own here: amounts of several flavors are not added together.
    """
    share = tree.shares[name]
    ratio, dominant, is_borrowing = 0.0, "", False
    for resource in sorted(tree.resources) if share.parent else ():
        borrowed = tree.usage(name, resource) + request.get(resource, 0) - tree.quota(name, resource)
        if borrowed <= 0:
            continue
        is_borrowing = True
        lendable = tree.potential(share.parent, resource)
        if lendable > 0 and borrowed * 1000 / lendable > ratio:
            ratio, dominant = borrowed * 1000 / lendable, resource
    return DominantShare(ratio, dominant, is_borrowing, share.weight)
