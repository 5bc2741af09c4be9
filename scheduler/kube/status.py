"""Pod status patches: the condition that says why a pod is not scheduled, and its nominated node.

Only the newest state of a pod is sent, one patch per pod at a time, and only what differs from the pod's current
status: that of the pod given or, as the watch may lag, of the answer to our last patch, whichever is newer.

    (nothing) --set--> WANTED --a sender takes it--> IN FLIGHT --answered, or dropped--> (nothing)
                         ^                               |
                         +-------- set meanwhile --------+

Rules: podutil.UpdatePodCondition, updatePod in pkg/scheduler/schedule_one.go and PatchPodStatus in pkg/scheduler/util,
at v1.36.3. The patch carries the UID as a precondition: a new pod of the same name is never touched.
"""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import orjson

from scheduler.api.objects import PodCondition, PodStatus
from scheduler.api.pod import Pod, decode_pod
from scheduler.api.versions import is_newer
from scheduler.kube.client import CallLimit, Client, Operation
from scheduler.kube.retries import Meaning, RetryPolicy, meaning_of

log = logging.getLogger(__name__)

POD_SCHEDULED: Final = "PodScheduled"

SENDERS: Final = 16
"""Concurrent patches."""

MAX_ANSWERS: Final = 10_000
"""Answers remembered until the watch catches up; the oldest are forgotten first."""

RETRIES: Final = RetryPolicy(first=0.1, limit=5.0, tries=10)
"""About 25 s. By then the pod's next attempt, and so the next patch, is near."""


class Condition(msgspec.Struct, frozen=True, gc=False):
    """A pod condition to set."""

    status: str
    """`True` or `False`."""
    reason: str
    message: str = ""
    type: str = POD_SCHEDULED


class _Wanted(msgspec.Struct):
    pod: Pod
    conditions: dict[str, Condition]
    """By type."""
    nominated_node_name: str | None
    """None leaves it as it is."""


