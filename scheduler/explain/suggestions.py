"""Suggests changes that would help a pending pod. Each was tried out: the pod fits a node with it.

Candidates come from four places: what the plugins say would remove their obstacles, group by group of nodes; the pods
of lower priority that would have to go; and one more node like the existing ones. Changes to the cluster are tried out
in its tables (`trials.py`).
"""

from collections.abc import Collection, Generator, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import compress
from operator import not_
from shlex import quote
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from scheduler.api.decoding import Unreadable
from scheduler.api.groups.owners import controller_of
from scheduler.api.labels import HOSTNAME, ZONES
from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.api.selectors import pod_selector_keys
from scheduler.api.wording.text import counted
from scheduler.engine.engine import Engine
from scheduler.explain.changes import WrittenPod, change
from scheduler.explain.documents import Suggestion
from scheduler.explain.full_evaluation import FullEvaluation
from scheduler.explain.groups import MAX_NAMES, NamedObstacle, NodeGroup, remedies_for
from scheduler.explain.trials import Trials
from scheduler.framework.errors import PluginError
from scheduler.framework.obstacles import Change, ExplainPreemptionPlugin, PodInTheWay, PossiblePreemption, Remedy
from scheduler.framework.plugin import PostFilterPlugin
from scheduler.framework.status import Status
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.new_nodes import lasting_taints, names_of
from scheduler.state.nodes.node_table import NodeTable

MAX_GROUPS: Final = 8
"""Groups of nodes whose remedies are tried, the nearest misses first."""

MAX_SINGLES: Final = 24
"""Remedies that are tried alone: one may be enough although there are several obstacles."""

MAX_PREEMPTIONS: Final = 3
MAX_PODS: Final = 3
"""Pods that are named."""

MAX_PRIORITY: Final = 1_000_000_000
"""The highest of a PriorityClass that is not the system's."""

_EQUALS: Final = "the same priority"
MAX_MODELS: Final = 16
"""Nodes for which one more like it is tried."""

NODES_IN_A_STEP: Final = 500

POOL_LABELS: Final = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "pool",
    "node.kubernetes.io/instance-type",
)
"""Labels of node pools, by precedence: nodes with the same value are alike."""


_Try: TypeAlias = tuple[str, Sequence[Remedy]]
"""A node, and remedies that may make the pod fit there."""


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod to try changes for."""

    framework: Framework
    table: NodeTable
    trials: Trials
    pod: Pod
    written: WrittenPod | None

    def patched(self, changes: Iterable[Change]) -> tuple[Pod, dict[str, Any]]:
        """Return the changed pod, and the suggestion's fields about the patch. Raises ValueError, Unreadable."""
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
    """Yield suggestions. Each step takes about as long as a decision; None is a step without result."""
    framework = engine.frameworks[pod.spec.scheduler_name]
    pending = PendingPod(framework, engine.cache.table, Trials(engine, framework), pod, written)
    first_choice, last_resorts = _remedies(groups[:MAX_GROUPS], of_pod)
    works: list[frozenset[str]] = []
    yield from _those_that_help(pending, first_choice, works)
    if not of_pod:
        priority, in_the_way = pod.priority, _pods_in_the_way(groups[:MAX_GROUPS])
        lower = [each for each in in_the_way if each.pod.priority < priority]
        may_preempt = yield from _preemptions(pending)
        helps = yield from _without_one(pending, lower, "lower priority")
        yield from _one_more_node(pending, groups)
        if not (may_preempt or helps or (yield from _among_equals(pending))):
            owner = controller_of(pod)
            equal = [each for each in in_the_way if each.pod.priority == priority]
            others = [each for each in equal if owner is None or owner != controller_of(each.pod)]
            yield from _without_one(pending, others, _EQUALS)
    yield from _those_that_help(pending, last_resorts, works)


