"""Pod status patches: the condition that says why a pod is not scheduled, and its nominated node.

Only the newest state of a pod is sent, one patch per pod at a time, and only what differs from the pod's current
status: the newer one of the given pod's and, as the watch may lag, of the answer to our last patch.

    (nothing) ──set──► WANTED ──a sender takes it──► SENDING ──answered, refused, or tried too often──► (nothing)
                         ▲                              │ ──set meanwhile──► the newer state is next
                         └──────────────────────────────┘
    any ──forget──► (nothing)

Whether to send it is decided again just before each call: so once a pod is forgotten nothing more is sent for it,
neither a waiting patch nor a repetition. A call under way cannot be called back. It carries the UID, and the version
that it changes: whenever it arrives, the API server refuses it for a new pod of the same name, and once the pod is
bound, as a binding makes a new version. Otherwise a call that the network holds up while the pod is bound would mark a
bound pod as unschedulable. kube-scheduler needs no version: the goroutine that schedules waits for the answer, and with
asynchronous calls its dispatcher has one call of a pod under way at a time. After a 409 the pod is read, and what still
differs is sent with the version found:

    SENDING ──409──► READ ──waits as before──► SENDING
                      └──bound, gone, or another one of its name──► (nothing)

Rules: podutil.UpdatePodCondition, updatePod in pkg/scheduler/schedule_one.go and PatchPodStatus in pkg/scheduler/util,
at v1.36.3.
"""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from scheduler.api.decoding import Unreadable
from scheduler.api.objects import PodCondition, PodStatus
from scheduler.api.pods.pod import Pod, decode_pod
from scheduler.api.versions import is_newer
from scheduler.api.wording.text import MAX_MESSAGE, encodable, in_bytes, timestamp, to_json
from scheduler.kube.http.client import Client
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import Meaning, Outcome, RetryPolicy, meaning_of
from scheduler.process.tasks import Tasks

log = logging.getLogger(__name__)

POD_SCHEDULED: Final = "PodScheduled"
DISRUPTION_TARGET: Final = "DisruptionTarget"

SENDERS: Final = 16
"""Concurrent patches."""

RETRIES: Final = RetryPolicy(first=0.1, limit=5.0, tries=10)
"""About 25 s. By then the pod's next attempt, and so the next patch, is near."""

TURN_SECONDS: Final = 60.0
"""After this time a sender leaves further pods to a new one."""

MAX_SECONDS: Final = 900.0
"""For one sender: its turn, and the last patch with all its retries."""

MAX_ANSWERS: Final = 10_000
"""Answers remembered; the oldest are forgotten first."""

MAX_CHARACTERS: Final = 8 << 20
"""Of the texts in them: a message may have a megabyte."""


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


class _NothingToSend(Exception):
    """The pod was forgotten, or its status is as wanted."""


