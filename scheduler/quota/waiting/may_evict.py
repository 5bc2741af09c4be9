"""The kinds of pending pods that may take quota back by evicting others, by tree; it is worked out when first asked."""

from collections.abc import Iterable, Iterator, Mapping

from scheduler.quota.adapters import AdaptedShares
from scheduler.quota.share_refs import Root
from scheduler.quota.waiting.kinds import Kind


class MayEvict:
    """Knows them, those first that were looked at longest ago."""

    def __init__(self, shares: AdaptedShares) -> None:
        self._shares = shares
        self._by_root: dict[Root, dict[Kind, None]] | None = {}
        """None: to be worked out again."""

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return self._by_root is None or bool(self._by_root)

    def forget(self) -> None:
        """Shares have changed: others may evict now."""
        self._by_root = None

    def add(self, kind: Kind) -> None:
        """There is a pending pod of a kind."""
        ref = self._shares.ref(kind.selector)
        if self._by_root is not None and ref is not None and self._shares.takes_back(ref.key):
            self._by_root.setdefault(ref.root, {}).setdefault(kind)

    def remove(self, kind: Kind) -> None:
        """There is none any more."""
        ref = self._shares.ref(kind.selector)
        if self._by_root is None or ref is None or ref.root not in self._by_root:
            return
        self._by_root[ref.root].pop(kind, None)
        if not self._by_root[ref.root]:
            del self._by_root[ref.root]

    def looked_at(self, root: Root, kind: Kind) -> bool:
        """Have others go before this kind at the next time; return whether it is one of them still."""
        kinds = (self._by_root or {}).get(root, {})
        if kind not in kinds:
            return False
        kinds[kind] = kinds.pop(kind)
        return True

    def of(self, root: Root, pending: Iterable[Kind]) -> Iterator[Kind]:
        """Yield those of a tree; `pending`: all kinds."""
        return iter(tuple(self._all(pending).get(root, ())))

    def all(self, pending: Iterable[Kind]) -> list[tuple[Root, Kind]]:
        """Return all, with the roots of their trees."""
        return [(root, kind) for root, kinds in self._all(pending).items() for kind in kinds]

    def _all(self, pending: Iterable[Kind]) -> Mapping[Root, Mapping[Kind, None]]:
        if self._by_root is None:
            self._by_root = {}
            for kind in pending:
                self.add(kind)
        return self._by_root
