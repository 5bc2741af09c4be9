"""The guarantee of each share, and how much it uses, borrows and lends, for people; a parent's include all below it.

A share borrows what it uses beyond its guarantee. Nothing decides whose that is: here each of the others is taken to
lend in proportion to the idle quota that it may lend.
"""

from collections.abc import Iterator
from typing import NamedTuple

from scheduler.quota.tree import ShareTree


class Balance(NamedTuple):
    """One resource of a share."""

    guaranteed: int
    maximum: int | None
    """None: no limit."""

    used: int
    borrowed: int = 0
    lent: int = 0


class _Count(NamedTuple):
    """One resource of a share, as the tree counts it."""

    quota: int
    usage: int
    local: int

    @property
    def at_parent(self) -> int:
        """The part of the usage that counts against the parent."""
        return max(0, self.usage - self.local)

    is_root: bool

    @property
    def borrowed(self) -> int:
        """The part of the usage that others are guaranteed; there are none above a root."""
        return 0 if self.is_root else max(0, self.usage - self.quota)

    @property
    def idle(self) -> int:
        """The part of the quota that others may use."""
        return max(0, self.quota - self.local - self.at_parent)


def depth_first(tree: ShareTree) -> Iterator[tuple[str, int]]:
    """Yield each share, followed by those below it, and how many are above it."""
    left = [(name, 0) for name, share in tree.shares.items() if not share.parent]
    left.reverse()
    while left:
        name, depth = left.pop()
        yield name, depth
        left.extend((child, depth + 1) for child in reversed(tree.children[name]))


def balances(tree: ShareTree, resource: str) -> dict[str, Balance]:
    """Return share → its balance."""
    names = [name for name, _ in depth_first(tree)]
    counts = {
        name: _Count(
            tree.quota(name, resource),
            tree.usage(name, resource),
            tree.local(name, resource),
            is_root=not tree.shares[name].parent,
        )
        for name in names
    }
    guaranteed: dict[str, int] = {}
    used: dict[str, int] = {}
    for name in reversed(names):
        children = tree.children[name]
        hidden = sum(guaranteed[each] - counts[each].quota + counts[each].local for each in children)
        guaranteed[name] = counts[name].quota + hidden
        used[name] = counts[name].usage + sum(used[each] - counts[each].at_parent for each in children)
    lent = dict.fromkeys(names, 0)
    for name in names:
        _lend(tree, name, resource, counts, lent)
    return {
        name: Balance(
            guaranteed[name],
            tree.shares[name].maximum.get(resource),
            used[name],
            counts[name].borrowed,
            lent[name],
        )
        for name in names
    }


def _lend(tree: ShareTree, name: str, resource: str, counts: dict[str, _Count], lent: dict[str, int]) -> None:
    """Divide the amounts lent below a share, and lent by itself, among its children."""
    children = [(each, counts[each]) for each in tree.children[name]]
    own = tree.shares[name].minimum.get(resource, 0)
    used_by_its_pods = tree.used_by_own_pods(name, resource)
    supply = sum(count.idle for _, count in children) + max(0, own - used_by_its_pods)
    taken = sum(count.borrowed for _, count in children) + max(0, used_by_its_pods - own)
    demand = min(supply, max(0, taken + lent[name] - counts[name].borrowed))
    before = 0
    for each, count in children:
        after = before + count.idle
        # Differences of rounded sums: together they are what is lent.
        lent[each] = (demand * after // supply - demand * before // supply) if supply else 0
        before = after
