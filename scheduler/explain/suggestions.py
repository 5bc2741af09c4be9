"""What would help a pending pod. Nothing is suggested that was not found to work by deciding again with it.

Candidates come from four places: what the plugins say would remove their obstacles, group by group of nodes; the pods
of lower priority that would have to go; and one more node like those there are. What changes the cluster is tried out
as such (`trials.py`).
"""

from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, Final

import numpy as np

from scheduler.api.decoding import Unreadable
from scheduler.api.labels import ZONES
from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.api.selectors import pod_selector_keys
from scheduler.cycle.engine import Engine
from scheduler.explain.changes import WrittenPod, change
from scheduler.explain.documents import Suggestion
from scheduler.explain.groups import MAX_NAMES, NamedObstacle, NodeGroup, remedies_for
from scheduler.explain.judgement import Judgement, judge
from scheduler.explain.trials import Trials
from scheduler.framework.errors import PluginError
from scheduler.framework.obstacles import Change, ExplainPreemptionPlugin, PossiblePreemption, Remedy
from scheduler.framework.plugin import PostFilterPlugin
from scheduler.framework.status import Status
from scheduler.runtime.framework import Framework
from scheduler.state.new_nodes import lasting_taints, names_of
from scheduler.state.node_table import NodeTable

MAX_GROUPS: Final = 8
"""Of so many groups of nodes, the nearest ones, remedies are tried."""

MAX_SINGLES: Final = 24
"""So many remedies are tried alone: one of them may be enough, though it is of one obstacle of several."""

MAX_PREEMPTIONS: Final = 3
MAX_MODELS: Final = 16
"""Of so many nodes it is asked whether one more like it would do."""

NODES_IN_A_STEP: Final = 500

_ELSEWHERE: Final = "preemption deletes pods only on the node that it makes room on"

POOL_LABELS: Final = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "pool",
    "node.kubernetes.io/instance-type",
)
"""By these, nodes are taken for alike; the first one that a node has counts."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about."""

    framework: Framework
    table: NodeTable
    trials: Trials
    pod: Pod
    written: WrittenPod | None

    def patched(self, changes: Iterable[Change]) -> tuple[Pod, dict[str, Any]]:
        """Return the changed pod, and what a suggestion says of the patch. Raises ValueError, Unreadable."""
        other, patch = change(self.pod, changes, self.written)
        written = self.written
        if not patch or written is None or written.kind == "Pod":
            return other, {"patch": patch}
        of = {"kind": written.kind, "namespace": written.namespace, "name": written.name}
        return other, {"patch": patch, "object": of}


def suggestions(
    engine: Engine,
    pod: Pod,
    groups: Sequence[NodeGroup],
    of_pod: Sequence[NamedObstacle],
    written: WrittenPod | None = None,
) -> Iterator[Suggestion | None]:
    """Yield what would help. Each step takes about as long as a decision; None is a step that found nothing."""
    framework = engine.frameworks[pod.spec.scheduler_name]
    asked = Asked(framework, engine.cache.table, Trials(engine, framework), pod, written)
    yield from _remedies(asked, groups[:MAX_GROUPS], of_pod)
    if not of_pod:
        yield from _rooms(asked)
        yield from _pods_in_the_way(asked, groups[:MAX_GROUPS])
        yield from _one_more_node(asked, groups)


def _remedies(
    asked: Asked, groups: Sequence[NodeGroup], of_pod: Sequence[NamedObstacle]
) -> Iterator[Suggestion | None]:
    first = [each.obstacle.remedies for each in of_pod]
    if not all(first):
        return
    always = tuple(remedies[0] for remedies in first)
    seen: set[frozenset[str]] = set()
    works: list[frozenset[str]] = []
    if always and not groups:
        groups = [NodeGroup([""], (), {})]
    for group, remedies in _wanted(groups):
        wanted = (*always, *remedies)
        texts = frozenset(remedy.text for remedy in wanted)
        if not wanted or texts in seen or any(enough <= texts for enough in works):
            continue
        seen.add(texts)
        found = _tried(asked, wanted, group.nodes[0])
        if found is not None:
            works.append(texts)
        yield found


