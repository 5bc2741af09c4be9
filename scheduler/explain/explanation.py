"""Puts an explanation together, in steps, so that a running scheduler can do other things between them."""

from collections.abc import Generator, Sequence
from dataclasses import asdict
from typing import Any, Final

from scheduler.api.pod import Pod
from scheduler.api.spelling import shortage as spelled_shortage
from scheduler.api.spelling import spelled_range
from scheduler.cycle.engine import Engine
from scheduler.explain.changes import WrittenPod
from scheduler.explain.groups import EVEN_EMPTY, NamedObstacle, NodeGroup, group_nodes, obstacles_of_pod
from scheduler.explain.judgement import Judgement, judge
from scheduler.explain.suggestions import Suggestion, suggestions
from scheduler.framework.errors import PluginError
from scheduler.framework.status import Status
from scheduler.runtime.framework import Framework
from scheduler.runtime.guards.plugin_faults import as_plugin_error
from scheduler.runtime.guards.return_values import check_status

MAX_NAMES: Final = 100
"""Of so many nodes of a group the names are told."""

MAX_GROUPS: Final = 100

MAX_SUGGESTIONS: Final = 10

Document = dict[str, Any]


def explain(engine: Engine, pod: Pod, written: WrittenPod | None = None) -> Generator[None, None, Document]:
    """Return what stands against a pod that has no node, and what would help. Between two steps anything may change.

    `written`: where the pod is written, for patches of that; by default it is as the engine has it.

    {"nodes": {"count", "fitting", "names"}, "gates": [obstacle], "obstacles": [obstacle],
     "groups": [{"count", "names", "obstacles"}], "moreGroups", "suggestions": [suggestion], "failures": [text]}

    obstacle: {"plugin", "code", "fact", "shortage"?: {"resource", "nearest", "least", "most", "wanted", "whenEmpty"}}
    suggestion: {"text", "count", "names", "patch"?, "object"?, "command"?, "obstacle"?}

    Amounts are in the units of `Pod.requests`.
    """
    framework, table = engine.frameworks[pod.spec.scheduler_name], engine.cache.table
    try:
        judgement = judge(framework, table, pod)
    except PluginError as error:
        return {"failures": [str(error)]}
    names = table.names()
    fitting = sorted(names[row] for row in judgement.fits.tolist())
    groups = yield from group_nodes(framework.plugins, table, judgement)
    of_pod = obstacles_of_pod(framework.plugins, judgement, judgement.of_pod)
    gates = obstacles_of_pod(framework.plugins, judgement, _gates(framework, judgement))
    document: Document = {
        "nodes": {"count": table.count, "fitting": len(fitting), "names": fitting[:MAX_NAMES]},
        "gates": [_told(each) for each in gates],
        "obstacles": [_told(each) for each in of_pod],
        "groups": [_group(each) for each in groups[:MAX_GROUPS]],
        "moreGroups": max(0, len(groups) - MAX_GROUPS),
        "suggestions": [],
    }
    if not fitting and not judgement.failures:
        found: list[Suggestion] = []
        for step in suggestions(engine, pod, groups, of_pod, written):
            if step is not None and all(step.text != other.text for other in found):
                found.append(step)
            yield
            if len(found) >= MAX_SUGGESTIONS:
                break
        document["suggestions"] = [_suggestion(each) for each in found]
    document["failures"] = [str(error) for error in judgement.failures]
    return document


def _gates(framework: Framework, judgement: Judgement) -> Sequence[Status]:
    """What the PreEnqueue plugins say, which keep a pod out of the queue."""
    found: list[Status] = []
    for plugin in framework.pre_enqueue:
        try:
            answer: Status | None = plugin.pre_enqueue(judgement.pod)
            status = None if answer is None else check_status(plugin.name, "PreEnqueue", plugin.pre_enqueue, answer)
        except BaseException as error:  # noqa: BLE001 - the plugin pays; nothing is awaited within
            judgement.failures.append(as_plugin_error("PreEnqueue", plugin.name, error))
            continue
        if status is not None:
            found.append(status.by(plugin.name))
    return found


def _told(each: NamedObstacle, group: NodeGroup | None = None) -> Document:
    nodes = 1 if group is None else len(group.nodes)
    told: Document = {"plugin": each.plugin, "code": each.code, "fact": each.obstacle.fact}
    if each.obstacle.example:
        told["fact"] += f" ({'for example ' if nodes > 1 else ''}{each.obstacle.example})"
    shortage = each.obstacle.shortage
    if shortage is not None:
        missing = shortage.missing, shortage.missing
        least, most = missing if group is None else group.ranges[shortage.resource]
        told["fact"] = spelled_shortage(shortage.resource, least, most, shortage.wanted)
        if shortage.when_empty:
            alone = shortage.when_empty, shortage.when_empty
            empty = alone if group is None else group.empty_ranges[shortage.resource]
            of_it = "" if empty == (least, most) else f"{spelled_range(shortage.resource, *empty)} of it "
            told["fact"] += f", {of_it}{EVEN_EMPTY}"
        told["shortage"] = {
            "resource": shortage.resource,
            "nearest": shortage.missing,
            "least": least,
            "most": most,
            "wanted": shortage.wanted,
            "whenEmpty": shortage.when_empty,
        }
    return told


def _group(group: NodeGroup) -> Document:
    obstacles = [_told(each, group) for each in group.obstacles]
    return {"count": len(group.nodes), "names": group.nodes[:MAX_NAMES], "obstacles": obstacles}


def _suggestion(each: Suggestion) -> Document:
    told: Document = {"text": each.text, "count": len(each.nodes), "names": each.nodes[:MAX_NAMES]}
    return told | {key: value for key, value in asdict(each).items() if key in _OPTIONAL and value}


_OPTIONAL: Final = ("patch", "object", "command", "obstacle")
