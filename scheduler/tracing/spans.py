"""Makes spans of an engine's events: those of each attempt to place a pod.

    schedule pod ──────────────────────────────────────────────────────────────┐   one trace for each attempt
     ├ queue                since it came, or came back from its last attempt
     ├ scheduling cycle     PreFilter, Filter, PostFilter, PreScore, Score, Reserve, Permit; calls of extenders
     └ binding cycle        WaitOnPermit, PreBindPreFlight, PreBind, Bind, PostBind; a binder's call

    WAITING ──popped──► DECIDING ──placed──► BINDING ──┬─ bound, or given up ──► ENDED
                           └───── refused, or an error ────┘

    schedule pod group        the decision about all members of a group; the attempts of these follow, each a trace of
                              its own that is linked to this one

An attempt for a pod that is to be skipped, or that waits for a place among the extenders, has no trace.

Which attempt an event belongs to is known by the context that tasks inherit. A decision is synchronous, so the loop's
context has its attempt until the binding has a task, which takes the attempt with it.
"""

import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final, TypeAlias

from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer

from scheduler.api.wording.text import encodable, shortened
from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.cycle_events import (
    AttemptEnded,
    AttemptFailed,
    AttemptGivenUp,
    AttemptStarted,
    BindingStarted,
    PermitWaited,
)
from scheduler.extenders.extender import ExtenderCalled
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code
from scheduler.groups.group_events import GroupDecided, GroupStarted
from scheduler.runtime.event_stream import EventStream, PointEnded

MAX_TEXT: Final = 1024
"""Characters of a message. Tenants and plugins choose its text."""

Values: TypeAlias = Mapping[str, str | int]


class _Attempt:
    def __init__(self, tracer: Tracer, queued: QueuedPod, group: Span | None = None) -> None:
        """`group`: the span of the decision about the pod's group, if it has one."""
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
        links = [] if group is None else [Link(group.get_span_context())]
        self._root = tracer.start_span("schedule pod", nothing, attributes=values, links=links, start_time=began)
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
        """Make the span of the step that has just ended, in the stage that the attempt is in."""
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


_current: Final[ContextVar[_Attempt | None]] = ContextVar("loadmaster-attempt", default=None)


class Spans:
    """The spans of all attempts of an engine."""

    def __init__(self, tracer: Tracer, stream: EventStream) -> None:
        self._tracer = tracer
        self._group: Span | None = None
        """That of the last group."""
        self._members: set[str] = set()
        """UIDs of its members whose attempts are still to be published."""
        stream.subscribe(
            {
                GroupStarted: self._start_group,
                GroupDecided: self._end_group,
                AttemptStarted: self._start,
                PointEnded: self._end_point,
                ExtenderCalled: self._end_call,
                BindingStarted: self._start_binding,
                PermitWaited: self._end_wait,
                AttemptEnded: self._end,
                AttemptFailed: self._fail,
                AttemptGivenUp: self._give_up,
            }
        )

    def _start_group(self, event: GroupStarted) -> None:
        _current.set(None)  # the points of all members are too many spans for one trace
        nothing = trace.set_span_in_context(trace.INVALID_SPAN)
        values: Values = {"k8s.namespace.name": event.members[0].pod.namespace, "loadmaster.profile": event.profile}
        self._group = self._tracer.start_span("schedule pod group", nothing, attributes=values)

    def _end_group(self, event: GroupDecided) -> None:
        self._members = {queued.pod.uid for queued in event.members}
        span, decision = self._group, event.decision
        if span is None or not span.is_recording():
            return
        span.set_attributes(
            {
                "loadmaster.pod_group": encodable(event.name),
                "loadmaster.pod_group.pods": len(event.members),
                "loadmaster.pod_group.fitting": sum(each.is_placed for each in decision.members),
                "loadmaster.pod_group.placement": encodable(decision.placement),
                "loadmaster.result": "scheduled" if decision.code is Code.SUCCESS else decision.code.label.lower(),
                "loadmaster.message": _short(decision.message),
            }
        )
        if decision.code is Code.ERROR:
            span.set_status(Status(StatusCode.ERROR, _short(decision.message)))
        span.end()

    def _start(self, event: AttemptStarted) -> None:
        uid = event.queued.pod.uid
        group = self._group if uid in self._members else None
        self._members.discard(uid)
        _current.set(_Attempt(self._tracer, event.queued, group))

    def _end_point(self, event: PointEnded) -> None:
        if attempt := _current.get():
            values = {"loadmaster.status": event.code.label}
            attempt.step(event.point, event.seconds, values, failed=event.code is Code.ERROR)

    def _end_call(self, event: ExtenderCalled) -> None:
        if attempt := _current.get():
            values = {"http.request.method": "POST", "loadmaster.extender": event.extender}
            failed = event.result not in ("ok", "answer")
            if failed:
                values["error.type"] = event.result
            attempt.step(f"extender {event.verb}", event.seconds, values, SpanKind.CLIENT, failed=failed)

    def _start_binding(self, event: BindingStarted) -> None:
        if attempt := _current.get():
            placed = event.placed
            attempt.placed(placed.node_name, placed.evaluated_nodes, placed.feasible_nodes)
            _current.set(None)

    def _end_wait(self, event: PermitWaited) -> None:
        if attempt := _current.get():
            attempt.step("WaitOnPermit", event.seconds, failed=event.code is Code.ERROR)

    def _end(self, event: AttemptEnded) -> None:
        if attempt := _current.get():
            if event.error is None:
                attempt.bound()
            else:
                attempt.failed(f"{type(event.error).__name__}: {event.error}")

    def _fail(self, event: AttemptFailed) -> None:
        attempt = _current.get()
        if attempt is None or attempt.queued is not event.queued:
            return
        if isinstance(event.cause, Unplaced):
            attempt.refused(event.cause.message)
        else:
            attempt.failed(str(event.cause))

    def _give_up(self, _: AttemptGivenUp) -> None:
        if attempt := _current.get():
            attempt.given_up()


def _short(text: str) -> str:
    return encodable(shortened(text, MAX_TEXT))
