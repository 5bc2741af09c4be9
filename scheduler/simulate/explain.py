"""The verdict on every node for one pod: who refused it and why, or what each plugin scored."""

from typing import Any

from scheduler.api.pod import Pod
from scheduler.cycle.algorithm import PRE_FILTER_RESULT, Algorithm
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes import Rows
from scheduler.framework.runtime import Framework
from scheduler.framework.scoring import Scores
from scheduler.framework.status import Code, Status
from scheduler.state.node_table import NodeTable


def explain_nodes(framework: Framework, algorithm: Algorithm, table: NodeTable, pod: Pod) -> dict[str, Any]:
    """Return node name → {"code", "scores", "total"} or {"code", "plugin", "reasons"}, sorted by name.

    Scores are weighted. Every feasible node is scored, also when it is the only one, or another one is nominated.
    Where a Score plugin fails there are no scores; where a Filter plugin fails the code is Error, on those nodes only.
    Raises PluginError if PreFilter fails.
    """
    if table.count == 0:
        return {}
    state = CycleState()
    try:
        search = algorithm.search(framework, state, pod)
        if len(search.feasible) and pod.nominated_node_name:
            # The nominated node was asked first, and may be the only one that was: judge all of them alike.
            state = CycleState()
            search = algorithm.search(framework, state, pod, nominated_first=False)
    except PluginError as error:
        if error.point != "Filter":
            raise
        return _each_by_itself(framework, state, table, pod)
    verdicts: dict[str, Any] = {}
    names = table.names()
    scores = _scores(framework, state, pod, search.feasible)
    for i, row in enumerate(search.feasible.tolist()):
        verdicts[names[row]] = {"code": Code.SUCCESS.label}
        if scores is not None:
            by_plugin = {plugin: int(column[i]) for plugin, column in scores.by_plugin.items()}
            verdicts[names[row]] |= {"scores": by_plugin, "total": int(scores.total[i])}
    for name, status in algorithm.node_to_status(state, pod, search).items():
        verdicts[name] = _refusal(status)
    return dict(sorted(verdicts.items()))


def _refusal(status: Status) -> dict[str, Any]:
    plugin = status.plugin or PRE_FILTER_RESULT
    return {"code": status.code.label, "plugin": plugin, "reasons": list(status.reasons)}


def _each_by_itself(framework: Framework, state: CycleState, table: NodeTable, pod: Pod) -> dict[str, Any]:
    """Ask node by node, so that one on which a plugin fails does not hide what is said of the others."""
    verdicts: dict[str, Any] = {}
    for name in sorted(table.node_names()):
        row = table.row_of(name)
        assert row is not None, "node_names() are rows in use"
        try:
            status = framework.filtering.run_one(state, pod, row)
        except PluginError as error:
            status = Status(Code.ERROR, (str(error),), error.plugin)
        verdicts[name] = {"code": Code.SUCCESS.label} if status is None else _refusal(status)
    return verdicts


def _scores(framework: Framework, state: CycleState, pod: Pod, feasible: Rows) -> Scores | None:
    """The scores, or None if a plugin failed: the decision itself tells how, and says so in the pod's message."""
    if not len(feasible):
        return None
    try:
        return framework.run_score(state, pod, feasible)
    except PluginError:
        return None
