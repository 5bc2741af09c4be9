"""The verdict on every node for one pod: which plugin refused it and why, or what each plugin scored."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import PRE_FILTER_RESULT, Algorithm, cut_off_by
from scheduler.cycle.evaluation import Evaluation
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes.nodes import Rows
from scheduler.framework.preemption.nominated import yields_to
from scheduler.framework.status import Code, Status
from scheduler.runtime.framework import Framework
from scheduler.runtime.scoring import Scores
from scheduler.simulate.verdicts import FEASIBLE, NOT_ASKED, NodeOrder, NodeVerdicts
from scheduler.state.nodes.node_table import NodeTable


class NodeEvaluator:
    """Evaluates pods on all nodes of a table, to which no nodes are added."""

    def __init__(self, algorithm: Algorithm, table: NodeTable) -> None:
        self._algorithm = algorithm
        self._table = table
        self._order: Final = NodeOrder({name: table.row_of(name) or 0 for name in table.node_names()})

    def verdicts(self, framework: Framework, pod: Pod) -> NodeVerdicts:
        """Return the verdict on each node: {"code", "scores", "total"} or {"code", "plugin", "reasons"}.

        Scores are weighted. Every feasible node is scored, also when it is the only one, or another one is nominated.
        Where a Score plugin fails there are no scores; where a Filter plugin fails the code is Error, on those nodes
        only, and where a PreFilter plugin fails, on all nodes. Raises PluginError if anything else fails.
        """
        if self._table.count == 0:
            return self._verdicts((), None, np.arange(0))
        fits = False
        try:
            found = Evaluation(self._algorithm, framework, pod)
            fits = bool(len(found.feasible))
            if fits and pod.nominated_node_name:
                # The nominated node was evaluated first, and may be the only one that was: evaluate all of them alike.
                found = Evaluation(self._algorithm, framework, pod, nominated_first=False)
        except PluginError as error:
            if error.point == "PreFilter":
                return self._verdicts([(_failure(error), self._order.rows)], None, np.arange(0))
            if error.point != "Filter":
                raise
            return self._one_by_one(framework, pod, is_scored=fits)
        scores = _scores(framework, found.state, pod, found.feasible)
        return self._verdicts(found.refusals(), scores, found.feasible)

    def _verdicts(self, refusals: Iterable[tuple[Status, Rows]], scores: Scores | None, feasible: Rows) -> NodeVerdicts:
        which = np.full(self._table.size, NOT_ASKED, np.int32)
        which[feasible] = FEASIBLE
        verdicts: list[dict[str, Any]] = []
        for status, rows in refusals:
            plugin = status.plugin or PRE_FILTER_RESULT
            verdicts.append({"code": status.code.label, "plugin": plugin, "reasons": list(status.reasons)})
            which[rows] = len(verdicts)
        which = which[self._order.rows]
        if scores is None:
            return NodeVerdicts(self._order, which, verdicts, None)
        place = np.zeros(self._table.size, np.intp)
        place[feasible] = np.arange(len(feasible))
        by_name = place[self._order.rows[which == FEASIBLE]]
        by_plugin = {plugin: _narrow(column[by_name]) for plugin, column in scores.by_plugin.items()}
        return NodeVerdicts(self._order, which, verdicts, Scores(_narrow(scores.total[by_name]), by_plugin))

    def _one_by_one(self, framework: Framework, pod: Pod, *, is_scored: bool) -> NodeVerdicts:
        """Evaluate node by node, so that one on which a plugin fails does not hide the verdicts on the rest.

        The attempt has failed, and no node was scored, unless the pod goes to its nominated node all the same.
        """
        state, diagnosis = CycleState(), Diagnosis(self._table.count)
        chosen, _ = framework.run_pre_filter(state, pod, diagnosis)
        refusals: list[tuple[Status, Rows]] = []
        feasible = []
        for name, row in zip(self._order.names, self._order.rows.tolist(), strict=True):
            if chosen is not None and name not in chosen:
                status: Status | None = cut_off_by(diagnosis)
            else:
                status = self._one(framework, state, pod, name, row)
            if status is None:
                feasible.append(row)
            else:
                refusals.append((status, np.array([row], np.intp)))
        rows = np.array(sorted(feasible), np.intp)
        return self._verdicts(refusals, _scores(framework, state, pod, rows) if is_scored else None, rows)

    def _one(self, framework: Framework, state: CycleState, pod: Pod, name: str, row: int) -> Status | None:
        nominator = framework.handle.nominator
        before = [other for other in nominator.nominated_pods(name) if yields_to(pod, other, name, nominator)]
        try:
            return framework.filtering.run_one_with_nominated(before, state, pod, row)
        except PluginError as error:
            return _failure(error)


def _failure(error: PluginError) -> Status:
    return Status(Code.ERROR, (str(error),), error.plugin)


def _scores(framework: Framework, state: CycleState, pod: Pod, feasible: Rows) -> Scores | None:
    """Return the scores, or None if a plugin failed: the pod's message will say how."""
    if not len(feasible):
        return None
    try:
        return framework.run_score(state, pod, feasible)
    except PluginError:
        return None


def _narrow(column: Any) -> Any:
    """The same numbers in half the memory, if they fit."""
    return column.astype(np.int32) if len(column) and np.abs(column).max() < 1 << 31 else column.copy()
