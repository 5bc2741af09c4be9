"""Score for all feasible nodes at once.

Rule: pkg/scheduler/framework/runtime/framework.go at v1.36.3 (RunPreScorePlugins, RunScorePlugins).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes.columns import read_only
from scheduler.framework.nodes.nodes import Int64Column, Rows
from scheduler.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE, Plugin
from scheduler.runtime.answers.pod_classes import PodClass
from scheduler.runtime.answers.store import AnswerStore
from scheduler.runtime.answers.views import BestNodes, FeasibleNodes, TotalScores
from scheduler.runtime.plans import ScorePlan, ScoreStep
from scheduler.runtime.plugin_calls import PluginCalls, check_column

NORMALIZE: Final = "ScoreExtensionNormalize"


@dataclass(frozen=True, slots=True)
class Scores:
    """Weighted scores of the feasible nodes."""

    total: Int64Column
    """One entry for each feasible row, in their order."""

    by_plugin: Mapping[str, Int64Column]
    """Plugin → its weighted scores; plugins that skipped are missing."""


class Scored(NamedTuple):
    """The scores of a decision, valid until the next one."""

    plan: ScorePlan | None
    """The plan whose terms have stored columns; None if all are in `others`."""

    best: BestNodes | None
    """The view that has the total of every row; None if `total` has those of the feasible ones."""

    feasible: Rows
    total: Int64Column | None
    others: Sequence[tuple[str, Int64Column]]
    """Plugin and weighted scores of the feasible rows, of those without stored columns."""

    def of(self, row: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return the plugins, and their weighted scores of a feasible row."""
        names: tuple[str, ...] = ()
        scores: list[int] = []
        plan = self.plan
        if plan is not None and plan.totals is not None:
            names = (*plan.zeros, *plan.names)
            scores += (0 for _ in plan.zeros)
            for step, column in zip(plan.terms, plan.totals.columns, strict=False):
                scores.append(step.weight * column.values.item(row))
        if self.others:
            names = (*names, *(name for name, _ in self.others))
            place = int(np.searchsorted(self.feasible, row))
            scores += (column.item(place) for _, column in self.others)
        return names, tuple(scores)

    def totals(self) -> tuple[Rows | None, Int64Column]:
        """Return rows and their totals; None for all rows, then nodes that are not feasible have less than 0."""
        if self.best is not None:
            return None, self.best.ranks()
        assert self.total is not None, "a decision has one of both"
        return self.feasible, self.total

    def kept(self, row: int) -> "KeptScores":
        """Return what stays valid after the next decision; `row`: that of the chosen node."""
        return KeptScores(self.of(row), self.totals())


