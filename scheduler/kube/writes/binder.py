"""Bindings: sent to the API server until it is certain whether the pod is bound.

An answer can be lost after the binding took effect, so a failure is not yet a refusal: a read settles it. `Binding`
decides what to do next, without I/O (see `retries.py` for what it shares with others):

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
import random
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.pods.pod import Pod
from scheduler.framework.errors import BindRejected
from scheduler.kube.http.client import Client, NotSent
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import WRITES, Failed, Meaning, Outcome, Read, Retries, RetryPolicy, meaning_of, pause
from scheduler.process.metrics import Metrics

log = logging.getLogger(__name__)

MAX_IN_FLIGHT: Final = 100
"""Concurrent bindings: 1,000 a second with an API server that takes 100 ms."""

READS: Final = RetryPolicy(first=0.1, limit=2.0)
"""Without end: until a read is answered, the pod may be bound."""


class Post(msgspec.Struct, frozen=True, gc=False):
    """Send the binding, after `wait` seconds."""

    wait: float = 0.0


class Bound(msgspec.Struct, frozen=True, gc=False):
    """The pod is bound to our node."""


Step: TypeAlias = Post | Read | Bound | Failed


class Binding:
    """One binding, from the first POST to certainty. No I/O: outcomes in, steps out."""

    def __init__(self, uid: str, node_name: str, chance: Callable[[], float] = random.random) -> None:
        self._uid = uid
        self._node_name = node_name
        self._posts = Retries(WRITES, chance)
        self._reads = Retries(READS, chance)
        self._in_doubt = False
        """Whether a POST may have been carried out, now or later."""
        self._refused = False
        """Whether another POST would be refused as well."""
        self._failed_post: Outcome = NotSent("")
        self.found: str | None = None
        """The result of the last conclusive read, for the metrics."""

    @property
    def failure(self) -> str:
        """Why the last POST failed."""
        return self._failed_post.message

    def posted(self, outcome: Outcome) -> Step:
        """Return the next step after a POST."""
        if outcome.ok:
            return Bound()
        self._failed_post = outcome
        match meaning_of(outcome):
            case Meaning.AGAIN:
                step = self._posts.later(Post, outcome)
                return Read() if self._in_doubt and isinstance(step, Failed) else step
            case Meaning.DOUBT:
                self._in_doubt = True
                return Read()
            case Meaning.SETTLED:
                if outcome.status == 409:
                    return Read()
                self._refused = True
                return Read() if self._in_doubt else Failed(self.failure)

    def read(self, outcome: Outcome) -> Step:
        """Return the next step after a GET of the pod."""
        if outcome.status == 404:
            self.found = "gone"
            return Failed("the pod is gone")
        if not outcome.ok:
            return self._reads.later(Read, outcome)
        try:
            pod = _pod_decoder.decode(outcome.body)
        except Unreadable:
            return self._reads.later(Read, outcome)
        return self._conclude(pod)

    def _conclude(self, pod: "_Pod") -> Step:
        node_name = pod.spec.node_name
        if pod.metadata.uid != self._uid:
            self.found = "recreated"
            return Failed("the pod is gone, and another one has its name")
        if node_name == self._node_name:
            self.found = "bound"
            return Bound()
        if node_name:
            self.found = "elsewhere"
            return Failed(f"the pod is bound to node {node_name!r}")
        if pod.metadata.deletion_timestamp is not None:
            self.found = "deleting"
            return Failed("the pod is being deleted")
        self.found = "unbound"
        if self._refused or pod.spec.scheduling_gates:
            return Failed(self.failure)
        return self._posts.later(Post, self._failed_post)


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
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        body = binding_body(pod, node_name)
        binding = Binding(pod.uid, node_name)
        step: Step = Post()
        while True:
            match step:
                case Post(wait=wait):
                    await pause(wait)
                    step = binding.posted(await self._client.attempt(self._post, f"{path}/binding", body, check))
                case Read(wait=wait):
                    await pause(wait)
                    if not wait:
                        log.warning("Reading what became of a binding", extra=_fields(pod, node_name, binding))
                    step = binding.read(await self._client.attempt(self._get, path))
                    if not isinstance(step, Read):
                        self._metrics.bind_outcomes_settled.labels(binding.found).inc()
                case Failed(because=because):
                    raise BindRejected(because)
                case Bound():
                    return binding.failure


def binding_body(pod: Pod, node_name: str) -> bytes:
    """The v1.Binding. The API server guarantees that names and UIDs need no escaping in JSON."""
    return (_BINDING % (pod.name, pod.namespace, pod.uid, node_name)).encode()


_BINDING = (
    '{"apiVersion":"v1","kind":"Binding","metadata":{"name":"%s","namespace":"%s","uid":"%s"},'
    '"target":{"apiVersion":"v1","kind":"Node","name":"%s"}}'
)


def _fields(pod: Pod, node_name: str, binding: Binding) -> dict[str, str]:
    return {"pod": str(pod), "node": node_name, "err": binding.failure}


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
