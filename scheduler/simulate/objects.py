"""Objects in cluster files that are neither pods nor nodes: for the plugins that look them up, and for nobody else.

A file names a kind and a plugin a resource, whose plural is in no file. It is guessed as kubectl guesses it, which is
right for all built-in kinds and for nearly all custom ones.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from scheduler.api.unstructured import unstructured_hook
from scheduler.framework.errors import ConfigError
from scheduler.framework.events import CSI_STORAGE_CAPACITY, PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM
from scheduler.framework.resources import (
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    ApiResource,
    struct_of,
)

_IN_DEFAULT: Final = frozenset(
    {
        PERSISTENT_VOLUME_CLAIM,
        SERVICE,
        REPLICATION_CONTROLLER,
        REPLICA_SET,
        STATEFUL_SET,
        POD_DISRUPTION_BUDGET,
        CSI_STORAGE_CAPACITY,
        RESOURCE_CLAIM,
    }
)
"""Resources with a namespace, which is `default` where a file names none. Of custom ones it is not known."""


class OtherObject(NamedTuple):
    """An object as it stands in a file."""

    place: str
    label: str
    """How it is called where it is counted: `Service`, `Budget (example.com/v1)`."""
    content: Mapping[str, Any]


class OtherObjects:
    """All of them, until somebody asks for some."""

    def __init__(self, objects: Iterable[OtherObject] = ()) -> None:
        self._left: defaultdict[ApiResource, list[OtherObject]] = defaultdict(list)
        for each in objects:
            self._left[_resource_of(each.content)].append(each)

    def left_out(self) -> Counter[str]:
        """Kind → how many objects of it nobody has taken."""
        return Counter(each.label for objects in self._left.values() for each in objects)

    def take(self, watched: Mapping[str, ApiResource]) -> list[tuple[str, Any]]:
        """Return event resource and object for each object of a watched resource.

        Raises ConfigError with all that cannot be read.
        """
        problems: list[str] = []
        found = []
        for name, resource in watched.items():
            for each in self._left.pop(resource, ()):
                try:
                    found.append((name, _decode(name, each.content)))
                except ValueError as error:
                    problems.append(f"{each.place}: {error}")
        if problems:
            raise ConfigError(problems)
        return found


def _decode(name: str, content: Mapping[str, Any]) -> Any:
    """Fill in what the API server would: a namespace, a UID."""
    metadata = content.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        raise ValueError("metadata.name: Required value")
    defaults = {"namespace": "default"} if name in _IN_DEFAULT else {}
    metadata = defaults | {key: value for key, value in metadata.items() if value is not None}
    uid = f"{name}/{metadata.get('namespace', '')}/{metadata['name']}"
    whole = {**content, "metadata": {"uid": uid, **metadata}}
    return msgspec.convert(whole, struct_of(name), dec_hook=unstructured_hook)


def _resource_of(content: Mapping[str, Any]) -> ApiResource:
    group, _, version = str(content.get("apiVersion", "v1")).rpartition("/")
    return ApiResource(group, version, guessed_plural(str(content["kind"])))


def guessed_plural(kind: str) -> str:
    """StorageClass → storageclasses. Rule: apimachinery's meta.UnsafeGuessKindToResource."""
    singular = kind.lower()
    if singular.endswith("endpoints"):
        return singular
    if singular.endswith("s"):
        return singular + "es"
    if singular.endswith("y"):
        return singular[:-1] + "ies"
    return singular + "s"
