"""Chooses a node for a pod. No I/O, no clock, no randomness: the same cluster and pod give the same answer.

Rule: pkg/scheduler/schedule_one.go at v1.36.3 (schedulePod, findNodesThatFitPod, evaluateNominatedNode). Unlike
kube-scheduler we look at every node, unless the configuration names a percentage: columns make that cheap.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import NO_NODES, Diagnosis, NodeToStatus, Refusal
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes.columns import locked
from scheduler.framework.nodes.nodes import BoolColumn, Rows
from scheduler.framework.plugin import PostFilterResult
from scheduler.framework.status import Code, Status, unresolvable
from scheduler.runtime.answers.views import FeasibleNodes
from scheduler.runtime.filter_outcome import FilterOutcome
from scheduler.runtime.framework import POD_LIMITS, Framework, go_list
from scheduler.state.nodes.node_table import NodeTable

_logger = logging.getLogger(__name__)

MIN_NODES_TO_FIND: Final = 100
"""Feasible nodes to look for, however low the percentage is."""

NO_REASON: Final = unresolvable()
"""The status of nodes that no plugin answered about, as in kube-scheduler."""

NO_ROWS: Final[Rows] = locked(np.arange(0))

PRE_FILTER_RESULT: Final = "PreFilterResult"
"""The plugin name given for nodes outside a PreFilter result."""


class KeptNodes:
    """The nodes that are kept for a group which waits: here none."""

    are_any = False

    def refuse(
        self, framework: Framework, table: NodeTable, state: CycleState, pod: Pod, outcome: FilterOutcome
    ) -> None:
        """Refuse a pod there in what Filter has found."""

    def closed_to(self, framework: Framework, table: NodeTable, pod: Pod) -> Mapping[int, Status]:
        """Return the rows where a pod is refused, with the reason."""
        return {}


NO_KEPT_NODES: Final = KeptNodes()


@dataclass(slots=True)
class Search:
    """The result of PreFilter and Filter for one pod."""

    feasible: Rows
    diagnosis: Diagnosis
    asked: int = 0
    """The number of evaluated nodes."""

    verdicts: dict[int, Status] = field(default_factory=dict)
    """Row → status that is in no column: of a nominated node outside the PreFilter result."""

    outcome: FilterOutcome | None = None
    absent: Status | None = None
    """The status of nodes that were not evaluated, or of all nodes."""

    view: FeasibleNodes | None = None
    """The stored view with the same rows as `feasible`, if there is one."""

    is_by_nomination: bool = False
    """Whether the search ended with the nominated node."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The pod fits a node."""

    node_name: str
    evaluated_nodes: int
    feasible_nodes: int
    row: int = field(default=-1, compare=False)
    """The node's row, valid until the node table changes."""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """The pod fits no node now."""

    message: str
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominated_node_name: str | None = ""
    """The new nomination: None leaves it as it is, empty clears it."""

    refusals: tuple[Refusal, ...] = field(default=(), compare=False)
    victims: Sequence[Pod] = field(default=(), compare=False)
    """Pods to evict from the nominated node."""

    refused_group_by: str = ""
    """The plugin that refused the pod's group as a whole; empty for none."""


def cut_off_by(diagnosis: Diagnosis) -> Status:
    """Return the status of nodes that are not in the PreFilter plugins' result."""
    return unresolvable(f"node(s) didn't satisfy plugin(s) {go_list(diagnosis.unschedulable_plugins)}")


