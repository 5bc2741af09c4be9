"""The spans of one attempt to place a pod.

    schedule pod ──────────────────────────────────────────────────────────────┐   one trace for each attempt
     ├ queue                since it came, or came back from its last attempt
     ├ scheduling cycle     PreFilter, Filter, PostFilter, PreScore, Score, Reserve, Permit; calls of extenders
     └ binding cycle        WaitOnPermit, PreBindPreFlight, PreBind, Bind, PostBind; a binder's call

    WAITING ──popped──► DECIDING ──placed──► BINDING ──┬─ bound, or given up ──► ENDED
                           └───── refused, or an error ────┘

An attempt for a pod that is to be skipped, or that waits for a place among the extenders, has no trace.
"""

import time
from collections.abc import Mapping
from typing import Final, TypeAlias

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from scheduler.api.text import encodable, shortened
from scheduler.framework.queued import QueuedPod

MAX_TEXT: Final = 1024
"""Characters of a message. Tenants and plugins choose its text."""

Values: TypeAlias = Mapping[str, str | int]


class Attempt:
    """One pod's, from its pop until it is bound or given back."""

    def __init__(self, tracer: Tracer, queued: QueuedPod) -> None:
        self._tracer = tracer
        self.queued = queued
        pod = queued.pod
        assert queued.attempt_began is not None, "it was popped"
        popped = time.time_ns()
        began = popped - max(0, int((queued.attempt_began - queued.timestamp) * 1e9))
        values: Values = {
            "k8s.namespace.name": pod.namespace,
            "k8s.pod.name": pod.name,
            "k8s.pod.uid": pod.uid,
            "loadmaster.profile": encodable(pod.spec.scheduler_name),
            "loadmaster.attempt": queued.attempts,
        }
        # Without a parent, whatever the context has: what a sampler decides, it decides for each attempt.
        nothing = trace.set_span_in_context(trace.INVALID_SPAN)
        self._root = tracer.start_span("schedule pod", nothing, attributes=values, start_time=began)
        self._is_placed = False
        self.is_recording = self._root.is_recording()
        self._stage = self._root
        self._waited: tuple[int, int] | None = (began, popped)
        if self.is_recording:
            self._stage = self._child("scheduling cycle", start=popped)

    def step(
        self,
        name: str,
        seconds: float,
        values: Values | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        *,
        failed: bool = False,
    ) -> None:
        """Make the span of what has just ended, in the stage that the attempt is in."""
        if not self.is_recording:
            return
        ended = time.time_ns()
        began = ended - int(seconds * 1e9)
        span = self._tracer.start_span(name, trace.set_span_in_context(self._stage), kind, values, start_time=began)
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended)

    def placed(self, node: str, evaluated: int, feasible: int) -> None:
        """A node was chosen, and the binding cycle begins."""
        self._is_placed = True
        if self.is_recording:
            values: Values = {"loadmaster.nodes.evaluated": evaluated, "loadmaster.nodes.feasible": feasible}
            self._stage.set_attributes(values)
            self._end_stage()
            self._root.set_attribute("k8s.node.name", encodable(node))
            self._stage = self._child("binding cycle")

    def bound(self) -> None:
        """The binding cycle has ended. After an end it does nothing, as all of these."""
        self._end("scheduled")

    def refused(self, message: str) -> None:
        """The pod fits nowhere for now: an answer, not an error."""
        self._end("unschedulable", message)

    def given_up(self) -> None:
        """No node was chosen and nothing failed: the pod need not be placed any more."""
        if not self._is_placed:
            self._end("given up")

    def failed(self, message: str) -> None:
        if self.is_recording:
            self._root.set_status(Status(StatusCode.ERROR, _short(message)))
        self._end("error", message)

    def _end(self, result: str, message: str = "") -> None:
        if not self.is_recording:
            return
        self._root.set_attribute("loadmaster.result", result)
        if message:
            self._root.set_attribute("loadmaster.message", _short(message))
        self._end_stage()
        self._root.end()
        self.is_recording = False

    def _end_stage(self) -> None:
        """End the cycle, if there is one. Only now it is sure that there is a trace, so the wait becomes a span too."""
        if self._waited is not None:
            began, popped = self._waited
            self._waited = None
            self._child("queue", start=began).end(popped)
        if self._stage is not self._root:
            self._stage.end()
            self._stage = self._root

    def _child(self, name: str, start: int | None = None) -> Span:
        return self._tracer.start_span(name, trace.set_span_in_context(self._root), start_time=start)


def _short(text: str) -> str:
    return encodable(shortened(text, MAX_TEXT))
