"""Score for all feasible nodes at once.

Rule: pkg/scheduler/framework/runtime/framework.go at v1.36.3 (RunPreScorePlugins, RunScorePlugins).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from scheduler.api.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes import Int64Column, Rows
from scheduler.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NormalizeScorePlugin,
    Plugin,
    ScoreNodesPlugin,
    ScorePlugin,
)
from scheduler.runtime.answers.columns import Memo, MemoColumn
from scheduler.runtime.answers.pod_classes import Shape
from scheduler.runtime.answers.views import KeptBest, KeptPassing, KeptSums
from scheduler.runtime.filter_outcome import aspects_of
from scheduler.runtime.live_nodes import LiveNodes
from scheduler.runtime.per_node import plain_scores
from scheduler.runtime.plugin_calls import PluginCalls, check_column

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

    __slots__ = ("aspects", "columns", "name", "normalize", "normalizes_by_range", "plain", "weight")

    def __init__(self, plugin: Plugin, weight: int) -> None:
        self.name = plugin.name
        self.weight = weight
        self.plain = plugin if isinstance(plugin, ScorePlugin) else None
        self.columns = plugin if isinstance(plugin, ScoreNodesPlugin) else None
        self.normalize = plugin.normalize_score if isinstance(plugin, NormalizeScorePlugin) else None
        self.normalizes_by_range = isinstance(plugin, NormalizeScorePlugin) and plugin.normalizes_by_range
        self.aspects = aspects_of(plugin)


@dataclass(slots=True)
class ScorePlan:
    """Who rates the nodes for a pod of one shape, given which plugins skip it."""

    terms: tuple[ScoreStep, ...]
    """Plugins whose scores are stored, and final as they are."""

    level: tuple[ScoreStep, ...]
    """Plugins whose scores are stored, and make no difference as long as they are all 0."""

    others: tuple[ScoreStep, ...]

    was_used: bool = False
    """Nothing is kept for the first pod of a shape: it may be the only one."""

    kept: KeptSums | None = None
    best: KeptBest | None = None

    signed: tuple[ScoreStep, ...] = field(init=False)
    """The `terms`, then the `level` ones."""

    def __post_init__(self) -> None:
        self.signed = (*self.terms, *self.level)


class Scoring:
    """The Score plugins of one profile."""

    def __init__(
        self,
        plugins: Sequence[Plugin],
        weights: Mapping[str, int],
        nodes: LiveNodes,
        memo: Memo,
        calls: PluginCalls,
    ) -> None:
        self.steps = tuple(ScoreStep(plugin, weights[plugin.name]) for plugin in plugins)
        self._nodes = nodes
        self._memo = memo
        self._calls = calls
        self._kept: WeakValueDictionary[Hashable, KeptSums] = WeakValueDictionary()

    def best(
        self, state: CycleState, pod: Pod, feasible: Rows, shape: Shape, passing: KeptPassing | None
    ) -> Sequence[int] | Rows:
        """Return which of the feasible rows have the highest score, in ascending order. Raises PluginError.

        `passing`: what says the same as `feasible`, if that is kept. Then a shape that was seen before costs least.
        """
        plan = self._plan(state.skip_score, shape)
        sums = self._up_to_date(plan, state, pod, shape) if plan.terms else None
        if sums is None:
            total = self.run(state, pod, feasible, shape.signatures).total
        elif passing is not None and sums.is_level and not plan.others:
            if plan.best is None or not plan.best.is_of(passing, sums):
                plan.best = KeptBest(passing, sums)
            return plan.best.rows()
        else:
            everything = len(feasible) == self._nodes.size
            total = sums.values.copy() if everything else sums.values[feasible]
            for step in (*plan.others, *(() if sums.is_level else plan.level)):
                scores = self._scores(step, state, pod, feasible, everything, shape.signatures)
                total += scores if step.weight == 1 else scores * step.weight
        best: Rows = feasible[total == total.max()]
        return best

    def _plan(self, skip: set[str], shape: Shape) -> ScorePlan:
        key = frozenset(skip)
        plan = shape.score_plans.get(key)
        if plan is None:
            steps = [step for step in self.steps if step.name not in key]
            signed = [step for step in steps if step.name in shape.signatures]
            terms = tuple(step for step in signed if step.normalize is None)
            level = tuple(step for step in signed if step.normalizes_by_range)
            others = tuple(step for step in steps if step not in terms and step not in level)
            plan = shape.score_plans[key] = ScorePlan(terms, level, others)
        return plan

    def _up_to_date(self, plan: ScorePlan, state: CycleState, pod: Pod, shape: Shape) -> KeptSums | None:
        """Return the sums of what signed plugins said; None if all are to be asked in the ordinary way."""

        def ask(position: int, rows: Rows) -> Int64Column | None:
            return self._ask(plan.signed[position], state, pod, rows)

        if not plan.was_used:
            plan.was_used = True
            return None
        try:
            if plan.kept is None or not plan.kept.is_usable:
                plan.kept = self._summed(plan, state, pod, shape)
            plan.kept.refresh(ask)
            if state.record_plugin_metrics:
                for step in plan.level:
                    self._levelled(step, state, pod)
        except PluginError:
            return None  # it is asked again, and names the plugin that fails first
        is_valid = plan.kept.lowest >= MIN_NODE_SCORE and plan.kept.highest <= MAX_NODE_SCORE
        return plan.kept if is_valid else None

    def _summed(self, plan: ScorePlan, state: CycleState, pod: Pod, shape: Shape) -> KeptSums:
        key = tuple((step.name, shape.signatures[step.name]) for step in plan.signed)
        sums = self._kept.get(key)
        if sums is None or not sums.is_usable:
            columns = [self._stored(step, state, pod, shape.signatures[step.name]) for step in plan.signed]
            for step in plan.level:
                self._levelled(step, state, pod)
            weighted = [(column, step.weight) for step, column in zip(plan.terms, columns, strict=False)]
            aspects = {aspect for step in plan.signed for aspect in step.aspects}
            sums = self._kept[key] = KeptSums(weighted, columns[len(weighted) :], aspects, self._nodes, self._memo)
        return sums

    def _levelled(self, step: ScoreStep, state: CycleState, pod: Pod) -> None:
        """Let a plugin normalise what makes no difference. Raises PluginError, as if it were asked for all nodes."""
        self._normalized(step, state, pod, np.zeros(1, np.int64))

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
            column = self._stored(step, state, pod, signature)
            scores = column.values if everything else column.values[feasible]
            if step.normalize is None and column.lowest >= MIN_NODE_SCORE and column.highest <= MAX_NODE_SCORE:
                return scores
        return self._normalized(step, state, pod, scores)

    def _normalized(self, step: ScoreStep, state: CycleState, pod: Pod, scores: Int64Column) -> Int64Column:
        """Return what nodes get in the end. Raises PluginError if that is outside the allowed range."""
        if step.normalize is not None:
            shown = scores.view()
            shown.flags.writeable = False  # it may be a stored answer
            scores = self._calls.run(NORMALIZE, state, step.name, step.normalize, state, pod, shown)
            check_column(NORMALIZE, step.name, scores, shown)
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

    def _stored(self, step: ScoreStep, state: CycleState, pod: Pod, signature: object) -> MemoColumn:
        return self._memo.column(
            (("score", step.name), signature), step.aspects, np.int64, lambda rows: self._ask(step, state, pod, rows)
        )

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
