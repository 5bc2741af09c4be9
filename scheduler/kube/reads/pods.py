"""Reads single pods as they are now: how they ended, which the watch does not show, and whole ones for extenders.

We keep only the fields of a pod that scheduling reads, and extenders may read any. So whole pods are read when they are
needed, and take memory only then. Nodes are kept (`Node.raw_json`): there are fewer, and all are needed each time.
"""

from collections.abc import AsyncIterator
from typing import Final, TypeVar

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.folding import unfolded
from scheduler.cycle.writers import Ending
from scheduler.extenders.chain import FoundPod
from scheduler.framework.errors import ClusterError
from scheduler.framework.nodes.resources import PODS
from scheduler.kube.http.client import Client, NoReply
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import RetryPolicy, repeated
from scheduler.kube.informers.listing import Lister

T = TypeVar("T")

FOR_ENDINGS: Final = RetryPolicy(first=1.0, limit=10.0, tries=5)
FOR_EXTENDERS: Final = RetryPolicy(first=0.1, limit=2.0, tries=5)
"""A pod waits for this; then it backs off."""

MAX_MESSAGE: Final = 500
"""Characters of a kubelet's message that are passed on."""

MAX_IN_FLIGHT: Final = 32
"""Whole pods that are read at once."""


class _PodReads:
    """Reads pods by name, with retries. The caller has to compare the UID."""

    def __init__(self, client: Client, policy: RetryPolicy, in_flight: int) -> None:
        """`in_flight`: how many are read at once."""
        self._client = client
        self._policy = policy
        self._get = Operation("GET", "pods", CallLimit(in_flight))

    async def _read(self, pod: Pod, decoder: Decoder[T]) -> T | None:
        """Return what the decoder makes of the pod of that name; None if there is none. Raises ClusterError."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        reply = await repeated(lambda: self._client.attempt(self._get, path), self._policy)
        if isinstance(reply, NoReply):
            raise reply
        if reply.status == 404:
            return None
        return reply.read(decoder, f"reading {pod}")


class ApiPodReader(_PodReads):
    """cycle.writers.PodReader on the API server."""

    def __init__(self, client: Client, policy: RetryPolicy = FOR_ENDINGS) -> None:
        super().__init__(client, policy, in_flight=1)
        self._lister = Lister(client)

    async def ending(self, pod: Pod) -> Ending | None:
        """Return phase, reason and message of a pod's status; None if it is gone. Raises ClusterError."""
        found = await self._read(pod, _ended)
        if found is None or found.metadata.uid != pod.uid:
            return None
        return Ending(found.status.phase, found.status.reason, found.status.message[:MAX_MESSAGE])

    async def succeeded(self) -> AsyncIterator[Pod]:
        """Yield the pods that have succeeded, except those that cannot be read. Raises ClusterError."""
        async for page in self._lister.pages(PODS, "&fieldSelector=status.phase%3DSucceeded"):
            for raw in page.items:
                try:
                    yield _pods.decode(raw)
                except Unreadable:
                    continue


class RawPods(_PodReads):
    """scheduler.extenders.chain.PodSource on the API server."""

    def __init__(self, client: Client, policy: RetryPolicy = FOR_EXTENDERS) -> None:
        super().__init__(client, policy, MAX_IN_FLIGHT)

    async def read(self, pod: Pod) -> FoundPod | None:
        """See PodSource. Raises ClusterError."""
        raw = await self._read(pod, _raw)
        if raw is None or raw.metadata.get("uid") != _json(pod.uid):
            return None
        try:
            node_name = _node_name.decode(raw.spec.get("nodeName", _json(None))) or ""
        except Unreadable as error:
            raise ClusterError(f"reading {pod}: {error}") from error
        raw.metadata.pop("managedFields", None)
        if pod.node_name and not node_name:
            raw.spec["nodeName"] = _json(pod.node_name)
        return FoundPod(unfolded(msgspec.json.encode(raw)), node_name)


class _Metadata(msgspec.Struct, gc=False):
    uid: str = ""


class _Status(msgspec.Struct, gc=False):
    phase: str = ""
    reason: str = ""
    message: str = ""


class _EndedPod(msgspec.Struct, gc=False):
    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


class _RawPod(msgspec.Struct, gc=False):
    metadata: dict[str, msgspec.Raw]
    spec: dict[str, msgspec.Raw]
    status: msgspec.Raw = msgspec.Raw(b"{}")


_ended: Final[Decoder[_EndedPod]] = Decoder(_EndedPod)
_pods: Final[Decoder[Pod]] = Decoder(Pod)
_raw: Final[Decoder[_RawPod]] = Decoder(_RawPod)
_node_name: Final[Decoder[str | None]] = Decoder(str | None)


def _json(value: str | None) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
