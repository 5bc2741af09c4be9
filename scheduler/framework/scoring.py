"""Score for all feasible nodes at once.

Rule: pkg/scheduler/framework/runtime/framework.go at v1.36.3 (RunPreScorePlugins, RunScorePlugins).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler.api.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.filtering import aspects_of
from scheduler.framework.forms import plain_scores
from scheduler.framework.memo import ChangingColumns, Memo
from scheduler.framework.nodes import Int64Column, Rows
from scheduler.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NormalizeScorePlugin,
    Plugin,
    ScoreNodesPlugin,
    ScorePlugin,
)
from scheduler.framework.plugin_calls import PluginCalls, check_column

SCORE: Final = "Score"
NORMALIZE: Final = "ScoreExtensionNormalize"


@dataclass(frozen=True, slots=True)
class Scores:
    """Weighted scores of the feasible nodes."""

    total: Int64Column
    """One entry for each feasible row, in their order."""

    by_plugin: Mapping[str, Int64Column]
    """Plugin → its weighted scores; plugins that skipped are missing."""


class ScoreStep:
    """One plugin at Score, whatever its form."""

    __slots__ = ("aspects", "columns", "name", "normalize", "plain", "weight")

    def __init__(self, plugin: Plugin, weight: int) -> None:
        self.name = plugin.name
        self.weight = weight
        self.plain = plugin if isinstance(plugin, ScorePlugin) else None
        self.columns = plugin if isinstance(plugin, ScoreNodesPlugin) else None
        self.normalize = plugin.normalize_score if isinstance(plugin, NormalizeScorePlugin) else None
        self.aspects = aspects_of(plugin)


class Scoring:
    """The Score plugins of one profile."""

    def __init__(
        self,
        plugins: Sequence[Plugin],
        weights: Mapping[str, int],
        nodes: ChangingColumns,
        memo: Memo,
        calls: PluginCalls,
    ) -> None:
        self.steps = tuple(ScoreStep(plugin, weights[plugin.name]) for plugin in plugins)
        self._nodes = nodes
        self._memo = memo
        self._calls = calls

    def run(self, state: CycleState, pod: Pod, feasible: Rows, signatures: dict[str, object]) -> Scores:
        """Return the weighted scores of the feasible rows. Raises PluginError."""
        by_plugin: dict[str, Int64Column] = {}
        # Without any Score plugin every node counts as much as any other: kube-scheduler gives each of them 1.
        total: Int64Column = np.zeros(len(feasible), np.int64) if self.steps else np.ones(len(feasible), np.int64)
        everything = len(feasible) == self._nodes.size
        for step in self.steps:
            if step.name in state.skip_score:
                continue
            scores = self._scores(step, state, pod, feasible, everything, signatures)
            if step.weight != 1:
                scores = scores * step.weight
            by_plugin[step.name] = scores
            total += scores
        return Scores(total, by_plugin)

    def _scores(
        self,
        step: ScoreStep,
        state: CycleState,
        pod: Pod,
        feasible: Rows,
        everything: bool,
        signatures: dict[str, object],
    ) -> Int64Column:
        """One plugin's scores of the feasible rows, normalised, within the allowed range."""
        signature = signatures.get(step.name)
        if signature is None:
            answers = self._ask(step, state, pod, feasible)
            scores = np.zeros(len(feasible), np.int64) if answers is None else answers
        else:
            column = self._memo.column(
                (("score", step.name), signature),
                step.aspects,
                np.int64,
                lambda rows: self._ask(step, state, pod, rows),
            )
            scores = column.values if everything else column.values[feasible]
            if step.normalize is None and column.lowest >= MIN_NODE_SCORE and column.highest <= MAX_NODE_SCORE:
                return scores
        if step.normalize is not None:
            shown = scores.view()
            shown.flags.writeable = False  # it may be a stored answer
            scores = self._calls.run(NORMALIZE, state, step.name, step.normalize, state, pod, shown)
            check_column(NORMALIZE, step.name, scores, feasible)
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest < MIN_NODE_SCORE or highest > MAX_NODE_SCORE:
            wrong = lowest if lowest < MIN_NODE_SCORE else highest
            raise PluginError(
                step.name,
                "ScoreRange",
                f"returns an invalid score {wrong}, it should in the range of "
                f"[{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing",
            )
        return scores

    def _ask(self, step: ScoreStep, state: CycleState, pod: Pod, rows: Rows) -> Int64Column | None:
        answers: Int64Column | None
        if step.plain is not None:
            plain = step.plain
            answers = self._calls.run(SCORE, state, step.name, plain_scores, plain, state, pod, self._nodes, rows)
        else:
            assert step.columns is not None, "a step has one of the two forms"
            answers = self._calls.run(SCORE, state, step.name, step.columns.score_nodes, state, pod, self._nodes, rows)
        if answers is not None:
            check_column(SCORE, step.name, answers, rows)
        return answers