def _remedies(groups: Sequence[NodeGroup], of_pod: Sequence[NamedObstacle]) -> tuple[list[_Try], list[_Try]]:
    """Return what to try, and what to try after all else."""
    first = [each.obstacle.remedies for each in of_pod]
    if not all(first):
        return [], []
    always = tuple(remedies[0] for remedies in first)
    if always and not groups:
        groups = [NodeGroup([""], (), {})]
    every = [(group.nodes[0], (*always, *remedies)) for group, remedies in _wanted(groups)]
    are_last = [any(remedy.is_last_resort for remedy in remedies) for _, remedies in every]
    return [*compress(every, map(not_, are_last))], [*compress(every, are_last)]


def _those_that_help(
    pending: PendingPod, some: Iterable[_Try], works: list[frozenset[str]]
) -> Iterator[Suggestion | None]:
    """Try remedies. `works`: those that are known to help; what contains them is not tried."""
    seen: set[frozenset[str]] = set()
    for node_name, remedies in some:
        texts = frozenset(remedy.text for remedy in remedies)
        if not remedies or texts in seen or any(enough <= texts for enough in works):
            continue
        seen.add(texts)
        found = _tried(pending, remedies, node_name)
        if found is not None:
            works.append(texts)
        yield found


def _wanted(groups: Sequence[NodeGroup]) -> Iterator[tuple[NodeGroup, Sequence[Remedy]]]:
    """Yield remedies to try for each group: each alone, then those that together remove all of its obstacles."""
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


def _tried(pending: PendingPod, remedies: Sequence[Remedy], node_name: str) -> Suggestion | None:
    try:
        other, _ = pending.patched(_each_once(change for remedy in remedies for change in remedy.changes))
        own = (change for remedy in remedies if not remedy.command for change in remedy.changes)
        _, patch = pending.patched(_each_once(own))
        text = " and ".join(dict.fromkeys(remedy.text for remedy in remedies))
        commands = " && ".join(dict.fromkeys(remedy.command for remedy in remedies if remedy.command))
        on_node = any(remedy.node is not None for remedy in remedies)
        with pending.trials.objects(each for remedy in remedies for each in remedy.objects):
            if not commands or (not on_node and any(remedy.objects for remedy in remedies)):
                nodes = pending.trials.nodes_for(other)
                return _suggestion(text, nodes, command=commands, **patch) if nodes else None
            node = _node_after(remedies, pending.table.node(node_name))
            if node is None or node.name != node_name:
                return None
            fits = pending.trials.fits_changed(other, node)
    except (Unreadable, ValueError, PluginError):
        return None
    return _suggestion(text, [node_name], command=commands, **patch) if fits else None


def _node_after(remedies: Iterable[Remedy], node: Node | None) -> Node | None:
    """Return the node with the remedies applied; None if one of them fails."""
    for remedy in remedies:
        if remedy.node is not None and node is not None:
            try:
                node = remedy.node(node)
            except Exception:  # noqa: BLE001 - a plugin may raise anything
                return None
    return node if isinstance(node, Node) else None


def _preemptions(pending: PendingPod) -> Generator[Suggestion | None, None, bool]:
    """Try without pods of lower priority; return whether that would help."""
    suggested = 0
    for option in _options(pending, pending.pod):
        yield None if option is None else of_preemption(option)
        suggested += option is not None
        if suggested == MAX_PREEMPTIONS:
            break
    return bool(suggested)


def _among_equals(pending: PendingPod) -> Generator[Suggestion | None, None, bool]:
    """Try what a preemption could do if the priority of the pod was higher by one, and without those pods.

    Return whether that would help.
    """
    priority = pending.pod.priority
    spec = msgspec.structs.replace(pending.pod.spec, priority=priority + 1)
    higher = Pod(metadata=pending.pod.metadata, spec=spec, status=pending.pod.status)
    owner = controller_of(pending.pod)
    for option in _options(pending, higher):
        # Another pod of its own workload would come back in its place.
        if option is None or (owner is not None and owner in map(controller_of, option.victims)):
            yield None
            continue
        staying = [each for each in option.victims if not each.is_deleting]
        if staying and not option.obstacle and priority < MAX_PRIORITY:
            victims = f"{counted(len(staying), 'pod')}, for example on {option.node_name} ({names_of_pods(staying)})"
            text = f"give it a priority above {priority}, by a PriorityClass: it could then evict {victims}"
            does = pending.trials.may_preempt(higher, option.node_name)
            yield _suggestion(text, [option.node_name]) if does else None
        yield of_preemption(replace(option, obstacle="preemption deletes only pods of lower priority"), of=_EQUALS)
        if staying:
            return True
    return False


