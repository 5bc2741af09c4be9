"""One extender: its requests, and the meaning of its answers.

Rule: pkg/scheduler/extender.go at v1.36.3 (HTTPExtender).
"""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from scheduler.api.decoding import Unreadable
from scheduler.api.pods.pod import Pod
from scheduler.config.extenders import Extender as Settings
from scheduler.extenders import wire
from scheduler.framework.extenders import ExtenderError
from scheduler.framework.status import Status, unresolvable, unschedulable
from scheduler.process.metrics import Metrics
from scheduler.runtime.event_stream import EngineEvent, EventStream

R = TypeVar("R")

MAX_TEXT: Final = 64 << 10
"""Characters of all the different reasons in one answer; the pod's owner reads them."""

OUT_OF_TEXT: Final = "an extender gave more reasons than are read"

_logger = logging.getLogger(__name__)


class ExtenderCalled(EngineEvent, frozen=True):
    """A call of an extender has ended."""

    extender: str
    verb: str
    """As its URL has it."""
    result: str
    """ok, answer (which is of no use), cancelled, or why it failed."""
    seconds: float


class CallFailed(ExtenderError):
    """A call was not answered as it should have been."""

    def __init__(self, message: str, result: str, *, was_sent: bool = True) -> None:
        """`result`: its label in metrics. `was_sent`: whether the extender may have got the call."""
        super().__init__(message)
        self.result = result
        self.was_sent = was_sent


class Transport(Protocol):
    """HTTP to one extender."""

    async def post(self, verb: str, body: wire.Body, check: Callable[[], None] | None = None) -> bytes:
        """Return the body of the answer, which has the status 200. Raises CallFailed.

        `check` is called just before the request is sent; if it raises, it is not.
        """


class Filtered(NamedTuple):
    """The nodes that an extender has left of those it was asked about."""

    passed: Sequence[str]
    """In its order, each once."""
    refusals: Mapping[str, Status]
    """Node → why not, for those of which it says so."""


class Extender:
    """One webhook. Failures are ExtenderErrors, in kube-scheduler's words where it has any."""

    def __init__(self, settings: Settings, transport: Transport, metrics: Metrics, stream: EventStream) -> None:
        self.settings = settings
        self.name = settings.name
        self.is_ignorable = settings.ignorable
        self.is_binder = bool(settings.bind_verb)
        self.filters, self.prioritizes = bool(settings.filter_verb), bool(settings.prioritize_verb)
        self.preempts = bool(settings.preempt_verb)
        self.knows_nodes = settings.node_cache_capable
        self._managed = frozenset(resource.name for resource in settings.managed_resources)
        self._transport = transport
        self._stream = stream
        self._calls, self._durations = metrics.extender_calls, metrics.extender_call_duration
        self.prioritizing = 0
        """How many calls for scores are under way."""
        self._failing: set[str] = set()
        """Verbs whose last call failed."""

    def is_interested(self, pod: Pod) -> bool:
        """Return whether a container of the pod asks for a resource that the extender manages, or it wants all pods."""
        if not self._managed:
            return True
        spec = pod.spec
        for containers in (spec.containers, spec.init_containers):
            for container in containers or ():
                # The API server has set requests where there are limits only.
                if container.resources is not None and not self._managed.isdisjoint(container.resources.requests or ()):
                    return True
        return False

    async def filter(self, pod: bytes, names: Sequence[str], raw: Callable[[Sequence[str]], list[bytes]]) -> Filtered:
        """Ask which of these nodes will do; `raw` gives nodes as JSON."""
        body = self._arguments(pod, names, raw)
        result = await self._ask("filter", self.settings.filter_verb, body, wire.filter_result)
        if result.error:
            raise self._refused("filter", result.error)
        chosen = result.node_names if self.knows_nodes and result.node_names is not None else result.nodes or ()
        asked, passed = frozenset(names), dict.fromkeys(chosen)
        if not passed.keys() <= asked:
            unknown = next(name for name in chosen if name not in asked)
            raise self._refused(
                "filter",
                f"extender {json.dumps(self.name)} claims a filtered node {json.dumps(unknown)} which is not found "
                "in the input node list",
            )
        return Filtered(tuple(passed), _refusals(result))

    async def prioritize(
        self, pod: bytes, names: Sequence[str], raw: Callable[[Sequence[str]], list[bytes]]
    ) -> Sequence[wire.Score]:
        """Ask how good these nodes are; scores of any size, for any names."""
        body = self._arguments(pod, names, raw)
        self.prioritizing += 1
        try:
            return await self._ask("prioritize", self.settings.prioritize_verb, body, wire.priorities)
        finally:
            self.prioritizing -= 1

    async def preempt(self, body: wire.Body) -> dict[str, wire.MetaVictims]:
        """Ask which victims may go."""
        return await self._ask("preempt", self.settings.preempt_verb, body, wire.preemption_result)

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> None:
        """Have the pod bound. Whether it is after an error, only the API server knows."""
        body = wire.binding_arguments(pod.name, pod.namespace, pod.uid, node_name)
        error = await self._ask("bind", self.settings.bind_verb, body, wire.binding_error, check)
        if error:
            raise self._refused("bind", error)

    def _arguments(self, pod: bytes, names: Sequence[str], raw: Callable[[Sequence[str]], list[bytes]]) -> wire.Body:
        return wire.arguments(pod, None, names) if self.knows_nodes else wire.arguments(pod, raw(names), None)

    async def _ask(
        self,
        kind: str,
        verb: str,
        body: wire.Body,
        read: Callable[[bytes], R],
        check: Callable[[], None] | None = None,
    ) -> R:
        started = time.perf_counter()
        result = "cancelled"
        try:
            answer = read(await self._transport.post(verb, body, check))
            result = "ok"
        except Unreadable as error:
            result = "answer"
            raise CallFailed(str(error), result) from error
        except CallFailed as error:
            result = error.result
            raise
        finally:
            self._calls.labels(self.name, kind, result).inc()
            seconds = time.perf_counter() - started
            self._durations.labels(self.name, kind).observe(seconds)
            if ExtenderCalled in self._stream.listeners:
                self._stream.publish(ExtenderCalled(self.name, verb, result, seconds))
            self._note(kind, result)
        return answer

    def _refused(self, kind: str, error: str) -> CallFailed:
        self._calls.labels(self.name, kind, "error").inc()
        return CallFailed(error[:MAX_TEXT], "error")

    def _note(self, kind: str, result: str) -> None:
        """Log the first failure and the first success after it; each failed attempt is logged with its pod."""
        if result == "cancelled":
            return
        fields = {"extender": self.name, "verb": kind, "result": result}
        if result == "ok":
            if kind in self._failing:
                self._failing.discard(kind)
                _logger.info("An extender answers again", extra=fields)
        elif kind not in self._failing:
            self._failing.add(kind)
            _logger.warning("An extender fails", extra=fields)


def _refusals(result: wire.FilterResult) -> dict[str, Status]:
    """Node → why not. Where it is in both lists, that counts which says that preemption would not help."""
    left = MAX_TEXT
    statuses: dict[tuple[bool, str], Status] = {}
    found: dict[str, Status] = {}
    for messages, is_final in ((result.failed, False), (result.failed_for_good, True)):
        for name, message in messages.items():
            status = statuses.get((is_final, message))
            if status is None:
                left -= len(message)
                text = message if left >= 0 else OUT_OF_TEXT
                status = statuses[is_final, message] = unresolvable(text) if is_final else unschedulable(text)
            found[name] = status
    return found