class KeptScores(NamedTuple):
    """The scores of a decision that is noted only after others were made."""

    of_chosen: tuple[tuple[str, ...], tuple[int, ...]]
    of_all: tuple[Rows | None, Int64Column]

    def of(self, _row: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return the plugins, and their weighted scores of the chosen row."""
        return self.of_chosen

    def totals(self) -> tuple[Rows | None, Int64Column]:
        """The same as those of `Scored`."""
        return self.of_all


class Scoring:
    """The Score plugins of one profile."""

    def __init__(
        self, plugins: Sequence[Plugin], weights: Mapping[str, int], store: AnswerStore, calls: PluginCalls
    ) -> None:
        self.steps = tuple(ScoreStep(plugin, weights[plugin.name], store.nodes, calls) for plugin in plugins)
        self._store = store
        self._calls = calls

    def best(
        self, state: CycleState, pod: Pod, feasible: Rows, pod_class: PodClass, view: FeasibleNodes | None
    ) -> Sequence[int] | Rows:
        """Return which of the feasible rows have the highest score, in ascending order. Raises PluginError.

        `view`: the stored view with the same rows as `feasible`, if there is one: a class that was seen before then
        costs least.
        """
        plan = pod_class.score_plans.get(state.skip_score) or self._plan(state.skip_score, pod_class)
        totals = self._total_scores(plan, pod_class, state, pod)
        if totals is None:
            scores_of_all = self.run(state, pod, feasible, pod_class)
            total = scores_of_all.total
            state.scored = Scored(None, None, feasible, total, tuple(scores_of_all.by_plugin.items()))
        elif view is not None and totals.is_final and not plan.others:
            best = plan.best
            if best is None or best.feasible is not view or best.totals is not totals:
                best = plan.best = self._best_nodes(view, totals, pod_class)
            rows = best.rows()
            state.scored = Scored(plan, best, feasible, None, ())
            return rows
        else:
            everything = len(feasible) == self._store.nodes.size
            total = totals.values.copy() if everything else totals.values[feasible]
            named: list[tuple[str, Int64Column]] = []
            for step in (*plan.others, *(() if totals.is_final else plan.neutral)):
                scores = self._scores(step, state, pod, feasible, everything, pod_class)
                scores = scores if step.weight == 1 else scores * step.weight
                named.append((step.name, scores))
                total += scores
            state.scored = Scored(plan, None, feasible, total, named)
        highest: Rows = feasible[total == total.max()]
        return highest

    def _plan(self, skip: frozenset[str], pod_class: PodClass) -> ScorePlan:
        steps = [step for step in self.steps if step.name not in skip]
        signed = [step for step in steps if step.name in pod_class.signatures]
        terms = tuple(step for step in signed if step.normalize is None)
        neutral = tuple(step for step in signed if step.normalizes_by_range)
        others = tuple(step for step in steps if step not in terms and step not in neutral)
        zeros = tuple(step.name for step in self.steps if step.name in skip and step.scores_all)
        plan = pod_class.score_plans[skip] = ScorePlan(terms, neutral, others, zeros)
        return plan

    def _total_scores(self, plan: ScorePlan, pod_class: PodClass, state: CycleState, pod: Pod) -> TotalScores | None:
        """Return the total of the stored steps; None if all plugins are to be asked in the ordinary way."""
        if not plan.terms:
            return None
        if not plan.was_used:
            plan.was_used = True
            return None
        is_new = plan.totals is None
        if plan.totals is None:
            plan.totals = self._view(plan, pod_class)
        totals = plan.totals
        try:
            totals.refresh(plan.stored, state, pod)
            if is_new or state.record_plugin_metrics:
                for step in plan.neutral:
                    self._normalize_nothing(step, state, pod)
        except PluginError:
            return None  # the plugins are asked again, and the first one that fails is named
        return totals if totals.lowest >= MIN_NODE_SCORE and totals.highest <= MAX_NODE_SCORE else None

    def _view(self, plan: ScorePlan, pod_class: PodClass) -> TotalScores:
        keys = [step.key(pod_class.signatures[step.name]) for step in plan.stored]
        view = self._store.find(("totals", *keys), TotalScores)
        if view is None:
            columns = [
                self._store.column_of(key, step.aspects, np.int64) for step, key in zip(plan.stored, keys, strict=True)
            ]
            weighted = [(column, step.weight) for step, column in zip(plan.terms, columns, strict=False)]
            neutral = columns[len(weighted) :]
            aspects = {aspect for step in plan.stored for aspect in step.aspects}
            view = TotalScores(("totals", *keys), weighted, neutral, aspects, self._store)
            self._store.add(view)
        self._store.link(pod_class, view)
        return view

    def _best_nodes(self, feasible: FeasibleNodes, totals: TotalScores, pod_class: PodClass) -> BestNodes:
        key = "best", feasible.key, totals.key
        best = self._store.find(key, BestNodes) or self._store.add(BestNodes(key, feasible, totals))
        self._store.link(pod_class, best)
        return best

    def _normalize_nothing(self, step: ScoreStep, state: CycleState, pod: Pod) -> None:
        """Let a plugin normalise what makes no difference. Raises PluginError, as if it were asked for all nodes."""
        self._normalized(step, state, pod, np.zeros(1, np.int64))

    def run(self, state: CycleState, pod: Pod, feasible: Rows, pod_class: PodClass) -> Scores:
        """Return the weighted scores of the feasible rows. Raises PluginError."""
        by_plugin: dict[str, Int64Column] = {}
        # Without any Score plugin every node counts as much as any other: kube-scheduler gives each of them 1.
        total: Int64Column = np.zeros(len(feasible), np.int64) if self.steps else np.ones(len(feasible), np.int64)
        everything = len(feasible) == self._store.nodes.size
        for step in self.steps:
            if step.name in state.skip_score:
                if step.scores_all:
                    by_plugin[step.name] = np.zeros(len(feasible), np.int64)
                continue
            scores = self._scores(step, state, pod, feasible, everything, pod_class)
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
        pod_class: PodClass,
    ) -> Int64Column:
        """One plugin's scores of the feasible rows, normalised, within the allowed range."""
        signature = pod_class.signatures.get(step.name)
        if signature is None:
            answers = step.ask(state, pod, feasible)
            scores = np.zeros(len(feasible), np.int64) if answers is None else answers
        else:
            column = self._store.column(step.key(signature), step.aspects, np.int64, partial(step.ask, state, pod))
            scores = column.values if everything else column.values[feasible]
            if step.normalize is None and column.lowest >= MIN_NODE_SCORE and column.highest <= MAX_NODE_SCORE:
                return scores
        return self._normalized(step, state, pod, scores)

    def _normalized(self, step: ScoreStep, state: CycleState, pod: Pod, scores: Int64Column) -> Int64Column:
        """Return what nodes get in the end. Raises PluginError if that is outside the allowed range."""
        if step.normalize is not None:
            shown = read_only(scores)  # it may be a stored answer
            scores = self._calls.run(NORMALIZE, step.name, step.normalize, state, pod, shown)
            check_column(NORMALIZE, step.name, step.normalize, scores, shown)
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest < MIN_NODE_SCORE or highest > MAX_NODE_SCORE:
            wrong = lowest if lowest < MIN_NODE_SCORE else highest
            raise PluginError(step.name, "ScoreRange", out_of_range(wrong))
        return scores


def out_of_range(score: int) -> str:
    """Return the error for a final score that is not allowed, in kube-scheduler's words."""
    allowed = f"[{MIN_NODE_SCORE}, {MAX_NODE_SCORE}]"
    return f"returns an invalid score {score}, it should in the range of {allowed} after normalizing"
