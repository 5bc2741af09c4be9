"""Objects that plugins of one scheduler share across its profiles."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Shared:
    """One object of each class, made when it is first asked for: the same for all profiles.

    It stays when the configuration is loaded again, as long as a plugin of some profile asks for it in its `start`.
    """

    __slots__ = ("_by_class",)

    def __init__(self) -> None:
        self._by_class: dict[type, Any] = {}

    def get(self, cls: type[T], make: Callable[[], T]) -> T:
        """Return the object of exactly this class; `make` is called if there is none yet."""
        found: T | None = self._by_class.get(cls)
        if found is None:
            found = self._by_class[cls] = make()
        return found
