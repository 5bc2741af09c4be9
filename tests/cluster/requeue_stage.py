"""The stage of the requeueing tests: pods that wait for one reason, one event, and the time until the bind."""

import statistics
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.cluster.bind_watch import BindWatch
from tests.cluster.loadmaster import http_get, metric, samples_of
from tests.controlplane import Client, a_node, a_pod, condition, is_ready, wait_until
from tests.controlplane.client import Object

REPETITIONS: Final = 3
"""At most: where the first time is within `MEDIAN_LIMIT`, it is enough."""

MEDIAN_LIMIT: Final = 0.3
"""Seconds from an event to the bind. A flush would take 30 s or more, and the backoff of a second attempt 2 s."""

LIMIT: Final = 1.0
"""The same for each single time."""

NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}
"""Tolerated by every pod here: a new node has this taint until a controller takes it away, and none is timed."""

Event = Callable[[], object]
"""Makes one thing happen in the cluster, with one request.

The clock starts when it is sent, since the bind may be seen before its answer: the API server's own time is included.
"""


class Stage:
    """Nodes and pods of one repetition, and what the scheduler's metrics say of them."""

    def __init__(self, api: Client, namespace: str, port: int, watch: BindWatch) -> None:
        self.api = api
        self.namespace = namespace
        self.port = port
        self.watch = watch
        self._nodes: list[str] = []
        self._others: set[str] = set()
        self._made = 0

    def repeat(self, prepare: Callable[[], tuple[str, Event]]) -> None:
        """Time an event: `prepare` makes a pod wait and returns its UID and the event that helps it. Checks the times.

        Each repetition begins without nodes and pods, and with the pod's backoff over.
        """
        times: list[float] = []
        for _ in range(REPETITIONS):
            uid, event = prepare()
            wait_out_backoff()
            assert uid not in self.watch.bound
            sent = time.monotonic()
            event()
            times.append(self.watch.bound_at(uid, timeout=60) - sent)
            self.clear()
            if times[0] <= MEDIAN_LIMIT:
                break
        assert statistics.median(times) <= MEDIAN_LIMIT, times
        assert max(times) <= LIMIT, times

    def node(self, cpu: str = "4", **wishes: Any) -> str:
        """Create a node and return its name when the scheduler has it, free of the taint of new nodes."""
        self._made += 1
        node = a_node(f"{self.namespace}-{self._made}", cpu=cpu, **wishes)
        return self.add_node(node)

    def add_node(self, node: Object) -> str:
        """Create a node as it is, as `node` does."""
        name = self.create_node(node)
        wait_until(lambda: is_ready(self.api.get("Node", name)), 30, "the node is ready")
        self._wait_for_cache("nodes", len(self._nodes))
        pause()  # the scheduler may hear of the ready node a little later than we
        return name

    def create_node(self, node: Object) -> str:
        """Create a node without waiting for anything; it is deleted with the others."""
        name: str = node["metadata"]["name"]
        self._nodes.append(name)
        self.api.create(node)
        return name

    def running(self, name: str, **spec: Any) -> Object:
        """Create a pod that has room, and return it when it is bound."""
        pod = self._create(name, **spec)
        self.watch.bound_at(pod["metadata"]["uid"])
        return pod

    def running_elsewhere(self, name: str, namespace: str, node: str, **spec: Any) -> None:
        """Create a pod in another namespace, on a node already; it is deleted with the others."""
        self._others.add(namespace)
        before = metric(self.port, "scheduler_cache_size", type="pods")
        self.api.create(a_pod(name, nodeName=node, tolerations=[NOT_READY], **spec), namespace)
        self._wait_for_cache("pods", int(before) + 1)

    def waiting(self, name: str, message: str, *, reason: str = "Unschedulable", **spec: Any) -> str:
        """Create a pod that cannot be placed, and return its UID when its condition says why in these words."""
        pod = self._create(name, **spec)

        def scheduled() -> tuple[str, ...] | None:
            found = condition(self.api.get("Pod", name, self.namespace), "PodScheduled")
            if found is None:
                return None
            refusal = found["message"].partition(" preemption:")[0]  # which is a matter of other tests
            return found["status"], found["reason"], refusal

        expected = ("False", reason, message)
        wait_until(lambda: scheduled() == expected, 10, f"{name} waits: {message}; it says {scheduled()}")
        uid: str = pod["metadata"]["uid"]
        return uid

    def incoming(self) -> Mapping[str, float]:
        """How many pods have come into activeQ or backoffQ, by event."""
        return by_label(self.port, "scheduler_queue_incoming_pods_total", "event", queue=("active", "backoff"))

    def clear(self) -> None:
        """Delete every pod and node, and wait until the scheduler knows."""
        for namespace in (self.namespace, *self._others):
            self.api.delete_all("Pod", namespace)
        self.api.delete_many("Node", self._nodes)
        self._nodes.clear()
        self._wait_for_cache("nodes", 0)
        self._wait_for_cache("pods", 0)
        wait_until(lambda: metric(self.port, "scheduler_pending_pods") == 0, 10, "no pod waits")

    def _create(self, name: str, tolerations: tuple[Mapping[str, str], ...] = (), **spec: Any) -> Object:
        pod = a_pod(name, tolerations=[NOT_READY, *tolerations], **spec)
        return self.api.create(pod, self.namespace)

    def _wait_for_cache(self, kind: str, count: int) -> None:
        counted = "scheduler_cache_size"
        wait_until(lambda: metric(self.port, counted, type=kind) == count, 15, f"the scheduler has {count} {kind}")


def wait_out_backoff() -> None:
    """Wait until the backoff of a pod that has just failed for the first time is over: one second.

    It ends with the window of a second in which it ends, by the clock that all processes of a machine share.
    """
    threading.Event().wait(2.02 - time.monotonic() % 1.0)


def pause() -> None:
    """Let two watches that began at different times come to the same point."""
    threading.Event().wait(0.1)


def by_label(port: int, name: str, label: str, **labels: tuple[str, ...]) -> dict[str, float]:
    """The samples of a metric summed by one label, where the others have one of the values given."""
    totals: dict[str, float] = {}
    for its, value in samples_of(http_get(port, "/metrics")[1], name):
        if all(its[key] in values for key, values in labels.items()):
            totals[its[label]] = totals.get(its[label], 0.0) + value
    return totals
