"""The plugin boundary: calls a plugin, times it, and names it if it fails or takes too long.

Rule: pkg/scheduler/framework/runtime/framework.go at v1.36.3 (the run…Plugin functions). Metrics show the times of a
sample of cycles, as there. Budgets are checked in these cycles, too; in all cycles for out-of-tree plugins, and for
those that the configuration limits.
"""

import asyncio
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeVar, TypeVarTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import WrongAnswer
from scheduler.framework.plugin import PermitWait
from scheduler.framework.status import Code, Status
from scheduler.process.instruments import Counter, Histogram
from scheduler.process.metrics import Metrics
from scheduler.runtime.answers.store import FLUSH_REASONS
from scheduler.runtime.event_stream import EventStream, PluginCalled, PointEnded
from scheduler.runtime.guards.plugin_breaker import Breaker
from scheduler.runtime.guards.plugin_budgets import Budgets
from scheduler.runtime.guards.plugin_faults import as_plugin_error, place_of
from scheduler.runtime.guards.return_values import AWAITABLE, wrong_answer
from scheduler.runtime.own_task import PluginsOwn, awaited, is_cancelled_by_others, without_task

PRE_BIND: Final = "PreBind"

_NOTHING: Final = object()

T = TypeVar("T")
Further = TypeVarTuple("Further")


class Batching:
    """Metrics of stored answers, under kube-scheduler's names for its batches of equal pods.

    A hint is the stored set of feasible nodes of a pod class. It is used if it is complete; if it is not, because
    some plugins cannot sign, or pods are nominated to nodes, it is a part of the answer only.
    """

    def __init__(self, metrics: Metrics, profile: str) -> None:
        attempts, duration = metrics.batch_attempts, metrics.get_node_hint_duration
        self.no_hint = attempts.labels(profile, "no_hint")
        self.used = attempts.labels(profile, "hint_used")
        self.not_used = attempts.labels(profile, "hint_not_used")
        self.stored = metrics.store_schedule_results_duration.labels(profile)
        self._hinted, self._not_hinted = duration.labels("hint", profile), duration.labels("no_hint", profile)

    def observe(self, is_hinted: bool, seconds: float) -> None:
        """How long it took to bring a hint up to date, or to see that there is none."""
        (self._hinted if is_hinted else self._not_hinted).observe(seconds)


