"""DynamicResources' obstacles: claims that keep a pod off a node, taints of devices, and who uses devices."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from plugins.dynamic_resources.allocation.pools import DeviceId, DevicesError, SliceDevice
from plugins.dynamic_resources.allocation.requests import Request, alternatives
from plugins.shared.remedies import spelled_taint
from scheduler import framework as fw
from scheduler.api.devices import ClaimStatus, ExactRequest, ResourceClaim
from scheduler.api.wording.text import some_of

MAX_DEVICES: Final = 64
"""Devices of a node that are looked at for one claim."""

MAX_NAMED: Final = 3

_NO_PREEMPTION: Final = "a preemption does not free devices of claims"


class DeviceObstacles:
    """Says of one pod why there are too few devices for its claims."""

    def __init__(self, claims: Sequence[ResourceClaim], catalog: DeviceCatalog, handle: fw.Handle) -> None:
        self._wanting = [claim for claim in claims if claim.status.allocation is None]
        self._catalog = catalog
        self._handle = handle

    def on(self, node: fw.Node) -> Sequence[fw.Obstacle]:
        """Too few devices are free for the claims that have none yet; of several, none alone is to blame."""
        if not self._wanting:
            return ()
        names = " and ".join(f"{claim.metadata.name} ({_classes(claim)})" for claim in self._wanting)
        taints: dict[str, fw.Taint] = {}
        remedies: list[fw.Remedy] = []
        users: dict[str, tuple[fw.Pod, DeviceId]] = {}
        for claim in self._wanting:
            untolerated: dict[str, fw.Taint] = {}
            for request, device in self._matching(claim, node):
                if not request.tolerates(device):
                    untolerated |= {spelled_taint(each): each for each in device.taints if each.effect != "None"}
                elif (user := self._users.get(device.id)) is not None:
                    users[user.uid] = user, device.id
            meta = claim.metadata
            if untolerated and self._catalog.allocations.claim(meta.namespace, meta.name) is not None:
                remedies.append(_tolerating(claim, untolerated))
            taints |= untolerated
        fact = f"too few free devices for ResourceClaim {names}"
        if taints:
            fact += f"; others have the taint {some_of(sorted(taints), MAX_NAMED)}, which it does not tolerate"
        in_use = [f"{device} is used by pod {pod}" for pod, device in users.values()]
        found = tuple(fw.PodInTheWay(pod, self._freed(pod), _NO_PREEMPTION) for pod, _ in users.values())
        return (fw.Obstacle(fact, tuple(remedies), example=some_of(sorted(in_use), MAX_NAMED), in_the_way=found),)

    def _matching(self, claim: ResourceClaim, node: fw.Node) -> Iterator[tuple[Request, SliceDevice]]:
        """Yield devices of the node that the claim selects, with the request that does."""
        try:
            written = alternatives(claim, self._catalog.device_class, self._catalog.gates)
            requests = [each for some in written for each in some]
            pools = self._catalog.slices.pools_for(node)
            devices = [each for pool in pools for view in pool.slices for each in view.devices]
            for device in devices[:MAX_DEVICES]:
                for request in requests:
                    if request.selects(device, node):
                        yield request, device
        except DevicesError:
            return  # the attempt reports it

    @cached_property
    def _claims_by_user(self) -> Mapping[str, Sequence[ResourceClaim]]:
        """UID of a pod → the allocated claims that it alone uses."""
        found: dict[str, list[ResourceClaim]] = {}
        for claim in self._handle.objects.list(fw.RESOURCE_CLAIM):
            consumers = {each.uid for each in claim.status.reserved_for or ()}
            if claim.status.allocation is not None and len(consumers) == 1:
                found.setdefault(consumers.pop(), []).append(claim)
        return found

    @cached_property
    def _users(self) -> Mapping[DeviceId, fw.Pod]:
        """Device → the pod that alone uses it."""
        found: dict[DeviceId, fw.Pod] = {}
        for uid, claims in self._claims_by_user.items():
            pod = self._handle.pods.get(uid)
            if pod is not None and pod.node_name:
                for result in (each for claim in claims for each in claim.results):
                    if not result.admin_access and result.share_id is None:
                        found[DeviceId.of(result)] = pod
        return found

    def _freed(self, pod: fw.Pod) -> tuple[tuple[str, ResourceClaim], ...]:
        """Return the claims of a pod as they are once it is gone: the resource claim controller frees the devices."""
        claims = self._claims_by_user[pod.uid]
        return tuple((fw.RESOURCE_CLAIM, msgspec.structs.replace(each, status=ClaimStatus())) for each in claims)


def _tolerating(claim: ResourceClaim, taints: Mapping[str, fw.Taint]) -> fw.Remedy:
    """Tolerate the taints in every request. A claim cannot be changed, so it, or its pod, has to be made again."""
    tolerations = tuple(_toleration_of(taint) for _, taint in sorted(taints.items()))
    requests = tuple(
        msgspec.structs.replace(
            each,
            exactly=each.exactly and _with(each.exactly, tolerations),
            first_available=each.first_available and tuple(_with(one, tolerations) for one in each.first_available),
        )
        for each in claim.requests
    )
    devices = msgspec.structs.replace(claim.spec.devices, requests=requests)
    changed = msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))
    is_generated = any(each.kind == "Pod" for each in claim.metadata.owner_references or ())
    where = f"{'the template of ' if is_generated else ''}ResourceClaim {claim.metadata.name}"
    tolerating = f"tolerating {some_of(sorted(taints), MAX_NAMED)} (it keeps pods off devices that are not to be used)"
    text = f"make {where} again, {tolerating}"
    return fw.Remedy(text, (), objects=((fw.RESOURCE_CLAIM, changed),), is_last_resort=True)


def _toleration_of(taint: fw.Taint) -> fw.Toleration:
    operator = "Equal" if taint.value else "Exists"
    return fw.Toleration(key=taint.key, operator=operator, value=taint.value, effect=taint.effect)


def _with(asked: ExactRequest, tolerations: tuple[fw.Toleration, ...]) -> ExactRequest:
    return msgspec.structs.replace(asked, tolerations=(*(asked.tolerations or ()), *tolerations))


def elsewhere(claim: ResourceClaim) -> fw.Obstacle:
    """A claim has devices that the node cannot use."""
    return fw.Obstacle(f"ResourceClaim {claim.metadata.name} has devices that cannot be used on the node")


def _classes(claim: ResourceClaim) -> str:
    names = dict.fromkeys(each.device_class_name for request in claim.requests for each in request.alternatives)
    return f"class {' or '.join(names)}" if names else "no class"
