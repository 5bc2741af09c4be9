"""The allocated devices, counted once for each claim that comes, changes or goes, not once for each decision.

An allocation goes the way

    (free) --reserve--> IN FLIGHT --written--> ASSUMED --the watch shows it--> (in the store)
                            |                     |
                            +--release--> (free)  +--the watch shows something newer--> (in the store)

In flight is by UID: another pod with the same claim has to wait, unless it is tried together with its group, of which a
pod has reserved the claim: this one stays in flight until one of them has written it, or the last has released it.
Assumed is the object that the API server answered with, until the watch has it. A claim that the scheduler itself
creates is in flight before it is an object, and assumed before the watch shows it at all.

Rule: dynamicresources/dra_manager.go and allocateddevices.go at v1.36.3.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final

from plugins.dynamic_resources.allocation.capacity import amounts
from plugins.dynamic_resources.allocation.pools import DeviceId
from plugins.dynamic_resources.allocation.search import Allocated
from scheduler import framework as fw
from scheduler.api.devices import Allocation, DeviceResult, ResourceClaim
from scheduler.api.versions import is_newer

_SHOWN_WITHIN: Final = 120.0
"""Seconds after which a claim that the watch has not shown counts as gone. Rule: extendeddynamicresources.go
(AssumeExtendedResourceTimeoutDefaultSeconds)."""


class Allocations:
    """The newest claims, and the sums over their devices. Whatever changes these is reported to `changed` at once."""

    def __init__(self, objects: fw.ObjectLister, changed: Callable[[DeviceId], None]) -> None:
        self._objects = objects
        self._changed = changed
        self._now = time.monotonic
        self._in_flight: dict[str, ResourceClaim] = {}
        self._users: dict[str, tuple[fw.GroupKey | None, int]] = {}
        """UID of a claim in flight → the group whose pods may share it, and how many pods have reserved it."""
        self._assumed: dict[tuple[str, str], ResourceClaim] = {}
        self._written: dict[str, ResourceClaim] = {}
        """UID → newest version, of claims that it shows to be allocated."""
        self._counted: dict[str, ResourceClaim] = {}
        """UID → the version whose devices are in the sums."""
        self._unshown: dict[str, tuple[float, ResourceClaim]] = {}
        """UID → created claims that are assumed, and until when the watch must show them; the oldest comes first."""
        self._allocated = Allocated()
        objects.listen(fw.RESOURCE_CLAIM, self._claim_changed, self._reset)

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return the newest known version of a claim."""
        stored: ResourceClaim | None = self._objects.get(fw.RESOURCE_CLAIM, name, namespace)
        return self._assumed.get((namespace, name), stored)

    def allocated(self) -> Allocated:
        """Return the devices that are taken, by allocated claims and those in flight: a live view."""
        self._expire()
        return self._allocated

    def in_flight(self, uid: str) -> Allocation | None:
        """Return the allocation of a claim that is reserved in memory and not written yet."""
        claim = self._in_flight.get(uid)
        return None if claim is None else claim.status.allocation

    def shared_by(self, group: fw.GroupKey, uid: str) -> Allocation | None:
        """Return the allocation of a claim in flight that another pod of this group has reserved."""
        return self.in_flight(uid) if self._users.get(uid, (None, 0))[0] == group else None

    def reserve(self, claim: ResourceClaim, group: fw.GroupKey | None = None) -> Allocation:
        """Take the devices of an allocated claim that is not written yet; return the allocation that counts: the first.

        `group`: of a pod that is tried together with its group.
        """
        allocation = self._in_flight.setdefault(claim.uid, claim).status.allocation
        assert allocation is not None, "a claim in flight is allocated"
        owner, users = self._users.get(claim.uid, (group, 0))
        self._users[claim.uid] = owner, users + 1
        self._recount(claim.uid)
        return allocation

    def release(self, uid: str, *, is_written: bool = True) -> None:
        """Forget a pod's reservation. One that was not written holds as long as other pods have reserved it, too."""
        owner, users = self._users.pop(uid, (None, 0))
        if users > 1 and not is_written:
            self._users[uid] = owner, users - 1
        elif self._in_flight.pop(uid, None) is not None:
            self._recount(uid)

    def created(self, uid: str, claim: ResourceClaim) -> None:
        """Go on with the claim of this UID, in flight, as the object that was created for it."""
        in_flight = self._in_flight.get(uid)
        if in_flight is not None and in_flight.status.allocation is not None:
            self._in_flight[claim.uid] = claim.allocated(in_flight.status.allocation)
            self._recount(claim.uid)
            self.release(uid)

    def assume_created(self, claim: ResourceClaim) -> None:
        """Take the API server's answer to the creation of a claim; the watch may not show the claim yet."""
        meta = claim.metadata
        stored: ResourceClaim | None = self._objects.get(fw.RESOURCE_CLAIM, meta.name, meta.namespace)
        if stored is not None:
            self.assume(claim)
        else:
            self._unshown[claim.uid] = self._now() + _SHOWN_WITHIN, claim
            self._assumed[meta.namespace, meta.name] = claim
            self._note(claim)
        self.release(claim.uid)

    def _expire(self) -> None:
        """Free the devices of created claims that the watch must have shown by now: they were deleted before."""
        while self._unshown:
            uid, (deadline, claim) = next(iter(self._unshown.items()))
            if deadline > self._now():
                return
            self._forget(uid, claim)

    def _forget(self, uid: str, claim: ResourceClaim) -> None:
        del self._unshown[uid]
        self._assumed.pop((claim.metadata.namespace, claim.metadata.name), None)
        self._written.pop(uid, None)
        self._recount(uid)

    def assume(self, claim: ResourceClaim) -> None:
        """Take what the API server answered for the newest version, until the watch has it."""
        meta = claim.metadata
        stored: ResourceClaim | None = self._objects.get(fw.RESOURCE_CLAIM, meta.name, meta.namespace)
        if stored is not None and stored.uid == claim.uid and _is_older(stored, claim):
            self._assumed[meta.namespace, meta.name] = claim
            self._note(claim)

    def _reset(self) -> None:
        """Keep claims that are in flight or assumed, and count them again: the watch shows neither."""
        allocated = self._allocated
        for device in {*allocated.whole, *allocated.shared, *allocated.capacity}:
            self._changed(device)
        for sums in (allocated.whole, allocated.shared, allocated.capacity):
            sums.clear()
        self._counted.clear()
        self._written.clear()
        for claim in self._assumed.values():
            self._note(claim)
        for uid in self._in_flight:
            self._recount(uid)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._assumed.pop((old.metadata.namespace, old.metadata.name), None)
            self._written.pop(old.uid, None)
            self._recount(old.uid)
        if new is None:
            return
        key = new.metadata.namespace, new.metadata.name
        self._unshown.pop(new.uid, None)
        assumed = self._assumed.get(key)
        if assumed is not None:
            if assumed.uid == new.uid and _is_older(new, assumed):
                return
            del self._assumed[key]
        self._note(new)

    def _note(self, newest: ResourceClaim) -> None:
        if newest.status.allocation is not None:
            self._written[newest.uid] = newest
        elif self._written.pop(newest.uid, None) is None:
            return
        self._recount(newest.uid)

    def _recount(self, uid: str) -> None:
        """Bring the sums up to date by one claim. What is written counts, and until then what is in flight."""
        new = self._written.get(uid) or self._in_flight.get(uid)
        old = self._counted.pop(uid, None)
        if new is not None:
            self._counted[uid] = new
        before, after = tuple(_counting(old)), tuple(_counting(new))
        if before == after:
            return  # written, and not yet released: the same devices
        for result in before:
            self._count(result, -1)
        for result in after:
            self._count(result, 1)

    def _count(self, result: DeviceResult, sign: int) -> None:
        """Count a device in, or with -1 out. Rule: foreachAllocatedDevice."""
        allocated = self._allocated
        device = DeviceId.of(result)
        self._changed(device)
        if result.share_id is None:
            _add(allocated.whole, device, sign)
            return
        _add(allocated.shared, device, sign)
        if result.consumed_capacity is not None:
            total = allocated.capacity.setdefault(device, {})
            for name, amount in amounts(result.consumed_capacity).items():
                total[name] = total.get(name, 0) + sign * amount
            if sign < 0 and not any(total.values()):
                del allocated.capacity[device]


def _counting(claim: ResourceClaim | None) -> Iterator[DeviceResult]:
    """Yield the devices that are exclusively the claim's; those for admin access are not."""
    if claim is not None:
        yield from (result for result in claim.results if not result.admin_access)


def _add(counts: dict[DeviceId, int], device: DeviceId, sign: int) -> None:
    count = counts.get(device, 0) + sign
    if count > 0:
        counts[device] = count
    else:
        counts.pop(device, None)


def _is_older(one: ResourceClaim, other: ResourceClaim) -> bool:
    return is_newer(other.metadata.resource_version, one.metadata.resource_version)
