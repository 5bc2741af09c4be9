"""DeviceTaintRules: taints that an administrator adds to those in the driver's slices.

Rule: k8s.io/dynamic-resource-allocation resourceslice/tracker/tracker.go at v0.37.2 (applyPatches).
"""

from collections.abc import Callable, Iterator

from plugins.dynamic_resources.allocation.pools import DeviceId
from scheduler import framework as fw
from scheduler.api.devices import DeviceTaint, DeviceTaintRule, DeviceTaintSelector


class TaintRules:
    """The rules, kept up to date by the watch. `changed` is called after each change."""

    def __init__(self, objects: fw.ObjectLister, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._rules: dict[str, tuple[DeviceTaintSelector, DeviceTaint]] = {}
        """UID → selector and taint; a rule without a selector selects nothing."""
        objects.listen(fw.DEVICE_TAINT_RULE, self._rule_changed, self._reset)

    def taints_of(self, device: DeviceId) -> Iterator[DeviceTaint]:
        """Yield the taints that rules give to a device."""
        for selector, taint in self._rules.values():
            named = selector.driver, selector.pool, selector.device
            if all(name is None or name == own for name, own in zip(named, device, strict=True)):
                yield taint

    def _rule_changed(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        if old is not None:
            self._rules.pop(old.metadata.uid, None)
        if new is not None and new.spec.device_selector is not None:
            self._rules[new.metadata.uid] = new.spec.device_selector, new.spec.taint
        self._changed()

    def _reset(self) -> None:
        self._rules.clear()
        self._changed()
