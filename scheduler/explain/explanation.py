"""Explains why a pod has no node. A running scheduler runs other tasks meanwhile."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from scheduler.api.pods.pod import Pod
from scheduler.api.quantities.quantity import parse_quantity
from scheduler.api.wording.spelling import shortage as spelled_shortage
from scheduler.api.wording.spelling import spelled_range
from scheduler.engine.engine import Engine
from scheduler.explain.changes import WrittenPod
from scheduler.explain.documents import (
    Explanation,
    FittingNodes,
    ReportedGroup,
    ReportedObstacle,
    ShortageRange,
    Suggestion,
)
from scheduler.explain.full_evaluation import FullEvaluation, evaluate_fully
from scheduler.explain.groups import EVEN_EMPTY, MAX_NAMES, NamedObstacle, NodeGroup, group_nodes, obstacles_of_pod
from scheduler.explain.suggestions import suggestions
from scheduler.framework.errors import PluginError
from scheduler.framework.status import Status
from scheduler.process.time_slice import TimeSlice
from scheduler.runtime.framework import Framework
from scheduler.runtime.guards.plugin_faults import as_plugin_error
from scheduler.runtime.guards.return_values import check_status

MAX_GROUPS: Final = 100

MAX_SUGGESTIONS: Final = 10


async def explain(engine: Engine, pod: Pod, written: WrittenPod | None = None) -> Explanation:
    """Explain why a pod has no node. The cluster may change meanwhile.

    `written`: the object that defines the pod, to which patches apply; the pod itself by default.
    """
    framework, table = engine.frameworks[pod.spec.scheduler_name], engine.cache.table
    try:
        evaluation = evaluate_fully(framework, engine.algorithm, pod)
    except PluginError as error:
        return Explanation(failures=(str(error),))
    names = table.names()
    fitting = sorted(names[row] for row in evaluation.fits.tolist())
    nodes = FittingNodes(table.count, len(fitting), fitting[:MAX_NAMES])
    time_slice = TimeSlice()
    groups = await group_nodes(framework.plugins, table, evaluation, time_slice)
    of_pod = obstacles_of_pod(framework.plugins, evaluation, evaluation.of_pod)
    gates = obstacles_of_pod(framework.plugins, evaluation, _gates(framework, evaluation))
    found: list[Suggestion] = []
    if not fitting and not evaluation.failures:
        for step in suggestions(engine, pod, groups, of_pod, written):
            if step is not None:
                found = with_smallest(found, step)
            await time_slice.give_way()
            if len(found) >= MAX_SUGGESTIONS:
                break
    return Explanation(
        nodes,
        gates=[_reported(each) for each in gates],
        obstacles=[_reported(each) for each in of_pod],
        groups=[_reported_group(each) for each in groups[:MAX_GROUPS]],
        more_groups=max(0, len(groups) - MAX_GROUPS),
        suggestions=found,
        failures=[str(error) for error in evaluation.failures],
    )


def _gates(framework: Framework, evaluation: FullEvaluation) -> Sequence[Status]:
    """Return the refusals of PreEnqueue plugins, which keep a pod out of the queue."""
    found: list[Status] = []
    for plugin in framework.pre_enqueue:
        try:
            answer: Status | None = plugin.pre_enqueue(evaluation.pod)
            status = None if answer is None else check_status(plugin.name, "PreEnqueue", plugin.pre_enqueue, answer)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything; nothing is awaited
            evaluation.failures.append(as_plugin_error("PreEnqueue", plugin.name, error))
            continue
        if status is not None:
            found.append(status.by(plugin.name))
    return found


def _reported(each: NamedObstacle, group: NodeGroup | None = None) -> ReportedObstacle:
    nodes = 1 if group is None else len(group.nodes)
    shortage = each.obstacle.shortage
    if shortage is None:
        example = f"{'for example ' if nodes > 1 else ''}{each.obstacle.example}"
        fact = each.obstacle.fact + (f" ({example})" if each.obstacle.example else "")
        return ReportedObstacle(each.plugin, each.code, fact)
    missing = shortage.missing, shortage.missing
    least, most = missing if group is None else group.ranges[shortage.resource]
    fact = spelled_shortage(shortage.resource, least, most, shortage.wanted)
    if shortage.when_empty:
        alone = shortage.when_empty, shortage.when_empty
        empty = alone if group is None else group.empty_ranges[shortage.resource]
        of_it = "" if empty == (least, most) else f"{spelled_range(shortage.resource, *empty)} of it "
        fact += f", {of_it}{EVEN_EMPTY}"
    amounts = ShortageRange(
        shortage.resource, shortage.missing, least, most, wanted=shortage.wanted, when_empty=shortage.when_empty
    )
    return ReportedObstacle(each.plugin, each.code, fact, amounts)


def _reported_group(group: NodeGroup) -> ReportedGroup:
    return ReportedGroup(
        len(group.nodes), group.nodes[:MAX_NAMES], [_reported(each, group) for each in group.obstacles]
    )


def with_smallest(found: Iterable[Suggestion], one: Suggestion) -> list[Suggestion]:
    """Return suggestions with one more, without those that contain another one."""
    known = list(found)
    if any(each.text == one.text or _contains(one, each) for each in known):
        return known
    return [*(each for each in known if not _contains(each, one)), one]


def _contains(larger: Suggestion, smaller: Suggestion) -> bool:
    """Return whether all that one suggestion changes, or more of it, is in another one, for no more nodes."""
    if not (smaller.patch or smaller.command) or larger.object != smaller.object:
        return False
    if not larger.command and larger.count > smaller.count:
        return False
    commands = larger.command.split(" && ")
    if smaller.command and not all(each in commands for each in smaller.command.split(" && ")):
        return False
    return all(any(_is_as_large(other, each) for other in larger.patch) for each in smaller.patch)


def _is_as_large(operation: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether an operation of a JSON Patch does the same as another one, or lowers the same request further."""
    if operation == other:
        return True
    path = operation["path"]
    if path != other["path"] or operation["op"] == "remove" or not ("/requests/" in path or "/limits/" in path):
        return False
    try:
        return parse_quantity(operation["value"]) <= parse_quantity(other["value"])
    except (ValueError, TypeError, KeyError):
        return False
