"""How long a plugin takes, call by call: by the engine's events, and by methods of the plugin that they leave out."""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator
from functools import partial, wraps
from types import coroutine
from typing import Any, Final, TypeVar

from scheduler.api.pods.pod import Pod
from scheduler.cycle.cycle_events import AttemptFailed, AttemptStarted, BindingStarted
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.plugin import Plugin, PreEnqueuePlugin, QueueSortPlugin
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Status
from scheduler.runtime.event_stream import EventStream, PluginCalled

T = TypeVar("T")

PRE_ENQUEUE, QUEUE_SORT = "PreEnqueue", "QueueSort"
AWAITED: Final = {"PreBind": "pre_bind", "Bind": "bind", "PostBind": "post_bind"}


class Timings:
    """Seconds by UID of the pod."""

    def __init__(self, plugin: str, stream: EventStream) -> None:
        """`plugin`: the one that is timed."""
        self._plugin = plugin
        self.decisions: dict[str, float] = {}
        """Of the whole decision, up to the beginning of the binding; nothing else is done meanwhile."""

        self.points: defaultdict[str, defaultdict[str, float]] = defaultdict(partial(defaultdict, float))
        """Of the plugin's calls, by extension point."""

        self._deciding, self._began = "", 0.0
        stream.subscribe(
            {
                AttemptStarted: self._start,
                BindingStarted: self._end,
                AttemptFailed: self._end,
                PluginCalled: self._note,
            }
        )

    def took(self, pod: Pod, point: str, seconds: float) -> None:
        self.points[pod.uid][point] += seconds

    def _start(self, event: AttemptStarted) -> None:
        self._deciding, self._began = event.queued.pod.uid, time.perf_counter()

    def _end(self, _: BindingStarted | AttemptFailed) -> None:
        if self._deciding:
            self.decisions[self._deciding] = time.perf_counter() - self._began
            self._deciding = ""

    def _note(self, event: PluginCalled) -> None:
        if event.plugin == self._plugin:
            self.points[event.uid][event.point] += event.seconds


def timed(plugin: type[Plugin], timings: Timings) -> type[Plugin]:
    """Return a plugin whose extension points at the queue, and those that are awaited, are timed, too."""
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
    for point, name in AWAITED.items():
        if (method := getattr(plugin, name, None)) is not None:
            members[name] = _timed_steps(method, point, timings)
    return type(plugin.__name__, (plugin,), members)


def _timed_steps(method: Callable[..., Awaitable[T]], point: str, timings: Timings) -> Callable[..., Awaitable[T]]:
    @wraps(method)
    def called(self: Plugin, state: CycleState, pod: Pod, node_name: str) -> Awaitable[T]:
        took = partial(timings.took, pod, point)
        began = time.perf_counter()
        answer = method(self, state, pod, node_name)
        took(time.perf_counter() - began)
        return _stepwise(answer, took) if isinstance(answer, Awaitable) else answer

    return called


@coroutine
def _stepwise(work: Awaitable[T], took: Callable[[float], None]) -> Generator[Any, Any, T]:
    """Do what an awaitable does, and note how long its own steps take: what it waits for is not its doing."""
    steps = work.__await__()
    step: Callable[[], Any] = partial(next, steps)
    while True:
        began = time.perf_counter()
        try:
            waits_for = step()
        except StopIteration as done:
            answer: T = done.value
            return answer
        finally:
            took(time.perf_counter() - began)
        try:
            yield waits_for
            step = partial(next, steps)
        except BaseException as error:  # noqa: BLE001  a cancellation, which the work is to have
            step = partial(steps.throw, error)
