"""Devices that draw on one counter set only together with devices of a common compatibility group.

Rule: k8s.io/dynamic-resource-allocation structured/internal/experimental/compatibility_groups.go at v0.37.2.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from plugins.dynamic_resources.allocation.pools import DeviceId, Pool, PoolId, SliceDevice
from scheduler.api.devices import CounterConsumption

Groups: TypeAlias = frozenset[str]

_WITHOUT: Final[Groups] = frozenset({""})
"""Devices without groups are compatible with each other, and with no others."""


class CompatibilityGroups:
    """The groups that the devices on each counter set have in common, in one search."""

    def __init__(self, is_allocated: Callable[[DeviceId], bool]) -> None:
        self._is_allocated = is_allocated
        self._common: dict[PoolId, dict[str, Groups]] = {}

    def join(self, pool: Pool, device: SliceDevice) -> Callable[[], None] | None:
        """Let a device draw on its counter sets; return how to undo it, None if it is not compatible."""
        common = self._common.get(pool.id)
        if common is None:
            common = self._common[pool.id] = self._of_allocated(pool)
        before = dict(common)
        for consumed in device.device.consumes_counters or ():
            if not common.get(consumed.counter_set, groups_of(consumed)) & groups_of(consumed):
                self._common[pool.id] = before
                return None
            _add(common, consumed)

        def undo() -> None:
            self._common[pool.id] = before

        return undo

    def _of_allocated(self, pool: Pool) -> dict[str, Groups]:
        common: dict[str, Groups] = {}
        for view in (*pool.slices, *pool.elsewhere):
            for device in view.devices:
                if device.device.consumes_counters and self._is_allocated(device.id):
                    for consumed in device.device.consumes_counters:
                        _add(common, consumed)
        return common


def groups_of(consumed: CounterConsumption) -> Groups:
    return frozenset(consumed.compatibility_groups or ()) or _WITHOUT


def _add(common: dict[str, Groups], consumed: CounterConsumption) -> None:
    """Count a device. Allocated ones may be incompatible, as slices change: then one without groups changes nothing."""
    groups = groups_of(consumed)
    known = common.setdefault(consumed.counter_set, groups)
    if _WITHOUT not in (known, groups):
        common[consumed.counter_set] = known & groups
