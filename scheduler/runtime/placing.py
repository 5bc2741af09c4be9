"""The placements of a group of pods: plugins say which there are, and which one is best.

Rule: RunPlacementGeneratePlugins and RunPlacementScorePlugins in pkg/scheduler/framework/runtime/framework.go at
v1.36.3.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.groups.placements import Placement, PodGroupAssignments
from scheduler.framework.nodes.columns import read_only
from scheduler.framework.nodes.nodes import Int64Column
from scheduler.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NormalizePlacementScorePlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
)
from scheduler.framework.status import Status, unschedulable
from scheduler.runtime.guards.plugin_breaker import Breaker
from scheduler.runtime.guards.return_values import (
    WHOLE_NUMBER,
    check_placements,
    check_score,
    check_status,
    disallowed,
    wrong_answer,
)
from scheduler.runtime.plugin_calls import PluginCalls, check_column
from scheduler.runtime.scoring import Scores, out_of_range

GENERATE: Final = "PlacementGenerate"
SCORE: Final = "PlacementScore"
NORMALIZE: Final = "PlacementScoreExtensionNormalize"
RANGE: Final = "PlacementScoreRange"

NONE_FOUND: Final = "no feasible placements found"


class Placing:
    """The plugins of one profile for groups as a whole. `pod` is one of the group's. Each method raises PluginError."""

    def __init__(
        self,
        generators: Sequence[PlacementGeneratePlugin],
        scorers: Sequence[PlacementScorePlugin],
        weights: Mapping[str, int],
        calls: PluginCalls,
        breaker: Breaker,
    ) -> None:
        self._generator = generators[0] if generators else None
        self._scorers = scorers
        self._weights = weights
        self._calls = calls
        self._breaker = breaker

    def generate(self, state: CycleState, pod: Pod, parent: Placement) -> Sequence[Placement] | Status:
        """Return the placements in which the group is to be tried, one at least, or why there is none."""
        with self._calls.at(GENERATE) as timer:
            plugin = self._generator
            if plugin is None or plugin.name in self._off(pod):
                return (parent,)
            ask = plugin.generate_placements
            answer = self._calls.run(GENERATE, plugin.name, ask, state, pod, parent)
            if not isinstance(answer, Status):
                answer = check_placements(plugin.name, ask, answer) or unschedulable(NONE_FOUND)
            else:
                answer = check_status(plugin.name, GENERATE, ask, answer)
                if not answer.is_rejected:
                    raise disallowed(plugin.name, GENERATE, ask, answer)
            if isinstance(answer, Status):
                timer.code = answer.code
                return answer.by(plugin.name)
            return answer

    def score(self, state: CycleState, pod: Pod, candidates: Sequence[PodGroupAssignments]) -> Scores:
        """Return the weighted scores of the placements in which the group fits, in their order."""
        total = np.zeros(len(candidates), np.int64)
        with self._calls.at(SCORE):
            off = self._off(pod)
            plugins = [plugin for plugin in self._scorers if plugin.name not in off]
            by_plugin = {each.name: self._scores(each, state, pod, candidates) for each in plugins}
            for plugin in plugins:
                scores = self._normalized(plugin, state, pod, by_plugin[plugin.name])
                by_plugin[plugin.name] = scores * self._weights[plugin.name]
                total += by_plugin[plugin.name]
        return Scores(total, by_plugin)

    def _scores(
        self,
        plugin: PlacementScorePlugin,
        state: CycleState,
        pod: Pod,
        candidates: Sequence[PodGroupAssignments],
    ) -> Int64Column:
        ask = plugin.score_placement
        scores = np.zeros(len(candidates), np.int64)
        for index, assignments in enumerate(candidates):
            score = self._calls.run(SCORE, plugin.name, ask, state, pod, assignments)
            if type(score) is not int:
                score = check_score(plugin.name, ask, score, SCORE)
            try:
                scores[index] = score
            except OverflowError:
                raise wrong_answer(plugin.name, SCORE, ask, score, WHOLE_NUMBER) from None
        return scores

    def _normalized(
        self, plugin: PlacementScorePlugin, state: CycleState, pod: Pod, scores: Int64Column
    ) -> Int64Column:
        """Return the scores within the allowed range."""
        if isinstance(plugin, NormalizePlacementScorePlugin):
            ask, shown = plugin.normalize_placement_score, read_only(scores)
            scores = self._calls.run(NORMALIZE, plugin.name, ask, state, pod, shown)
            check_column(NORMALIZE, plugin.name, ask, scores, shown, of="placements")
        for score in scores.tolist():
            if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
                raise PluginError(plugin.name, RANGE, out_of_range(score))
        return scores

    def _off(self, pod: Pod) -> frozenset[str]:
        return self._breaker.off(pod.namespace) if self._breaker.paused else frozenset()
