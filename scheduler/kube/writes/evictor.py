"""Evictions for a preemption: first a condition that explains it to the victim's owner, then the deletion.

`Eviction` decides what to do next, without I/O (see `retries.py` for what it shares with others):

    PATCH ──2xx, or the condition is there──► DELETE
      │ ──404────────────────────────────────► gone
      │ ──409──► READ ──our pod──wait──► PATCH          gone if there is none, or another by its name
      │ ──not sent, no answer, 401, 429, 5xx──wait──► PATCH
    DELETE ──2xx─────────────────────────────► deleted
      │ ──404, 409───────────────────────────► gone; deleted, if an answer was lost before
      │ ──not sent, no answer, 401, 429, 5xx──wait──► DELETE
    any ──other 4xx, or too many tries───────► failed

Nothing is in doubt at the end: both calls may be repeated, and both carry the pod's UID (a precondition of the
deletion, and a field that a patch cannot change), so a new pod of the same name is never touched.
"""

import logging
import random
import time
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import to_json
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import AnswerLost, Client, NoReply
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import WRITES, Failed, Meaning, Outcome, Read, Retries, meaning_of, pause
from scheduler.kube.writes.status import DISRUPTION_TARGET, Condition, PodStatuses, status_patch

log = logging.getLogger(__name__)

PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"

MAX_IN_FLIGHT: Final = 32
"""Concurrent calls of each kind. A preemption has few victims, and has to wait for their end anyway."""


class Patch(msgspec.Struct, frozen=True, gc=False):
    """Set the condition, after `wait` seconds."""

    wait: float = 0.0


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Delete the pod, after `wait` seconds."""

    wait: float = 0.0


class Deleted(msgspec.Struct, frozen=True, gc=False):
    """Our deletion was accepted."""


class Gone(msgspec.Struct, frozen=True, gc=False):
    """The pod was gone already."""


Call: TypeAlias = Patch | Read | Delete
Step: TypeAlias = Call | Deleted | Gone | Failed


class Eviction:
    """One eviction, from the condition to certainty. No I/O: outcomes in, steps out."""

    def __init__(self, uid: str, chance: Callable[[], float] = random.random) -> None:
        self._uid = uid
        self._retries = Retries(WRITES, chance)
        self._may_be_deleted = False
        """Whether a deletion may have been carried out without an answer that says so."""

    def after(self, call: Call, outcome: Outcome) -> Step:
        """Return the next step."""
        match call:
            case Patch():
                return self._patched(outcome)
            case Read():
                return self._read(outcome)
            case Delete():
                return self._deleted(outcome)

    def _patched(self, outcome: Outcome) -> Step:
        if outcome.ok:
            return Delete()
        if outcome.status == 404:
            return Gone()
        if outcome.status == 409:
            return self._retries.later(Read, outcome)
        return self._retries.again(Patch, outcome)

    def _read(self, outcome: Outcome) -> Step:
        if outcome.status == 404:
            return Gone()
        if outcome.ok:
            uid = _uid_in(outcome.body)
            if uid is not None:
                return Patch() if uid == self._uid else Gone()
            outcome = AnswerLost("the answer cannot be read")
        return self._retries.again(Read, outcome)

    def _deleted(self, outcome: Outcome) -> Step:
        if outcome.ok:
            return Deleted()
        if outcome.status in (404, 409):
            return Deleted() if self._may_be_deleted else Gone()
        if meaning_of(outcome) is Meaning.DOUBT:
            self._may_be_deleted = True
        return self._retries.again(Delete, outcome)


class ApiEvictor:
    """framework.handle.Evictor on the API server."""

    def __init__(self, client: Client, statuses: PodStatuses, now: Callable[[], float] = time.time) -> None:
        """`now`: seconds since 1970."""
        self._client = client
        self._statuses = statuses
        self._now = now
        # Limits of their own: a preemptor waits for these calls.
        patch = "application/strategic-merge-patch+json"
        self._patch = Operation("PATCH", "pods/status", CallLimit(MAX_IN_FLIGHT), content_type=patch)
        self._get = Operation("GET", "pods", CallLimit(MAX_IN_FLIGHT))
        self._delete = Operation("DELETE", "pods", CallLimit(MAX_IN_FLIGHT))

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """Set the condition and delete the pod; False if it was gone already. Raises ClusterError if it stays."""
        path = f"/api/v1/namespaces/{victim.namespace}/pods/{victim.name}"
        condition = Condition("True", PREEMPTION_BY_SCHEDULER, message, DISRUPTION_TARGET)
        eviction = Eviction(victim.uid)
        # Nothing to patch if the condition is there already.
        step: Step = Delete() if self._difference(victim, condition) is None else Patch()
        while isinstance(step, Patch | Read | Delete):
            await pause(step.wait)
            step = eviction.after(step, await self._call(step, path, victim, condition))
        if isinstance(step, Failed):
            raise ClusterError(f"evicting pod {victim}: {step.because}")
        return isinstance(step, Deleted)

    def clear_nomination(self, pod: Pod) -> None:
        self._statuses.nominate(pod, "")

    async def _call(self, step: Call, path: str, victim: Pod, condition: Condition) -> Outcome:
        match step:
            case Patch():
                body = to_json(self._difference(victim, condition))
                outcome = await self._client.attempt(self._patch, f"{path}/status", body)
            case Read():
                outcome = await self._client.attempt(self._get, path)
            case Delete():
                outcome = await self._client.attempt(self._delete, path, delete_options(victim.uid))
        if isinstance(outcome, NoReply):
            log.warning("Retrying an eviction", extra={"pod": str(victim), "err": outcome.message})
        return outcome

    def _difference(self, victim: Pod, condition: Condition) -> dict[str, object] | None:
        return status_patch(victim, (condition,), None, self._now())


def delete_options(uid: str) -> bytes:
    """The body of a deletion: only the object with this UID, with its own grace period."""
    return to_json({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}})


class _VictimMetadata(msgspec.Struct, gc=False):
    uid: str = ""


class _Named(msgspec.Struct, gc=False):
    metadata: _VictimMetadata


_decoder: Decoder[_Named] = Decoder(_Named)


def _uid_in(body: bytes) -> str | None:
    try:
        return _decoder.decode(body).metadata.uid
    except Unreadable:
        return None
