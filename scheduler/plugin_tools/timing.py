"""How long a plugin takes, call by call: the engine's own calls, with a look at the clock before and after."""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator
from functools import partial, wraps
from typing import Any, TypeVar, TypeVarTuple

from scheduler.api.pod import Pod
from scheduler.cycle.engine import Parts
from scheduler.cycle.loop import SchedulingLoop
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.plugin import Plugin, PreEnqueuePlugin, QueueSortPlugin
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Status
from scheduler.runtime.framework import Framework
from scheduler.runtime.plugin_calls import PluginCalls

T = TypeVar("T")
Further = TypeVarTuple("Further")

PRE_ENQUEUE, QUEUE_SORT = "PreEnqueue", "QueueSort"


class Timings:
    """Seconds by UID of the pod."""

    def __init__(self, plugin: str) -> None:
        """`plugin`: the one that is timed."""
        self.plugin = plugin
        self.decisions: dict[str, float] = {}
        """Of the whole decision, up to the beginning of the binding; nothing else is done meanwhile."""

        self.points: defaultdict[str, defaultdict[str, float]] = defaultdict(partial(defaultdict, float))
        """Of the plugin's calls, by extension point."""

    def took(self, pod: Pod, point: str, seconds: float) -> None:
        """Note a call."""
        self.points[pod.uid][point] += seconds

    @property
    def parts(self) -> Parts:
        """The parts of an engine that note their times in this object."""
        return Parts(framework=partial(_TimedFramework, self), loop=partial(_TimedLoop, self))


def timed(plugin: type[Plugin], timings: Timings) -> type[Plugin]:
    """Return a plugin whose extension points at the queue are timed, too: the queue calls them directly."""
    members: dict[str, Any] = {"__module__": plugin.__module__, "__doc__": plugin.__doc__}
    if issubclass(plugin, PreEnqueuePlugin):
        pre_enqueue = plugin.pre_enqueue

        @wraps(pre_enqueue)
        def timed_pre_enqueue(self: PreEnqueuePlugin, pod: Pod) -> Status | None:
            began = time.perf_counter()
            try:
                return pre_enqueue(self, pod)
            finally:
                timings.took(pod, PRE_ENQUEUE, time.perf_counter() - began)

        members["pre_enqueue"] = timed_pre_enqueue
    if issubclass(plugin, QueueSortPlugin):
        less, sort_key = plugin.less, plugin.sort_key

        @wraps(less)
        def timed_less(self: QueueSortPlugin, a: QueuedPod, b: QueuedPod) -> bool:
            began = time.perf_counter()
            try:
                return less(self, a, b)
            finally:
                timings.took(a.pod, QUEUE_SORT, time.perf_counter() - began)

        @wraps(sort_key)
        def timed_sort_key(self: QueueSortPlugin, queued: QueuedPod) -> Any:
            began = time.perf_counter()
            try:
                return sort_key(self, queued)
            finally:
                timings.took(queued.pod, QUEUE_SORT, time.perf_counter() - began)

        members |= {"less": timed_less, "sort_key": timed_sort_key}
    return type(plugin.__name__, (plugin,), members)


class _TimedLoop(SchedulingLoop):
    def __init__(self, timings: Timings, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._timings = timings

    def schedule_one(self, queued: QueuedPod) -> None:
        began = time.perf_counter()
        super().schedule_one(queued)
        self._timings.decisions[queued.pod.uid] = time.perf_counter() - began


class _TimedCalls(PluginCalls):
    timings: Timings

    def run(
        self,
        point: str,
        plugin: str,
        call: Callable[[CycleState, Pod, *Further], T],
        state: CycleState,
        pod: Pod,
        *further: *Further,
    ) -> T:
        if plugin != self.timings.plugin:
            return super().run(point, plugin, call, state, pod, *further)
        began = time.perf_counter()
        try:
            return super().run(point, plugin, call, state, pod, *further)
        finally:
            self.timings.took(pod, point, time.perf_counter() - began)

    async def run_async(
        self,
        point: str,
        plugin: str,
        call: Callable[[CycleState, Pod, *Further], Awaitable[T]],
        state: CycleState,
        pod: Pod,
        *further: *Further,
    ) -> T:
        if plugin == self.timings.plugin:
            call = _stepwise(call, partial(self.timings.took, pod, point))
        return await super().run_async(point, plugin, call, state, pod, *further)


class _TimedFramework(Framework):
    calls_type = _TimedCalls

    def __init__(self, timings: Timings, *arguments: Any) -> None:
        super().__init__(*arguments)
        assert isinstance(self._calls, _TimedCalls)
        self._calls.timings = timings


def _stepwise(
    call: Callable[[*Further], Awaitable[T]], took: Callable[[float], None]
) -> Callable[[*Further], Awaitable[T]]:
    @wraps(call)
    def called(*arguments: *Further) -> Awaitable[T]:
        began = time.perf_counter()
        answer = call(*arguments)
        took(time.perf_counter() - began)
        return _Stepwise(answer, took) if isinstance(answer, Awaitable) else answer

    return called


class _Stepwise(Awaitable[T]):
    """Does what another awaitable does, and notes how long its own steps take: what it waits for is not its doing."""

    def __init__(self, work: Awaitable[T], took: Callable[[float], None]) -> None:
        self._work, self._took = work, took

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._work.__await__()
        step: Callable[[], Any] = partial(next, steps)
        while True:
            began = time.perf_counter()
            try:
                waits_for = step()
            except StopIteration as done:
                answer: T = done.value
                return answer
            finally:
                self._took(time.perf_counter() - began)
            try:
                yield waits_for
                step = partial(next, steps)
            except BaseException as error:  # noqa: BLE001  a cancellation, which the work is to have
                step = partial(steps.throw, error)
