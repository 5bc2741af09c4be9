"""The parts of an engine that make spans: what they do is what their base classes do, with a look before and after.

They take the place of these only when traces are on (`Parts` in cycle/engine.py), so that nothing is paid otherwise.
"""

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from scheduler.api.pod import Pod
from scheduler.config.extenders import Extender as Settings
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.engine import Parts
from scheduler.cycle.failure import FailureHandler
from scheduler.cycle.loop import SchedulingLoop, _Attempt
from scheduler.cycle.with_extenders.attempts import ExtendedAttempts, _Asking
from scheduler.extenders.extender import CallFailed
from scheduler.extenders.roster import Connect, Connection
from scheduler.extenders.wire import Body
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import SchedulerError
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code
from scheduler.framework.status import Status as PluginStatus
from scheduler.runtime.framework import Framework
from scheduler.runtime.plugin_calls import PluginCalls, PointTimer
from scheduler.tracing.attempt import Attempt, Current, current


def parts(tracer: Tracer) -> Parts:
    """What an engine is made of when traces are on."""
    return Parts(
        framework=TracedFramework,
        loop=partial(TracedLoop, tracer),
        failure=TracedFailureHandler,
        extended=partial(TracedExtendedAttempts, tracer),
    )


class TracedLoop(SchedulingLoop):
    """An attempt begins when a pod is popped, and ends with its binding."""

    def __init__(self, tracer: Tracer, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._tracer = tracer

    def schedule_one(self, queued: QueuedPod) -> None:
        spans = Attempt(self._tracer, queued, self._now())
        try:
            with Current(spans):
                super().schedule_one(queued)
        except BaseException as error:
            spans.failed(f"{type(error).__name__}: {error}")
            raise

    def place(self, framework: Framework, state: CycleState, queued: QueuedPod, placed: Placed, started: float) -> None:
        super().place(framework, state, queued, placed, started)
        attempt = current()
        if attempt is not None and self.is_binding(queued.pod.uid):
            attempt.placed(placed.node_name, placed.evaluated_nodes, placed.feasible_nodes)

    async def _binding_cycle(self, attempt: _Attempt) -> None:
        spans = current()
        if spans is None:
            await super()._binding_cycle(attempt)
            return
        spans.binding()
        try:
            await super()._binding_cycle(attempt)
        except BaseException as error:
            spans.failed(f"{type(error).__name__}: {error}")
            raise
        if attempt.is_bound:
            spans.bound()

    async def _wait_on_permit(self, framework: Framework, pod: Pod) -> PluginStatus | None:
        spans = current()
        if spans is None:
            return await super()._wait_on_permit(framework, pod)
        with spans.step("WaitOnPermit"):
            return await super()._wait_on_permit(framework, pod)


class TracedExtendedAttempts(ExtendedAttempts):
    """Attempts that wait for extenders are tasks of their own, some of them started by the end of another one."""

    def __init__(self, tracer: Tracer, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._tracer = tracer

    async def _run(self, asking: _Asking) -> None:
        spans = current()
        if spans is None or spans.queued is not asking.queued:
            spans = Attempt(self._tracer, asking.queued, self._now())
        try:
            with Current(spans):
                await super()._run(asking)
        finally:
            spans.given_up()


class TracedFailureHandler(FailureHandler):
    """Where attempts end that do not bind their pod."""

    def handle(self, profile: str, queued: QueuedPod, cause: Unplaced | SchedulerError, started: float) -> None:
        spans = current()
        if spans is not None and spans.queued is queued:
            if isinstance(cause, Unplaced):
                spans.refused(cause.message)
            else:
                spans.failed(str(cause))
        super().handle(profile, queued, cause, started)


class TracedFramework(Framework):
    """Extension points are spans."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._calls.at = partial(_begin_point, self._calls)


class _TracedPoint(PointTimer, eq=False):
    """Times an extension point, and is its span."""

    span: Span | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self.span is None:
            return
        if error is not None or self.code is Code.ERROR:
            self.span.set_status(Status(StatusCode.ERROR))
        self.span.set_attribute("loadmaster.status", (self.code if error is None else Code.ERROR).label)
        self.span.end()


def _begin_point(calls: PluginCalls, point: str) -> PointTimer:
    attempt = current()
    span = attempt.begin_step(point) if attempt is not None else None
    return PointTimer(calls, point) if span is None else _TracedPoint(calls, point, span=span)


class _TracedConnection:
    """HTTP to an extender, each question a span."""

    def __init__(self, settings: Settings, connection: Connection) -> None:
        self._name = settings.name
        self._connection = connection

    async def post(self, verb: str, body: Body, check: Callable[[], None] | None = None) -> bytes:
        attempt = current()
        if attempt is None or not attempt.is_recording:
            return await self._connection.post(verb, body, check)
        with attempt.step(f"extender {verb}", SpanKind.CLIENT) as span:
            span.set_attributes({"http.request.method": "POST", "loadmaster.extender": self._name})
            try:
                return await self._connection.post(verb, body, check)
            except CallFailed as error:
                span.set_attribute("error.type", error.result)
                raise

    def refresh(self) -> None:
        self._connection.refresh()

    async def close(self) -> None:
        await self._connection.close()


def connecting(connect: Connect) -> Connect:
    """Connections whose questions are spans."""

    def connected(settings: Settings, path: str) -> Connection:
        return _TracedConnection(settings, connect(settings, path))

    return connected
