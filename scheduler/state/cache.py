"""What we believe about the cluster: the watch's facts plus our own assumptions.

    (unknown) ──assume──► ASSUMED ──finish_binding──► EXPIRING ──expire──► (unknown)
        ▲                    │  │                        │
        ├──────forget────────┘  └───────confirm──────────┤
        │                                                ▼
        └───────────────────remove────────────────── CONFIRMED ◄──confirm── (unknown): not bound by us

With a TTL of 0 an assumed pod whose binding has finished waits for the watch forever, as in kube-scheduler; then our
relister settles it. Rule: pkg/scheduler/backend/cache/interface.go at v1.36.3.
"""

import logging
from collections.abc import Callable, Iterator, KeysView
from dataclasses import dataclass

from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.api.requests import PodResources
from scheduler.runtime.metrics import Metrics
from scheduler.state.node_table import NodeTable
from scheduler.state.resting import RestingNodes

_logger = logging.getLogger(__name__)

_NOTHING = PodResources({}, 0, 0)


@dataclass(slots=True, eq=False)
class _Entry:
    pod: Pod
    assumed: bool
    ours: bool
    """Whether we have bound it, or are about to, as far as this process knows."""
    deadline: float | None = None
    """When the assumption lapses, in seconds of the cache's clock; None while the binding runs, or if it never does."""


