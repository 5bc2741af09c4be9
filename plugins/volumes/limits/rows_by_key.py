"""The rows that have a key, compact where nearly every key has one row: a hundred thousand keys cost little."""

from collections.abc import Collection, Hashable, Iterable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class RowsByKey(Generic[Key]):
    """Key → rows."""

    def __init__(self) -> None:
        # A set takes 200 bytes, so a single row has none.
        self._rows: dict[Key, int | set[int]] = {}

    def of(self, key: Key) -> Collection[int]:
        """Return the rows that have `key`, as of now."""
        rows_of_key = self._rows.get(key)
        if rows_of_key is None:
            return ()
        return (rows_of_key,) if isinstance(rows_of_key, int) else tuple(rows_of_key)

    def add(self, keys: Iterable[Key], row: int) -> None:
        """Add these keys, none of which it has, to `row`."""
        rows = self._rows
        for key in keys:
            rows_of_key = rows.get(key)
            if rows_of_key is None:
                rows[key] = row
            elif isinstance(rows_of_key, int):
                rows[key] = {rows_of_key, row}
            else:
                rows_of_key.add(row)

    def remove(self, keys: Iterable[Key], row: int) -> None:
        """Remove these keys, all of which it has, from `row`."""
        for key in keys:
            rows_of_key = self._rows[key]
            if isinstance(rows_of_key, int):
                del self._rows[key]
                continue
            rows_of_key.remove(row)
            if not rows_of_key:
                del self._rows[key]
