"""Filter's and Score's steps and plans: a plugin made ready to be asked, and which ones a pod class asks."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.nodes import Aspect, Int32Column, Int64Column, Rows
from scheduler.framework.plugin import (
    FilterNodesPlugin,
    FilterPlugin,
    NormalizeScorePlugin,
    Plugin,
    PreScorePlugin,
    ScoreNodesPlugin,
    ScorePlugin,
    SignPlugin,
)
from scheduler.framework.preemption.dry_run_filter import DryRunFilter, IgnoresPods, MonotoneInPods
from scheduler.framework.status import REJECTIONS, Status
from scheduler.runtime.answers.views import BestNodes, FeasibleNodes, TotalScores
from scheduler.runtime.guards.plugin_faults import as_plugin_error
from scheduler.runtime.guards.return_values import bounded, disallowed, wrong_answer
from scheduler.runtime.live_nodes import LiveNodes
from scheduler.runtime.per_node import PerNodeFilter, PerNodeScore
from scheduler.runtime.plugin_calls import PluginCalls, check_column

FILTER: Final = "Filter"
SCORE: Final = "Score"


class _Step:
    """One plugin at one extension point."""

    __slots__ = ("_calls", "_evaluations", "_nodes", "_point", "aspects", "name")

    def __init__(self, point: str, plugin: Plugin, nodes: LiveNodes, calls: PluginCalls) -> None:
        self.name = plugin.name
        # Even an answer that reads nothing of a node is computed for a new one.
        self.aspects = tuple(plugin.aspects or Aspect.NAME) if isinstance(plugin, SignPlugin) else ()
        self._point = point
        self._nodes = nodes
        self._calls = calls
        self._evaluations = calls.evaluations(point, self.name)

    def key(self, signature: Hashable) -> tuple[Hashable, Hashable]:
        """Return the key of the column for pods of this signature."""
        return (self._point, self.name), signature


class FilterStep(_Step):
    """One plugin at Filter."""

    __slots__ = ("call", "dry_run", "ignores_pods", "monotone", "per_node")

    def __init__(self, plugin: Plugin, nodes: LiveNodes, calls: PluginCalls) -> None:
        super().__init__(FILTER, plugin, nodes, calls)
        self.per_node = PerNodeFilter(plugin) if isinstance(plugin, FilterPlugin) else None
        self.call: PerNodeFilter | FilterNodesPlugin
        if self.per_node is not None:
            self.call = self.per_node
        elif isinstance(plugin, FilterNodesPlugin):
            self.call = plugin
        else:
            raise TypeError(f"{plugin.name} has no Filter")
        # How a dry run asks it, found out here, as that is looked at for each pod that is refused.
        self.dry_run = self.call if isinstance(self.call, DryRunFilter) else None
        self.ignores_pods = self.call if isinstance(self.call, IgnoresPods) else None
        self.monotone = self.call if isinstance(self.call, MonotoneInPods) else None

    def ask(self, state: CycleState, pod: Pod, rows: Rows) -> Int32Column | None:
        """Return a reason code for each of `rows`; None means no refusal. Raises PluginError."""
        self._evaluations.value += rows.size
        call = self.call.filter_nodes
        codes = self._calls.run(FILTER, self.name, call, state, pod, self._nodes, rows)
        if codes is not None:
            check_column(FILTER, self.name, call, codes, rows, "iub")
        return codes

    def status(self, state: CycleState, pod: Pod, code: int) -> Status:
        """Return the refusal behind a code. Raises PluginError."""
        try:
            answer = self.call.status_of(state, pod, code)
        except BaseException as error:
            raise as_plugin_error(FILTER, self.name, error) from error
        if type(answer) is not Status:
            raise wrong_answer(self.name, FILTER, self.call.status_of, answer, "a Status")
        if answer.code not in REJECTIONS:
            raise disallowed(self.name, FILTER, self.call.status_of, bounded(answer))
        return bounded(answer).by(self.name)


class ScoreStep(_Step):
    """One plugin at Score."""

    __slots__ = ("call", "normalize", "normalizes_by_range", "scores_all", "weight")

    def __init__(self, plugin: Plugin, weight: int, nodes: LiveNodes, calls: PluginCalls) -> None:
        super().__init__(SCORE, plugin, nodes, calls)
        self.weight = weight
        self.call: PerNodeScore | ScoreNodesPlugin
        if isinstance(plugin, ScoreNodesPlugin):
            self.call = plugin
        elif isinstance(plugin, ScorePlugin):
            self.call = PerNodeScore(plugin)
        else:
            raise TypeError(f"{plugin.name} has no Score")
        self.scores_all = isinstance(plugin, PreScorePlugin) and plugin.scores_all
        self.normalize = plugin.normalize_score if isinstance(plugin, NormalizeScorePlugin) else None
        self.normalizes_by_range = isinstance(plugin, NormalizeScorePlugin) and plugin.normalizes_by_range

    def ask(self, state: CycleState, pod: Pod, rows: Rows) -> Int64Column | None:
        """Return the raw score of each of `rows`; None means 0. Raises PluginError."""
        self._evaluations.value += rows.size
        call = self.call.score_nodes
        scores = self._calls.run(SCORE, self.name, call, state, pod, self._nodes, rows)
        if scores is not None:
            check_column(SCORE, self.name, call, scores, rows)
        return scores


@dataclass(slots=True)
class FilterPlan:
    """The plugins that are asked at Filter about pods of one class, given which plugins skip them."""

    stored: tuple[FilterStep, ...]
    """The first plugins, up to the first one whose answers are not stored."""

    others: tuple[FilterStep, ...]
    """That one and all after it."""

    was_used: bool = False
    """Nothing is made for the first pod of a class: it may be the only one."""

    feasible: FeasibleNodes | None = None
    """The nodes that pass the `stored` ones."""


@dataclass(slots=True)
class ScorePlan:
    """The plugins that score the nodes for pods of one class, given which plugins skip them."""

    terms: tuple[ScoreStep, ...]
    """Plugins whose scores are stored, and final as they are."""

    neutral: tuple[ScoreStep, ...]
    """Plugins whose scores are stored, and make no difference as long as they are all 0."""

    others: tuple[ScoreStep, ...]

    zeros: tuple[str, ...]
    """Plugins that give 0 to every node, unasked."""

    was_used: bool = False
    """Nothing is made for the first pod of a class: it may be the only one."""

    totals: TotalScores | None = None
    best: BestNodes | None = None

    stored: tuple[ScoreStep, ...] = field(init=False)
    """The `terms`, then the `neutral` ones."""

    names: tuple[str, ...] = field(init=False)
    """Of the plugins that the `terms` are of."""

    def __post_init__(self) -> None:
        self.stored = (*self.terms, *self.neutral)
        self.names = tuple(step.name for step in self.terms)
