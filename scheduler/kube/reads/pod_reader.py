"""Reads how pods ended, which the watch does not show."""

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.pods.pod import Pod
from scheduler.cycle.writers import Ending
from scheduler.framework.nodes.resources import ApiResource
from scheduler.kube.http.client import Client
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.informers.listing import Lister
from scheduler.kube.reads.pod_reads import PodReads

RETRIES: Final = RetryPolicy(first=1.0, limit=10.0, tries=5)
PODS: Final = ApiResource("", "v1", "pods")
MAX_MESSAGE: Final = 500
"""Characters of a kubelet's message that are passed on."""


class ApiPodReader:
    """cycle.writers.PodReader on the API server."""

    def __init__(self, client: Client, policy: RetryPolicy = RETRIES) -> None:
        self._reads = PodReads(client, policy, in_flight=1)
        self._lister = Lister(client)

    async def ending(self, pod: Pod) -> Ending | None:
        """Return phase, reason and message of a pod's status; None if it is gone. Raises ClusterError."""
        found = await self._reads.read(pod, _decoder)
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
_pods: Decoder[Pod] = Decoder(Pod)
