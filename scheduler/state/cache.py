"""Our view of the cluster: the watch's facts plus our own assumptions.

    (unknown) ──assume──► ASSUMED ──finish_binding──► EXPIRING ──expire──► (unknown)
        ▲                    │  │                        │
        ├──────forget────────┘  └───────confirm──────────┤
        │                                                ▼
        └───────────────────remove────────────────── CONFIRMED ◄──confirm── (unknown): not bound by us

With a TTL of 0 an assumed pod whose binding has finished waits for the watch forever, as in kube-scheduler; then our
relister settles it. Rule: pkg/scheduler/backend/cache/interface.go at v1.36.3.

Facts are the nodes and the pods with their nodes; the table follows from them. A change is made whole or not at all: if
the table fails half way, it is rebuilt from the facts. Removing what is gone cannot fail in this way.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, KeysView
from dataclasses import dataclass
from typing import Final

import msgspec

from scheduler.api.objects import Node, Taint
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import PodResources, allocatable_of
from scheduler.process.metrics import Metrics
from scheduler.runtime.event_stream import EventStream
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.state_events import NodeQuarantined, NodeRemoved, NodeSet, PodCounted, PodUncounted, TableRebuilt

REST: Final = Taint("loadmaster/rejected-a-pod", "", "NoSchedule")
"""Of a node that is avoided for a moment, as its kubelet has rejected a pod that should fit. The API server never sees
it; TaintToleration, and the messages to the pods' owners, treat it like any taint."""


def as_scheduled(node: Node, *, is_at_rest: bool) -> Node:
    """Return a node as it is to be scheduled: with our taint if it is at rest, otherwise without."""
    taints = tuple(taint for taint in node.taints if taint != REST)
    if is_at_rest:
        taints += (REST,)
    if taints == node.taints:
        return node
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints or None))


_logger = logging.getLogger(__name__)

_NOTHING = PodResources({}, 0, 0)


class CountListener:
    """Follows the pods that are counted on nodes, and does nothing: overwrite the methods of interest."""

    def pod_counted(self, pod: Pod, *, is_assumed: bool, is_what_if: bool) -> None:
        """A pod counts on its node."""

    def pod_confirmed(self, pod: Pod) -> None:
        """A counted pod is bound, in a new version, and perhaps on another node."""

    def pod_uncounted(self, pod: Pod, *, is_what_if: bool) -> None:
        """A pod counts no longer."""

    def pod_unassumed(self, pod: Pod) -> None:
        """An assumption was taken back: the pod has no node."""

    def pod_removed(self, pod: Pod) -> None:
        """A pod that was counted is gone."""

    def check_counted(self, uids: Collection[str]) -> None:
        """Follow these pods. For tests and debugging."""


@dataclass(slots=True, eq=False)
class _Entry:
    pod: Pod
    assumed: bool
    ours: bool
    """Whether this process has bound it, or is about to."""
    deadline: float | None = None
    """When the assumption lapses, in seconds of the cache's clock; None while the binding runs, or if it never does."""


