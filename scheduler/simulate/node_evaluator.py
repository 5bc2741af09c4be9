"""The verdict on every node for one pod: which plugin refused it and why, or what each plugin scored."""

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
from scheduler.state.nodes.node_table import NodeTable

NOT_ASKED: Final = -1
FEASIBLE: Final = 0

Verdict = dict[str, Any]
"""{"code", "scores", "total"} or {"code", "plugin", "reasons"}."""


class NodeVerdicts(Mapping[str, Verdict]):
    """Node name → verdict, for the nodes that were asked, by name.

    They are kept as columns: two million, those of 400 pods on 5,000 nodes, take 100 MiB, and 2 GiB as dictionaries.
    """

    def __init__(
        self, names: Sequence[str], which: NDArray[np.int32], refusals: Sequence[Verdict], scores: Scores | None
    ) -> None:
        """`which`: for each name NOT_ASKED, FEASIBLE, or the place of its refusal, counted from 1.

        `scores`: of the feasible nodes, by name.
        """
        self._names = names
        self._which = which
        self._refusals = refusals
        self._scores = scores

    def as_dict(self) -> dict[str, Verdict]:
        feasible, places = self._feasible(), self._which.tolist()
        return {
            name: next(feasible) if which == FEASIBLE else self._refusals[which - 1]
            for name, which in zip(self._names, places, strict=True)
            if which != NOT_ASKED
        }

    def _feasible(self) -> Iterator[Verdict]:
        code = Code.SUCCESS.label
        if self._scores is None:
            return repeat({"code": code})
        plugins = tuple(self._scores.by_plugin)
        rows = np.column_stack([*self._scores.by_plugin.values(), self._scores.total]).tolist()
        return ({"code": code, "scores": dict(zip(plugins, row, strict=False)), "total": row[-1]} for row in rows)

    def items(self) -> ItemsView[str, Verdict]:
        return self.as_dict().items()

    def __getitem__(self, name: str) -> Verdict:
        return self.as_dict()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.as_dict())

    def __len__(self) -> int:
        return int(np.count_nonzero(self._which != NOT_ASKED))


class NodeEvaluator:
    """Evaluates pods on all nodes of a table, to which no nodes are added."""

    def __init__(self, algorithm: Algorithm, table: NodeTable) -> None:
        self._algorithm = algorithm
        self._table = table
        self._names: Final = sorted(table.node_names())
        self._rows: Final = np.array([table.row_of(name) for name in self._names], np.intp)

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
                return self._verdicts([(_failure(error), self._rows)], None, np.arange(0))
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
        which = which[self._rows]
        if scores is None:
            return NodeVerdicts(self._names, which, verdicts, None)
        place = np.zeros(self._table.size, np.intp)
        place[feasible] = np.arange(len(feasible))
        by_name = place[self._rows[which == FEASIBLE]]
        by_plugin = {plugin: _narrow(column[by_name]) for plugin, column in scores.by_plugin.items()}
        return NodeVerdicts(self._names, which, verdicts, Scores(_narrow(scores.total[by_name]), by_plugin))

    def _one_by_one(self, framework: Framework, pod: Pod, *, is_scored: bool) -> NodeVerdicts:
        """Evaluate node by node, so that one on which a plugin fails does not hide the verdicts on the rest.

        The attempt has failed, and no node was scored, unless the pod goes to its nominated node all the same.
        """
        state, diagnosis = CycleState(), Diagnosis(self._table.count)
        chosen, _ = framework.run_pre_filter(state, pod, diagnosis)
        refusals: list[tuple[Status, Rows]] = []
        feasible = []
        for name, row in zip(self._names, self._rows.tolist(), strict=True):
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
