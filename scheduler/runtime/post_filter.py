"""PostFilter: plugins are asked one after the other, until one succeeds or says that nothing can.

Rule: RunPostFilterPlugins in pkg/scheduler/framework/runtime/framework.go at v1.37.2.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.errors import PluginError
from scheduler.framework.extenders import ExtendedPostFilterPlugin, Overtaken, PreemptionExtenders
from scheduler.framework.plugin import PostFilterPlugin, PostFilterResult
from scheduler.framework.status import Code, Status
from scheduler.runtime.guards.return_values import check_post_filter
from scheduler.runtime.plugin_calls import PluginCalls, PointTimer

Answer: TypeAlias = tuple[PostFilterResult | None, Status | None]

_POINT = "PostFilter"


class PostFilter:
    """The PostFilter plugins of one profile. Each method raises PluginError."""

    def __init__(self, plugins: Sequence[PostFilterPlugin], calls: PluginCalls) -> None:
        self._plugins = plugins
        self._calls = calls

    def run(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> Answer:
        """Ask the plugins."""
        answers = _Answers()
        statuses = diagnosis.node_to_status
        with self._calls.at(_POINT) as timer:
            for plugin in self._plugins:
                found = self._asked(plugin, state, pod, statuses)
                if answers.end_with(plugin.name, found):
                    break
            return answers.close(timer)

    async def run_with_extenders(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis, extenders: PreemptionExtenders
    ) -> Answer:
        """The same for a pod about which extenders are asked. Raises Overtaken."""
        answers = _Answers()
        statuses = diagnosis.node_to_status
        with self._calls.at(_POINT) as timer:
            for plugin in self._plugins:
                if isinstance(plugin, ExtendedPostFilterPlugin):
                    found = await self._ask(plugin, state, pod, diagnosis, extenders)
                else:
                    found = self._asked(plugin, state, pod, statuses)
                if answers.end_with(plugin.name, found):
                    break
            return answers.close(timer)

    def _asked(self, plugin: PostFilterPlugin, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> Answer:
        answer = self._calls.run(_POINT, plugin.name, plugin.post_filter, state, pod, statuses)
        return check_post_filter(plugin.name, plugin.post_filter, answer)

    async def _ask(
        self,
        plugin: ExtendedPostFilterPlugin,
        state: CycleState,
        pod: Pod,
        diagnosis: Diagnosis,
        extenders: PreemptionExtenders,
    ) -> Answer:
        ask, statuses = plugin.post_filter_with_extenders, diagnosis.node_to_status
        try:
            answer = await self._calls.run_async(_POINT, plugin.name, ask, state, pod, statuses, extenders)
            return check_post_filter(plugin.name, ask, answer)
        except PluginError as error:
            if isinstance(error.__cause__, Overtaken):  # no plugin's fault
                raise error.__cause__ from None
            raise


class _Answers:
    """The plugins' answers so far."""

    def __init__(self) -> None:
        self._result: PostFilterResult | None = None
        self._reasons: list[str] = []
        self._rejector = ""
        self._last: Answer | None = None

    def end_with(self, plugin: str, found: Answer) -> bool:
        """Take an answer; return whether it is the last."""
        result, status = found
        if status is None or status.code is Code.SUCCESS:
            self._last = found
        elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            self._last = result, status.by(plugin)
        else:
            self._result = result or self._result
            self._reasons += status.reasons
            self._rejector = self._rejector or plugin
        return self._last is not None

    def close(self, timer: PointTimer) -> Answer:
        """Return what the plugins answer together."""
        total = self._last or (self._result, Status(Code.UNSCHEDULABLE, tuple(self._reasons), self._rejector))
        timer.code = Code.SUCCESS if total[1] is None else total[1].code
        return total
