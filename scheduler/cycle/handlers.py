"""Event handlers for pods and nodes: they update the cache and the queue.

    pod without a node, ours ──► queue        any pod with a node ──► cache          node ──► cache
                                              └── events that may help waiting pods ──► queue.move_all ◄──┘

Rule: pkg/scheduler/eventhandlers.go at v1.36.3. Order holds for one object, not between objects: a pod may come
before its node. Everything here is synchronous, and may be called twice for one change.

After a handler failed, a list repeats its work: `mend` first, then `pod_repaired`, `node_changed` or the deletion. So
each of them reaches the right state whatever was done before.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import Histogram

from scheduler.api.objects import Node, ObjectMeta, PodMeta
from scheduler.api.pods.pod import Pod
from scheduler.api.versions import is_newer
from scheduler.cycle.core import Core
from scheduler.cycle.cycle_events import PodGone, PodSeen
from scheduler.cycle.rejections import EarlyEnds
from scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_UPDATE,
    NODE,
    NODE_ADD,
    NODE_DELETE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    UNSCHEDULED_POD_UPDATE,
    Action,
    ClusterEvent,
)
from scheduler.runtime.changes import node_changes, pod_changes
from scheduler.runtime.waiting import WaitingPods

CORDONED: Final = ClusterEvent(NODE, Action.UPDATE_NODE_TAINT)
"""For nominated pods only: no plugin's hint asks about it."""

MAY_END_NOMINATIONS: Final = (
    Action.UPDATE_NODE_ALLOCATABLE
    | Action.UPDATE_NODE_LABEL
    | Action.UPDATE_NODE_TAINT
    | Action.UPDATE_NODE_DECLARED_FEATURE
)


