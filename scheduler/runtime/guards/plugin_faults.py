"""Reports failing plugins: to their authors in the log, to operators in metrics, to owners of pods in Events.

    a plugin raises, or answers what it must not ──► PluginError ──► the attempt ends ──► `PluginFaults.report`

The text of a PluginError, which the pod's Event and condition show, has plugin, extension point, type and message. The
traceback goes to the log, once for each place in the plugin's code that fails: without the frames of the scheduler that
lead to it. In-tree plugins word their errors as kube-scheduler does, so their types are not added. Where the pod, or an
object that it depends on, is to blame, AttemptFailed is raised: it ends the attempt in the same way, and is no fault.
"""

import inspect
import logging
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from types import CodeType
from typing import Final, NamedTuple

from scheduler.api.pods.pod import Pod
from scheduler.framework.errors import AttemptFailed, ClusterError, PluginError, WrongAnswer
from scheduler.framework.plugin import Plugin
from scheduler.framework.tracebacks import (
    authors_frames,
    described,
    entries,
    is_engine,
    kind_of,
    place_in,
    tellable,
    text_of,
    trace_of,
)
from scheduler.process.metrics import Metrics

MAX_REPORTED: Final = 1_000
"""Distinct faults that are known to be in the log; beyond them, the one that was not seen for longest is forgotten."""

_IN_TREE: Final = str(Path(__file__).parents[3] / "plugins") + "/"

_logger = logging.getLogger(__name__)


class Fault(NamedTuple):
    """One way in which a plugin fails."""

    plugin: str
    point: str
    kind: str
    """The type of its exception; `wrong answer` if its answer was not allowed."""
    place: str
    """File and line in the plugin's code; what it says if there is none."""


def as_plugin_error(point: str, plugin: str, error: BaseException) -> PluginError:
    """Name the plugin that failed, with the error as the cause; one that names a plugin already stays as it is."""
    if isinstance(error, PluginError):
        return error
    detail = text_of(error) or kind_of(error)
    if not _is_by_us(error):
        if detail != kind_of(error) and not isinstance(error, AttemptFailed):
            detail = described(error)
        if point in ("PostFilter", "PlacementGenerate"):  # what it says is all that kube-scheduler says
            detail = f'running {point} plugin "{plugin}": {detail}'
    named = PluginError(plugin, point, detail)
    named.__cause__ = error
    return named


def log_fault(message: str, plugin: Plugin, method: str, error: BaseException) -> str:
    """Log what a plugin raised outside of any attempt, with its author's frames; return file and line, if known."""
    trace = authors_frames(trace_of(error))
    place = place_in(trace) or place_of(inspect.getattr_static(type(plugin), method, None))
    fields = {"plugin": plugin.name, "extensionPoint": method, "at": place, "err": described(error)}
    _logger.error(message, extra=fields, exc_info=(type(error), error, trace))
    return place


def place_of(method: object) -> str:
    """File and line of a plugin's method; empty if it has none, being written in C."""
    code = getattr(method, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if isinstance(code, CodeType) else ""


def is_ours(code: CodeType) -> bool:
    """Return whether code is the scheduler's, or that of a plugin of ours."""
    return is_engine(code) or code.co_filename.startswith(_IN_TREE)


def is_of_tree(plugin: type) -> bool:
    """Return whether a class is that of a plugin of ours."""
    return str(getattr(sys.modules.get(plugin.__module__), "__file__", "")).startswith(_IN_TREE)


class PluginFaults:
    """Reports the faults of one profile's plugins."""

    def __init__(self, metrics: Metrics, on_fault: Callable[[str, str, Pod], None] = lambda *_: None) -> None:
        """`on_fault` is called for each fault with plugin, extension point and pod."""
        self._metrics = metrics
        self._on_fault = on_fault
        self._reported: OrderedDict[Hashable, None] = OrderedDict()
        self.observer: Callable[[Pod, Fault, str], None] | None = None
        """Called for each fault instead of the log, with the pod and the traceback, which may be empty."""

    def report(self, error: BaseException, pod: Pod) -> None:
        """Report a plugin's failure that ended an attempt. Traceback and place go to the log once."""
        if not isinstance(error, PluginError):
            return
        cause = error.__cause__ or error
        if isinstance(cause, ClusterError | AttemptFailed):
            return  # the API server said no, or nothing, which is no fault of who asked it; or the pod is to blame
        trace = authors_frames(trace_of(cause))
        if isinstance(error, WrongAnswer):
            fault = Fault(error.plugin, error.point, "wrong answer", error.place)
        elif cause is not error or trace is not None:
            # Without a frame of the author's where the call itself was wrong: another number of arguments.
            fault = Fault(error.plugin, error.point, kind_of(cause), place_in(trace) or text_of(cause))
        else:
            return  # it answered that it failed, as a plugin may
        self._metrics.plugin_faults.labels(error.plugin, error.point, "error").inc()
        self._on_fault(error.plugin, error.point, pod)
        if self.observer is not None:
            cause = tellable(cause, trace)
            lines = traceback.format_exception(type(cause), cause, trace) if trace is not None else []
            self.observer(pod, fault, "".join(lines))
        elif self.is_new(fault):
            fields = {
                "plugin": error.plugin,
                "extensionPoint": error.point,
                "pod": str(pod),
                "at": fault.place,
                "err": str(error),
            }
            cause = tellable(cause, trace)
            raised = (type(cause), cause, trace) if trace is not None else None
            _logger.error(
                "A plugin failed; further failures of this kind are only counted", extra=fields, exc_info=raised
            )

    def report_outside(self, message: str, plugin: Plugin, method: str, error: BaseException) -> str:
        """Log and count what a plugin raised outside of any attempt; return file and line, if known."""
        self._metrics.plugin_faults.labels(plugin.name, method, "error").inc()
        return log_fault(message, plugin, method, error)

    def is_new(self, fault: Hashable) -> bool:
        """Return whether a fault has to be reported: it was not yet, or so long ago that it is forgotten."""
        if fault in self._reported:
            self._reported.move_to_end(fault)
            return False
        self._reported[fault] = None
        if len(self._reported) > MAX_REPORTED:
            self._reported.popitem(last=False)
        return True


def _is_by_us(error: BaseException) -> bool:
    """Return whether the plugin that raised is one of ours: the first frame that is not the scheduler's is its."""
    for entry in entries(trace_of(error)):
        if not is_engine(entry.tb_frame.f_code):
            return entry.tb_frame.f_code.co_filename.startswith(_IN_TREE)
    return False
