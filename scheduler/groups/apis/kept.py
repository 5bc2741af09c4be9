"""Groups as they were read last from their objects: all members of a group ask for it one after the other."""

from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from scheduler.api.objects import GroupAnnotations, ObjectMeta
from scheduler.api.pod import Pod
from scheduler.framework.pod_groups import PodGroup

MAX_KEPT: Final = 10_000
"""Groups that are kept."""


class _Object(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=_Object)


class KeptGroups(Generic[T]):
    """The groups that objects of one kind make, each with the annotations and the priority of its pods."""

    def __init__(self, read: Callable[[T, GroupAnnotations | None, int], PodGroup]) -> None:
        self._read = read
        self._kept: dict[str, tuple[T, GroupAnnotations | None, PodGroup]] = {}
        """UID → the object, the annotations of a pod of it, and the group that they make."""

    def of(self, found: T, said: GroupAnnotations | None, pod: Pod) -> PodGroup:
        """Return the group of an object, of which this is a pod."""
        uid = found.metadata.uid
        kept = self._kept.get(uid)
        if kept is not None and kept[0] is found and kept[1] == said and kept[2].priority == pod.priority:
            return kept[2]
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        group = self._read(found, said, pod.priority)
        self._kept[uid] = found, said, group
        return group
