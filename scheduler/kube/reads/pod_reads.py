"""Reads one pod as it is now, with retries, for several purposes."""

from typing import TypeVar

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.pods.pod import Pod
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import BadStatus, Client, NoReply
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import RetryPolicy, repeated

T = TypeVar("T")


class PodReads:
    """Reads pods by name. The caller has to compare the UID."""

    def __init__(self, client: Client, policy: RetryPolicy, in_flight: int) -> None:
        """`in_flight`: how many are read at once."""
        self._client = client
        self._policy = policy
        self._get = Operation("GET", "pods", CallLimit(in_flight))

    async def read(self, pod: Pod, decoder: Decoder[T]) -> T | None:
        """Return what the decoder makes of the pod of that name; None if there is none. Raises ClusterError."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        reply = await repeated(lambda: self._client.attempt(self._get, path), self._policy)
        if isinstance(reply, NoReply):
            raise reply
        if reply.status == 404:
            return None
        if not reply.ok:
            raise BadStatus(f"reading {pod}", reply)
        try:
            return decoder.decode(reply.body)
        except Unreadable as error:
            raise ClusterError(f"reading {pod}: {error}") from error