class PodStatuses:
    """Sends patches in the background. `start` it, `close` it."""

    def __init__(self, client: Client, now: Callable[[], float] = time.time) -> None:
        """`now`: seconds since 1970."""
        self._client = client
        self._now = now
        self._patch = Operation(
            "PATCH", "pods/status", CallLimit(SENDERS), content_type="application/strategic-merge-patch+json"
        )
        self._wanted: dict[str, _Wanted] = {}
        self._in_flight: set[str] = set()
        self._queue: deque[str] = deque()
        self._work = asyncio.Semaphore(0)
        self._answers: OrderedDict[str, Pod] = OrderedDict()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._send_forever(), name="patch pod status") for _ in range(SENDERS)]

    async def close(self) -> None:
        """Stop and drop unsent patches: after a restart the pods are tried again."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._tasks = []

    def set(self, pod: Pod, condition: Condition | None = None, nominated_node_name: str | None = None) -> None:
        """Bring the pod's status to this, in the background. None leaves a part as it is; "" clears a nomination."""
        uid = pod.uid
        wanted = self._wanted.get(uid)
        if wanted is None:
            wanted = _Wanted(pod, {}, None)
        wanted.pod = pod
        if condition is not None:
            wanted.conditions[condition.type] = condition
        if nominated_node_name is not None:
            wanted.nominated_node_name = nominated_node_name
        if uid in self._wanted:
            return
        # While a patch is in flight, what the next one has to change is unknown.
        if uid in self._in_flight:
            self._wanted[uid] = wanted
        elif self._difference(wanted) is not None:
            self._wanted[uid] = wanted
            self._enqueue(uid)

    @property
    def busy(self) -> bool:
        """Whether anything waits or is in flight."""
        return bool(self._wanted or self._in_flight or self._queue)

    def forget(self, pod: Pod) -> None:
        """The pod is gone: send nothing more."""
        self._answers.pop(pod.uid, None)
        self._wanted.pop(pod.uid, None)

    def _enqueue(self, uid: str) -> None:
        self._queue.append(uid)
        self._work.release()

    async def _send_forever(self) -> None:
        while True:
            await self._work.acquire()
            uid = self._queue.popleft()
            if uid in self._in_flight:
                continue  # its sender continues with it
            self._in_flight.add(uid)
            try:
                await self._send(uid)
            finally:
                self._in_flight.discard(uid)
                if uid in self._wanted:
                    self._enqueue(uid)

    async def _send(self, uid: str) -> None:
        """Send the state until it is answered; between tries, a newer one takes its place."""
        wanted = self._wanted.pop(uid, None)
        for failures in range(RETRIES.tries):
            patch = self._difference(wanted) if wanted else None
            if wanted is None or patch is None:
                return
            path = f"/api/v1/namespaces/{wanted.pod.namespace}/pods/{wanted.pod.name}/status"
            # Sending the same patch twice does no harm.
            outcome = await self._client.attempt(self._patch, path, orjson.dumps(patch))
            if outcome.ok:
                self._remember(outcome.body)
                return
            if meaning_of(outcome) is Meaning.SETTLED:
                # 404 and 409: the pod is gone, or another one has its name.
                log.info("A status patch was refused", extra={"pod": str(wanted.pod), "err": outcome.message})
                return
            await asyncio.sleep(RETRIES.wait(failures, outcome.retry_after))
            wanted = self._newest(wanted)
        log.warning("Gave up on a status patch", extra={"pod": str(wanted.pod) if wanted else uid})

    def _newest(self, wanted: _Wanted) -> _Wanted:
        newer = self._wanted.pop(wanted.pod.uid, None)
        if newer is None:
            return wanted
        nominated = newer.nominated_node_name
        return _Wanted(
            newer.pod,
            wanted.conditions | newer.conditions,
            wanted.nominated_node_name if nominated is None else nominated,
        )

    def _remember(self, body: bytes) -> None:
        try:
            pod = decode_pod(body)
        except msgspec.DecodeError:
            return
        self._answers[pod.uid] = pod
        self._answers.move_to_end(pod.uid)
        if len(self._answers) > MAX_ANSWERS:
            self._answers.popitem(last=False)

    def _difference(self, wanted: _Wanted) -> dict[str, Any] | None:
        pod = wanted.pod
        answer = self._answers.get(pod.uid)
        if answer is not None:
            if is_newer(answer.metadata.resource_version, pod.metadata.resource_version):
                pod = answer
            else:
                del self._answers[pod.uid]
        return status_patch(pod, tuple(wanted.conditions.values()), wanted.nominated_node_name, self._now())


def status_patch(
    pod: Pod, conditions: tuple[Condition, ...], nominated_node_name: str | None, now: float
) -> dict[str, Any] | None:
    """The strategic merge patch to this status, or None if nothing differs. `now`: seconds since 1970."""
    status: dict[str, Any] = {}
    changes = [_condition_patch(pod, condition, now) for condition in conditions]
    if any(changes):
        # Conditions are merged by type: others stay.
        status["conditions"] = [change for change in changes if change]
    if nominated_node_name is not None and nominated_node_name != pod.nominated_node_name:
        status["nominatedNodeName"] = nominated_node_name or None
    return {"metadata": {"uid": pod.uid}, "status": status} if status else None


def _condition_patch(pod: Pod, condition: Condition, now: float) -> dict[str, Any] | None:
    old = _condition(pod.status, condition.type)
    if old is not None and (old.status, old.reason, old.message) == (
        condition.status,
        condition.reason,
        condition.message,
    ):
        return None
    patch: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": pod.metadata.generation,
        "lastProbeTime": None,
    }
    if old is None or old.status != condition.status:
        patch["lastTransitionTime"] = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return patch


def _condition(status: PodStatus, type_: str) -> PodCondition | None:
    return next((condition for condition in status.conditions or () if condition.type == type_), None)