class PodStatuses:
    """cycle.writers.StatusWriter on the API server: sends patches in the background, until it is closed."""

    def __init__(self, client: Client, tasks: Tasks, now: Callable[[], float] = time.time) -> None:
        """`now`: seconds since 1970."""
        self._client = client
        self._jobs = tasks.jobs("pod status", MAX_SECONDS)
        self._now = now
        self._patch = Operation(
            "PATCH", "pods/status", CallLimit(SENDERS), content_type="application/strategic-merge-patch+json"
        )
        self._get = Operation("GET", "pods", CallLimit(SENDERS))
        self._wanted: dict[str, _Wanted] = {}
        """UID → what is to be sent next."""
        self._sending: dict[str, _Wanted | None] = {}
        """UID → what a sender is sending, None once the pod is forgotten."""
        self._waiting: deque[str] = deque()
        """UIDs of those wanted that no sender has, and of some that were forgotten."""
        self._answers = NewestStatus(frozenset((POD_SCHEDULED, DISRUPTION_TARGET)))
        self._closed = False

    async def close(self) -> None:
        """Stop and drop unsent patches: after a restart the pods are tried again."""
        self._closed = True
        await self._jobs.finish(0)

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        self.set(pod, Condition("False", reason, message), nominated_node_name)

    def nominate(self, pod: Pod, node_name: str) -> None:
        self.set(pod, None, node_name)

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
        # While a patch is under way, what the next one has to change is unknown.
        if uid in self._sending:
            self._wanted[uid] = wanted
        elif self._difference(wanted) is not None:
            self._wanted[uid] = wanted
            self._waiting.append(uid)
            self._add_senders()

    @property
    def busy(self) -> bool:
        """Whether anything waits or is under way."""
        return bool(self._wanted or self._sending)

    def forget(self, pod: Pod) -> None:
        """The pod is bound or gone: send nothing more."""
        uid = pod.uid
        self._answers.forget(uid)
        self._wanted.pop(uid, None)
        if uid in self._sending:
            self._sending[uid] = None

    def _add_senders(self) -> None:
        while self._waiting and len(self._jobs) < SENDERS and not self._closed:
            uid = self._waiting.popleft()
            self._jobs.start("patch pod status", self._send_from(uid), partial(self._sender_ended, uid))

    def _sender_ended(self, uid: str, error: BaseException | None) -> None:
        if error is not None and uid in self._wanted and uid not in self._sending:
            self._waiting.append(uid)  # it never began
        self._add_senders()

    async def _send_from(self, uid: str) -> None:
        """Send the state of a pod, then of those that wait."""
        loop = asyncio.get_running_loop()
        until = loop.time() + TURN_SECONDS
        while True:
            await self._send_next(uid)
            if not self._waiting or loop.time() > until:
                return
            uid = self._waiting.popleft()

    async def _send_next(self, uid: str) -> None:
        if uid in self._sending or (wanted := self._wanted.pop(uid, None)) is None:
            return  # its sender goes on with it, or it was forgotten
        self._sending[uid] = wanted
        try:
            await self._send(uid)
        finally:
            del self._sending[uid]
            if uid in self._wanted:
                self._waiting.append(uid)

    async def _send(self, uid: str) -> None:
        """Send the state until it is answered; between tries, a newer one takes its place."""
        for failures in range(RETRIES.tries):
            try:
                outcome = await self._try(uid)
            except _NothingToSend:
                return
            sent = self._sending[uid]
            if sent is None:
                return
            if outcome.ok:
                with suppress(Unreadable):
                    self._answers.remember(decode_pod(outcome.body))
                return
            refused = meaning_of(outcome) is Meaning.SETTLED
            if refused and not (outcome.status == 409 and await self._still_waits(sent.pod)):
                log.info("A status patch was refused", extra={"pod": str(sent.pod), "err": outcome.message})
                return
            await asyncio.sleep(RETRIES.wait(failures, outcome.retry_after))
        if (given_up := self._sending[uid]) is not None:
            log.warning("Gave up on a status patch", extra={"pod": str(given_up.pod)})

    async def _try(self, uid: str) -> Outcome:
        """Send the wanted state, unless the pod is forgotten before its turn. Raises _NothingToSend."""
        wanted = self._newest(uid)
        patch = wanted and self._difference(wanted)
        if wanted is None or patch is None:
            raise _NothingToSend

        def check() -> None:
            if self._sending[uid] is None:
                raise _NothingToSend

        # Sending the same patch twice does no harm.
        return await self._client.attempt(self._patch, f"{_path(wanted.pod)}/status", to_json(patch), check)

    async def _still_waits(self, pod: Pod) -> bool:
        """Read the pod after a conflict; return whether it waits still, in another version, or may do so."""
        outcome = await self._client.attempt(self._get, _path(pod))
        if not outcome.ok:
            return meaning_of(outcome) is not Meaning.SETTLED
        try:
            found = decode_pod(outcome.body)
        except Unreadable:
            return False
        if found.uid != pod.uid or found.node_name or self._sending[pod.uid] is None:
            return False
        self._answers.remember(found)
        return True

    def _newest(self, uid: str) -> _Wanted | None:
        """Merge the pending patch with the newest one; None if the pod was forgotten."""
        wanted, newer = self._sending[uid], self._wanted.pop(uid, None)
        if wanted is not None and newer is not None:
            newer.conditions = wanted.conditions | newer.conditions
            if newer.nominated_node_name is None:
                newer.nominated_node_name = wanted.nominated_node_name
        if newer is not None:
            self._sending[uid] = wanted = newer
        return wanted

    def _difference(self, wanted: _Wanted) -> dict[str, Any] | None:
        pod = self._answers.of(wanted.pod)
        patch = status_patch(pod, tuple(wanted.conditions.values()), wanted.nominated_node_name, self._now())
        if patch is not None:
            patch["metadata"]["resourceVersion"] = pod.metadata.resource_version
        return patch


class NewestStatus:
    """The API server's answers to our patches until the watch has caught up: of each pod what a patch compares."""

    def __init__(self, kinds: frozenset[str]) -> None:
        """`kinds`: the types of conditions that we set."""
        self._kinds = kinds
        self._answers: OrderedDict[str, tuple[Pod, int]] = OrderedDict()
        """UID → what is kept, and how many characters it has."""
        self._characters = 0

    def __len__(self) -> int:
        return len(self._answers)

    def remember(self, answered: Pod) -> None:
        uid = answered.uid
        self.forget(uid)
        conditions = tuple(each for each in answered.status.conditions or () if each.type in self._kinds)
        status = PodStatus(nominated_node_name=answered.status.nominated_node_name, conditions=conditions)
        size = sum(len(each.reason) + len(each.message) for each in conditions)
        kept = answered.reference
        metadata = replace(kept.metadata, generation=answered.metadata.generation)
        self._answers[uid] = replace(kept, metadata=metadata, status=status), size
        self._characters += size
        while len(self._answers) > MAX_ANSWERS or self._characters > MAX_CHARACTERS:
            self.forget(next(iter(self._answers)))

    def forget(self, uid: str) -> None:
        if (answer := self._answers.pop(uid, None)) is not None:
            self._characters -= answer[1]

    def of(self, pod: Pod) -> Pod:
        """Return the pod, or our last answer if that is newer."""
        answer = self._answers.get(pod.uid)
        if answer is None:
            return pod
        if is_newer(answer[0].metadata.resource_version, pod.metadata.resource_version):
            return answer[0]
        self.forget(pod.uid)
        return pod


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


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
    reason, message = encodable(condition.reason), in_bytes(condition.message, MAX_MESSAGE)
    if old is not None and (old.status, old.reason, old.message) == (condition.status, reason, message):
        return None
    patch: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status,
        "reason": reason,
        "message": message,
        "observedGeneration": pod.metadata.generation,
        "lastProbeTime": None,
    }
    if old is None or old.status != condition.status:
        patch["lastTransitionTime"] = timestamp(now)
    return patch


def _condition(status: PodStatus, type_: str) -> PodCondition | None:
    return next((condition for condition in status.conditions or () if condition.type == type_), None)
