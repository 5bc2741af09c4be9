"""The devices that pods have through ResourceClaims, as resources that shares may limit: so many of a DeviceClass.

    pod gets a node ──► is its claim known? ──yes──► its devices are kept until the pod is gone, whatever becomes of it
                          └──no──► none are counted ──it comes──► counted again

Only claims are read: the template of one may have another number of devices by now. A claim counts with each pod that
names it, so that what a pod takes, and leaves, never depends on others.

Rule: pkg/dra/claims.go of Kueue, with its feature gate for `firstAvailable`. It refuses requests whose number is not
known before devices are allocated, and claims that are not made from a template.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from scheduler.api.devices import IMPLICIT_PREFIX, ClaimProblem, ResourceClaim, claim_name_of
from scheduler.api.pods.pod import Pod
from scheduler.framework.events import RESOURCE_CLAIM
from scheduler.state.objects import ObjectStore
from scheduler.state.share_usage import amounts_of

EXACT_COUNT: Final = "ExactCount"
"""The allocation mode of a request whose number is known."""

ClaimKey: TypeAlias = tuple[str, str]
"""Namespace and name; the pod's UID instead of the name if the claim is not created yet."""


class WithClaims(NamedTuple):
    """All requests of a pod without a node."""

    amounts: Mapping[str, int]
    """The part that can be counted."""

    claims: Collection[ClaimKey]
    problem: str
    """Why the rest cannot be counted; empty if there is none."""


class _Counted(NamedTuple):
    """The claims of a pod with a node."""

    known: dict[ClaimKey, Mapping[str, int]]
    missing: set[ClaimKey]


class PodDevices:
    """Counts them, as long as any share names some."""

    def __init__(
        self, objects: ObjectStore, recount: Callable[[Pod], None], changed: Callable[[ClaimKey], None]
    ) -> None:
        """`recount` is called with a pod with a node that is to be counted again, `changed` for each claim that may
        have another number of devices."""
        self.resources: frozenset[str] = frozenset()
        """Those that are counted."""
        self._objects = objects
        self._recount = recount
        self._changed = changed
        self._counted: dict[str, _Counted] = {}
        """UID → of a pod with a node and claims."""
        self._waiting: dict[ClaimKey, dict[str, Pod]] = {}
        """Claim that is missing → UID → a pod with a node."""
        self._end: Callable[[], None] | None = None

    def use(self, resources: frozenset[str]) -> None:
        """Count these from now on, and forget all pods."""
        self.resources = frozenset()  # no pod waits for the claims that there are
        self._counted.clear()
        self._waiting.clear()
        if resources and self._end is None:
            self._end = self._objects.subscribe(RESOURCE_CLAIM, self._claim_changed)
        elif not resources and self._end is not None:
            self._end()
            self._end = None
        self.resources = resources

    def asked(self, pod: Pod, resources: Collection[str]) -> WithClaims:
        """Return what a pod without a node asks for, of devices only these."""
        devices: dict[ClaimKey, Mapping[str, int]] = {}
        claims, problem = set[ClaimKey](), ""
        for key, found in self._claims(pod, resources):
            claims.add(key)
            if isinstance(found, str):
                problem = problem or found
            else:
                devices[key] = found
        return WithClaims(_total(pod, devices), claims, problem)

    def count(self, pod: Pod) -> Mapping[str, int]:
        """Return what a pod with a node counts with; once its claims are known, they are not looked at again."""
        if not pod.spec.resource_claims:
            return amounts_of(pod)
        uid = pod.uid
        known, missing = self._counted.setdefault(uid, _Counted({}, set()))
        for key, found in self._claims(pod, self.resources):
            if key in known:
                continue
            if isinstance(found, str):
                missing.add(key)
                self._waiting.setdefault(key, {})[uid] = pod
            else:
                known[key] = found
                self._found(key, uid)
        return _total(pod, known)

    def forget(self, uid: str) -> None:
        """A pod counts no longer."""
        counted = self._counted.pop(uid, None)
        for key in () if counted is None else tuple(counted.missing):
            self._drop(key, uid)

    def check_invariants(self, uids: Collection[str]) -> None:
        """All that is kept is of pods with these UIDs. For tests and debugging."""
        assert self._counted.keys() <= set(uids)
        waiting = {(key, uid) for key, pods in self._waiting.items() for uid in pods}
        assert waiting == {(key, uid) for uid, counted in self._counted.items() for key in counted.missing}
        assert all(self._waiting.values())

    # Internals.

    def _found(self, key: ClaimKey, uid: str) -> None:
        self._counted[uid].missing.discard(key)
        self._drop(key, uid)

    def _drop(self, key: ClaimKey, uid: str) -> None:
        if (pods := self._waiting.get(key)) is not None:
            pods.pop(uid, None)
            if not pods:
                del self._waiting[key]

    def _claims(self, pod: Pod, resources: Collection[str]) -> Iterator[tuple[ClaimKey, Mapping[str, int] | str]]:
        """Yield each claim of a pod with its devices, or why they cannot be counted."""
        for written in pod.spec.resource_claims or ():
            try:
                name, _ = claim_name_of(pod, written)
            except ClaimProblem as error:
                yield (pod.namespace, pod.uid), str(error)
                continue
            if name is not None:
                key = pod.namespace, name
                yield key, self._devices(key, resources)

    def _devices(self, key: ClaimKey, resources: Collection[str]) -> Mapping[str, int] | str:
        namespace, name = key
        try:
            claim: ResourceClaim | None = self._objects.get(RESOURCE_CLAIM, name, namespace)
        except LookupError:
            return "no profile watches ResourceClaims, which the plugin DynamicResources does"
        if claim is None:
            return f'could not find ResourceClaim "{namespace}/{name}"'
        return devices_of(claim, resources)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if new is None or not self.resources:
            return
        if old is not None and old.uid == new.uid and old.status.allocation == new.status.allocation:
            return  # a claim's spec does not change
        key = new.metadata.namespace, new.metadata.name
        for pod in tuple(self._waiting.get(key, {}).values()):
            self._recount(pod)
        self._changed(key)


def devices_of(claim: ResourceClaim, resources: Collection[str]) -> Mapping[str, int] | str:
    """Return how many devices of these resources a claim asks for, or why that is not known before it has them."""
    devices: Counter[str] = Counter()
    for request in claim.requests:
        wanted = {f"{request.name}/{each.name}": each for each in request.first_available or ()}
        if request.exactly is not None:
            wanted = {request.name: request.exactly}
        if any(each.admin_access for each in wanted.values()):
            continue  # others have these devices
        classes = {name: f"{IMPLICIT_PREFIX}{each.device_class_name}" for name, each in wanted.items()}
        if not any(each in resources for each in classes.values()):
            continue
        counts = {each.count if each.allocation_mode == EXACT_COUNT else None for each in wanted.values()}
        (count, *_), (resource, *_) = counts, classes.values()
        if count is not None and len(counts) == len(set(classes.values())) == 1:
            devices[resource] += count
        elif claim.status.allocation is not None:
            results = claim.status.allocation.devices.results or ()
            devices.update(classes[each.request] for each in results if each.request in classes)
        else:
            return (
                f'ResourceClaim "{claim}", request "{request.name}": how many devices of a class it gets is not known '
                "before they are allocated"
            )
    return {name: amount for name, amount in devices.items() if name in resources}


def _total(pod: Pod, devices: Mapping[ClaimKey, Mapping[str, int]]) -> Mapping[str, int]:
    total = dict(amounts_of(pod))
    for amounts in devices.values():
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total
