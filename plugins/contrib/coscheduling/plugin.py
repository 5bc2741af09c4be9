"""All or nothing for the groups of `scheduling.x-k8s.io` and for annotated ones, with scheduler-plugins' arguments.

A profile that has this plugin has such groups. What keeps their pods together is in plugins/shared/gangs.py, and the
decision about a whole group in scheduler/groups: nothing is held for a group that does not fit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from plugins.shared.gangs import Gangs
from scheduler import framework as fw
from scheduler.api.groups.workloads import GANG_ANNOTATION, WORKLOADS, GangKind, WatchedKind
from scheduler.framework.field_errors import invalid

_MAX_SECONDS: Final = 2**31 - 1


_ALWAYS: Final = (fw.COSCHEDULING_POD_GROUP, fw.VOLCANO_POD_GROUP, fw.VOLCANO_QUEUE, fw.NAMESPACE)
"""The resources that are watched whatever the arguments are."""

_PARTS: Final = {each.resource: each.parts for each in WORKLOADS.values()}


@dataclass(frozen=True)
class GangArguments:
    """The gangs that there are without a word in the template of their pods."""

    kinds: Sequence[GangKind] = ()
    """The kinds of workloads whose pods start together."""


_ASKED_ONLY: Final = GangArguments()


@dataclass
class Coscheduling(Gangs):
    """Rule for texts and arguments: pkg/coscheduling of scheduler-plugins."""

    name: ClassVar[str] = "Coscheduling"
    writes: ClassVar[Sequence[fw.Write]] = (
        fw.Write(fw.COSCHEDULING_POD_GROUP, ("get",)),
        fw.Write(fw.COSCHEDULING_POD_GROUP, ("patch",), "status"),
        fw.Write(fw.VOLCANO_POD_GROUP, ("get",)),
        fw.Write(fw.VOLCANO_POD_GROUP, ("patch",), "status"),
    )
    reads: ClassVar[Sequence[str]] = (*_ALWAYS, *_PARTS)
    parts: ClassVar[Mapping[str, Sequence[str]]] = {fw.NAMESPACE: (), fw.VOLCANO_QUEUE: (), **_PARTS}

    workloads: Sequence[WatchedKind] = ("Job", "JobSet", "StatefulSet")
    """The kinds of workloads that are watched, as an annotation may have all pods of one start together."""

    gangs: GangArguments = _ASKED_ONLY
    """The gangs that there are without that annotation; their kinds are watched, too."""

    permit_waiting_time_seconds: int = 60
    """How long pods that have a node wait for the others of their group, if the group does not say."""

    pod_group_backoff_seconds: int = 0
    """Without an effect: a group that failed is tried again when something has changed that may help it."""

    pod_group_reject_percentage: int = 10
    """Without an effect: nothing is held for a group that does not fit."""

    def __post_init__(self) -> None:
        kinds = dict.fromkeys((*self.workloads, *self.gangs.kinds))
        watched = [WORKLOADS[kind].resource for kind in kinds if kind in WORKLOADS]
        self.reads = (*_ALWAYS, *watched)  # type: ignore[misc]

    def problems(self) -> Iterator[tuple[str, str]]:
        for field, value in (
            ("permitWaitingTimeSeconds", self.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
        ):
            if not 0 <= value <= _MAX_SECONDS:
                yield field, invalid(value, f"not in valid range [0, {_MAX_SECONDS}]")
        if not 0 <= self.pod_group_reject_percentage <= 100:
            yield "podGroupRejectPercentage", invalid(self.pod_group_reject_percentage, "not in valid range [0, 100]")

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Only the pod's own updates: other pods of its group and the group itself wake it without being asked for."""
        return (fw.on(fw.TARGET_POD, fw.Action.UPDATE),)

    def keeps_together(self, key: fw.GroupKey) -> bool:
        return key.source != fw.POD_GROUP

    def absent(self, key: fw.GroupKey) -> str:
        kind = "workload" if key.source == GANG_ANNOTATION else "PodGroup"
        return f'waiting for the {kind} "{key.name}" of the pod to appear'

    def not_found(self, key: fw.GroupKey) -> str:
        return f'podgroups.scheduling.x-k8s.io "{key.name}" not found'

    def count(self, members: fw.GroupMembers) -> int:
        return members.ready_count

    def too_few_pods(self, group: fw.PodGroup, count: int) -> fw.Status:
        return fw.unresolvable(
            f"cannot find enough sibling pods, current pods number: {count}, minMember of group: {group.minimum}"
        )

    def too_few_placed(self, group: fw.PodGroup) -> fw.PermitWait:
        seconds = group.timeout_seconds or float(self.permit_waiting_time_seconds)
        return fw.PermitWait(min(seconds, fw.MAX_PERMIT_SECONDS), "waiting for the other pods of the group")