def _wanted(groups: Sequence[NodeGroup]) -> Iterator[tuple[NodeGroup, Sequence[Remedy]]]:
    """Yield what is to be tried for each group: each remedy alone, then those that remove all of its obstacles."""
    if groups and not groups[0].obstacles:
        yield groups[0], ()
    singles = 0
    for group in groups:
        for remedy in (remedy for each in group.obstacles for remedy in each.obstacle.remedies):
            if singles < MAX_SINGLES:
                singles += 1
                yield group, (remedy,)
    for group in groups:
        yield from ((group, remedies) for remedies in remedies_for(group))


def _each_once(changes: Iterable[Change]) -> list[Change]:
    found: list[Change] = []
    for each in changes:
        if each not in found:
            found.append(each)
    return found


def _tried(asked: Asked, remedies: Sequence[Remedy], node_name: str) -> Suggestion | None:
    try:
        other, _ = asked.patched(_each_once(change for remedy in remedies for change in remedy.changes))
        own = (change for remedy in remedies if not remedy.command for change in remedy.changes)
        _, patch = asked.patched(_each_once(own))
        text = " and ".join(dict.fromkeys(remedy.text for remedy in remedies))
        commands = dict.fromkeys(remedy.command for remedy in remedies if remedy.command)
        if not commands:
            nodes = asked.trials.nodes_for(other)
            return _suggestion(text, nodes, **patch) if nodes else None
        node = _node_after(remedies, asked.table.node(node_name))
        if node is None or node.name != node_name:
            return None
        fits = asked.trials.fits_changed(other, node)
    except (Unreadable, ValueError, PluginError):
        return None
    return _suggestion(text, [node_name], command=" && ".join(commands), **patch) if fits else None


def _node_after(remedies: Iterable[Remedy], node: Node | None) -> Node | None:
    """What remedies make of a node; None if one of them fails: then it is no remedy."""
    for remedy in remedies:
        if remedy.node is not None and node is not None:
            try:
                node = remedy.node(node)
            except Exception:  # noqa: BLE001 - a plugin's
                return None
    return node if isinstance(node, Node) else None


def _rooms(asked: Asked) -> Iterator[Suggestion | None]:
    try:
        judgement = judge(asked.framework, asked.table, asked.pod)  # anew: others had their turn since the last time
    except PluginError:
        return
    for plugin in asked.framework.plugins.of("post_filter", PostFilterPlugin):
        if isinstance(plugin, ExplainPreemptionPlugin) and not judgement.failures:
            suggested = 0
            for option in _possible_preemptions(plugin, asked, judgement):
                is_true = option is not None and asked.trials.fits_without(asked.pod, option.node_name, option.victims)
                yield of_preemption(option) if option is not None and is_true else None
                suggested += is_true
                if suggested == MAX_PREEMPTIONS:
                    break


def _possible_preemptions(
    plugin: ExplainPreemptionPlugin, asked: Asked, judgement: Judgement
) -> Iterator[PossiblePreemption | None]:
    try:
        yield from plugin.possible_preemptions(judgement.state, judgement.pod, _first_refusals(asked.table, judgement))
    except Exception:  # noqa: BLE001 - it has nothing more to suggest; what is wrong with it shows in its attempts
        return


def _pods_in_the_way(asked: Asked, groups: Sequence[NodeGroup]) -> Iterator[Suggestion | None]:
    """Ask where the pod would fit without one of lower priority, wherever that is: a preemption does not look there."""
    seen: set[str] = set()
    for other in (each.obstacle.in_the_way for group in groups for each in group.obstacles):
        if other is not None and other.priority < asked.pod.priority and other.uid not in seen:
            seen.add(other.uid)
            nodes = asked.trials.nodes_without(asked.pod, other)
            yield of_preemption(PossiblePreemption(other.node_name, (other,), _ELSEWHERE), nodes) if nodes else None


