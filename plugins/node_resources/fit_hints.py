"""The events that make a pod that found too few resources worth another attempt.

Rule: noderesources/fit.go at v1.37.2 (isSchedulableAfterAssignedPodDelete and so on, isSchedulableAfterNodeChange,
isSchedulableAfterDeviceClassEvent). A node counts as if it were empty: its pods are no part of its events.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import NamedTuple

from plugins.dynamic_resources.extended.resources import ExtendedResources
from plugins.node_resources.fit_requests import counted_requests, fit_requests
from plugins.shared.queueing import OncePerEvent
from scheduler import framework as fw
from scheduler.api.devices import IMPLICIT_PREFIX, DeviceClass
from scheduler.api.pods.requests import PODS, allocatable_of
from scheduler.api.pods.resize import running_of


class _Offer(NamedTuple):
    """The amounts that a node has for pods after an event."""

    allocatable: Mapping[str, int]
    grown: frozenset[str] | None
    """The resources of which a pod must request one to be helped; None if any pod may be. Empty: none is."""


class FitHints:
    """The hints of one NodeResourcesFit. They cache what the last event changed."""

    __slots__ = ("_extended", "_freed", "_is_ignored", "_offer")

    def __init__(self, extended: ExtendedResources, is_ignored: Callable[[str], bool]) -> None:
        """`is_ignored`: whether Filter ignores a resource."""
        self._extended = extended
        self._is_ignored = is_ignored
        self._freed = OncePerEvent(_freed_by)
        self._offer = OncePerEvent(_offer_of)

    def after_pod_event(self, pod: fw.Pod, old: fw.Pod, new: fw.Pod | None) -> fw.QueueingHint:
        """A pod helps that left a node or requests less of what this pod needs; so do lower requests of its own.

        A resize is helped only on its own node.
        """
        if pod.is_resize and (new or old).node_name != pod.node_name:
            return fw.QueueingHint.SKIP
        if new is None:
            return fw.QueueingHint.QUEUE if old.node_name or old.nominated_node_name else fw.QueueingHint.SKIP
        if new.uid == pod.uid:
            return fw.QueueingHint.QUEUE
        if not new.node_name:
            return fw.QueueingHint.SKIP
        helps = _asks_for_any(self._freed(old, new), counted_requests(running_of(pod)))
        return fw.QueueingHint.QUEUE if helps else fw.QueueingHint.SKIP

    def after_node_event(self, pod: fw.Pod, old: fw.Node | None, new: fw.Node) -> fw.QueueingHint:
        """A node helps that is large enough, and is new or has more of what the pod requests than before.

        So does one that DynamicResources may find devices on, as it does not offer an extended resource itself. Of
        ignored resources a node need not have enough; kube-scheduler's hint asks for these, too.
        """
        if pod.is_resize and new.name != pod.node_name:
            return fw.QueueingHint.SKIP
        allocatable, grown = self._offer(old, new)
        by_devices = self._by_devices(pod, allocatable)
        if grown is not None and not grown and not by_devices:
            return fw.QueueingHint.SKIP
        requests = fit_requests(running_of(pod))
        if grown is not None and not by_devices and not _asks_for_any(grown, requests):
            return fw.QueueingHint.SKIP
        for name, amount in requests.items():
            if amount > allocatable.get(name, 0) and amount > 0 and name not in by_devices:
                if self._is_ignored(name):
                    continue
                return fw.QueueingHint.SKIP
        return fw.QueueingHint.QUEUE

    def _by_devices(self, pod: fw.Pod, allocatable: Mapping[str, int]) -> Collection[str]:
        """Return what the pod requests that a DeviceClass stands for and the node does not offer."""
        classes = self._extended.classes_of(pod)
        if not classes or allocatable.get(PODS, 0) < 1:
            return ()
        return [name for name in classes if allocatable.get(name, 0) <= 0]


def after_device_class_event(pod: fw.Pod, old: DeviceClass | None, new: DeviceClass) -> fw.QueueingHint:
    """A DeviceClass helps that newly provides a resource which the pod requests."""
    requests, named = fit_requests(pod), _named_by(new)
    if old is None:
        if IMPLICIT_PREFIX + new.name in requests:
            return fw.QueueingHint.QUEUE
    elif _named_by(old) == named:
        return fw.QueueingHint.SKIP
    return fw.QueueingHint.QUEUE if named in requests else fw.QueueingHint.SKIP


def counted_resources(pod: fw.Pod) -> Hashable:
    """The key for events of other pods: the resources that the pod requests, including a resize in progress."""
    return pod.uid if pod.is_resize else frozenset(name for name, amount in counted_requests(pod).items() if amount)


def compared_amounts(pod: fw.Pod) -> Hashable:
    """The key for events of nodes."""
    return pod.uid if pod.is_resize else frozenset(fit_requests(pod).items())


def named_resources(pod: fw.Pod) -> Hashable:
    """The key for events of DeviceClasses; a request of 0 names the resource, too."""
    return frozenset(fit_requests(pod))


def _asks_for_any(names: frozenset[str], requests: Mapping[str, int]) -> bool:
    for name in names:  # noqa: SIM110 - `any` is slower, and hundreds of pods are asked
        if requests.get(name):
            return True
    return False


def _freed_by(old: fw.Pod, new: fw.Pod) -> frozenset[str]:
    before, after = counted_requests(old), counted_requests(new)
    return frozenset(name for name, amount in before.items() if amount > after.get(name, 0))


def _offer_of(old: fw.Node | None, new: fw.Node) -> _Offer:
    after = allocatable_of(new.status.allocatable)
    if after.get(PODS, 0) < 1:
        return _Offer(after, frozenset())
    if old is None:
        return _Offer(after, None)
    before = allocatable_of(old.status.allocatable)
    grown = frozenset(name for name, amount in after.items() if amount > before.get(name, 0))
    return _Offer(after, None if PODS in grown else grown)


def _named_by(device_class: DeviceClass) -> str:
    """Return the extended resource that the class names, or an empty string."""
    return device_class.spec.extended_resource_name or ""
