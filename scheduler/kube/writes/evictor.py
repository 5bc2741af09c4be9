"""Evictions for a preemption: first a condition that explains it to the victim's owner, then the deletion.

See `retries.py` for what it shares with other calls:

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
import time
from collections.abc import Callable
from typing import Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import to_json
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import AnswerLost, Client, NoReply
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import WRITES, GivenUp, Meaning, Outcome, Retries, meaning_of
from scheduler.kube.writes.status import DISRUPTION_TARGET, Condition, PodStatuses, status_patch

log = logging.getLogger(__name__)

PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"

MAX_IN_FLIGHT: Final = 32
"""Concurrent calls of each kind. A preemption has few victims, and has to wait for their end anyway."""


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
        tries = Retries(WRITES)
        try:
            return await self._explain(path, victim, condition, tries) and await self._remove(path, victim, tries)
        except GivenUp as error:
            raise ClusterError(f"evicting pod {victim}: {error}") from None

    def clear_nomination(self, pod: Pod) -> None:
        self._statuses.nominate(pod, "")

    async def _explain(self, path: str, victim: Pod, condition: Condition, tries: Retries) -> bool:
        """Set the condition, if it is not there already; return whether the pod still is. Raises GivenUp."""
        while (patch := status_patch(victim, (condition,), None, self._now())) is not None:
            outcome = await self._attempt(victim, self._patch, f"{path}/status", to_json(patch))
            if outcome.ok:
                break
            if outcome.status == 404:
                return False
            if outcome.status == 409:
                await tries.later(outcome)
                if not await self._is_there(path, victim, tries):
                    return False
            else:
                await tries.again(outcome)
        return True

    async def _is_there(self, path: str, victim: Pod, tries: Retries) -> bool:
        """Read whether the pod of that name is this one. Raises GivenUp."""
        while True:
            outcome = await self._attempt(victim, self._get, path)
            if outcome.status == 404:
                return False
            if outcome.ok:
                uid = _uid_in(outcome.body)
                if uid is not None:
                    return uid == victim.uid
                outcome = AnswerLost("the answer cannot be read")
            await tries.again(outcome)

    async def _remove(self, path: str, victim: Pod, tries: Retries) -> bool:
        """Delete the pod; return whether that was us. Raises GivenUp."""
        may_be_deleted = False  # by a deletion without an answer that says so
        while True:
            outcome = await self._attempt(victim, self._delete, path, delete_options(victim.uid))
            if outcome.ok:
                return True
            if outcome.status in (404, 409):
                return may_be_deleted
            may_be_deleted |= meaning_of(outcome) is Meaning.DOUBT
            await tries.again(outcome)

    async def _attempt(self, victim: Pod, operation: Operation, path: str, body: bytes | None = None) -> Outcome:
        outcome = await self._client.attempt(operation, path, body)
        if isinstance(outcome, NoReply):
            log.warning("Retrying an eviction", extra={"pod": str(victim), "err": outcome.message})
        return outcome


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
