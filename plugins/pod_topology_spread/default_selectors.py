"""Pods that belong together, by the objects that select or own them: Services, and the pod's controller.

Rule: helper/spread.go (DefaultSelector) at v1.36.3.
"""

from collections.abc import Mapping
from typing import Any, Final

from scheduler import framework as fw
from scheduler.api.decoding import convert
from scheduler.api.groups.owners import controller_of
from scheduler.api.label_selectors import Selector, parse_label_selector, selector_from_labels, selector_of
from scheduler.api.objects import LabelSelector
from scheduler.api.recent_caches import RecentCache

RESOURCES: Final = (fw.SERVICE, fw.REPLICATION_CONTROLLER, fw.REPLICA_SET, fw.STATEFUL_SET)
"""The resources to watch for `DefaultSelectors`."""

_CONTROLLERS: Final = {
    ("v1", "ReplicationController"): fw.REPLICATION_CONTROLLER,
    ("apps/v1", "ReplicaSet"): fw.REPLICA_SET,
    ("apps/v1", "StatefulSet"): fw.STATEFUL_SET,
}

_CACHE_BYTES: Final = 8 << 20


class DefaultSelectors:
    """Finds the selector of each pod; what Services select is cached until any of them changes."""

    __slots__ = ("_by_services", "_handle", "_version", "exist")

    def __init__(self, handle: fw.Handle) -> None:
        self.exist = False
        """Whether there has been an object that selects pods. Stored answers are forgotten when the first one comes."""
        self._handle = handle
        self._version = -1
        self._by_services: RecentCache[tuple[str, frozenset[tuple[str, str]]], Selector] = RecentCache(
            "selectors of services", _CACHE_BYTES
        )
        """(Namespace, labels) → what the Services that select such pods ask for."""
        for resource in RESOURCES:
            handle.objects.listen(resource, self._object_changed)

    def of(self, pod: fw.Pod) -> Selector:
        """Return the selector of the pods that are of one kind with `pod`; everything if no object says."""
        selector = self._of_services(pod)
        if not pod.metadata.owner_references:
            return selector
        owner = controller_of(pod)
        resource = None if owner is None else _CONTROLLERS.get((owner.api_version, owner.kind))
        if owner is None or resource is None:
            return selector
        controller = self._handle.objects.get(resource, owner.name, pod.namespace)
        if controller is None:
            return selector
        written = _selector_of(controller)
        if resource == fw.REPLICATION_CONTROLLER:
            return _overridden(selector, written or {})
        return selector.and_also(_parsed(written))

    def _object_changed(self, old: Any, new: Any) -> None:
        if not self.exist and new is not None and _selector_of(new):
            self.exist = True
            self._handle.columns.forget()

    def _of_services(self, pod: fw.Pod) -> Selector:
        objects = self._handle.objects
        version = objects.version(fw.SERVICE)
        if version != self._version:
            self._by_services.clear()
            self._version = version
        labels = pod.labels
        key = (pod.metadata.namespace, frozenset(labels.items()))
        found = self._by_services.get(key)
        if found is None:
            merged: dict[str, str] = {}
            for service in objects.list(fw.SERVICE, pod.namespace):
                # One without a selector selects nothing, and one that selects everything asks for no label.
                selector = _selector_of(service) or {}
                if selector.items() <= labels.items():
                    merged.update(selector)
            found = self._by_services.put(key, selector_from_labels(merged))
        return found


def concerns(made: Any, pod: fw.Pod) -> bool:
    """Return whether a Service selects a pod, or another of these objects may be the pod's controller."""
    if made.metadata.namespace != pod.namespace:
        return False
    owner = controller_of(pod)
    if owner is not None and owner.name == made.metadata.name:
        return True
    selector = _selector_of(made) or {}
    return bool(selector) and all(pod.labels.get(key) == value for key, value in selector.items())


def _selector_of(made: Any) -> Any:
    return (made.content.get("spec") or {}).get("selector")


def _overridden(selector: Selector, labels: Mapping[str, str]) -> Selector:
    """A ReplicationController that does not select the pod, though it should, has the last word on a label."""
    others = (requirement for requirement in selector.requirements if requirement.key not in labels)
    return selector_of((*others, *selector_from_labels(labels).requirements))


def _parsed(written: Any) -> Selector:
    """One that is missing or cannot be read adds nothing."""
    try:
        selector = parse_label_selector(None if written is None else convert(written, LabelSelector))
    except ValueError:
        return Selector()
    return Selector() if selector.is_nothing else selector
