"""Sort keys that never raise, even if a QueueSort plugin does.

    key or comparison of an out-of-tree plugin ──raises──► reported; these two keep the order in which they came

A heap compares in the middle of other steps, which an exception would leave half done. Keys of in-tree plugins are
plain values and need no guard.
"""

from collections.abc import Callable
from functools import total_ordering
from typing import Any, cast

from scheduler.framework.plugin import QueueSortPlugin
from scheduler.framework.queued import Entry, shown
from scheduler.runtime.guards.plugin_faults import PluginFaults, as_plugin_error, is_of_tree

SortKey = Callable[[Entry], Any]


def sort_key_of(plugin: QueueSortPlugin, faults: PluginFaults) -> SortKey:
    """Return a key function in the plugin's order that never raises."""
    if is_of_tree(type(plugin)):
        return cast("SortKey", plugin.sort_key)
    return lambda queued: _SafeKey(plugin, queued, faults)


@total_ordering
class _SafeKey:
    """A plugin's key of a pod or group, or none if the plugin failed."""

    __slots__ = ("_faults", "_key", "_plugin", "_queued")

    def __init__(self, plugin: QueueSortPlugin, queued: Entry, faults: PluginFaults) -> None:
        self._plugin, self._queued, self._faults = plugin, queued, faults
        self._key: Any = None
        try:
            self._key = (plugin.sort_key(shown(queued)),)
        except BaseException as problem:  # noqa: BLE001 - the plugin boundary
            self._report(problem)

    def __lt__(self, other: "_SafeKey") -> bool:
        if self._key is not None and other._key is not None:
            try:
                return bool(self._key < other._key)
            except BaseException as problem:  # noqa: BLE001 - the plugin boundary
                self._report(problem)
        return self._queued.timestamp < other._queued.timestamp

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SafeKey) and not self < other and not other < self

    __hash__ = None  # type: ignore[assignment]

    def _report(self, problem: BaseException) -> None:
        self._faults.report(as_plugin_error("QueueSort", self._plugin.name, problem), self._queued.pod)