class ClusterEventHandlers:
    """Implements `ClusterHandlers` of `kube/informers/intake.py`. Deleting a pod from the queue ends its nomination."""

    def __init__(self, core: Core, waiting: WaitingPods, ends: EarlyEnds, *, announces_pods: bool = False) -> None:
        """Writes `core.pods`.

        `announces_pods`: whether a pod that has come may help others: the feature gate GangScheduling.
        """
        self._pods = core.pods
        self._cache = core.cache
        self._queue = core.queue
        self._nominator = core.nominator
        self._waiting = waiting
        self._profiles = core.frameworks
        self._ends = ends
        self._nodes: dict[str, Node] = {}
        self._writers = core.writers
        self._handling = core.metrics.event_handling_duration
        self._observers: dict[str, Histogram] = {}
        self._stream = core.stream
        self._listeners = core.listeners
        self._announces_pods = announces_pods
        self._resizes = core.resizes
        self._are_resizes_watched = core.resizes.are_watched

    # Pods.

    def pod_changed(self, pod: Pod) -> None:
        """A pod was added, or has a new version."""
        if pod.is_terminated:
            self.pod_deleted(pod)
            return
        started = time.perf_counter()
        uid, node_name = pod.metadata.uid, pod.spec.node_name
        old = self._pods.get(uid)
        if PodSeen in self._stream.listeners:
            self._stream.publish(PodSeen(old, pod))
        self._pods[uid] = pod
        is_known = old is not None and bool(old.spec.node_name) == bool(node_name)
        if node_name:
            self._assigned(old, pod)
            if self._are_resizes_watched:
                self._resizes.changed(pod)
            self._observe(ASSIGNED_POD_UPDATE if is_known else ASSIGNED_POD_ADD, started)
        elif pod.spec.scheduler_name in self._profiles or self._cache.is_assumed(uid):
            self._waiting_changed(old, pod)
            self._observe(UNSCHEDULED_POD_UPDATE if is_known else UNSCHEDULED_POD_ADD, started)
        else:
            self._others_waiting_changed(old, pod)

    def pod_repaired(self, pod: Pod) -> None:
        """Handle a pod again after a handler failed for it, perhaps half way."""
        self._pods.pop(pod.uid, None)
        if pod.spec.scheduler_name not in self._profiles:
            self._nominator.delete(pod.uid)
        self.pod_changed(pod)

    def pod_deleted(self, pod: Pod) -> None:
        """A pod was deleted, or has ended."""
        started = time.perf_counter()
        seen = self._pods.pop(pod.uid, None)
        if PodGone in self._stream.listeners:
            self._stream.publish(PodGone(pod.uid))
        self._queue.delete(pod.uid)
        if self._are_resizes_watched:
            self._resizes.gone(pod.uid)
        self._writers.status.forget(pod)
        counted = self._cache.get(pod.uid)
        for each in self._listeners:
            each.pod_leaves(pod)
        if counted is not None:
            if not pod.is_deleting:
                self._ends.note(counted)
            self._make_room(pod.uid)
        elif seen is not None and seen.nominated_node_name:
            self._queue.nomination_ended(seen)
        for each in self._listeners:
            each.pod_gone(pod)
        if pod.node_name:
            self._observe(ASSIGNED_POD_DELETE, started)
        elif pod.spec.scheduler_name in self._profiles:
            self._observe(UNSCHEDULED_POD_DELETE, started)

    def assumption_expired(self, pod: Pod) -> None:
        """The cache dropped an assumed pod: its resources are free, and a pod that still waits is tried again."""
        self._queue.move_all(ASSIGNED_POD_DELETE, pod, None)
        newest = self._pods.get(pod.uid)
        if newest is not None and not newest.node_name and newest.spec.scheduler_name in self._profiles:
            self._queue.add(newest)

    def pod_unreadable(self, identity: ObjectMeta, problem: str) -> None:
        """Report a pod that cannot be decoded to its owner; no other pod is affected."""
        name, namespace, uid = identity.name, identity.namespace, identity.uid
        pod = self._pods.get(uid) or Pod(metadata=PodMeta(name=name, namespace=namespace, uid=uid))
        note = f"the pod cannot be read: {problem}"
        self._writers.events.event(pod, "Warning", "FailedScheduling", "Scheduling", note)

    def _waiting_changed(self, old: Pod | None, pod: Pod) -> None:
        """Handle a pod of ours without a node. An assumed one is in no queue, but may be in flight."""
        version = pod.metadata.resource_version
        if old is not None and version and version == old.metadata.resource_version:
            return  # reported twice; it may not be in the queue on purpose
        for each in self._listeners:
            each.pod_waits(pod)
        if self._cache.is_assumed(pod.uid):
            if pod.uid in self._queue:
                self._queue.update(old, pod)  # if Permit refuses it, the newest version goes back to the queue
            if pod.is_deleting and (old is None or not old.is_deleting):
                self._make_room(pod.uid)
                for each in self._listeners:
                    each.pod_waits(pod)  # it is a member until it is gone
            return
        if old is None:
            self._queue.add(pod)
            if self._announces_pods:
                self._queue.move_all(UNSCHEDULED_POD_ADD, None, pod)
            return
        self._update(old, pod)

    def _update(self, old: Pod, pod: Pod) -> None:
        """Take over a new version of a pod that waits."""
        self._queue.update(old, pod)
        if old.nominated_node_name and old.nominated_node_name != pod.nominated_node_name:
            self._queue.nomination_ended(old)

    def _others_waiting_changed(self, old: Pod | None, pod: Pod) -> None:
        """Handle a waiting pod of another scheduler: it counts while it is nominated to a node."""
        before = old.nominated_node_name if old is not None else ""
        if pod.nominated_node_name or before:
            self._nominator.add(pod)
        if old is not None and before not in ("", pod.nominated_node_name):
            self._queue.nomination_ended(old)

    def _make_room(self, uid: str) -> None:
        """Stop counting a deleted pod. A binding under way fails: the API server binds no such pod."""
        on_hold = self._waiting.reject(uid)
        if on_hold and self._cache.is_assumed(uid):
            return  # its binding task ends at once and undoes assume and reserve
        counted = self._cache.remove(uid)
        if counted is not None:
            self._queue.move_all(ASSIGNED_POD_DELETE, counted, None)

    def _assigned(self, old: Pod | None, pod: Pod) -> None:
        """Handle a pod with a node. This confirms our own bindings."""
        counted = self._cache.confirm(pod)
        had_node = old is not None and bool(old.spec.node_name)
        if not had_node:
            self._queue.delete(pod.uid)
            self._writers.status.forget(pod)
            self._queue.move_all(ASSIGNED_POD_ADD, None, pod)
            if old is None:
                for each in self._listeners:
                    each.pod_came_bound(pod)
            if old is not None and old.nominated_node_name not in ("", pod.spec.node_name):
                self._queue.nomination_ended(old)
        if counted is not None and counted.spec.node_name != pod.spec.node_name:
            # It was counted on another node: resources are free there.
            self._queue.move_all(ASSIGNED_POD_DELETE, counted, None)
        elif old is not None and had_node:
            for event in pod_changes(old, pod):
                self._queue.move_all(event, old, pod)

    # Nodes.

    def node_changed(self, node: Node) -> None:
        """A node was added, or has a new version. Raises ValueError for an unreadable quantity, changing nothing."""
        started = time.perf_counter()
        current = self._cache.table.node(node.name)
        if current is not None and current.metadata.uid != node.metadata.uid and _is_older(node, current):
            return  # a late report of a deleted node; another one of its name was created since
        old = self._cache.set_node(node)
        if old is not None and old.metadata.uid != node.metadata.uid:
            # Deleted and created again under its name: the deletion may be reported later, or never.
            self._nodes.pop(old.metadata.uid, None)
        self._nodes[node.metadata.uid] = node
        if old is None:
            self._queue.move_all(NODE_ADD, None, node)
            self._observe(NODE_ADD, started)
            self._node_may_help(NODE_ADD)
            return
        updating = time.perf_counter() - started
        shown = self._cache.table.node(node.name) or node
        if shown.spec.unschedulable and not old.spec.unschedulable:
            self._wake_nominated(node.name, CORDONED)
        for event in node_changes(old, shown):
            started = time.perf_counter() - updating
            self._queue.move_all(event, old, shown)
            if event.action & MAY_END_NOMINATIONS:
                self._wake_nominated(node.name, event)
            self._observe(event, started)
            self._node_may_help(event)

    def _wake_nominated(self, node_name: str, event: ClusterEvent) -> None:
        """Try pods again whose nominated node may not be for them any more: another one may be."""
        for pod in self._nominator.nominated_pods(node_name):
            self._queue.wake(pod.uid, event.label)

    def _node_may_help(self, event: ClusterEvent) -> None:
        for each in self._listeners:
            each.node_may_help(event)

    def node_deleted(self, node: Node) -> None:
        """A node was deleted. Its pods stay counted until they are deleted."""
        started = time.perf_counter()
        self._nodes.pop(node.metadata.uid, None)
        current = self._cache.table.node(node.name)
        if current is not None and current.metadata.uid == node.metadata.uid:
            self._cache.remove_node(node.name)
            self._queue.move_all(NODE_DELETE, current, None)
            self._wake_nominated(node.name, NODE_DELETE)
        self._observe(NODE_DELETE, started)

    # For the relister's comparison and repair.

    def mend(self) -> None:
        """Repair the cache and the queue after a handler failed half way. Raises any error of that.

        A fault may have lost any pod of the queue, so all pods are checked.
        """
        self._cache.mend()
        self._queue.rebuild()
        for pod in self._pods.values():
            if self._waits(pod) and pod.uid not in self._queue and not self._cache.is_assumed(pod.uid):
                self._queue.add(pod)
            elif pod.node_name:
                self._resizes.changed(pod)

    def _waits(self, pod: Pod) -> bool:
        return not (pod.node_name or pod.is_deleting) and pod.spec.scheduler_name in self._profiles

    def profiles_changed(self) -> Iterator[None]:
        """Queue the waiting pods of new profiles and drop those of removed ones. Yields now and then."""
        for pod in tuple(self._pods.values()):
            if self._pods.get(pod.uid) is not pod or self._cache.is_assumed(pod.uid):
                continue
            if pod.node_name:
                self._resizes.changed(pod)
                continue
            waits, is_ours = pod.uid in self._queue, pod.spec.scheduler_name in self._profiles
            if is_ours and not waits:
                self._nominator.delete(pod.uid)
                for each in self._listeners:
                    each.pod_waits(pod)
                self._queue.add(pod)
            elif waits and not is_ours:
                self._queue.delete(pod.uid)
                for each in self._listeners:
                    each.pod_leaves(pod)
                self._writers.status.forget(pod)
                self._others_waiting_changed(None, pod)
            else:
                continue
            yield

    def known_pods(self) -> Mapping[str, Pod]:
        """UID → newest version seen of every pod that has not ended."""
        return self._pods

    def known_nodes(self) -> Mapping[str, Node]:
        """UID → newest version seen."""
        return self._nodes

    def _observe(self, event: ClusterEvent, started: float) -> None:
        """Observe how long an event took, as `event_handling_duration_seconds`."""
        observer = self._observers.get(event.label)
        if observer is None:
            observer = self._observers[event.label] = self._handling.labels(event.label)
        observer.observe(time.perf_counter() - started)


def _is_older(a: Node, b: Node) -> bool:
    return is_newer(b.metadata.resource_version, a.metadata.resource_version)
