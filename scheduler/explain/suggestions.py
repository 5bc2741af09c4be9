"""What would help a pending pod. Nothing is suggested that was not found to work by deciding again with it.

Candidates come from four places: what the plugins say would remove their obstacles, group by group of nodes; the pods
of lower priority that would have to go; and one more node like those there are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Final

import numpy as np

from scheduler.api.decoding import Unreadable
from scheduler.api.labels import HOSTNAME
from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.explain.changes import Operation, change
from scheduler.explain.groups import NamedObstacle, NodeGroup, remedies_for
from scheduler.explain.judgement import Judgement, judge
from scheduler.framework.errors import PluginError
from scheduler.framework.obstacles import Change, ExplainRoomPlugin, Remedy, Room
from scheduler.framework.plugin import PostFilterPlugin
from scheduler.framework.status import Code, Status
from scheduler.runtime.framework import Framework
from scheduler.state.node_table import NodeTable

MAX_GROUPS: Final = 8
"""Of so many groups of nodes, the nearest ones, remedies are tried."""

MAX_ROOMS: Final = 3
MAX_SHAPES: Final = 8
"""Of so many kinds of nodes it is asked whether one more would do."""

POOL_LABELS: Final = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "pool",
    "node.kubernetes.io/instance-type",
)
"""By these, nodes are taken for alike; the first one that a node has counts."""


@dataclass(slots=True)
class Suggestion:
    """A change after which the pod fits somewhere."""

    text: str
    nodes: list[str]
    """Where it would fit then, the first by name."""

    patch: list[Operation] = field(default_factory=list)
    """A JSON Patch of the pod; empty if the cluster is to be changed."""

    command: str = ""
    obstacle: str = ""
    """Why it does not happen by itself, though it would help."""


def suggestions(
    framework: Framework,
    table: NodeTable,
    pod: Pod,
    groups: Sequence[NodeGroup],
    of_pod: Sequence[NamedObstacle],
) -> Iterator[Suggestion | None]:
    """Yield what would help. Each step takes about as long as a decision; None is a step that found nothing."""
    yield from _remedies(framework, table, pod, groups[:MAX_GROUPS], of_pod)
    if not of_pod:
        yield from _rooms(framework, table, pod)
        yield from _one_more_node(framework, table, pod, groups)


def _remedies(
    framework: Framework,
    table: NodeTable,
    pod: Pod,
    groups: Sequence[NodeGroup],
    of_pod: Sequence[NamedObstacle],
) -> Iterator[Suggestion | None]:
    first = [each.obstacle.remedies for each in of_pod]
    if not all(first):
        return
    always = tuple(remedies[0] for remedies in first)
    works: list[frozenset[str]] = []
    if always and not groups:
        groups = [NodeGroup([""], (), {})]
    for group in groups:
        for remedies in remedies_for(group):
            wanted = (*always, *remedies)
            changes = _each_once(change for remedy in wanted for change in remedy.changes)
            texts = frozenset(remedy.text for remedy in wanted)
            if not wanted or any(enough <= texts for enough in works):
                continue
            found = _tried(framework, table, pod, wanted, changes, group.nodes[0])
            if found is not None:
                works.append(texts)
            yield found


def _each_once(changes: Iterable[Change]) -> list[Change]:
    found: list[Change] = []
    for each in changes:
        if each not in found:
            found.append(each)
    return found


def _tried(
    framework: Framework,
    table: NodeTable,
    pod: Pod,
    remedies: Sequence[Remedy],
    changes: Sequence[Change],
    node: str,
) -> Suggestion | None:
    try:
        other, patch = change(pod, changes)
        fits = judge(framework, table, other).fits
    except (Unreadable, ValueError, PluginError):
        return None
    names = table.names()
    text = " and ".join(dict.fromkeys(remedy.text for remedy in remedies))
    commands = [remedy.command for remedy in remedies if remedy.command]
    if not commands:
        return Suggestion(text, sorted(names[row] for row in fits.tolist()), patch) if len(fits) else None
    if table.row_of(node) not in fits.tolist():
        return None
    patch = change(pod, _each_once(each for remedy in remedies if not remedy.command for each in remedy.changes))[1]
    return Suggestion(text, [node], patch, " && ".join(dict.fromkeys(commands)))


def _rooms(framework: Framework, table: NodeTable, pod: Pod) -> Iterator[Suggestion | None]:
    judgement = judge(framework, table, pod)  # anew: others had their turn since the last time
    for plugin in framework.plugins.of("post_filter", PostFilterPlugin):
        if isinstance(plugin, ExplainRoomPlugin) and not judgement.failures:
            try:
                rooms = plugin.rooms(judgement.state, judgement.pod, _first_refusals(table, judgement))
            except Exception:  # noqa: BLE001 - it has nothing to suggest; what is wrong with it shows in its attempts
                rooms = ()
            for room in rooms[:MAX_ROOMS]:
                yield of_room(room)


def of_room(room: Room) -> Suggestion:
    """Suggest to delete the pods that are in the way."""
    count = len(room.victims)
    pods = "1 pod" if count == 1 else f"{count} pods"
    names = [str(victim) for victim in room.victims]
    text = f"delete {pods} of lower priority on {room.node_name} ({', '.join(names[:3])}{', …' if count > 3 else ''})"
    if room.budgets:
        budgets = "the disruption budget" if len(room.budgets) == 1 else "the disruption budgets"
        text += f", against {budgets} {' and '.join(room.budgets)}"
    by_namespace: dict[str, list[str]] = {}
    for victim in room.victims:
        by_namespace.setdefault(victim.namespace, []).append(victim.name)
    commands = (
        f"kubectl delete pod --namespace {quote(where)} {' '.join(map(quote, them))}"
        for where, them in by_namespace.items()
    )
    return Suggestion(text, [room.node_name], command=" && ".join(commands), obstacle=room.obstacle)


def _first_refusals(table: NodeTable, judgement: Judgement) -> dict[str, Status]:
    """What a decision would have said of each node: the first refusal alone."""
    names = table.names()
    found: dict[str, Status] = {}
    for row in np.flatnonzero(judgement.in_use & ~judgement.passing).tolist():
        first = next(judgement.refusals_of(row), None)
        if first is not None:
            found[names[row]] = first[1]
    return found


def _one_more_node(
    framework: Framework, table: NodeTable, pod: Pod, groups: Sequence[NodeGroup]
) -> Iterator[Suggestion | None]:
    """Ask whether the pod would fit on a node of each kind without the pods there that are not of DaemonSets.

    Those pods stay where they are, so what they mean to the whole zone is no matter of one more node.
    """
    if _names_a_node(pod):
        return
    shapes: dict[str, str] = {}
    for group in groups:
        if all(each.code == Code.UNSCHEDULABLE.label and not each.obstacle.is_of_domain for each in group.obstacles):
            for name in group.nodes:
                node = table.node(name)
                if node is not None and len(shapes) < MAX_SHAPES:
                    shapes.setdefault(_shape(node), name)
    for shape, name in shapes.items():
        row = table.row_of(name)
        if row is None:
            continue
        others = [other for other in table.info(row).pods if not _is_of_daemon_set(other)]
        with table.what_if(row, remove=others):
            fits = row in judge(framework, table, pod).fits.tolist()
        like = f"of {shape}, like {name}," if "=" in shape else f"like {name}"
        yield Suggestion(f"one more node {like} would do", [name]) if fits else None


def _shape(node: Node) -> str:
    """The pool that a node is of; without such a label, how large it is."""
    for key in POOL_LABELS:
        if key in node.labels:
            return f"{key}={node.labels[key]}"
    return str(sorted((node.status.allocatable or {}).items()))


def _is_of_daemon_set(pod: Pod) -> bool:
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or ())


def _names_a_node(pod: Pod) -> bool:
    """Whether only nodes of a certain name will do: another one does not help."""
    spec = pod.spec
    if spec.node_name or HOSTNAME in (spec.node_selector or ()):
        return True
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    terms = required.node_selector_terms or () if required is not None else ()
    return any(
        term.match_fields or any(each.key == HOSTNAME for each in term.match_expressions or ()) for term in terms
    )