class Cache:
    """The only writer of the node table. Synchronous: no other code runs between two of its steps.

    A what-if assumes pods too, and forgets them all. To everyone else they are assumed pods like others: whatever the
    watch shows meanwhile may be taken over. Only nothing is published of them.

    A pod that is to stay where it was tried out is left in the table meanwhile:

        WHAT-IF ──leave──► LEFT ──assume──► ASSUMED
           └──────forget─────┴──forget_left, a node comes or goes──► (unknown)
    """

    def __init__(
        self, metrics: Metrics, now: Callable[[], float], ttl: float = 0.0, stream: EventStream | None = None
    ) -> None:
        """`ttl`: seconds after the end of its binding within which an assumed pod must be confirmed; 0: no limit."""
        self.table = NodeTable()
        self.assumed_count = 0
        """Number of assumed pods: the watch has yet to confirm them."""
        self._entries: dict[str, _Entry] = {}
        self._nodes: dict[str, Node] = {}
        self._expiring: OrderedDict[str, _Entry] = OrderedDict()
        """UID → entry with a deadline, the earliest first: all have the same time."""
        self._metrics = metrics
        self._now = now
        self._ttl = ttl
        self._others: dict[str, int] = {}
        """Node → the number of the last change that was not an assumption of ours."""
        self.changes = 0
        """The number of the last change of any node that was not an assumption of ours."""
        self.what_ifs: dict[str, Pod] = {}
        """UID → pod that is assumed only to see what would fit then."""
        self._left: dict[str, Pod] = {}
        """Those of them that are only left in the table."""
        self.layouts = 0
        """Another number once a node has come or gone: rows may mean others."""
        self._resting: set[str] = set()
        """The names of nodes that are left alone for a moment."""
        self._stream = stream or EventStream()
        self._listeners: tuple[CountListener, ...] = ()

    def listen(self, listener: CountListener, *, first: bool = False) -> None:
        """Call a listener from now on, `first` or after all others. Repeating it is harmless."""
        if listener not in self._listeners:
            self._listeners = (listener, *self._listeners) if first else (*self._listeners, listener)

    def ignore(self, listener: CountListener) -> None:
        """Call a listener no more."""
        self._listeners = tuple([each for each in self._listeners if each is not listener])

    # Our own assumptions.

    def assume(self, pod: Pod, *, is_what_if: bool = False) -> None:
        """Count `pod` on `pod.node_name` before the API server has agreed. Raises ValueError if it is known.

        `is_what_if`: nothing is published of it.
        """
        uid = pod.metadata.uid
        if uid in self._left:
            if self._keep(pod):
                return
            self.forget(pod)
        if uid in self._entries:
            raise ValueError(f"{pod} is in the cache already, so it cannot be assumed")
        self._add(pod, assumed=True, is_what_if=is_what_if)

    def leave(self, pod: Pod) -> None:
        """End a what-if, and leave its pod in the table until it is assumed, or all that are left are forgotten."""
        uid = pod.metadata.uid
        if uid in self.what_ifs:  # else others have bound or deleted it
            self._left[uid] = pod
            self._report_unassumed(pod)

    def forget_left(self) -> None:
        """Forget the pods that a what-if has left in the table."""
        while self._left:
            self.forget(next(reversed(self._left.values())))

    def finish_binding(self, pod: Pod) -> None:
        """Start the time within which the watch must confirm an assumed pod. No effect once it has."""
        entry = self._entries.get(pod.uid)
        if entry is not None and entry.assumed and self._ttl > 0:
            entry.deadline = self._now() + self._ttl
            self._expiring[pod.uid] = entry
            self._expiring.move_to_end(pod.uid)

    def forget(self, pod: Pod) -> bool:
        """Take back an assumption; return whether there was one. A confirmed pod stays."""
        entry = self._entries.get(pod.metadata.uid)
        if entry is None or not entry.assumed:
            return False
        self._drop(entry)
        self._report_unassumed(entry.pod)
        return True

    def expire(self) -> list[Pod]:
        """Drop and return the assumed pods that were not confirmed in time."""
        late: list[Pod] = []
        now = self._now()
        while self._expiring:
            entry = next(iter(self._expiring.values()))
            if entry.deadline is None or entry.deadline > now:
                break
            self._drop(entry)
            self._report_unassumed(entry.pod)
            self._metrics.assumed_pods_expired.inc()
            late.append(entry.pod)
        return late

    # The watch's facts.

    def confirm(self, pod: Pod) -> Pod | None:
        """Take over a pod that is bound, in its newest version; return the version counted before, if any.

        The watch wins: a pod that was assumed on another node moves.
        """
        uid, name = pod.metadata.uid, pod.spec.node_name
        entry = self._entries.get(uid)
        if entry is None:
            self._add(pod, assumed=False)
            self._note_change(name)
            return None
        old = entry.pod
        moved = old.spec.node_name != name
        self._make_countable(pod)
        is_what_if = self._end_what_if(uid)
        if moved and not is_what_if:
            self._metrics.cache_corrections.labels("other_node").inc()
            _logger.warning(
                "Pod is bound to another node than we believed",
                extra={"pod": str(pod), "believed": old.node_name, "node": name},
            )
        try:
            if moved:
                self.table.remove_pod(old.node_name, old)
                self.table.add_pod(name, pod)
            else:
                self.table.replace_pod(name, old, pod)
        except Exception:
            self.table.is_broken = True
            self._rebuild()
            raise
        entry.pod = pod
        resized = not entry.assumed and pod.resources != old.resources
        entry.ours &= not (moved or is_what_if)
        self.assumed_count -= entry.assumed
        entry.assumed = False
        entry.deadline = None
        self._expiring.pop(uid, None)
        for each in self._listeners:
            each.pod_confirmed(pod)
        if moved or resized:
            self._note_change(name)
        if PodCounted in self._stream.listeners:
            self._stream.publish(PodCounted(pod, False))
        return old

    def remove(self, uid: str) -> Pod | None:
        """Stop counting a pod that is gone, assumed or not; return what was counted, if anything."""
        entry = self._entries.get(uid)
        if entry is None:
            return None
        self._drop(entry)
        for each in self._listeners:
            each.pod_removed(entry.pod)
        return entry.pod

    def set_node(self, node: Node) -> Node | None:
        """Take over a node in its newest version; return the version before. Raises ValueError if unreadable."""
        name = node.name
        shown = as_scheduled(node, is_at_rest=name in self._resting)
        allocatable_of(node.status.allocatable)
        old = self.table.node(name)
        if old is None:
            self.forget_left()  # which rows there are, and in which order, is as if none had been left
            self.layouts += 1
        try:
            self.table.set_node(shown)
        except Exception:
            self.table.is_broken = True
            self._rebuild()
            raise
        self._nodes[name] = shown
        self._note_change(name)
        if NodeSet in self._stream.listeners:
            self._stream.publish(NodeSet(node))
        return old

    def remove_node(self, name: str) -> Node | None:
        """Remove a node; pods on it stay counted until they are removed themselves. Return its last version."""
        self.forget_left()
        old = self._nodes.pop(name, None)
        self._others.pop(name, None)
        self.changes += 1
        self.layouts += 1
        self._resting.discard(name)
        try:
            self.table.remove_node(name)
        except Exception:  # noqa: BLE001  logged there; the node is gone all the same
            self.table.is_broken = True
            self._rebuild()
        if NodeRemoved in self._stream.listeners:
            self._stream.publish(NodeRemoved(name))
        return old

    def mend(self) -> None:
        """Rebuild the table if it is broken: a what-if failed half-way, or an attempt to rebuild it."""
        if self.table.is_broken:
            self._rebuild()

    # Nodes left alone for a moment.

    def rest(self, node_name: str) -> None:
        """Show a node with one more taint, until `end_rest`. No effect on nodes that are not there."""
        node = self.table.node(node_name)
        if node is not None:
            self._resting.add(node_name)
            if NodeQuarantined in self._stream.listeners:
                self._stream.publish(NodeQuarantined(node_name, False))
            self.set_node(node)

    def end_rest(self, node_name: str) -> None:
        """Show a node as it is."""
        self._resting.discard(node_name)
        if NodeQuarantined in self._stream.listeners:
            self._stream.publish(NodeQuarantined(node_name, True))
        node = self.table.node(node_name)
        if node is not None:
            self.set_node(node)

    # Queries.

    def get(self, uid: str) -> Pod | None:
        """The pod as counted on its node, or None."""
        entry = self._entries.get(uid)
        return None if entry is None else entry.pod

    def changed_by_others(self, node_name: str) -> int:
        """Return a number that is another one after each change of a node that was not an assumption of ours."""
        return self._others.get(node_name, 0)

    def was_placed_by_us(self, uid: str) -> bool:
        """Return whether a counted pod is where it is by a decision of this process."""
        entry = self._entries.get(uid)
        return entry is not None and entry.ours

    def is_assumed(self, uid: str) -> bool:
        entry = self._entries.get(uid)
        return entry is not None and entry.assumed

    def assumed_pods(self) -> Iterator[Pod]:
        return (entry.pod for entry in self._entries.values() if entry.assumed)

    def counted_pods(self) -> Iterator[Pod]:
        return (entry.pod for entry in self._entries.values())

    def uids(self) -> KeysView[str]:
        """Every counted pod, assumed or not. A live view."""
        return self._entries.keys()

    @property
    def resting(self) -> tuple[str, ...]:
        """The nodes that are left alone."""
        return tuple(self._resting)

    def sizes(self) -> dict[str, int]:
        """The values of the metric `scheduler_cache_size`."""
        return {"assumed_pods": self.assumed_count, "nodes": self.table.count, "pods": len(self._entries)}

    def check_invariants(self) -> None:
        """Every pod is counted once, on the node that it says. For tests and debugging."""
        self.table.check_invariants()
        for uid, entry in self._entries.items():
            assert entry.pod.uid == uid
            assert entry.pod in self.table.pods_on(entry.pod.node_name), str(entry.pod)
            assert entry.assumed or entry.deadline is None, str(entry.pod)
            assert (entry.deadline is not None) == (uid in self._expiring), str(entry.pod)
        assert self.assumed_count == sum(entry.assumed for entry in self._entries.values())
        counted = int(self.table.pod_count.sum())
        assert counted == len(self._entries), f"{counted} pods counted, {len(self._entries)} known"
        assert self._nodes == {name: self.table.node(name) for name in self.table.node_names()}
        assert self._expiring.keys() <= self._entries.keys()
        assert all(self.is_assumed(uid) for uid in self.what_ifs)
        assert self._left.keys() <= self.what_ifs.keys()
        for each in self._listeners:
            each.check_counted(self._entries.keys())

    # Internals.

    def _report_unassumed(self, pod: Pod) -> None:
        for each in self._listeners:
            each.pod_unassumed(pod)

    def _note_change(self, node_name: str) -> None:
        if self.table.node(node_name) is not None:
            self.changes += 1
            self._others[node_name] = self.changes

    def _add(self, pod: Pod, *, assumed: bool, is_what_if: bool = False) -> None:
        self._make_countable(pod)
        uid, entry = pod.metadata.uid, _Entry(pod, assumed, ours=assumed)
        try:
            self.table.add_pod(pod.spec.node_name, pod)
        except Exception:
            self.table.is_broken = True
            self._rebuild()
            raise
        self._entries[uid] = entry
        self.assumed_count += assumed
        for each in self._listeners:
            each.pod_counted(pod, is_assumed=assumed, is_what_if=is_what_if)
        if is_what_if:
            self.what_ifs[uid] = pod
        elif PodCounted in self._stream.listeners:
            self._stream.publish(PodCounted(pod, assumed))

    def _drop(self, entry: _Entry) -> None:
        pod = entry.pod
        uid = pod.metadata.uid
        del self._entries[uid]
        self._expiring.pop(uid, None)
        self.assumed_count -= entry.assumed
        try:
            self.table.remove_pod(pod.spec.node_name, pod)
        except Exception:  # noqa: BLE001  logged there; the pod is gone all the same
            self.table.is_broken = True
            self._rebuild()
        is_what_if = bool(self.what_ifs) and self._end_what_if(uid)
        for each in self._listeners:
            each.pod_uncounted(pod, is_what_if=is_what_if)
        if PodUncounted in self._stream.listeners and not is_what_if:
            self._stream.publish(PodUncounted(uid))

    def _keep(self, pod: Pod) -> bool:
        """Assume for good a pod that is left in the table; return False if the one there is another version of it."""
        uid = pod.metadata.uid
        left, entry = self._left[uid], self._entries.pop(uid)
        self._entries[uid] = entry  # the last one, as if it had been forgotten
        is_same = left.metadata is pod.metadata and left.status is pod.status
        if not is_same or left.spec.node_name != pod.spec.node_name:
            return False
        self._end_what_if(uid)
        entry.pod = pod
        self.table.renew_pod(pod.spec.node_name, pod)
        for each in self._listeners:
            each.pod_uncounted(pod, is_what_if=True)
            each.pod_counted(pod, is_assumed=True, is_what_if=False)
        if PodCounted in self._stream.listeners:
            self._stream.publish(PodCounted(pod, True))
        return True

    def _end_what_if(self, uid: str) -> bool:
        """Return whether a pod was counted for a what-if only, which it is no longer."""
        self._left.pop(uid, None)
        return self.what_ifs.pop(uid, None) is not None

    def _rebuild(self) -> None:
        """Rebuild the table. If that fails too, the table stays broken, and the next decision tries again."""
        _logger.error("The node table is made anew, as a change failed half way", exc_info=True)
        self._metrics.table_rebuilds.inc()
        if TableRebuilt in self._stream.listeners:
            self._stream.publish(TableRebuilt())
        self.layouts += 1
        self.table.clear()
        for node in self._nodes.values():
            self.table.set_node(node)
        for entry in self._entries.values():
            self.table.add_pod(entry.pod.node_name, entry.pod)
        self.table.is_broken = False

    def _make_countable(self, pod: Pod) -> None:
        """Derive all that is counted before anything is; without unreadable requests: it runs, whatever it asks for."""
        derived = pod._derived
        if derived.host_ports is None or derived.storage is None:
            _ = pod.host_ports, pod.storage
        if pod.spec.affinity is not None:
            _ = pod.affinity_terms
        if derived.resources is not None:
            return
        try:
            _ = pod.resources
        except ValueError as error:
            self._metrics.watch_errors.labels("pods", "quantity").inc()
            _logger.error("Pod is counted without its requests", extra={"pod": str(pod), "err": str(error)})
            derived.resources = _NOTHING