def _options(pending: PendingPod, pod: Pod) -> Iterator[PossiblePreemption | None]:
    """Yield what each plugin could do for the pod, tried out; None is a step without result."""
    try:
        # The first evaluation may be out of date: other tasks have run since.
        evaluation = pending.trials.evaluated(pod)
    except PluginError:
        return
    for plugin in pending.framework.plugins.of("post_filter", PostFilterPlugin):
        if isinstance(plugin, ExplainPreemptionPlugin) and not evaluation.failures:
            for option in _possible_preemptions(plugin, pending, evaluation):
                helps = option is not None and pending.trials.fits_without(pod, option.node_name, option.victims)
                yield option if helps else None


def _possible_preemptions(
    plugin: ExplainPreemptionPlugin, pending: PendingPod, evaluation: FullEvaluation
) -> Iterator[PossiblePreemption | None]:
    try:
        yield from plugin.possible_preemptions(
            evaluation.state, evaluation.pod, _first_refusals(pending.table, evaluation)
        )
    except Exception:  # noqa: BLE001 - a plugin may raise anything; its attempts report it
        return


def _pods_in_the_way(groups: Sequence[NodeGroup]) -> Collection[PodInTheWay]:
    """Return the pods that obstacles name, on any node, each once: preemption does not consider them."""
    found: dict[str, PodInTheWay] = {}
    for each in (each for group in groups for each in group.in_the_way):
        found.setdefault(each.pod.uid, each)
    return found.values()


def _without_one(
    pending: PendingPod, others: Iterable[PodInTheWay], of: str
) -> Generator[Suggestion | None, None, bool]:
    """Try without each pod; return whether that would help."""
    helps = False
    for other in others:
        nodes = pending.trials.nodes_without(pending.pod, other.pod, other.objects)
        found = PossiblePreemption(other.pod.node_name, (other.pod,), other.no_preemption)
        yield of_preemption(found, nodes, of=of) if nodes else None
        helps |= bool(nodes)
    return helps


def of_preemption(
    found: PossiblePreemption, nodes: list[str] | None = None, *, of: str = "lower priority"
) -> Suggestion:
    """Suggest to delete the victims, or to wait for those that are leaving.

    `nodes`: where the pod fits then, if not on the same node.
    """
    leaving = [each for each in found.victims if each.is_deleting]
    staying = [each for each in found.victims if not each.is_deleting]
    where = nodes or [found.node_name]
    wait = f"wait until {_leaving(leaving)}" if leaving else ""
    if not staying:
        return _suggestion(wait, where)
    text = f"delete {counted(len(staying), 'pod')} of {of} on {found.node_name} ({names_of_pods(staying)})"
    text += f", and {wait}" if wait else ""
    if found.budgets:
        budgets = "the disruption budget" if len(found.budgets) == 1 else "the disruption budgets"
        text += f", against {budgets} {' and '.join(found.budgets)}"
    return _suggestion(text, where, command=deletion_of(staying), obstacle=found.obstacle)


def deletion_of(pods: Iterable[Pod]) -> str:
    by_namespace: dict[str, list[str]] = {}
    for pod in pods:
        by_namespace.setdefault(pod.namespace, []).append(pod.name)
    return " && ".join(
        f"kubectl delete pod --namespace {quote(namespace)} {' '.join(map(quote, names))}"
        for namespace, names in by_namespace.items()
    )


def names_of_pods(pods: Sequence[Pod]) -> str:
    return ", ".join(map(str, pods[:MAX_PODS])) + (", …" if len(pods) > MAX_PODS else "")


