"""Why a pod would go elsewhere than it went: what the plugins say of both nodes, in the state of the decision."""

from typing import Any

from scheduler.cycle.algorithm import Algorithm, Search
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import SchedulerError
from scheduler.replay.player import Attempt
from scheduler.replay.trace.lines import Decision
from scheduler.runtime.framework import Framework

Document = dict[str, Any]


def why(algorithm: Algorithm, framework: Framework, attempt: Attempt, now: Decision) -> Document:
    """Return {"refused"?: {node: {"plugin", "message"}}, "scores"?: {node: {plugin: score}}, "tie"?, "error"?}.

    Scores are weighted. `tie`: both nodes are the best, and the choice among these is another one.
    """
    nodes = [name for name in (attempt.recorded.node, now.node) if name]
    told: Document = {}
    if not nodes:
        return told
    state, pod = CycleState(), attempt.pod
    state.attempt = attempt.number
    algorithm.next_start = attempt.start
    try:
        search = algorithm.search(framework, state, pod)
        statuses = algorithm.node_to_status(state, pod, search)
        refused = {name: status for name in nodes if (status := statuses.get(name)) is not None}
        if refused:
            told["refused"] = {
                name: {"plugin": status.plugin, "message": status.message} for name, status in refused.items()
            }
        scores = _scores(algorithm, framework, state, attempt, search)
    except SchedulerError as error:
        return {"error": str(error)}
    found = {name: of for name in dict.fromkeys(nodes) if (of := scores.get(name)) is not None}
    if len(found) > 1:
        told["scores"] = found
        totals = {sum(of.values()) for of in found.values()}
        if len(totals) == 1:
            told["tie"] = True
    return told


def _scores(
    algorithm: Algorithm, framework: Framework, state: CycleState, attempt: Attempt, search: Search
) -> dict[str, dict[str, int]]:
    if len(search.feasible) < 2:
        return {}
    names = algorithm.table.names()
    made = framework.run_score(state, attempt.pod, search.feasible)
    return {
        names[row]: {plugin: int(column[place]) for plugin, column in made.by_plugin.items()}
        for place, row in enumerate(search.feasible.tolist())
    }
