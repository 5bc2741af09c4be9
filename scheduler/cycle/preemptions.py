"""Keeps the preemptions under way informed about their pods, and wakes the pods that waited for one that has ended."""

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.core import Core
from scheduler.cycle.listeners import PodListener
from scheduler.framework.errors import SchedulerError
from scheduler.framework.events import ASSIGNED_POD_DELETE
from scheduler.framework.queued import QueuedPod
from scheduler.state.preemptions import Preemption


class PreemptionEnds(PodListener):
    """Connects `Preemptions` with the cycle."""

    def __init__(self, core: Core) -> None:
        self._preemptions = core.preemptions
        self._pods = core.pods
        self._nominator = core.nominator
        self._queue = core.queue
        self._evictor = core.writers.evictor
        core.preemptions.subscribe(self._ended)

    def pod_gone(self, pod: Pod) -> None:
        self._preemptions.gone(pod.uid)

    def pod_placed(self, pod: Pod) -> None:
        self._preemptions.placed(pod.uid)

    def attempt_failed(self, queued: QueuedPod, cause: Unplaced | SchedulerError) -> None:
        self._preemptions.failed(queued.pod.uid, queued.attempt_began or 0.0)

    def _ended(self, preemption: Preemption) -> None:
        """Take back the nominations that kept nodes for its pods, and wake who yielded to them.

        That of a pod whose attempt has failed is taken back already, which wakes those of the same or lower priority.
        """
        for pod in preemption.pods:
            newest = self._pods.get(pod.uid, pod)
            if self._nominator.delete(pod.uid):
                self._evictor.clear_nomination(newest)
            if node_name := preemption.kept_on[pod.uid]:
                self._queue.move_all(ASSIGNED_POD_DELETE, newest.bound_to(node_name), None)
