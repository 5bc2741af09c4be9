"""The entries of the queue that are pending for quota: they were refused for it, and it has no space for them.

Those of one kind ask for the same amounts of the same quota: if there is no space for the first, there is none for the
others. No event of the cluster reaches them, so waiting costs nothing. They are in the order of the queue, by arrival,
however often they were tried; nominated ones go first, since space may be kept for them.

Those that leave to be tried before they have space stay known until then: they compete for quota that is freed
meanwhile.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Any, Final, Generic, Protocol, TypeVar

from scheduler.api.pods.importance import created
from scheduler.framework.queued import EntityKey, Entry, QueuedGroup, QueuedPod
from scheduler.queue.entity_heap import EntityHeap


class Request(Protocol):
    """The need of an entry, as the queue sees it."""

    @property
    def kind(self) -> Hashable:
        """The same for all entries for which there is space at the same time."""

    @property
    def sources(self) -> Collection[Hashable]:
        """The objects, in addition to its pods, that say how much it is."""


class Quota(Protocol):
    """The needs of entries."""

    def lacking(self, entry: Entry) -> Request | None:
        """Return what an entry needs that quota has refused, and for which there is no space; None for others."""
        return None

    def has_come_free(self, entry: Entry) -> bool:
        """Say whether there is space now for a group that quota has refused as a whole."""
        return False


class NoQuota(Quota):
    """There is none."""


NO_QUOTA: Final[Quota] = NoQuota()


R = TypeVar("R", bound=Request)


def came_at(entry: Entry) -> float:
    """Return when an entry came, in seconds: to the API server, so that it does not lose its age at a restart."""
    return created(entry.pod) / 1_000_000 or entry.created


class PendingForQuota(Generic[R]):
    """All entries that are pending for quota, by kind."""

    def __init__(self, sort_key: Callable[[Entry], Any], is_nominated: Callable[[str], bool]) -> None:
        """`sort_key`: what activeQ sorts by. `is_nominated` says it of the UID of a pod."""
        self._sort_key = sort_key
        self.is_nominated = is_nominated
        self._kinds: dict[Hashable, EntityHeap[Entry]] = {}
        """Those that were deferred longest ago first."""
        self.requests: dict[EntityKey, R] = {}
        """Key of an entry → what it needs. Mostly empty, so that the queue need not ask."""
        self._by_source: dict[Hashable, dict[EntityKey, None]] = {}
        self.due: dict[Hashable, Entry] = {}
        """Those that will be tried. Mostly empty, so that the queue need not ask."""
        self._due_kinds: dict[EntityKey, Hashable] = {}
        """The kind of each of these."""
        self._due_of_kind: Counter[Hashable] = Counter()

    def __len__(self) -> int:
        return len(self.requests)

    def __bool__(self) -> bool:
        """Whether any wait, or will be tried without a reservation."""
        return bool(self.requests or self.due)

    def __contains__(self, key: object) -> bool:
        return key in self.requests

    def __iter__(self) -> Iterator[Entry]:
        return (entry for entries in self._kinds.values() for entry in entries)

    def get(self, key: EntityKey) -> Entry | None:
        request = self.requests.get(key)
        return None if request is None else self._kinds[request.kind].get(key)

    def request(self, key: EntityKey) -> R:
        """Return what an entry needs that is here."""
        return self.requests[key]

    def rank(self, entry: Entry) -> Any:
        """Return the order of the queue, by when an entry came."""
        came = came_at(entry)
        shown: Entry = (
            QueuedPod(entry.pod, came)
            if isinstance(entry, QueuedPod)
            else QueuedGroup(entry.pod, came, group_key=entry.group_key, group_priority=entry.group_priority)
        )
        return self._sort_key(shown), entry.created

    def add(self, entry: Entry, request: R) -> None:
        """Have an entry wait; one that does already, for something else."""
        self.remove(entry.key)
        entries = self._kinds.get(request.kind)
        if entries is None:
            entries = self._kinds[request.kind] = EntityHeap(self._order)
        entries.add(entry)
        self.requests[entry.key] = request
        for source in request.sources:
            self._by_source.setdefault(source, {})[entry.key] = None

    def remove(self, key: EntityKey) -> Entry | None:
        """Have an entry wait no longer; return it if it did."""
        request = self.requests.pop(key, None)
        if request is None:
            return None
        for source in request.sources:
            del self._by_source[source][key]
            if not self._by_source[source]:
                del self._by_source[source]
        entries = self._kinds[request.kind]
        entry = entries.remove(key)
        if not entries:
            del self._kinds[request.kind]
        return entry

    def leave(self, key: EntityKey) -> None:
        """Have an entry wait no longer, if it does, since it will be tried."""
        request = self.requests.get(key)
        entry = self.remove(key)
        if request is not None and entry is not None:
            self.due[key] = entry
            self._due_kinds[key] = request.kind
            self._due_of_kind[request.kind] += 1

    def tried(self, key: EntityKey) -> None:
        """An entry that was due is being tried, or is gone."""
        if self.due.pop(key, None) is not None:
            kind = self._due_kinds.pop(key)
            self._due_of_kind[kind] -= 1
            if not self._due_of_kind[kind]:
                del self._due_of_kind[kind]

    def is_due(self, kind: Hashable) -> bool:
        """Say whether an entry of a kind will be tried."""
        return kind in self._due_of_kind

    def rekey(self, key: EntityKey) -> None:
        """Move an entry to its new place, if it is here."""
        if key in self.requests:
            self._kinds[self.requests[key].kind].rekey(key)

    def use(self, sort_key: Callable[[Entry], Any]) -> None:
        """Sort by another key from now on."""
        self._sort_key = sort_key
        for entries in self._kinds.values():
            entries.use(self._order, same_order=False)

    def kinds(self) -> Iterator[Any]:
        """Yield the kinds, those that were deferred longest ago first."""
        return iter(self._kinds)

    def first(self, kind: Hashable) -> tuple[Entry, R] | None:
        """Return the first entry of a kind, with what it needs; None if there is none."""
        entries = self._kinds.get(kind)
        entry = None if entries is None else entries.peek()
        return None if entry is None else (entry, self.requests[entry.key])

    def defer(self, kind: Hashable) -> None:
        """Have others go before this kind at the next time."""
        self._kinds[kind] = self._kinds.pop(kind)

    def of_source(self, source: Hashable) -> Iterable[EntityKey]:
        """Return the keys of those that need more, or less, when an object changes."""
        return tuple(self._by_source.get(source, ()))

    def clear(self) -> None:
        """Forget all entries."""
        for each in (self._kinds, self.requests, self._by_source, self.due):
            each.clear()
        self._due_kinds.clear()
        self._due_of_kind.clear()

    def check_invariants(self) -> None:
        """Each is of one kind, and in order. For tests and debugging."""
        assert {entry.key for entry in self} == self.requests.keys()
        for kind, entries in self._kinds.items():
            assert len(entries), kind
            entries.check_invariants()
            assert all(self.requests[entry.key].kind == kind for entry in entries)
        assert self._due_kinds.keys() == self.due.keys()
        assert self._due_of_kind == Counter(self._due_kinds.values())
        assert {key for keys in self._by_source.values() for key in keys} <= self.requests.keys()

    def _order(self, entry: Entry) -> tuple[bool, Any]:
        pods = entry.members if isinstance(entry, QueuedGroup) else (entry,)
        return not any(self.is_nominated(each.pod.uid) for each in pods), self.rank(entry)
