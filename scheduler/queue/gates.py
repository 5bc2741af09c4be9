"""PreEnqueue plugins: whether a pod may enter activeQ at all.

Rule: runPreEnqueuePlugins in pkg/scheduler/backend/queue/scheduling_queue.go at v1.36.3. A plugin that fails does
not gate the pod, or only an event for that very plugin could bring it back. It counts as having refused the pod.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from prometheus_client import Histogram

from scheduler.framework.plugin import PreEnqueuePlugin
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code, Status
from scheduler.process.metrics import PLUGIN_METRICS_SAMPLE_PERCENT, Metrics
from scheduler.runtime.guards.plugin_faults import PluginFaults, as_plugin_error
from scheduler.runtime.guards.return_values import check_status, disallowed

_log = logging.getLogger(__name__)

PRE_ENQUEUE: Final = "PreEnqueue"
SAMPLE_EVERY: Final = 100 // PLUGIN_METRICS_SAMPLE_PERCENT


class GateRefusal(NamedTuple):
    """A plugin keeps a pod out of activeQ: on purpose (`gates`) or because it failed."""

    plugin: str
    gates: bool


class Gates:
    """The PreEnqueue plugins of every profile."""

    def __init__(
        self, plugins: Mapping[str, Sequence[PreEnqueuePlugin]], metrics: Metrics, now: Callable[[], float]
    ) -> None:
        """`plugins`: profile → its PreEnqueue plugins in their order."""
        self._plugins = plugins
        self._metrics = metrics
        self._now = now
        self._faults = PluginFaults(metrics)
        self._runs = 0
        self._in_turn: dict[tuple[str, str], Sequence[PreEnqueuePlugin]] = {}
        """(first plugin, profile) → plugins in the order in which they are called."""
        self._observers: dict[tuple[str, Code], Histogram] = {}

    def refusal(self, queued: QueuedPod) -> GateRefusal | None:
        """Call the plugins, first the one that gates the pod now; return None if none keeps it out."""
        profile = queued.pod.spec.scheduler_name
        plugins = self._plugins.get(profile)
        if not plugins:
            return None
        if queued.gated and plugins[0].name != queued.gating_plugin:
            plugins = self._beginning_with(queued.gating_plugin, profile)
        self._runs += 1
        started = self._now()
        refusal, code = None, Code.SUCCESS
        for plugin in plugins:
            code = self._ask(plugin, queued)
            if code is not Code.SUCCESS:
                refusal = GateRefusal(plugin.name, gates=code is not Code.ERROR)
                break
        self._observe(profile, code, self._now() - started)
        return refusal

    def _beginning_with(self, first: str, profile: str) -> Sequence[PreEnqueuePlugin]:
        plugins = self._in_turn.get((first, profile))
        if plugins is None:
            plugins = sorted(self._plugins[profile], key=lambda plugin: plugin.name != first)
            self._in_turn[first, profile] = plugins
        return plugins

    def _ask(self, plugin: PreEnqueuePlugin, queued: QueuedPod) -> Code:
        if self._runs % SAMPLE_EVERY:
            return self._call(plugin, queued)
        started = self._now()
        code = self._call(plugin, queued)
        duration = self._metrics.plugin_execution_duration.labels(plugin.name, PRE_ENQUEUE, code.label)
        duration.observe(self._now() - started)
        return code

    def _observe(self, profile: str, code: Code, seconds: float) -> None:
        observer = self._observers.get((profile, code))
        if observer is None:
            observer = self._metrics.framework_extension_point_duration.labels(PRE_ENQUEUE, code.label, profile)
            self._observers[profile, code] = observer
        observer.observe(seconds)

    def _call(self, plugin: PreEnqueuePlugin, queued: QueuedPod) -> Code:
        try:
            status: Status | None = plugin.pre_enqueue(queued.pod)
            if status is None:
                return Code.SUCCESS
            status = check_status(plugin.name, PRE_ENQUEUE, plugin.pre_enqueue, status)
            if not status.is_rejected:
                raise disallowed(plugin.name, PRE_ENQUEUE, plugin.pre_enqueue, status)
            code, message = status.code, status.message
        except BaseException as problem:  # noqa: BLE001 - the plugin boundary
            error = as_plugin_error(PRE_ENQUEUE, plugin.name, problem)
            self._faults.report(error, queued.pod)
            code, message = Code.ERROR, str(error)
        if code is Code.ERROR:
            fields = {"pod": str(queued.pod), "plugin": plugin.name, "err": message}
            _log.error("PreEnqueue plugin failed", extra=fields)
        return code