def _leaving(pods: Sequence[Pod]) -> str:
    """Say who is leaving, since when, and what holds the first of them."""
    if len(pods) > 1:
        return f"{names_of_pods(pods)} have left, which are being deleted"
    (pod,) = pods
    names = ", ".join(pod.metadata.finalizers or ())
    holds = f", and held by its finalizers: {names}" if names else ""
    return f"{pod} has left {pod.node_name}: it is being deleted{_since(pod)}{holds}"


def _since(pod: Pod) -> str:
    """Say when the deletion of a pod began: its timestamp is when it ought to end."""
    try:
        ends = datetime.fromisoformat(pod.metadata.deletion_timestamp or "")
        began = ends - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
    except (ValueError, OverflowError):
        return ""
    return f" since {began:%Y-%m-%dT%H:%M:%SZ}"


def _suggestion(text: str, nodes: Sequence[str], **more: Any) -> Suggestion:
    return Suggestion(text, len(nodes), nodes[:MAX_NAMES], **more)


def _first_refusals(table: NodeTable, evaluation: FullEvaluation) -> dict[str, Status]:
    """Return node → its first refusal, as in a decision."""
    names = table.names()
    found: dict[str, Status] = {}
    left = evaluation.in_use & ~evaluation.passing
    for step, codes in evaluation.refusals:
        refused = left & (codes != 0)
        for code in np.unique(codes[refused]).tolist():
            status = step.status(evaluation.state, evaluation.pod, code)
            found.update((names[row], status) for row in np.flatnonzero(refused & (codes == code)).tolist())
        left &= ~refused
    found.update((names[row], evaluation.others[row][0]) for row in np.flatnonzero(left).tolist())
    return found


def _one_more_node(pending: PendingPod, groups: Sequence[NodeGroup]) -> Iterator[Suggestion | None]:
    """Try one more node like another. One node of each kind that would do is named."""
    found: set[str] = set()
    models = yield from _models(pending, groups)
    for kind, name in models:
        if kind in found:
            continue
        fits = pending.trials.fits_new(pending.pod, name)
        if fits:
            found.add(kind)
        like = f"of {kind}, like {name}," if "=" in kind else f"like {name}"
        yield _suggestion(f"one more node {like} would do", [name]) if fits else None
    if not found:
        yield from _node_of_new_domain(pending, [name for _, name in models])


def _node_of_new_domain(pending: PendingPod, models: Sequence[str]) -> Iterator[Suggestion | None]:
    """Try one more node like another, but in a zone of its own, if the pod is spread over zones."""
    constraints = pending.pod.spec.topology_spread_constraints or ()
    for key in dict.fromkeys(each.topology_key for each in constraints if each.topology_key != HOSTNAME):
        for name in models:
            fits = pending.trials.fits_new(pending.pod, name, key)
            yield _suggestion(f"one more node like {name}, but with another {key}, would do", [name]) if fits else None
            if fits:
                break


def _models(pending: PendingPod, groups: Sequence[NodeGroup]) -> Generator[None, None, list[tuple[str, str]]]:
    """Return the kinds and names of some nodes, the nearest misses first.

    One of each shape comes first, then the rest: a new node of another kind may get other DaemonSet pods.
    """
    keys = {*ZONES, *(pod_selector_keys(pending.pod) or ())}
    keys.update(each.topology_key for each in pending.pod.spec.topology_spread_constraints or ())
    first: dict[Hashable, tuple[str, str]] = {}
    others: list[tuple[str, str]] = []
    for place, name in enumerate(name for group in groups for name in group.nodes):
        if place % NODES_IN_A_STEP == NODES_IN_A_STEP - 1:
            yield
        node = pending.table.node(name)
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
    """Return the pool of a node; without a pool label, its size."""
    for key in POOL_LABELS:
        if key in node.labels:
            return f"{key}={node.labels[key]}"
    return str(sorted((node.status.allocatable or {}).items()))
