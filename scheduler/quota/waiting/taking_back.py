"""The kinds of entries pending for quota that may take back what others borrow, by tree.

They are worked out at the first question, and again when quotas have changed. Kinds that have no entry any more are
dropped on the way.
"""

from collections.abc import Iterator

from scheduler.queue.pending_for_quota import PendingForQuota
from scheduler.quota.adapters import AdaptedShares
from scheduler.quota.needs import Kind, Request
from scheduler.quota.share_refs import Root


class TakingBack:
    """The kinds of waiting entries that take back quota, those first that were deferred longest ago."""

    def __init__(self, shares: AdaptedShares, pending: PendingForQuota[Request]) -> None:
        self._shares = shares
        self._pending = pending
        self._by_root: dict[Root, dict[Kind, None]] | None = None
        """None: to be worked out again."""

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return self._by_root is None or bool(self._by_root)

    def forget(self) -> None:
        """Quotas have changed: others take back now."""
        self._by_root = None

    def add(self, kind: Kind) -> None:
        """There is an entry of a kind, or there will be."""
        ref = self._shares.ref(kind.selector) if kind.preempts else None
        if self._by_root is not None and ref is not None and self._shares.takes_back(ref.key):
            self._by_root.setdefault(ref.root, {}).setdefault(kind)

    def defer(self, root: Root, kind: Kind) -> None:
        """Have others go before this kind at the next time."""
        kinds = (self._by_root or {}).get(root, {})
        if kind in kinds:
            kinds[kind] = kinds.pop(kind)

    def of(self, root: Root) -> Iterator[Kind]:
        """Yield those of a tree."""
        return self._present(root, self._roots())

    def all(self) -> list[tuple[Root, Kind]]:
        """Return all, with the roots of their trees."""
        by_root = self._roots()
        return [(root, kind) for root in tuple(by_root) for kind in self._present(root, by_root)]

    def _present(self, root: Root, by_root: dict[Root, dict[Kind, None]]) -> Iterator[Kind]:
        for kind in tuple(by_root.get(root, ())):
            if self._pending.first(kind) is not None:
                yield kind
                continue
            by_root[root].pop(kind, None)
            if not by_root[root]:
                del by_root[root]

    def _roots(self) -> dict[Root, dict[Kind, None]]:
        if self._by_root is None:
            self._by_root = {}
            for kind in self._pending.kinds():
                self.add(kind)
        return self._by_root
