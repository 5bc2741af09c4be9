"""Caches for data derived from pods and claims, which users may write in any form and number.

Each is bounded in bytes and drops entries that were not used lately, as their pods are probably gone:

    put ──► young ──the young ones take half of the limit, or `forget_idle`──► old ──the same again──► gone
              ▲                                                                 │
              └────────────────────────── get ──────────────────────────────────┘
"""

from collections.abc import Callable, Hashable, Iterator
from sys import getsizeof
from typing import Any, ClassVar, Final, Generic, TypeVar
from weakref import WeakSet

import msgspec
from msgspec.structs import astuple

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")

ENTRY_BYTES: Final = 150
"""Bytes of a dict's entry, at worst, including the weight that is stored with it."""


def weight_of(*values: Any) -> int:
    """Return about how many bytes these values take: strings, numbers, containers and structs, nested.

    What is shared counts each time, so the truth is seldom more. Of an object of any other kind only itself counts.
    """
    total = 0
    rest = list(values)
    while rest:
        value = rest.pop()
        if value is None or value is True or value is False:
            continue
        total += getsizeof(value)
        if isinstance(value, msgspec.Struct):
            rest.extend(astuple(value))
        elif isinstance(value, dict):
            rest.extend(value)
            rest.extend(value.values())
        elif isinstance(value, tuple | frozenset | list | set):
            rest.extend(value)
    return total


class RecentCache(Generic[KeyT, ValueT]):
    """Values by key. A hit costs one look-up; None cannot be stored."""

    every: ClassVar["WeakSet[RecentCache[Any, Any]]"] = WeakSet()

    def __init__(self, name: str, limit: int, weigh: Callable[[KeyT, ValueT], int] = weight_of) -> None:
        """`limit` in bytes, as `weigh` counts them; `name` is the one in the metric `loadmaster_cache_bytes`."""
        self.name = name
        self.limit = limit
        self._weigh = weigh
        self._young: dict[KeyT, tuple[ValueT, int]] = {}
        self._old: dict[KeyT, tuple[ValueT, int]] = {}
        self._young_bytes = self._old_bytes = 0
        self.every.add(self)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    @property
    def bytes(self) -> int:
        """About how much memory its entries take."""
        return self._young_bytes + self._old_bytes

    def get(self, key: KeyT) -> ValueT | None:
        """Return the value stored under `key`, or None."""
        entry = self._young.get(key)
        if entry is not None:
            return entry[0]
        if self._old:
            entry = self._old.pop(key, None)
            if entry is not None:
                self._old_bytes -= entry[1]
                self._put(key, entry)
                return entry[0]
        return None

    def put(self, key: KeyT, value: ValueT) -> ValueT:
        """Store a value under a key that is not in use, unless it takes more than half of the limit; return it."""
        weight = self._weigh(key, value) + ENTRY_BYTES
        if 2 * weight <= self.limit:
            self._put(key, (value, weight))
        return value

    def discard(self, key: KeyT) -> None:
        """Drop the value stored under `key`, if there is one."""
        entry = self._young.pop(key, None)
        if entry is not None:
            self._young_bytes -= entry[1]
        entry = self._old.pop(key, None)
        if entry is not None:
            self._old_bytes -= entry[1]

    def clear(self) -> None:
        self._young, self._old = {}, {}
        self._young_bytes = self._old_bytes = 0

    def forget_idle(self) -> None:
        """Forget what was not asked for since the last call."""
        self._old, self._old_bytes = self._young, self._young_bytes
        self._young, self._young_bytes = {}, 0

    def _put(self, key: KeyT, entry: tuple[ValueT, int]) -> None:
        if 2 * (self._young_bytes + entry[1]) > self.limit:
            self.forget_idle()
        self._young[key] = entry
        self._young_bytes += entry[1]


def forget_idle() -> None:
    """Let every cache forget what was not asked for since the last call."""
    for cache in tuple(RecentCache.every):
        cache.forget_idle()


def cache_sizes() -> Iterator[tuple[str, int]]:
    """Yield name and bytes of every kind of cache."""
    sizes: dict[str, int] = {}
    for cache in tuple(RecentCache.every):
        sizes[cache.name] = sizes.get(cache.name, 0) + cache.bytes
    yield from sorted(sizes.items())
