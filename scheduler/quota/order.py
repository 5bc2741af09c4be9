"""The share whose pod goes first, by weighted dominant share; and how far pods borrow.

The fair order is Kueue's tournament (pkg/scheduler/fair_sharing_iterator.go, with the gate
FairSharingPrioritizeNonBorrowing, on by default there): at each level the children of a share are compared with the
head that each of them sends up, as if that were admitted. Those that do not borrow what the head asks for are first, so
a share below its guarantee goes before all that have theirs; then comes the least dominant resource share, the highest
priority and the head that has waited longest. Kueue leaves open in which order trees come; here their winners are
compared by priority and age. In Kueue only leaves have pods; here those of a share with children compete with these as
if they were in one more of them, which has the weight 1 and is guaranteed nothing: neither they nor the children
starve. After a change only the path from that share to its root is computed again.
"""

from collections.abc import Callable, Mapping

import msgspec

from scheduler.quota.dominant import dominant_share, dominant_share_of_own_pods
from scheduler.quota.tree import ShareTree

Rank = tuple[bool, float, tuple[float, float], int, float, str]
"""Orders the children of a share by the heads that they send up; the least is first."""


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The first pod, or group, of a share's queue."""

    share: str
    uid: str
    request: Mapping[str, int]
    share_priority: float = 0
    """A higher one goes before weights and the pods' own priorities, but not before a guarantee."""

    priority: int = 0
    queued_at: float = 0.0
    """Seconds."""

    @property
    def by_age(self) -> tuple[int, float, str]:
        """Orders heads by priority, then age, then uid: the least is first."""
        return -self.priority, self.queued_at, self.uid


class FairOrder:
    """The heads of all shares' queues in the order of the tournament."""

    def __init__(self, tree: ShareTree, resource_of: Callable[[str], str] = str) -> None:
        self._tree = tree
        self._resource_of = resource_of
        self._heads: dict[str, Head] = {}
        self._sent: dict[str, tuple[Rank, Head]] = {}
        """By share: the head that it sends up to its parent, and its rank there."""

        self._stale: set[str] = set()
        self._roots = [name for name, share in tree.shares.items() if not share.parent]

    def offer(self, head: Head) -> None:
        """Let a pod take the place of its share's one before. Raises KeyError if its share is not in the tree."""
        self._tree.shares[head.share]
        self._heads[head.share] = head
        self._stale.add(head.share)

    def withdraw(self, share: str) -> None:
        if self._heads.pop(share, None) is not None:
            self._stale.add(share)

    def first(self) -> Head | None:
        """Return the head that goes first, which stays until it is withdrawn or replaced; None if there is none."""
        levels: dict[str, int] = {}
        for share in self._stale:
            path = self._path(share)
            levels.update((name, len(path) - index) for index, name in enumerate(path))
        self._stale.clear()
        for share in sorted(levels, key=lambda name: (-levels[name], name)):
            self._send(share)
        roots = (self._sent[name][1] for name in self._roots if name in self._sent)
        return min(roots, key=lambda head: head.by_age, default=None)

    def _send(self, share: str) -> None:
        """Decide which head a share sends up to its parent, now that its children have decided."""
        own, best = self._heads.get(share), None
        sent = [self._sent[child] for child in self._tree.children[share] if child in self._sent]
        if own is not None and sent:
            sent.append((self._rank(share, own, is_among_children=True), own))
        if sent:
            best = min(sent, key=lambda entry: entry[0])[1]
        best = best or own
        if best is None:
            self._sent.pop(share, None)
        else:
            self._sent[share] = self._rank(share, best), best

    def _rank(self, share: str, head: Head, *, is_among_children: bool = False) -> Rank:
        """Return how a share, or its own pods, compare with their siblings if a head of its subtree were admitted."""
        tree, resource_of = self._tree, self._resource_of
        if not (tree.shares[share].parent or is_among_children):
            return False, 0, (0.0, 0.0), *head.by_age
        tree.add(head.share, head.request)
        try:
            if is_among_children:
                borrows, found = True, dominant_share_of_own_pods(tree, share, resource_of)
            else:
                borrows = tree.uses_more(share, head.request)
                found = dominant_share(tree, share, resource_of=resource_of)
            return borrows, -head.share_priority, found.key, *head.by_age
        finally:
            tree.remove(head.share, head.request)

    def _path(self, share: str) -> list[str]:
        path = [share]
        while parent := self._tree.shares[path[-1]].parent:
            path.append(parent)
        return path


def height_of(tree: ShareTree, head: Head) -> int:
    """Return how high the smallest subtree is that is guaranteed what a head asks for; it grows as more is used."""
    return max(
        (tree.height(tree.holder(head.share, each, amount)) for each, amount in head.request.items() if amount > 0),
        default=0,
    )


def is_guaranteed(tree: ShareTree, head: Head) -> bool:
    """Say whether a share is guaranteed what it uses and a head asks for together."""
    return tree.guarantees(head.share, {each: amount for each, amount in head.request.items() if amount > 0})
