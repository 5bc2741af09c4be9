"""Victims: the units in which pods are evicted, and the fewest units that have to go.

All candidates leave, then those that can be spared come back:

    gone ─► a part comes back ─► does it still fit? ─yes─► they stay
                                        └─no─► they leave again, and each half of them is tried

The answer is the same as for one candidate at a time, provided that whatever fits also fits with more of them gone. The
question may take long: with many candidates that can be spared, it is asked few times.

The same for many nodes at once, in columns: `runtime/preemption/reprieve.py`.
"""

from collections.abc import Collection, Generator, Iterable, Sequence
from itertools import chain
from typing import Final, Protocol, TypeVar

import msgspec

from scheduler.api.pods.importance import started
from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import PodGroup, PodGroups
from scheduler.framework.status import unschedulable

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


NEVER: Final = unschedulable("not eligible due to preemptionPolicy=Never.")
LEAVING: Final = unschedulable("not eligible due to terminating pods that make room for it.")
SOON: Final = unschedulable("not eligible as its quota has space soon: others leave, or go first.")
IN_VAIN: Final = unschedulable("not eligible as all pods are gone that were evicted for it.")


class Unit(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Pods that are evicted together: a pod, or all pods of a group that is disrupted as a whole."""

    uid: str
    """Of the pod, or group."""

    pods: Sequence[Pod] = ()
    priority: int = 0
    started: int = 0
    """When the first of its pods started, in microseconds since 1970."""

    is_of_group: bool = False
    """Whether it is a group, or a pod of one."""

    is_of_groups: bool = False
    """Whether it is a group that consists of groups."""

    @classmethod
    def of_pod(cls, pod: Pod, priority: int, *, is_of_group: bool) -> "Unit":
        return cls(uid=pod.uid, pods=(pod,), priority=priority, started=started(pod), is_of_group=is_of_group)

    @classmethod
    def of_group(cls, group: PodGroup, pods: Sequence[Pod]) -> "Unit":
        first = min(map(started, pods))
        return cls(
            uid=group.uid,
            pods=pods,
            priority=group.priority,
            started=first,
            is_of_group=True,
            is_of_groups=bool(group.minimum_groups),
        )


def group_that_goes(groups: PodGroups, pod: Pod) -> PodGroup | None:
    """Return the group of which all pods have to go if this one does, with the priority of the one above all.

    None if the pod may go alone.
    """
    lineage = groups.lineage(pod) if groups.name_of(pod) else ()
    group = next((each for each in reversed(lineage) if each.is_disrupted_together), None)
    if group is None or group.priority == lineage[-1].priority:
        return group
    return msgspec.structs.replace(group, priority=lineage[-1].priority)


def pods_that_go(groups: PodGroups, group: PodGroup, pod: Pod) -> Collection[Pod]:
    """Return the pods with a node of a group that goes as a whole with this pod."""
    if not group.minimum_groups:
        return groups.members(pod).scheduled
    return next((pods for each, pods in groups.running() if each.key == group.key), ())


def priority_of(groups: PodGroups, pod: Pod) -> int:
    """Return the priority by which a pod may be evicted: that of its group, if that is one of Kubernetes' own.

    If groups are above that, the priority of the one above all.
    """
    lineage = groups.lineage(pod) if groups.name_of(pod) else ()
    return pod.priority if not lineage or lineage[-1].is_ours else lineage[-1].priority


def pods_of(units: Iterable[Unit]) -> list[Pod]:
    """Return the pods that go with these units."""
    return list(chain.from_iterable(unit.pods for unit in units))


class WithoutSome(Protocol[T_contra]):
    """The state of things without some candidates."""

    def put_back(self, some: Sequence[T_contra]) -> None:
        """Let these come back."""

    def remove(self, some: Sequence[T_contra]) -> None:
        """Let these be gone again."""

    def fits(self) -> bool:
        """Say whether there is enough space as it is now."""


def needed(parts: Iterable[Sequence[T]], without: WithoutSome[T]) -> Generator[None, None, list[T]]:
    """Let come back what can be spared, in the order of `parts`; return the others. Yields after each question."""
    found: list[T] = []
    left = list(parts)[::-1]
    while left:
        part = left.pop()
        without.put_back(part)
        if not without.fits():
            without.remove(part)
            half = len(part) // 2
            if half:
                left += part[half:], part[:half]
            else:
                found += part
        yield
    return found