class PluginCalls:
    """Calls the plugins of one profile. Their exceptions become PluginErrors."""

    def __init__(
        self,
        metrics: Metrics,
        profile: str,
        budgets: Budgets,
        breaker: Breaker,
        timed: Collection[str],
        stream: EventStream,
    ) -> None:
        """`timed`: as for `use`."""
        self._metrics = metrics
        self._profile = profile
        self._budgets = budgets
        self._breaker = breaker
        self.stream = stream
        self._paused = breaker.paused
        self.use(timed)
        self.observers: dict[tuple[str, Code], Histogram] = {}
        self.at = partial(PointTimer, self)
        """`at(point)` times all plugins of one extension point together, as the body of a `with` statement."""

    def use(self, timed: Collection[str]) -> None:
        """Go by the budgets' newest limits. `timed`: the plugins whose every call is timed, not only in some cycles."""
        self._shortest = self._budgets.shortest
        self._timed = frozenset(timed)

    def run(
        self,
        point: str,
        plugin: str,
        call: Callable[[CycleState, Pod, *Further], T],
        state: CycleState,
        pod: Pod,
        *further: *Further,
    ) -> T:
        """Call a method of a plugin.

        Raises PluginError for all that it raises. Nothing is awaited within, so a cancellation is the plugin's own
        doing, and so is what usually ends a program.
        """
        if self._paused and (instead := self._breaker.in_its_place(plugin, point, pod)) is not None:
            return cast("T", instead[0])
        if state.record_plugin_metrics or plugin in self._timed:
            return self._run_timed(point, plugin, call, state, pod, *further)
        try:
            return call(state, pod, *further)
        except BaseException as error:
            raise as_plugin_error(point, plugin, error) from error

    def _run_timed(
        self,
        point: str,
        plugin: str,
        call: Callable[[CycleState, Pod, *Further], T],
        state: CycleState,
        pod: Pod,
        *further: *Further,
    ) -> T:
        code = Code.ERROR
        started = time.perf_counter()
        try:
            is_timed = plugin in self._timed
            answer = without_task(call, state, pod, *further) if is_timed else call(state, pod, *further)
            code = _code_of(answer)
        except BaseException as error:
            raise as_plugin_error(point, plugin, error) from error
        finally:
            seconds = time.perf_counter() - started
            if state.record_plugin_metrics:
                self.observe_plugin(point, plugin, code, seconds)
            if seconds >= self._shortest:
                self._budgets.took(point, plugin, seconds, pod)
            if PluginCalled in self.stream.listeners:
                self.stream.publish(PluginCalled(point, plugin, pod.uid, seconds))
        return answer

    async def run_async(
        self,
        point: str,
        plugin: str,
        call: Callable[[CycleState, Pod, *Further], Awaitable[T]],
        state: CycleState,
        pod: Pod,
        *further: *Further,
    ) -> T:
        """The same for a method that is awaited; it may be cancelled by others, and have a longer budget."""
        if self._paused and (instead := self._breaker.in_its_place(plugin, point, pod)) is not None:
            return cast("T", instead[0])
        answer: object = _NOTHING
        code = Code.ERROR
        started = time.perf_counter() if state.record_plugin_metrics else 0.0
        waiting = self._budgets.begin(point, plugin, pod) if point == PRE_BIND or plugin in self._timed else None
        try:
            answer = awaitable = call(state, pod, *further)
            is_watched = plugin in self._timed and isinstance(awaitable, Awaitable)
            result = await (awaited(awaitable) if is_watched else awaitable)
            code = _code_of(result) if state.record_plugin_metrics else code
        except PluginsOwn as own:
            raise as_plugin_error(point, plugin, own.error) from own.error
        except asyncio.CancelledError as error:
            if is_cancelled_by_others():
                raise
            raise as_plugin_error(point, plugin, error) from error
        except GeneratorExit:
            raise
        except BaseException as error:
            if answer is not _NOTHING and isinstance(error, TypeError) and not isinstance(answer, Awaitable):
                raise wrong_answer(plugin, point, call, answer, AWAITABLE) from None
            raise as_plugin_error(point, plugin, error) from error
        finally:
            if waiting is not None:
                self._budgets.end(waiting)
            if state.record_plugin_metrics:
                self.observe_plugin(point, plugin, code, time.perf_counter() - started)
        return result

    def evaluations(self, point: str, plugin: str) -> Counter:
        """Counts the evaluations of a plugin at an extension point."""
        return self._metrics.plugin_evaluations.labels(plugin, point, self._profile)

    def batching(self) -> Batching:
        """Counts the uses of stored answers."""
        return Batching(self._metrics, self._profile)

    def flushes(self) -> Callable[[str], None]:
        """Counts the stored answers that are dropped, by `AnswerStore`'s reasons."""
        counters = {reason: self._metrics.batch_cache_flushed.labels(self._profile, reason) for reason in FLUSH_REASONS}
        return lambda reason: counters[reason].inc()

    def new_observer(self, point: str, code: Code) -> Histogram:
        """Make what observes an extension point with a code."""
        observer = self._metrics.framework_extension_point_duration.labels(point, code.label, self._profile)
        self.observers[point, code] = observer
        return observer

    def observe_plugin(self, point: str, plugin: str, code: Code, seconds: float) -> None:
        """Show how long a plugin took: in a sample of cycles."""
        self._metrics.plugin_execution_duration.labels(plugin, point, code.label).observe(seconds)


class PointTimer(msgspec.Struct, eq=False):
    """Observes an extension point with `code`, or as an error if the body raises."""

    calls: PluginCalls
    point: str
    code: Code = Code.SUCCESS
    started: float = msgspec.field(default_factory=time.perf_counter)

    def __enter__(self) -> "PointTimer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        code = self.code if kind is None else Code.ERROR
        observer = self.calls.observers.get((self.point, code)) or self.calls.new_observer(self.point, code)
        seconds = time.perf_counter() - self.started
        observer.counts[bisect_left(observer.bounds, seconds)] += 1  # nine times for each pod
        observer.total += seconds
        if PointEnded in self.calls.stream.listeners:
            self.calls.stream.publish(PointEnded(self.point, code, seconds))


def check_column(
    point: str,
    plugin: str,
    method: Callable[..., Any],
    answers: Any,
    rows: npt.NDArray[Any],
    kinds: str = "ib",
    of: str = "nodes",
) -> None:
    """Raise WrongAnswer unless `answers` has one whole number for each row. `kinds`: numpy's letters for dtypes."""
    if not isinstance(answers, np.ndarray):
        raise wrong_answer(plugin, point, method, answers, "an array")
    if answers.shape != rows.shape or answers.dtype.kind not in kinds:
        name = getattr(method, "__name__", point)
        detail = f"{name} answered {answers.dtype} of shape {answers.shape} for {len(rows)} {of}"
        raise WrongAnswer(plugin, point, detail, place_of(method) or name)


def _code_of(answer: object) -> Code:
    if isinstance(answer, tuple) and answer:  # PostFilter's
        answer = answer[-1]
    if isinstance(answer, Status):
        return answer.code
    return Code.WAIT if isinstance(answer, PermitWait) else Code.SUCCESS