def of_preemption(found: PossiblePreemption, nodes: list[str] | None = None) -> Suggestion:
    """Suggest to delete the pods that are in the way. `nodes`: where the pod fits then, if not on the same node."""
    count = len(found.victims)
    pods = "1 pod" if count == 1 else f"{count} pods"
    names = [str(victim) for victim in found.victims]
    text = f"delete {pods} of lower priority on {found.node_name} ({', '.join(names[:3])}{', …' if count > 3 else ''})"
    if found.budgets:
        budgets = "the disruption budget" if len(found.budgets) == 1 else "the disruption budgets"
        text += f", against {budgets} {' and '.join(found.budgets)}"
    by_namespace: dict[str, list[str]] = {}
    for victim in found.victims:
        by_namespace.setdefault(victim.namespace, []).append(victim.name)
    commands = (
        f"kubectl delete pod --namespace {quote(where)} {' '.join(map(quote, them))}"
        for where, them in by_namespace.items()
    )
    return _suggestion(text, nodes or [found.node_name], command=" && ".join(commands), obstacle=found.obstacle)


def _suggestion(text: str, nodes: Sequence[str], **more: Any) -> Suggestion:
    return Suggestion(text, len(nodes), nodes[:MAX_NAMES], **more)


def _first_refusals(table: NodeTable, judgement: Judgement) -> dict[str, Status]:
    """What a decision would have said of each node: the first refusal alone."""
    names = table.names()
    found: dict[str, Status] = {}
    left = judgement.in_use & ~judgement.passing
    for step, codes in judgement.refusals:
        refused = left & (codes != 0)
        for code in np.unique(codes[refused]).tolist():
            status = step.status(judgement.state, judgement.pod, code)
            found.update((names[row], status) for row in np.flatnonzero(refused & (codes == code)).tolist())
        left &= ~refused
    found.update((names[row], judgement.others[row][0]) for row in np.flatnonzero(left).tolist())
    return found


def _one_more_node(asked: Asked, groups: Sequence[NodeGroup]) -> Iterator[Suggestion | None]:
    """Ask whether one more node like another would do; of those of a kind that would, one is named."""
    found: set[str] = set()
    models = yield from _models(asked, groups)
    for kind, name in models:
        if kind in found:
            continue
        fits = asked.trials.fits_new(asked.pod, name)
        if fits:
            found.add(kind)
        like = f"of {kind}, like {name}," if "=" in kind else f"like {name}"
        yield _suggestion(f"one more node {like} would do", [name]) if fits else None


def _models(asked: Asked, groups: Sequence[NodeGroup]) -> Generator[None, None, list[tuple[str, str]]]:
    """Return the kinds and names of some nodes, the nearest misses first.

    Of each shape comes one, then the rest: pods that come with one node may not come with another.
    """
    keys = {*ZONES, *(pod_selector_keys(asked.pod) or ())}
    keys.update(each.topology_key for each in asked.pod.spec.topology_spread_constraints or ())
    first: dict[Hashable, tuple[str, str]] = {}
    others: list[tuple[str, str]] = []
    for place, name in enumerate(name for group in groups for name in group.nodes):
        if place % NODES_IN_A_STEP == NODES_IN_A_STEP - 1:
            yield
        node = asked.table.node(name)
        if node is None:
            continue
        kind = _kind(node)
        own = names_of(node)
        labels = frozenset(
            (key, value) for key in keys if (value := node.labels.get(key)) is not None and value not in own
        )
        shape = (kind, labels, frozenset(lasting_taints(node)))
        if shape in first:
            if len(others) < MAX_MODELS:
                others.append((kind, name))
        elif len(first) < MAX_MODELS:
            first[shape] = kind, name
    return [*first.values(), *others][:MAX_MODELS]


def _kind(node: Node) -> str:
    """The pool that a node is of; without such a label, how large it is."""
    for key in POOL_LABELS:
        if key in node.labels:
            return f"{key}={node.labels[key]}"
    return str(sorted((node.status.allocatable or {}).items()))
