"""Reads how a pod ended, which the watch does not show."""

from typing import Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.pod import Pod
from scheduler.cycle.writers import Ending
from scheduler.framework.errors import ClusterError
from scheduler.kube.client import BadStatus, CallLimit, Client, NoReply, Operation
from scheduler.kube.retries import Failed, Read, Retries, RetryPolicy, pause

RETRIES: Final = RetryPolicy(first=1.0, limit=10.0, tries=5)
MAX_MESSAGE: Final = 500
"""Characters of a kubelet's message that are passed on."""


class ApiPodReader:
    """cycle.writers.PodReader on the API server."""

    def __init__(self, client: Client, policy: RetryPolicy = RETRIES) -> None:
        self._client = client
        self._policy = policy
        self._get = Operation("GET", "pods", CallLimit(1))

    async def ending(self, pod: Pod) -> Ending | None:
        """Return phase, reason and message of a pod's status; None if it is gone. Raises ClusterError."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        retries, step = Retries(self._policy), Read()
        while True:
            await pause(step.wait)
            reply = await self._client.attempt(self._get, path)
            if reply.ok or isinstance(again := retries.again(Read, reply), Failed):
                break
            step = again
        if isinstance(reply, NoReply):
            raise reply
        if reply.status == 404:
            return None
        if not reply.ok:
            raise BadStatus(f"reading {pod}", reply)
        try:
            found = _decoder.decode(reply.body)
        except Unreadable as error:
            raise ClusterError(f"reading {pod}: {error}") from error
        if found.metadata.uid != pod.uid:
            return None
        return Ending(found.status.phase, found.status.reason, found.status.message[:MAX_MESSAGE])


class _Metadata(msgspec.Struct, gc=False):
    uid: str = ""


class _Status(msgspec.Struct, gc=False):
    phase: str = ""
    reason: str = ""
    message: str = ""


class _Pod(msgspec.Struct, gc=False):
    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


_decoder: Decoder[_Pod] = Decoder(_Pod)
