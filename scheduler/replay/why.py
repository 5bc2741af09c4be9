"""Why a pod would go elsewhere than it went: what the plugins say of both nodes, in the state of the decision."""

from typing import Any

from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.evaluation import Evaluation
from scheduler.framework.errors import SchedulerError
from scheduler.replay.player import Attempt
from scheduler.replay.trace.lines import Decision
from scheduler.runtime.framework import Framework

Document = dict[str, Any]


def why(algorithm: Algorithm, framework: Framework, attempt: Attempt, now: Decision) -> Document:
    """Return {"refused"?: {node: {"plugin", "message"}}, "scores"?: {node: {plugin: score}}, "tie"?, "error"?}.

    Scores are weighted. `tie`: both nodes are the best, and the choice among these is another one.
    """
    nodes = [name for name in dict.fromkeys((attempt.recorded.node, now.node)) if name]
    if not nodes:
        return {}
    algorithm.next_start = attempt.start
    found: Document = {}
    try:
        evaluation = Evaluation(algorithm, framework, attempt.pod, attempt.number)
        refused = {name: status for name in nodes if (status := evaluation.node_to_status.get(name)) is not None}
        feasible = [name for name in nodes if name in evaluation.feasible_names]
        scores = {name: evaluation.scores_of(name) for name in feasible} if len(feasible) > 1 else {}
    except SchedulerError as error:
        return {"error": str(error)}
    if refused:
        found["refused"] = {
            name: {"plugin": status.plugin, "message": status.message} for name, status in refused.items()
        }
    if scores:
        found["scores"] = scores
        if len({sum(of.values()) for of in scores.values()}) == 1:
            found["tie"] = True
    return found
