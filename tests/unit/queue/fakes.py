"""Plugins and pods for tests of the queue."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from plugins.priority_sort import PrioritySort
from scheduler.api.objects import PodStatus, Toleration
from scheduler.api.pods.pod import Pod
from scheduler.framework.events import NODE, POD, POD_GROUP, Action, ClusterEvent, ClusterEventWithHint
from scheduler.framework.groups.pod_groups import (
    NO_MEMBERS,
    NO_POD_GROUPS,
    GroupKey,
    GroupTree,
    PodGroup,
    PodGroups,
)
from scheduler.framework.plugin import PreEnqueuePlugin
from scheduler.framework.queued import Entry, QueuedGroup, QueuedPod, pods_of
from scheduler.framework.status import Code, Status, unresolvable
from scheduler.process.metrics import Metrics
from scheduler.queue.pending_for_quota import NO_QUOTA, Quota
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue.settings import QueueSettings
from scheduler.state.nominator import Nominator
from scheduler.testing import a_pod
from tests import fakes
from tests.fakes import FakeClock, sample
from tests.fakes.engine import CHECKS

PROFILE = "loadmaster"
FIT, VOLUMES, GATE, QUOTA = "Fit", "Volumes", "Gate", "Quota"

NODE_ADD = ClusterEvent(NODE, Action.ADD, "NodeAdd")
NODE_LABEL = ClusterEvent(NODE, Action.UPDATE_NODE_LABEL, "NodeUpdateNodeLabel")
VOLUME_ADD = ClusterEvent("PersistentVolume", Action.ADD, "PersistentVolumeAdd")
CLAIM_ADD = ClusterEvent("PersistentVolumeClaim", Action.ADD, "PersistentVolumeClaimAdd")

REJECTOR_EVENTS: Mapping[str, Mapping[str, Sequence[ClusterEventWithHint]]] = {
    PROFILE: {
        FIT: [
            ClusterEventWithHint(ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)),
            ClusterEventWithHint(ClusterEvent(POD, Action.UPDATE_POD_SCALE_DOWN)),
        ],
        VOLUMES: [ClusterEventWithHint(ClusterEvent("PersistentVolume", Action.ADD))],
        GATE: [ClusterEventWithHint(ClusterEvent(POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED))],
    }
}


class Gate(PreEnqueuePlugin):
    """Refuses pods with scheduling gates, and fails for pods labelled `broken`."""

    name = GATE

    def __init__(self) -> None:
        self.asked: list[str] = []

    def pre_enqueue(self, pod: Pod) -> Status | None:
        self.asked.append(pod.uid)
        if "broken" in pod.labels:
            raise RuntimeError("no answer")
        return unresolvable("gated") if pod.spec.scheduling_gates else None


def a_waiting_pod(
    uid: str = "a",
    *,
    nominated: str = "",
    phase: str = "Pending",
    version: int = 1,
    cpu: str = "",
    tolerations: Sequence[str] = (),
    profile: str = PROFILE,
    **fields: Any,
) -> Pod:
    """Make a pod as the queue has it: with a phase, a nomination, a version; `tolerations` are keys."""
    made = a_pod(
        f"pod-{uid}",
        uid=uid,
        requests={"cpu": cpu} if cpu else None,
        tolerations=[Toleration(key=key) for key in tolerations],
        scheduler_name=profile,
        status=PodStatus(phase=phase, nominated_node_name=nominated),
        **fields,
    )
    metadata = msgspec.structs.replace(made.metadata, resource_version=str(version))
    return Pod(metadata=metadata, spec=made.spec, status=made.status)


class Grouped(PodGroups):
    """Pods are of the groups that their labels `group` name, if these exist."""

    def __init__(self, *missing: str, source: str = POD_GROUP) -> None:
        self.missing = set(missing)
        self.priorities: dict[str, int] = {}
        self.are_off = False
        self._source = source

    def key(self, name: str = "g") -> GroupKey:
        return GroupKey("default", self._source, name)

    def key_of(self, pod: Pod) -> GroupKey | None:
        name = pod.labels.get("group")
        return self.key(name) if name and not self.are_off else None

    def of(self, pod: Pod) -> PodGroup | None:
        key = self.key_of(pod)
        if key is None or key.name in self.missing:
            return None
        priority, is_ours = self.priorities.get(key.name, 0), key.source != POD_GROUP
        return PodGroup(key.namespace, key.name, f"uid of {key.name}", key.source, priority=priority, is_ours=is_ours)

    def tree_of(self, pod: Pod) -> GroupTree | None:
        key, group = self.key_of(pod), self.of(pod)
        return None if key is None or group is None else GroupTree(key, group, NO_MEMBERS)


class Cores(NamedTuple):
    """So many are needed. Implements queue.quota.Request."""

    kind: int
    sources: tuple[str, ...] = ()


class FakeQuota:
    """Has so many cores for those that the plugin `Quota` has refused. Implements queue.quota.Quota."""

    def __init__(self) -> None:
        self.cores = 1
        self.sources: Mapping[str, tuple[str, ...]] = {}
        """By the UID of a pod."""

    def lacking(self, entry: Entry) -> Cores | None:
        pods = pods_of(entry)
        if not any(QUOTA in each.unschedulable_plugins for each in pods):
            return None
        cores = sum(_cores(each.pod) for each in pods)
        return Cores(cores, self.sources.get(entry.pod.uid, ())) if cores > self.cores else None

    def has_come_free(self, entry: Entry) -> bool:
        return False


def _cores(pod: Pod) -> int:
    try:
        return pod.requests.get("cpu", 1000) // 1000
    except ValueError:
        return 1


class QueueUnderTest(SchedulingQueue):
    """A queue with all that it needs, within reach of the test."""

    def __init__(
        self,
        *plugins: PreEnqueuePlugin,
        events: Mapping[str, Mapping[str, Sequence[ClusterEventWithHint]]] = REJECTOR_EVENTS,
        starvation_seconds: float = 10.0,
        groups: PodGroups = NO_POD_GROUPS,
        quota: Quota = NO_QUOTA,
    ) -> None:
        self.clock = FakeClock()
        self.nominator = Nominator()
        self.metrics = Metrics()
        super().__init__(
            QueueSettings(PrioritySort(), {PROFILE: plugins}, events, starvation_seconds=starvation_seconds),
            self.metrics,
            self.nominator,
            now=self.clock,
            groups=groups,
            quota=quota,
        )
        CHECKS.append(self.check_invariants)

    def pop_one(self) -> QueuedPod:
        return fakes.pop(self)

    def popped(self, pod: Pod) -> QueuedPod:
        """Add a pod, and pop the first."""
        self.add(pod)
        return self.pop_one()

    def fail(self, queued: QueuedPod, *plugins: str, pending: Sequence[str] = ()) -> None:
        """Hand a pod back as the scheduling cycle does."""
        queued.unschedulable_plugins = set(plugins)
        queued.pending_plugins = set(pending)
        self.add_unschedulable_if_not_present(queued)

    def pop_group(self) -> QueuedGroup:
        return fakes.pop_group(self)

    def end(self, group: QueuedGroup, refused: Mapping[str, Sequence[str]], code: Code = Code.UNSCHEDULABLE) -> None:
        """Hand a group back as the group cycle does. `refused`: UID of a member → the plugins that refused it.

        The others are done: they have their node.
        """
        for each in group.take_all():
            if each.pod.uid in refused:
                self.fail(each, *refused[each.pod.uid])
            else:
                self.done(each.pod.uid)
        self.group_tried(group, code)

    def refused(self, pod: Pod, *plugins: str, pending: Sequence[str] = ()) -> QueuedPod:
        """Add a pod, pop it and hand it back."""
        queued = self.popped(pod)
        assert queued.pod is pod
        self.fail(queued, *plugins, pending=pending)
        return queued

    def where(self, uid: str) -> str:
        return fakes.where(self, uid)

    def incoming(self, queue: str, event: str) -> float:
        return sample(self.metrics, "scheduler_queue_incoming_pods_total", queue=queue, event=event)

    def hints_timed(self, plugin: str, event: str, hint: str) -> float:
        name = "scheduler_queueing_hint_execution_duration_seconds_count"
        return sample(self.metrics, name, plugin=plugin, event=event, hint=hint)
