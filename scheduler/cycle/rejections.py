"""Handles pods that a kubelet rejects (`OutOfcpu`, `OutOfmemory`, …): counts them and avoids the node for a moment.

    bound by us ──leaves the watch before it ran──► asked about ──failed, out of a resource──► its node is avoided
                                                        │                                          │ REST_SECONDS
                                                        └──gone, or ended in another way           ▼
                                                                                             as it was before

The watch does not show pods that have ended, so a rejection looks like any end, and the pod is read. A kubelet rejects
a pod when it knows of a pod that we do not know: one that another scheduler bound at the same moment, or one that was
deleted by force and still runs. Otherwise the controller would create another pod, which would be rejected on the same
node, over and over.

Only pods that we have bound count, and a node is avoided only for a lack of resources: users whose pods a kubelet
refuses for other reasons (sysctls, AppArmor) must not keep other pods off a node.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.cycle.writers import Ending, PodReader, Writers
from scheduler.framework.errors import ClusterError
from scheduler.process.metrics import Metrics
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.changes import node_changes
from scheduler.state.cache import Cache

REST_SECONDS: Final = 10.0
"""How long a node is avoided: a kubelet needs a few seconds to end a pod and free its resources."""

MAX_WAITING: Final = 1_000
"""Pods waiting to be read. Further pods are ignored: only the metric misses them."""

OUT_OF: Final = "OutOf"
REASONS: Final = frozenset(
    (
        "OutOfcpu",
        "OutOfmemory",
        "OutOfephemeral-storage",
        "OutOfpods",
        "AppArmor",
        "InitContainerRestartPolicyForbidden",
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeShutdown",
        "PodLevelResourcesNotSupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SupplementalGroupsPolicyNotSupported",
        "SysctlForbidden",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "UnexpectedPredicateFailureType",
        "UnknownReason",
    )
)
"""Reasons of a kubelet that does not admit a pod, from pkg/kubelet at v1.36.3: lifecycle, cm, sysctl,
nodeshutdown. A lack of another resource is `OutOf` and the resource's name."""

_logger = logging.getLogger(__name__)


class EarlyEnds:
    """Pods that we bound and that left the watch before they ran. Bounded."""

    def __init__(self, cache: Cache) -> None:
        self.came = asyncio.Event()
        self._cache = cache
        self._pods: deque[Pod] = deque()

    def note(self, counted: Pod) -> None:
        """Note that a pod has left the watch; it must still be counted."""
        never_ran = counted.status.phase in ("", "Pending") and not counted.is_deleting
        if never_ran and self._cache.was_placed_by_us(counted.uid) and len(self._pods) < MAX_WAITING:
            self._pods.append(counted.reference)
            self.came.set()

    def take(self) -> Pod | None:
        if self._pods:
            return self._pods.popleft()
        self.came.clear()
        return None


class Rejections:
    """`run` it as a task."""

    def __init__(
        self,
        ends: EarlyEnds,
        cache: Cache,
        queue: SchedulingQueue,
        reader: PodReader,
        writers: Writers,
        metrics: Metrics,
        now: Callable[[], float],
    ) -> None:
        """`now`: seconds, monotonic."""
        self._ends = ends
        self._cache = cache
        self._queue = queue
        self._reader = reader
        self._events = writers.events
        self._counts = metrics.kubelet_rejections
        self._now = now
        self._avoided_until: dict[str, float] = {}
        """Node → when its rest ends."""

    async def run(self) -> None:
        """Read pods that ended early, and end the avoidance of nodes, until cancelled."""
        while True:
            while (pod := self._ends.take()) is not None:
                await self.look_into(pod)
            await self._wait()
            self.end_avoidance()

    def end_avoidance(self) -> None:
        """Use nodes again that were avoided for long enough."""
        now = self._now()
        for name in [name for name, end in self._avoided_until.items() if end <= now]:
            del self._avoided_until[name]
            self._show(name, at_rest=False)

    async def _wait(self) -> None:
        until = min(self._avoided_until.values(), default=None)
        try:
            await asyncio.wait_for(self._ends.came.wait(), None if until is None else max(0.0, until - self._now()))
        except TimeoutError:
            return  # a rest is over

    async def look_into(self, pod: Pod) -> None:
        """Read how a pod ended; if it was rejected, report that and avoid its node."""
        try:
            ending = await self._reader.ending(pod)
        except ClusterError as error:
            _logger.warning("A pod ended before it ran; why is not known", extra={"pod": str(pod), "err": str(error)})
            return
        if ending is not None and ending.phase == "Failed" and is_rejection(ending.reason):
            self._rejected(pod, ending)

    def _rejected(self, pod: Pod, ending: Ending) -> None:
        reason, node = ending.reason, pod.node_name
        self._counts.labels(reason if reason in REASONS else "other").inc()
        _logger.warning("A kubelet rejected a pod", extra={"pod": str(pod), "node": node, "reason": reason})
        note = f"Node {node} rejected the pod: {reason}: {ending.message}"
        if reason.startswith(OUT_OF):
            self._avoided_until[node] = self._now() + REST_SECONDS
            self._show(node, at_rest=True)
            note = f"Node {node} rejected the pod and is left alone for {REST_SECONDS:g}s: {reason}: {ending.message}"
        self._events.event(pod, "Warning", "RejectedByKubelet", "Binding", note)

    def _show(self, name: str, *, at_rest: bool) -> None:
        old = self._cache.table.node(name)
        if at_rest:
            self._cache.rest(name)
        else:
            self._cache.end_rest(name)
        new = self._cache.table.node(name)
        if old is not None and new is not None:
            for event in node_changes(old, new):
                self._queue.move_all(event, old, new)


def is_rejection(reason: str) -> bool:
    """Return whether this is a reason of a kubelet that does not admit a pod."""
    return reason in REASONS or reason.startswith(OUT_OF)
