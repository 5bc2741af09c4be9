"""The plugin boundary: calls a plugin, times it in sampled cycles, and names it if it fails.

Rule: pkg/scheduler/framework/runtime/framework.go at v1.36.3 (the run…Plugin functions).
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from prometheus_client import Histogram

from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.plugin import PermitWait
from scheduler.framework.status import Code, Status
from scheduler.runtime.answers.store import FLUSH_REASONS
from scheduler.runtime.instruments import Counter
from scheduler.runtime.metrics import Metrics

T = TypeVar("T")
Q = ParamSpec("Q")


class Batching:
    """What is counted of stored answers, under the names that kube-scheduler has for its batches of equal pods.

    A hint is what is stored of where the pods of a class can run. It is used if it tells all; if it does not, because
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
    """Calls the plugins of one profile. What they raise becomes a PluginError."""

    def __init__(self, metrics: Metrics, profile: str) -> None:
        self._metrics = metrics
        self._profile = profile
        self.observers: dict[tuple[str, Code], Histogram] = {}
        self.at = partial(PointTimer, self)
        """`at(point)` times all plugins of one extension point together, as the body of a `with` statement."""

    def run(
        self, point: str, state: CycleState, plugin: str, call: Callable[Q, T], *args: Q.args, **kwargs: Q.kwargs
    ) -> T:
        if not state.record_plugin_metrics:
            try:
                return call(*args, **kwargs)
            except Exception as error:
                raise as_plugin_error(point, plugin, error) from error
        started = time.perf_counter()
        code = Code.ERROR
        try:
            answer = call(*args, **kwargs)
            code = _code_of(answer)
        except Exception as error:
            raise as_plugin_error(point, plugin, error) from error
        finally:
            self._observe_plugin(point, plugin, code, started)
        return answer

    async def run_async(
        self,
        point: str,
        state: CycleState,
        plugin: str,
        call: Callable[Q, Awaitable[T]],
        *args: Q.args,
        **kwargs: Q.kwargs,
    ) -> T:
        if not state.record_plugin_metrics:
            try:
                return await call(*args, **kwargs)
            except Exception as error:
                raise as_plugin_error(point, plugin, error) from error
        started = time.perf_counter()
        code = Code.ERROR
        try:
            answer = await call(*args, **kwargs)
            code = _code_of(answer)
        except Exception as error:
            raise as_plugin_error(point, plugin, error) from error
        finally:
            self._observe_plugin(point, plugin, code, started)
        return answer

    def evaluations(self, point: str, plugin: str) -> Counter:
        """What counts how often a plugin had a say at an extension point."""
        return self._metrics.plugin_evaluations.labels(plugin, point, self._profile)

    def batching(self) -> Batching:
        """What counts how often stored answers are of use."""
        return Batching(self._metrics, self._profile)

    def flushes(self) -> Callable[[str], None]:
        """What counts how often stored answers are given up, by `AnswerStore`'s reasons."""
        counters = {reason: self._metrics.batch_cache_flushed.labels(self._profile, reason) for reason in FLUSH_REASONS}
        return lambda reason: counters[reason].inc()

    def new_observer(self, point: str, code: Code) -> Histogram:
        """Make what observes an extension point with a code."""
        observer = self._metrics.framework_extension_point_duration.labels(point, code.label, self._profile)
        self.observers[point, code] = observer
        return observer

    def _observe_plugin(self, point: str, plugin: str, code: Code, started: float) -> None:
        seconds = time.perf_counter() - started
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
        observer.observe(time.perf_counter() - self.started)


def as_plugin_error(point: str, plugin: str, error: Exception) -> PluginError:
    """Name the plugin that failed; an error that names one already stays as it is."""
    return error if isinstance(error, PluginError) else PluginError(plugin, point, str(error) or type(error).__name__)


def check_column(point: str, plugin: str, answers: Any, rows: npt.NDArray[Any], kinds: str = "ib") -> None:
    """Raise PluginError unless `answers` has one whole number for each row. `kinds`: numpy's letters for dtypes."""
    if not isinstance(answers, np.ndarray):
        raise PluginError(plugin, point, f"answered a {type(answers).__name__}, not an array")
    if answers.shape != rows.shape or answers.dtype.kind not in kinds:
        detail = f"answered {answers.dtype} of shape {answers.shape} for {len(rows)} nodes"
        raise PluginError(plugin, point, detail)


def _code_of(answer: object) -> Code:
    if isinstance(answer, tuple):  # PostFilter's
        answer = answer[-1]
    if isinstance(answer, Status):
        return answer.code
    return Code.WAIT if isinstance(answer, PermitWait) else Code.SUCCESS
