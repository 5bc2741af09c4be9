"""The verdict on every node for one pod: who refused it and why, or what each plugin scored."""

from typing import Any

from scheduler.api.pod import Pod
from scheduler.cycle.algorithm import PRE_FILTER_RESULT, Algorithm
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.runtime import Framework
from scheduler.framework.status import Code
from scheduler.state.node_table import NodeTable


def explain_nodes(framework: Framework, algorithm: Algorithm, table: NodeTable, pod: Pod) -> dict[str, Any]:
    """Return node name → {"code", "scores", "total"} or {"code", "plugin", "reasons"}, sorted by name.

    Scores are weighted. Every feasible node is scored, also when it is the only one. Raises PluginError.
    """
    if table.count == 0:
        return {}
    state = CycleState()
    search = algorithm.search(framework, state, pod)
    verdicts: dict[str, Any] = {}
    if len(search.feasible):
        scores = framework.run_score(state, pod, search.feasible)
        names = table.names()
        for i, row in enumerate(search.feasible.tolist()):
            verdicts[names[row]] = {
                "code": Code.SUCCESS.label,
                "scores": {plugin: int(column[i]) for plugin, column in scores.by_plugin.items()},
                "total": int(scores.total[i]),
            }
    for name, status in algorithm.node_to_status(state, pod, search).items():
        verdicts[name] = {
            "code": status.code.label,
            "plugin": status.plugin or PRE_FILTER_RESULT,
            "reasons": list(status.reasons),
        }
    return dict(sorted(verdicts.items()))
