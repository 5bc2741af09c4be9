"""Listeners to the objects of one resource, and their repair after they raise.

    UP TO DATE ──raises──► emptied, and given all objects again ─┬──► UP TO DATE
                                                                   ├─ raises for a few ──► UP TO DATE, without these
                                                                   └─ raises again ──────► BROKEN: not called
    BROKEN, or without some ──mend──► the same once more; the program ends if it is BROKEN still

A listener that raises costs what it keeps of that object, never the other listeners, nor the change itself.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from scheduler.framework.errors import SchedulerError
from scheduler.framework.handle import Listener

_logger = logging.getLogger(__name__)

PASSES: Final = 3
"""Attempts to rebuild a table: the first finds the objects that are to be left out, the second does without them."""


class ListenerFailed(SchedulerError):
    """A plugin's listener raised. Tables are as right as they can be: without the object, for that listener."""


class ObjectListener:
    """One listener, with the objects that it does not know because it raises for them."""

    def __init__(self, resource: str, listener: Listener, reset: Callable[[], None] | None) -> None:
        self._resource = resource
        self._listener = listener
        self._reset = reset
        self._left_out: set[str] = set()
        self._is_broken = False
        self.behind = 0
        """Number of changes that it did not get. Set before a change is made, so that none goes unnoticed."""

    def notify(self, old: Any | None, new: Any | None, objects: Mapping[str, Any]) -> bool:
        """Notify it of a change, after which these are the objects by UID; return whether it succeeded."""
        if self._is_broken:
            return False
        if self.behind > 1:
            self._notify_of_all(objects)
            return False
        if old is not None and old.metadata.uid in self._left_out:
            self._left_out.discard(old.metadata.uid)
            if new is None:
                self.behind = 0
                return True
            old = None
        try:
            self._listener(old, new)
        except BaseException:  # noqa: BLE001  the plugin boundary
            self._log("A listener failed", new if new is not None else old)
            self._notify_of_all(objects)
            return False
        self.behind = 0
        return True

    def mend(self, objects: Mapping[str, Any]) -> None:
        """Notify it again of the changes that it missed. Raises ListenerFailed if it is still broken."""
        if self._is_broken or self._left_out or self.behind:
            self._notify_of_all(objects)
        if self._is_broken:
            raise ListenerFailed(f"a listener to {self._resource} cannot be put right: {_name(self._listener)}")

    def leaves_out(self, uid: str) -> bool:
        """Return whether it does not know this object, though it should."""
        return self._is_broken or self.behind > 0 or uid in self._left_out

    def _notify_of_all(self, objects: Mapping[str, Any]) -> None:
        self._left_out.clear()
        self._is_broken = True
        for _ in range(PASSES):
            if self._start_over(item for uid, item in objects.items() if uid not in self._left_out):
                self._is_broken = False
                self.behind = 0
                return

    def _start_over(self, objects: Iterable[Any]) -> bool:
        """Empty it and give it these objects; return whether it raised for none. Those for which it did are left
        out."""
        try:
            if self._reset is not None:
                self._reset()
        except BaseException:  # noqa: BLE001  the plugin boundary
            self._log("A listener failed to start over", None)
            return False
        failed: set[str] = set()
        for item in objects:
            try:
                self._listener(None, item)
            except BaseException:  # noqa: BLE001  the plugin boundary
                self._log("A listener failed; it goes on without the object", item)
                failed.add(item.metadata.uid)
        self._left_out |= failed
        return not failed

    def _log(self, message: str, item: Any | None) -> None:
        name = "" if item is None else item.metadata.name
        fields = {"resource": self._resource, "listener": _name(self._listener), "object": name}
        _logger.exception(message, extra=fields)


def _name(listener: Listener) -> str:
    return getattr(listener, "__qualname__", type(listener).__name__)