class Cache:
    """The only writer of the node table. Synchronous: no other code runs between two of its steps."""

    def __init__(self, metrics: Metrics, now: Callable[[], float], ttl: float = 0.0) -> None:
        """`ttl`: seconds after the end of its binding within which an assumed pod must be confirmed; 0: no limit."""
        self.table = NodeTable()
        self.assumed_count = 0
        """Number of assumed pods: the watch has yet to confirm them."""
        self._entries: dict[str, _Entry] = {}
        self._metrics = metrics
        self._now = now
        self._ttl = ttl
        self._others: dict[str, int] = {}
        """Node → the number of the last change that was not an assumption of ours."""
        self._changes = 0
        self._resting = RestingNodes()

    # Our own assumptions.

    def assume(self, pod: Pod) -> None:
        """Count `pod` on `pod.node_name` before the API server has agreed. Raises ValueError if it is known."""
        if pod.uid in self._entries:
            raise ValueError(f"{pod} is in the cache already, so it cannot be assumed")
        self._add(pod, assumed=True)

    def finish_binding(self, pod: Pod) -> None:
        """Start the time within which the watch must confirm an assumed pod. No effect once it has."""
        entry = self._entries.get(pod.uid)
        if entry is not None and entry.assumed and self._ttl > 0:
            entry.deadline = self._now() + self._ttl

    def forget(self, pod: Pod) -> bool:
        """Take back an assumption; return whether there was one. A confirmed pod stays."""
        entry = self._entries.get(pod.uid)
        if entry is None or not entry.assumed:
            return False
        self._drop(entry)
        return True

    def expire(self) -> list[Pod]:
        """Drop and return the assumed pods that were not confirmed in time."""
        now = self._now()
        late = [e for e in self._entries.values() if e.deadline is not None and e.deadline <= now]
        for entry in late:
            self._drop(entry)
            self._metrics.assumed_pods_expired.inc()
        return [entry.pod for entry in late]

    # The watch's facts.

    def confirm(self, pod: Pod) -> Pod | None:
        """Take over a pod that is bound, in its newest version; return the version counted before, if any.

        The watch wins: a pod that was assumed on another node moves.
        """
        entry = self._entries.get(pod.uid)
        if entry is None:
            self._add(pod, assumed=False)
            self._note_change(pod.node_name)
            return None
        old = entry.pod
        if old.node_name != pod.node_name:
            self._metrics.cache_corrections.labels("other_node").inc()
            _logger.warning(
                "Pod is bound to another node than we believed",
                extra={"pod": str(pod), "believed": old.node_name, "node": pod.node_name},
            )
            self._drop(entry)
            self._add(pod, assumed=False)
            self._note_change(pod.node_name)
            return old
        self._make_countable(pod)
        if not entry.assumed and pod.resources != old.resources:
            self._note_change(pod.node_name)  # resized
        self.table.replace_pod(pod.node_name, old, pod)
        entry.pod = pod
        self.assumed_count -= entry.assumed
        entry.assumed = False
        entry.deadline = None
        return old

    def remove(self, uid: str) -> Pod | None:
        """Stop counting a pod that is gone, assumed or not; return what was counted, if anything."""
        entry = self._entries.get(uid)
        if entry is None:
            return None
        self._drop(entry)
        return entry.pod

    def set_node(self, node: Node) -> Node | None:
        """Take over a node in its newest version; return the version before. Raises ValueError if unreadable."""
        old = self.table.node(node.name)
        self.table.set_node(self._resting.shown(node))
        self._note_change(node.name)
        return old

    def remove_node(self, name: str) -> Node | None:
        """Remove a node; pods on it stay counted until they are removed themselves. Return its last version."""
        old = self.table.node(name)
        self.table.remove_node(name)
        self._others.pop(name, None)
        self._resting.discard(name)
        return old

    # Nodes left alone for a moment.

    def rest(self, node_name: str) -> None:
        """Show a node with one more taint, until `end_rest`. No effect on nodes that are not there."""
        node = self.table.node(node_name)
        if node is not None:
            self._resting.add(node_name)
            self.set_node(node)

    def end_rest(self, node_name: str) -> None:
        """Show a node as it is."""
        self._resting.discard(node_name)
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
        """Whether a counted pod is where it is by a decision of this process."""
        entry = self._entries.get(uid)
        return entry is not None and entry.ours

    def is_assumed(self, uid: str) -> bool:
        entry = self._entries.get(uid)
        return entry is not None and entry.assumed

    def assumed_pods(self) -> Iterator[Pod]:
        return (entry.pod for entry in self._entries.values() if entry.assumed)

    def uids(self) -> KeysView[str]:
        """Every counted pod, assumed or not. A live view."""
        return self._entries.keys()

    def sizes(self) -> dict[str, int]:
        """What the metric `scheduler_cache_size` shows."""
        return {"assumed_pods": self.assumed_count, "nodes": self.table.count, "pods": len(self._entries)}

    def check_invariants(self) -> None:
        """Every pod is counted once, on the node that it says. For tests and debugging."""
        self.table.check_invariants()
        for uid, entry in self._entries.items():
            assert entry.pod.uid == uid
            assert entry.pod in self.table.pods_on(entry.pod.node_name), str(entry.pod)
            assert entry.assumed or entry.deadline is None, str(entry.pod)
        assert self.assumed_count == sum(entry.assumed for entry in self._entries.values())
        counted = int(self.table.pod_count.sum())
        assert counted == len(self._entries), f"{counted} pods counted, {len(self._entries)} known"

    # Internals.

    def _note_change(self, node_name: str) -> None:
        if self.table.node(node_name) is not None:
            self._changes += 1
            self._others[node_name] = self._changes

    def _add(self, pod: Pod, *, assumed: bool) -> None:
        self._make_countable(pod)
        self.table.add_pod(pod.node_name, pod)
        self._entries[pod.uid] = _Entry(pod, assumed, ours=assumed)
        self.assumed_count += assumed

    def _drop(self, entry: _Entry) -> None:
        self.table.remove_pod(entry.pod.node_name, entry.pod)
        del self._entries[entry.pod.uid]
        self.assumed_count -= entry.assumed

    def _make_countable(self, pod: Pod) -> None:
        """Count a pod with unreadable requests without them: it runs, whatever it asks for."""
        try:
            _ = pod.resources
        except ValueError as error:
            self._metrics.watch_errors.labels("pods", "quantity").inc()
            _logger.error("Pod is counted without its requests", extra={"pod": str(pod), "err": str(error)})
            pod.derived.resources = _NOTHING
