"""Objects as they will be once our writes are done: decisions count before the watch shows them.

    (nothing) ──assume──► ASSUMED ──restore, or a newer object from the watch──► (nothing)

Rule: volumebinding/passive_assume_cache.go at v1.36.3.
"""

from collections.abc import Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

from scheduler import framework as fw
from scheduler.api.storage.volumes import PersistentVolume, PersistentVolumeClaim

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)

PLURALS: Final = {fw.PERSISTENT_VOLUME: "persistentvolumes", fw.PERSISTENT_VOLUME_CLAIM: "persistentvolumeclaims"}
"""The names of the resources in messages."""


class _AssumedObject(NamedTuple):
    base: Any
    """The object as it was when the change was assumed: what the watch shows until it shows something newer."""
    changed: Any


class AssumeCache(Generic[T]):
    """One resource: what the watch shows, or what we assume of it."""

    def __init__(self, objects: fw.ObjectLister, resource: str) -> None:
        self._objects = objects
        self._resource = resource
        self._assumed: dict[tuple[str, str], _AssumedObject] = {}

    def get(self, name: str, namespace: str = "") -> T | None:
        """Return the object of that name, with assumed changes, or None."""
        seen = self.seen(name, namespace)
        assumed = self._assumed.get((namespace, name))
        if assumed is None:
            return seen
        if assumed.base is seen:
            changed: T = assumed.changed
            return changed
        del self._assumed[namespace, name]
        return seen

    def seen(self, name: str, namespace: str = "") -> T | None:
        """Return the object of that name as the watch shows it, or None."""
        stored: T | None = self._objects.get(self._resource, name, namespace)
        return stored

    def existing(self, name: str, namespace: str = "") -> T:
        """Return what `seen` returns. Raises AttemptFailed if there is none."""
        stored = self.seen(name, namespace)
        if stored is None:
            raise fw.AttemptFailed(f'{PLURALS[self._resource]} "{_key(name, namespace)}" not found')
        return stored

    def assume(self, changed: T) -> None:
        """Assume a changed object. Raises AttemptFailed if it was made from another version than the newest seen."""
        metadata = changed.metadata
        seen = self.existing(metadata.name, metadata.namespace)
        version = seen.metadata.resource_version
        if version != metadata.resource_version:
            key = _key(metadata.name, metadata.namespace)
            raise fw.AttemptFailed(f'"{key}" is out of sync (stored: {version}, assume: {metadata.resource_version})')
        self._assumed[metadata.namespace, metadata.name] = _AssumedObject(seen, changed)

    def restore(self, changed: T) -> None:
        """Forget an assumed object; do nothing if it is no longer assumed."""
        key = changed.metadata.namespace, changed.metadata.name
        assumed = self._assumed.get(key)
        if assumed is not None and assumed.changed is changed:
            del self._assumed[key]

    def join(self, other: "AssumeCache[T]") -> None:
        """Assume from now on what `other` assumes, and the other way round."""
        self._assumed = other._assumed

    def assumed(self) -> Iterator[T]:
        """Yield every object that differs from what the watch shows."""
        for namespace, name in tuple(self._assumed):
            self.get(name, namespace)  # which drops what is out of date
            assumed = self._assumed.get((namespace, name))
            if assumed is not None:
                yield assumed.changed


def _key(name: str, namespace: str) -> str:
    return f"{namespace}/{name}" if namespace else name
