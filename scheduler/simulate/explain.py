"""The verdict on every node for one pod: which plugin refused it and why, or what each plugin scored."""

from typing import Any

import numpy as np

from scheduler.api.pod import Pod
from scheduler.cycle.algorithm import PRE_FILTER_RESULT, Algorithm, cut_off_by
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes import Rows
from scheduler.framework.status import Code, Status
from scheduler.runtime.framework import Framework
from scheduler.runtime.scoring import Scores
from scheduler.state.node_table import NodeTable


def explain_nodes(framework: Framework, algorithm: Algorithm, table: NodeTable, pod: Pod) -> dict[str, Any]:
    """Return node name → {"code", "scores", "total"} or {"code", "plugin", "reasons"}, sorted by name.

    Scores are weighted. Every feasible node is scored, also when it is the only one, or another one is nominated.
    Where a Score plugin fails there are no scores; where a Filter plugin fails the code is Error, on those nodes only,
    and where a PreFilter plugin fails, on all nodes. Raises PluginError if anything else fails.
    """
    if table.count == 0:
        return {}
    state, fits = CycleState(), False
    try:
        search = algorithm.search(framework, state, pod)
        fits = bool(len(search.feasible))
        if fits and pod.nominated_node_name:
            # The nominated node was evaluated first, and may be the only one that was: evaluate all of them alike.
            state = CycleState()
            search = algorithm.search(framework, state, pod, nominated_first=False)
    except PluginError as error:
        if error.point == "PreFilter":
            return dict.fromkeys(sorted(table.node_names()), _refusal(_failure(error)))
        if error.point != "Filter":
            raise
        return _one_by_one(framework, table, pod, is_scored=fits)
    verdicts = _feasible(framework, state, table, pod, search.feasible)
    for name, status in algorithm.node_to_status(state, pod, search).items():
        verdicts[name] = _refusal(status)
    return dict(sorted(verdicts.items()))


def _refusal(status: Status) -> dict[str, Any]:
    plugin = status.plugin or PRE_FILTER_RESULT
    return {"code": status.code.label, "plugin": plugin, "reasons": list(status.reasons)}


def _failure(error: PluginError) -> Status:
    return Status(Code.ERROR, (str(error),), error.plugin)


def _feasible(framework: Framework, state: CycleState, table: NodeTable, pod: Pod, rows: Rows) -> dict[str, Any]:
    verdicts: dict[str, Any] = {}
    names = table.names()
    scores = _scores(framework, state, pod, rows)
    for i, row in enumerate(rows.tolist()):
        verdicts[names[row]] = {"code": Code.SUCCESS.label}
        if scores is not None:
            by_plugin = {plugin: int(column[i]) for plugin, column in scores.by_plugin.items()}
            verdicts[names[row]] |= {"scores": by_plugin, "total": int(scores.total[i])}
    return verdicts


def _one_by_one(framework: Framework, table: NodeTable, pod: Pod, *, is_scored: bool) -> dict[str, Any]:
    """Evaluate node by node, so that one on which a plugin fails does not hide the verdicts on the rest.

    The attempt has failed, and no node was scored, unless the pod goes to its nominated node all the same.
    """
    verdicts: dict[str, Any] = {}
    state, diagnosis = CycleState(), Diagnosis(table.count)
    chosen, _ = framework.run_pre_filter(state, pod, diagnosis)
    for name in sorted(table.node_names()):
        if chosen is not None and name not in chosen:
            verdicts[name] = _refusal(cut_off_by(diagnosis))
            continue
        row = table.row_of(name)
        assert row is not None, "node_names() are rows in use"
        nominated = framework.handle.nominator.nominated_pods(name)
        before = [other for other in nominated if other.priority >= pod.priority and other.uid != pod.uid]
        try:
            status = framework.filtering.run_one_with_nominated(before, state, pod, row)
        except PluginError as error:
            status = _failure(error)
        verdicts[name] = {"code": Code.SUCCESS.label} if status is None else _refusal(status)
    if is_scored:
        rows = sorted(
            table.row_of(name) or 0 for name, verdict in verdicts.items() if verdict["code"] == Code.SUCCESS.label
        )
        verdicts |= _feasible(framework, state, table, pod, np.array(rows, np.intp))
    return verdicts


def _scores(framework: Framework, state: CycleState, pod: Pod, feasible: Rows) -> Scores | None:
    """Return the scores, or None if a plugin failed: the pod's message will say how."""
    if not len(feasible):
        return None
    try:
        return framework.run_score(state, pod, feasible)
    except PluginError:
        return None
