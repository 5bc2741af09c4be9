"""The subscriptions of one profile's plugins to objects, and to what profiles share: they end with the profile.

A profile may be replaced while the program runs. Then its listeners must not be called for ever, and what it shares
with others must go once no profile uses it, no matter which one made it. So each handle has objects and shared things
of its own:

    listen, by a plugin ─────────────────────► ends with its profile
    listen, by what is made to be shared ────► ends when the last profile that asked for that has ended
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from scheduler.framework.handle import Listener, Shared
from scheduler.state.objects import ObjectStore

T = TypeVar("T")
Ends = list[Callable[[], None]]


class ProfileObjects:
    """Implements scheduler.framework.handle.ObjectLister for one profile."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._ends: Ends = []
        # The store's own, for they are asked for every pod.
        self.get: Callable[..., Any] = store.get
        self.version: Callable[[str], int] = store.version
        self.list: Callable[..., Collection[Any]] = store.list

    def listen(self, resource: str, listener: Listener, reset: Callable[[], None] | None = None) -> None:
        """As the store's."""
        self._ends.append(self._store.subscribe(resource, listener, reset))

    @contextmanager
    def apart(self) -> Iterator[Ends]:
        """Collect the ends of the subscriptions made within, instead of ending them with the profile."""
        before, self._ends = self._ends, []
        mine = self._ends
        try:
            yield mine
        finally:
            self._ends = before

    def close(self) -> None:
        """Listen no more."""
        _end_all(self._ends)


@dataclass(slots=True)
class _Entry:
    thing: Any
    ends: Ends
    users: "set[ProfileShared]" = field(default_factory=set)


class Sharing:
    """The objects that profiles share, by class."""

    def __init__(self) -> None:
        self.entries: dict[type, _Entry] = {}


class ProfileShared(Shared):
    """The objects that one profile shares with the others."""

    __slots__ = ("_objects", "_sharing")

    def __init__(self, sharing: Sharing, objects: ProfileObjects) -> None:
        """`objects`: those of the profile, with which `make` listens."""
        super().__init__()
        self._sharing = sharing
        self._objects = objects

    def get(self, cls: type[T], make: Callable[[], T]) -> T:
        """Return the object of exactly this class; `make` is called if there is none yet."""
        entry = self._sharing.entries.get(cls)
        if entry is None:
            with self._objects.apart() as ends:
                try:
                    entry = _Entry(make(), ends)
                except BaseException:
                    _end_all(ends)
                    raise
            self._sharing.entries[cls] = entry
        entry.users.add(self)
        thing: T = entry.thing
        return thing

    def close(self) -> None:
        """Use nothing of it any more."""
        for cls, entry in tuple(self._sharing.entries.items()):
            entry.users.discard(self)
            if not entry.users:
                del self._sharing.entries[cls]
                _end_all(entry.ends)


def _end_all(ends: Ends) -> None:
    for end in ends:
        end()
    ends.clear()
