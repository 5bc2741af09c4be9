"""Bindings: sent to the API server until it is certain whether the pod is bound.

An answer can be lost after the binding took effect, so a failure is not yet a refusal: a read settles it. See
`retries.py` for what it shares with other calls:

    POST ──2xx──────────────────────────────────────────► bound
      │ ──refused (4xx), nothing in doubt───────────────► rejected
      │ ──not sent, 401, 429──wait──► POST                rejected after too many tries
      │ ──answer lost, 5xx, 409, or refused while in doubt──► READ
      ▼
    READ ──our pod on our node──────────────────────────► bound
      │ ──on another node, deleting, gone, recreated─────► rejected
      │ ──our pod without a node──wait──► POST             rejected after too many tries, or if it was refused for good
      └──no answer, or not the pod──wait──► READ           as long as it takes

A 409 is read as well: it means that the pod is bound (perhaps by the call whose answer was lost), is being deleted
or was recreated, but also that etcd failed, which `assignPod` in pkg/registry/core/pod/storage wraps into it.
Posting again is safe: the API server binds a pod once, and refuses the binding's `uid` for a new pod of the same name.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.pods.pod import Pod
from scheduler.framework.errors import BindRejected
from scheduler.kube.http.client import Client
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import WRITES, GivenUp, Meaning, Retries, RetryPolicy, meaning_of
from scheduler.process.metrics import Metrics

log = logging.getLogger(__name__)

MAX_IN_FLIGHT: Final = 100
"""Concurrent bindings: 1,000 a second with an API server that takes 100 ms."""

READS: Final = RetryPolicy(first=0.1, limit=2.0)
"""Without end: until a read is answered, the pod may be bound."""


def _always_send() -> None:
    """The check of a binding that never objects."""


class ApiBinder:
    """cycle.writers.BindingWriter on the API server."""

    def __init__(self, client: Client, metrics: Metrics, timeout: float = 10.0, max_in_flight: int = MAX_IN_FLIGHT):
        """`timeout`: seconds for one call, after which its answer counts as lost."""
        limit = CallLimit(max_in_flight)
        self._client = client
        self._metrics = metrics
        self._post = Operation("POST", "pods/binding", limit, timeout)
        # A limit of its own: bindings in doubt must not wait for new ones.
        self._get = Operation("GET", "pods", CallLimit(max_in_flight), timeout)

    def is_binding(self) -> bool:
        """Return whether bindings are on their way to the API server."""
        return self._post.limit.in_use > 0

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None] = _always_send) -> str:
        """Return once the pod is bound to the node, with what went wrong before; empty if the first try did it.

        Raises BindRejected if it never will be.

        `check` is called just before each POST; what it raises ends the binding. If an earlier POST is carried out
        after all, the watch reports it.
        """
        try:
            return await self._bind(pod, node_name, check)
        except GivenUp as error:
            raise BindRejected(str(error)) from None

    async def _bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        """Raises GivenUp, too."""
        path, body = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", binding_body(pod, node_name)
        tries, failure, in_doubt = Retries(WRITES), "", False
        while True:
            outcome = await self._client.attempt(self._post, f"{path}/binding", body, check)
            if outcome.ok:
                return failure
            failure, meaning = outcome.message, meaning_of(outcome)
            in_doubt |= meaning is Meaning.DOUBT
            is_refused = meaning is Meaning.SETTLED and outcome.status != 409
            if is_refused and not in_doubt:
                raise BindRejected(failure)
            if meaning is not Meaning.AGAIN or (in_doubt and tries.is_last):
                fields = {"pod": str(pod), "node": node_name, "err": failure}
                log.warning("Reading what became of a binding", extra=fields)
                if await self._is_bound(path, pod, node_name, failure):
                    return failure
                if is_refused:
                    raise BindRejected(failure)
            await tries.later(outcome)

    async def _is_bound(self, path: str, pod: Pod, node_name: str, failure: str) -> bool:
        """Read whether the pod is bound to the node. Raises BindRejected if it never will be."""
        found, problem = _concluded(await self._read(path), pod, node_name, failure)
        self._metrics.bind_outcomes_settled.labels(found).inc()
        if problem:
            raise BindRejected(problem)
        return found == "bound"

    async def _read(self, path: str) -> "_Pod | None":
        """Return the pod of that name, however long that takes; None if there is none."""
        tries = Retries(READS)
        while True:
            outcome = await self._client.attempt(self._get, path)
            if outcome.status == 404:
                return None
            with suppress(Unreadable):
                if outcome.ok:
                    return _pod_decoder.decode(outcome.body)
            await tries.later(outcome)


def _concluded(found: "_Pod | None", pod: Pod, node_name: str, failure: str) -> tuple[str, str]:
    """Return what was found, for the metrics, and why the pod never will be bound; empty if it is, or may be."""
    if found is None:
        return "gone", "the pod is gone"
    if found.metadata.uid != pod.uid:
        return "recreated", "the pod is gone, and another one has its name"
    if found.spec.node_name == node_name:
        return "bound", ""
    if found.spec.node_name:
        return "elsewhere", f"the pod is bound to node {found.spec.node_name!r}"
    if found.metadata.deletion_timestamp is not None:
        return "deleting", "the pod is being deleted"
    return "unbound", failure if found.spec.scheduling_gates else ""


def binding_body(pod: Pod, node_name: str) -> bytes:
    """The v1.Binding. The API server guarantees that names and UIDs need no escaping in JSON."""
    return (_BINDING % (pod.name, pod.namespace, pod.uid, node_name)).encode()


_BINDING = (
    '{"apiVersion":"v1","kind":"Binding","metadata":{"name":"%s","namespace":"%s","uid":"%s"},'
    '"target":{"apiVersion":"v1","kind":"Node","name":"%s"}}'
)


class _BoundMetadata(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    deletion_timestamp: str | None = None


class _Gate(msgspec.Struct, gc=False):
    """Only its presence matters."""


class _BoundSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    scheduling_gates: tuple[_Gate, ...] | None = None


class _Pod(msgspec.Struct, gc=False):
    metadata: _BoundMetadata
    spec: _BoundSpec


_pod_decoder: Decoder[_Pod] = Decoder(_Pod)
