"""At whose expense pods run, so that no share takes back by comparison what another has got from it that way.

A pod that takes the place of others takes over their past: so each eviction by comparison leaves a unit with a longer
past than any of its victims. As no past has more shares than there are, such evictions come to an end.
"""

from collections.abc import Iterable

from scheduler.quota.dominant import Ancestry
from scheduler.quota.tree import ShareTree


class Expenses:
    """The shares that have given up units for a pod, or for the pods in whose place it is."""

    def __init__(self) -> None:
        self._of_pod: dict[str, frozenset[str]] = {}
        """UID → the shares, each as it was compared: the child of the lowest common ancestor."""

    def note(self, tree: ShareTree, share: str, uids: Iterable[str], victims: Iterable[tuple[str, str]]) -> None:
        """Pods with these UIDs, of a share, take the place of victims: share, UID."""
        found, ancestry = set[str](), Ancestry(tree, share)
        for name, uid in victims:
            found |= self._of_pod.get(uid, frozenset())
            if name != share:
                _, path = ancestry.below_common_ancestor(name)
                found.add(path[-1])
        for uid in uids if found else ():
            self._of_pod[uid] = self._of_pod.get(uid, frozenset()) | found

    def include(self, share: str, uids: Iterable[str]) -> bool:
        """Say whether one of these pods runs at the expense of a share."""
        return any(share in self._of_pod.get(uid, ()) for uid in uids) if self._of_pod else False

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        self._of_pod.pop(uid, None)

    def clear(self) -> None:
        """Forget all: other amounts or weights are compared from now on."""
        self._of_pod.clear()
