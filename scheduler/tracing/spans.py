"""Makes spans of an engine's events.

Which attempt an event belongs to is known by the context that tasks inherit. A decision is synchronous, so the loop's
context has its attempt until the binding has a task, which takes the attempt with it.
"""

from contextvars import ContextVar
from typing import Final

from opentelemetry.trace import SpanKind, Tracer

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
from scheduler.framework.status import Code
from scheduler.runtime.event_stream import EventStream, PointEnded
from scheduler.tracing.attempt import Attempt

_current: Final[ContextVar[Attempt | None]] = ContextVar("loadmaster-attempt", default=None)


class Spans:
    """The spans of all attempts of an engine."""

    def __init__(self, tracer: Tracer, stream: EventStream) -> None:
        self._tracer = tracer
        stream.subscribe(
            {
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

    def _start(self, event: AttemptStarted) -> None:
        _current.set(Attempt(self._tracer, event.queued))

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
