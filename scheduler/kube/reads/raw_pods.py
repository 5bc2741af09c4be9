"""Reads whole pods for extenders: we keep only the fields that scheduling reads, and extenders may read any.

Pods are read when they are needed, so that they take memory only then. Nodes are kept (`Node.raw_json`): there are
fewer, and all are needed each time.
"""

from typing import Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.folding import unfolded
from scheduler.extenders.chain import FoundPod
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import Client
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.reads.pod_reads import PodReads

RETRIES: Final = RetryPolicy(first=0.1, limit=2.0, tries=5)
"""A pod waits for this; then it backs off."""

MAX_IN_FLIGHT: Final = 32


class RawPods:
    """scheduler.extenders.chain.PodSource on the API server."""

    def __init__(self, client: Client, policy: RetryPolicy = RETRIES) -> None:
        self._reads = PodReads(client, policy, MAX_IN_FLIGHT)

    async def read(self, pod: Pod) -> FoundPod | None:
        """See PodSource. Raises ClusterError."""
        raw = await self._reads.read(pod, _decoder)
        if raw is None:
            return None
        try:
            return _found(raw, pod)
        except Unreadable as error:
            raise ClusterError(f"reading {pod}: {error}") from error


class _RawPod(msgspec.Struct, gc=False):
    metadata: dict[str, msgspec.Raw]
    spec: dict[str, msgspec.Raw]
    status: msgspec.Raw = msgspec.Raw(b"{}")


_decoder: Decoder[_RawPod] = Decoder(_RawPod)


def _found(raw: _RawPod, pod: Pod) -> FoundPod | None:
    if raw.metadata.get("uid") != msgspec.Raw(msgspec.json.encode(pod.uid)):
        return None
    raw.metadata.pop("managedFields", None)
    node_name = _text(raw.spec.get("nodeName"))
    if pod.node_name and not node_name:
        raw.spec["nodeName"] = msgspec.Raw(msgspec.json.encode(pod.node_name))
    return FoundPod(unfolded(msgspec.json.encode(raw)), node_name)


def _text(value: msgspec.Raw | None) -> str:
    return "" if value is None else _text_decoder.decode(value) or ""


_text_decoder: Decoder[str | None] = Decoder(str | None)