class Algorithm:
    """Searches and chooses. Its only state is where the next search starts, for searches of a percentage of nodes."""

    def __init__(self, table: NodeTable, seed: int = 0, kept: KeptNodes = NO_KEPT_NODES) -> None:
        self.table = table
        self.kept = kept
        self.use_seed(seed)
        self.next_start = 0
        """The start of the next search: a position among the nodes to evaluate."""

    def use_seed(self, seed: int) -> None:
        """Use another salt for the choice among equal nodes."""
        self._seed = seed.to_bytes(8, "little", signed=True)

    def schedule(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        attempt: int = 0,
        *,
        runs_post_filter: bool = True,
        placement: BoolColumn | None = None,
    ) -> Placed | Unplaced:
        """Choose a node for `pod`, or say why there is none. Raises PluginError.

        `runs_post_filter`: whether PostFilter runs if there is none. `placement`: the nodes that there are for this
        pod; None for all. Plugins see the others nevertheless.
        """
        if self.table.count == 0:
            return Unplaced(NO_NODES)
        state.attempt = attempt
        search = self.search(framework, state, pod, placement=placement)
        if len(search.feasible) == 0:
            if not runs_post_filter:
                return unplaced_by(search.diagnosis, None)
            return self._unplaced(framework, state, pod, search.diagnosis)
        if len(search.feasible) == 1:
            row = int(search.feasible[0])
        else:
            best = framework.run_best(state, pod, search.feasible, search.view)
            row = self.select(best, pod, attempt)
        return Placed(self.table.names()[row], search.asked, len(search.feasible), row)

    def search(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        *,
        nominated_first: bool = True,
        only: BoolColumn | None = None,
        placement: BoolColumn | None = None,
    ) -> Search:
        """Run PreFilter and Filter, on all rows or `only` some. Raises PluginError.

        `nominated_first`: the search ends if the pod fits its nominated node. `placement`: the nodes that there are.
        """
        table = self.table
        count = table.count if placement is None else int(np.count_nonzero(placement))
        diagnosis = Diagnosis(count)
        table.pods.decision += 1
        names, refusal = framework.run_pre_filter(state, pod, diagnosis)
        if refusal is not None:
            diagnosis.pre_filter_message = refusal.message
            diagnosis.add_plugin(refusal)
            search = Search(NO_ROWS, diagnosis, absent=refusal)
            diagnosis.node_to_status = self.node_to_status(state, pod, search)
            return search
        search = Search(NO_ROWS, diagnosis)
        nominated_first = nominated_first and bool(pod.status.nominated_node_name)
        if nominated_first and self._nominated_node_fits(framework, state, pod, search, placement):
            return search
        asked = placement
        if names is not None:
            search.absent = cut_off_by(diagnosis)
            chosen = [row for row in map(table.row_of, names) if row is not None]
            if placement is not None:
                chosen = [row for row in chosen if placement[row]]
            asked = np.zeros(table.size, np.bool_)
            asked[chosen], count = True, len(chosen)
        if only is not None:
            asked = only if asked is None else asked & only
        search.outcome = outcome = framework.run_filter(state, pod, asked)
        if self.kept.are_any:
            self.kept.refuse(framework, table, state, pod, outcome)
        if only is None:
            search.feasible, search.asked = self._sample(framework, outcome, count)
        else:
            search.feasible, search.asked = outcome.feasible, count
        if search.feasible is outcome.feasible:
            search.view = outcome.view
        if len(search.feasible) == 0:
            self._diagnose(state, pod, search)
        return search

    def node_to_status(self, state: CycleState, pod: Pod, search: Search) -> NodeToStatus:
        """Return node → refusal, for all nodes that a finished search refused."""
        # A closure over `search` would be a reference cycle, freed only by a full collection.
        table, outcome, verdicts, absent = self.table, search.outcome, search.verdicts, search.absent

        def status(name: str) -> Status | None:
            row = table.row_of(name)
            if row is None:
                return None
            if outcome is not None and outcome.asked[row]:
                return outcome.status(state, pod, row)
            return verdicts.get(row, absent)

        def names() -> Iterator[str]:
            return (name for name in table.node_names() if status(name) is not None)

        def rows_with(code: Code) -> Rows:
            others = table.in_use.copy()
            found = np.zeros(table.size, np.bool_)
            if outcome is not None:
                found |= outcome.refused_with(code, state, pod)
                others &= ~outcome.asked
            if absent is not None and absent.code is code:
                found |= others
            for row, verdict in verdicts.items():
                if others[row]:
                    found[row] = verdict.code is code
            return np.flatnonzero(found)

        return NodeToStatus(names, status, rows_with)

    def refuse(self, state: CycleState, pod: Pod, search: Search, refusals: Mapping[str, Status], rest: Rows) -> None:
        """Remove the nodes that extenders refused, and the `rest`, which they left out without a reason.

        `refusals` may name nodes that were refused before, or that do not exist.
        """
        outcome, diagnosis, table = search.outcome, search.diagnosis, self.table
        assert outcome is not None, "extenders are asked about what Filter left"
        for row in rest.tolist():
            outcome.overrides[row] = search.absent or NO_REASON
        for name, status in refusals.items():
            row = table.row_of(name)
            if row is None:
                diagnosis.add(status, 1)
            elif outcome.asked[row]:
                outcome.overrides[row] = status
            else:
                search.verdicts[row] = status
        search.feasible = NO_ROWS
        self._diagnose(state, pod, search)

    def _nominated_node_fits(
        self, framework: Framework, state: CycleState, pod: Pod, search: Search, placement: BoolColumn | None
    ) -> bool:
        """Evaluate the nominated node first: a preemption made room there."""
        row = self.table.row_of(pod.nominated_node_name)
        if row is None or (placement is not None and not placement[row]):
            return False
        only = np.zeros(self.table.size, np.bool_)
        only[row] = True
        try:
            outcome = framework.run_filter(state, pod, only)
        except PluginError as error:
            # Other nodes may fit; if the plugin fails again among them, the error ends the attempt.
            fields = {"pod": str(pod), "node": pod.nominated_node_name, "err": str(error)}
            _logger.error("Evaluation failed on nominated node", extra=fields)
            framework.faults.report(error, pod)
            return False
        status = outcome.status(state, pod, row)
        if status is not None:
            search.verdicts[row] = status
            # kube-scheduler's set of names is shared with the text about nodes that PreFilter cut off.
            search.diagnosis.add_plugin(status)
            return False
        search.outcome, search.feasible, search.asked = outcome, outcome.feasible, 1
        search.is_by_nomination = True
        return True

    def _sample(self, framework: Framework, outcome: FilterOutcome, count: int) -> tuple[Rows, int]:
        """Cut the feasible nodes to the wanted percentage of `count`, from where the last search ended."""
        percentage = framework.percentage_of_nodes_to_score
        wanted = max(MIN_NODES_TO_FIND, count * percentage // 100)
        if percentage in (0, 100) or len(outcome.feasible) <= wanted:
            return outcome.feasible, count
        asked = np.flatnonzero(outcome.asked)
        start = self.next_start % len(asked)
        in_turn = np.concatenate([asked[start:], asked[:start]])
        places = np.flatnonzero(np.isin(in_turn, outcome.feasible, assume_unique=True))[:wanted]
        looked_at = int(places[-1]) + 1
        self.next_start = (start + looked_at) % len(asked)
        return np.sort(in_turn[places]), looked_at

    def _diagnose(self, state: CycleState, pod: Pod, search: Search) -> None:
        diagnosis = search.diagnosis
        assert search.outcome is not None, "diagnosis follows a search"
        search.outcome.count_into(diagnosis, state, pod)
        explicit = search.asked
        for row, status in search.verdicts.items():
            if not search.outcome.asked[row]:
                diagnosis.add(status, 1)
                explicit += 1
        if search.absent is not None and explicit < diagnosis.node_count:
            diagnosis.add(search.absent, diagnosis.node_count - explicit)
        diagnosis.node_to_status = self.node_to_status(state, pod, search)

    def _unplaced(self, framework: Framework, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> Unplaced:
        nominated: str | None = ""
        if may_make_room(framework, diagnosis):
            nominated = self._make_room(framework, state, pod, diagnosis)
        return unplaced_by(diagnosis, nominated)

    def _make_room(self, framework: Framework, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> str | None:
        """Run PostFilter and return the new nomination. If a plugin fails, the pod is still unschedulable."""
        try:
            result, status = framework.run_post_filter(state, pod, diagnosis)
        except PluginError as error:
            room_not_made(framework, pod, diagnosis, error)
            return None
        return room_made(diagnosis, result, status)

    def select(self, best: Sequence[int] | Rows, pod: Pod, attempt: int) -> int:
        """Choose one of the best rows by a hash of the pod: evenly spread, and the same in a replay.

        The attempt is part of the hash, or a node that refuses the binding would be chosen for ever.
        """
        if len(best) == 1:
            return int(best[0])
        digest = blake2b(f"{pod.uid}/{attempt}".encode(), key=self._seed, digest_size=8).digest()
        return int(best[int.from_bytes(digest, "little") % len(best)])


def may_make_room(framework: Framework, diagnosis: Diagnosis) -> bool:
    """Return whether PostFilter runs."""
    return framework.has_post_filter and POD_LIMITS not in diagnosis.unschedulable_plugins


def room_made(diagnosis: Diagnosis, result: PostFilterResult | None, status: Status | None) -> str | None:
    """Add PostFilter's answer to the diagnosis and return the new nomination."""
    diagnosis.post_filter_message = status.message if status is not None else ""
    if result is None:
        return None
    diagnosis.victims = result.victims
    return result.nominated_node_name


def room_not_made(framework: Framework, pod: Pod, diagnosis: Diagnosis, error: PluginError) -> None:
    """Report that PostFilter failed: the nomination stays."""
    framework.faults.report(error, pod)
    _logger.error("PostFilter plugin failed", extra={"pod": str(pod), "plugin": error.plugin, "err": str(error)})
    diagnosis.post_filter_message = str(error)


def refused_by(refusal: Status) -> Unplaced:
    """Return the result for a pod that a plugin of Reserve or Permit refused, in kube-scheduler's words."""
    diagnosis = Diagnosis(node_count=1)
    diagnosis.add(refusal, 1)
    return Unplaced(diagnosis.message, frozenset(diagnosis.unschedulable_plugins), frozenset(diagnosis.pending_plugins))


def unplaced_by(diagnosis: Diagnosis, nominated: str | None) -> Unplaced:
    """Return the result for a pod that fits no node."""
    return Unplaced(
        diagnosis.message,
        frozenset(diagnosis.unschedulable_plugins),
        frozenset(diagnosis.pending_plugins),
        nominated,
        diagnosis.refusals(),
        diagnosis.victims,
    )
