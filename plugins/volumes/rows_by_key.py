"""Which rows have something, for things that nearly always one row has: a hundred thousand of them cost little."""

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
        found = self._rows.get(key)
        if found is None:
            return ()
        return (found,) if isinstance(found, int) else tuple(found)

    def add(self, keys: Iterable[Key], row: int) -> None:
        """Let `row`, which had none of these keys, have them."""
        rows = self._rows
        for key in keys:
            found = rows.get(key)
            if found is None:
                rows[key] = row
            elif isinstance(found, int):
                rows[key] = {found, row}
            else:
                found.add(row)

    def remove(self, keys: Iterable[Key], row: int) -> None:
        """Let `row`, which had these keys, have them no more."""
        for key in keys:
            found = self._rows[key]
            if isinstance(found, int):
                del self._rows[key]
                continue
            found.remove(row)
            if not found:
                del self._rows[key]
