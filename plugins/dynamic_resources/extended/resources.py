"""The extended resources that DeviceClasses stand for: devices are found for them on nodes that do not offer them.

A class stands for `deviceclass.resource.kubernetes.io/<its name>`, and for the resource that it names. If several
classes name the same one, the newest counts, so that a class can be replaced. Rule: k8s.io/dynamic-resource-allocation
deviceclass/extendedresourcecache/extendedresourcecache.go at v0.36.3.
"""

from collections.abc import Iterator, Mapping
from typing import Final
from weakref import WeakSet

from plugins.node_resources.fit_requests import fit_requests
from scheduler import framework as fw
from scheduler.api.devices import IMPLICIT_PREFIX, DeviceClass
from scheduler.api.pods.requests import is_extended_resource

_NONE: Final[Mapping[str, str]] = {}


class ExtendedResources:
    """The extended resources of all DeviceClasses, for all profiles of a scheduler, kept up to date by the watch."""

    def __init__(self, objects: fw.ObjectLister | None = None) -> None:
        """Without `objects`, no class stands for anything."""
        self.chosen: dict[str, DeviceClass] = {}
        """Resource → the class that stands for it; to be read only."""
        self._naming: dict[str, dict[str, DeviceClass]] = {}
        """Resource → name → the classes that name it."""
        self.era = object()
        """Another one whenever classes begin, or cease, to stand for a resource."""
        self._columns: WeakSet[fw.StoredColumns] = WeakSet()
        if objects is not None:
            objects.listen(fw.DEVICE_CLASS, self._class_changed, self._reset)

    def class_of(self, resource: str) -> DeviceClass | None:
        """Return the class that stands for a resource: the newest version of it."""
        return self.chosen.get(resource)

    def classes_of(self, pod: fw.Pod) -> Mapping[str, str]:
        """Return resource → name of the class for what the pod asks for, not counting what it asks for 0 of.

        Rule: hasDeviceClassMappedExtendedResource, which looks at quantities, of whatever size.
        """
        chosen = self.chosen
        if not chosen:
            return _NONE
        overflown = pod.resources.overflown
        return {
            name: chosen[name].name
            for name, amount in fit_requests(pod).items()
            if name in chosen and (amount or name in overflown)
        }

    def forget_in(self, columns: fw.StoredColumns) -> None:
        """Let a profile forget its answers whenever classes begin, or cease, to stand for a resource."""
        self._columns.add(columns)

    def _reset(self) -> None:
        self.chosen.clear()
        self._naming.clear()
        self._forget()

    def _class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        before = dict.fromkeys((*_resources_of(old), *_resources_of(new)))
        names_before = [_name_of(self.chosen.get(resource)) for resource in before]
        if old is not None:
            for resource in _resources_of(old):
                naming = self._naming.get(resource, {})
                naming.pop(old.name, None)
                if not naming:
                    self._naming.pop(resource, None)
        if new is not None:
            for resource in _resources_of(new):
                self._naming.setdefault(resource, {})[new.name] = new
        for resource in before:
            naming = self._naming.get(resource, {})
            if naming:
                self.chosen[resource] = max(
                    (naming[name] for name in sorted(naming)), key=lambda each: each.metadata.creation_timestamp or ""
                )
            else:
                self.chosen.pop(resource, None)
        if names_before != [_name_of(self.chosen.get(resource)) for resource in before]:
            self._forget()

    def _forget(self) -> None:
        self.era = object()
        for columns in self._columns:
            columns.forget()


def is_dra_extended_resource(name: str) -> bool:
    """Return whether a class may stand for a resource of this name. Rule: IsDRAExtendedResourceName."""
    return is_extended_resource(name) or name.startswith(IMPLICIT_PREFIX)


def extended_resources_of(handle: fw.Handle) -> ExtendedResources:
    """Return the scheduler's own index, to which this profile is connected."""
    found = handle.shared.get(ExtendedResources, lambda: ExtendedResources(handle.objects))
    found.forget_in(handle.columns)
    return found


def _resources_of(device_class: DeviceClass | None) -> Iterator[str]:
    if device_class is None:
        return
    yield IMPLICIT_PREFIX + device_class.name
    named = device_class.spec.extended_resource_name
    if named and is_extended_resource(named):
        yield named


def _name_of(device_class: DeviceClass | None) -> str | None:
    return None if device_class is None else device_class.name
