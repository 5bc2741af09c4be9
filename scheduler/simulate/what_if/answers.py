"""Carries out the questions, in this order:

before ─► nodes added ─► nodes to drain cordoned ─► shares changed ─► nodes removed ─► waiting pods ─► drains ─► copies
─► after
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from scheduler.api.groups.owners import is_of_daemon_set, node_of
from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.near_names import near_names
from scheduler.config.types import Config
from scheduler.explain.explanation import explain
from scheduler.framework.errors import ConfigError
from scheduler.process.progress import SILENT, Progress
from scheduler.runtime.registry import Registry
from scheduler.simulate.apiserver.defaults import DEFAULT_SCHEDULER
from scheduler.simulate.apiserver.validation import short
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.engine import Simulation, adopted, simulate, simulation_of
from scheduler.simulate.on_hold import described
from scheduler.simulate.other_objects import written_pod
from scheduler.simulate.what_if.added_nodes import on_it_alone, with_nodes
from scheduler.simulate.what_if.budgets import Budgets
from scheduler.simulate.what_if.evictions import Evictions, cordoned
from scheduler.simulate.what_if.groups import GroupCopies, group_copies
from scheduler.simulate.what_if.questions import MAX_COPIES, Questions, node_problems
from scheduler.simulate.what_if.quotas import check, difference, with_quotas
from scheduler.simulate.what_if.templates import Copy, Template, copies_of, own_pods, template_of
from scheduler.simulate.what_if.utilisation import utilisation

Document = dict[str, Any]


def answered(
    cluster: SimulatedCluster,
    questions: Questions,
    config: Config,
    registry: Registry,
    *,
    each_alone: bool = False,
    explain: bool = False,
    progress: Progress = SILENT,
) -> Document:
    """Return what `simulate` does, "notes", and "whatIf": {"added"?, "quota"?, "removed"?, "drained"?, "copies"?,
    "utilisation"}.

    added: {"like", "nodes": [name], "without": {kind: number of objects that are on the node they are like alone}};
    quota: {"changes": see `Changed`, and what `difference` returns};
    removed, drained: see `Emptied.document`; copies: see `_place_copies`; utilisation: {"before", "after"}. Pods that
    come for others have "replaces" and "evictedFrom". Raises ConfigError.
    """
    problems = list(node_problems(questions, {node.name for node in cluster.nodes}))
    template = _template(cluster, questions, problems)
    budgets = Budgets(cluster.others if questions.drain else (), cluster.pods, problems)
    if problems:
        raise ConfigError(problems)
    before = utilisation(cluster.nodes, cluster.pods)
    copies = copies_of(template, cluster) if template is not None else iter(())
    groups = tuple(obj for obj in cluster.others if obj.label.startswith("PodGroup ")) if template is not None else ()
    changed, document = _changed(cluster, questions, template)
    assert cluster.creation is not None, "a cluster that was read has one"
    stays = {pod.uid for pod in changed.pods}
    waiting: list[Document] = []
    if questions.quota:
        waiting = _placed_before(changed, config, registry, each_alone=each_alone, progress=progress)
        changed, config, changes = with_quotas(changed, config, questions.quota)
        document["quota"] = {"changes": changes}
    new = [(pod, 1) for _, pod in cluster.creation.pods if pod.uid in stays]
    with simulation_of(changed, config, registry, progress, shows_writes=not each_alone) as simulation:
        check(simulation.engine, questions.quota)

        async def run() -> None:
            evictions = Evictions(simulation, budgets)
            removed = [await evictions.remove(_named(changed.nodes, name)) for name in questions.remove]
            await simulation.start(explain=explain)
            if each_alone:
                await simulation.decide_each()
            else:
                await _place_waiting(simulation, budgets)
            drained = [await evictions.drain(name) for name in questions.drain]
            for what, emptied in (("removed", removed), ("drained", drained)):
                if emptied:
                    document[what] = [each.document() for each in emptied]
            if template is not None:
                pods = tuple(adopted(cluster.pods, config))
                document["copies"] = await _place_copies(
                    simulation, template, copies, questions, config, new, lambda *of: group_copies(pods, groups, *of)
                )

        simulation.run(run())
        kept = [node for node in changed.nodes if node.name not in questions.remove]
        after = utilisation(kept, simulation.engine.pods.values())
        document["utilisation"] = {"before": before, "after": after}
        notes = cluster.creation.quota_notes((pod.namespace, number) for pod, number in new)
        pods = list(simulation.results.values())
        if questions.quota:
            document["quota"] |= difference(waiting, pods)
        return {"notes": notes, **simulation.groups(), "pods": pods, "whatIf": document}


def _placed_before(
    cluster: SimulatedCluster, config: Config, registry: Registry, *, each_alone: bool, progress: Progress
) -> list[Document]:
    """Return what becomes of the waiting pods with the shares as they are."""
    others = cluster.others.mapped(lambda each: each)
    result = simulate(cluster.nodes, cluster.pods, config, registry, others, each_alone=each_alone, progress=progress)
    return result["pods"]


def is_short(document: Document) -> bool:
    """Return whether fewer copies fit than were asked for, or a pod of a drained node could not be evicted."""
    answers = document.get("whatIf", {})
    copies = answers.get("copies")
    is_refused = any(each["refused"] for each in answers.get("drained", ()))
    return is_refused or (copies is not None and copies["placed"] < (copies["asked"] or 0))


def _template(cluster: SimulatedCluster, questions: Questions, problems: list[str]) -> Template | None:
    if not questions.copies:
        return None
    try:
        return template_of(cluster, questions.of)
    except ConfigError as error:
        problems += error.problems
        return None


def _changed(
    cluster: SimulatedCluster, questions: Questions, template: Template | None
) -> tuple[SimulatedCluster, Document]:
    """The cluster of the question, without the pods that go, and {"added"?}: see `answered`."""
    changed, document = cluster, Document()
    if questions.add:  # first: the node that they are like may be one that goes
        without = on_it_alone(_named(cluster.nodes, questions.like), cluster.others)
        changed, added = with_nodes(cluster, questions.add, questions.like)
        document["added"] = {"like": questions.like, "nodes": added, "without": dict(without)}
    own = own_pods(template, cluster) if template is not None else set()
    gone = set(questions.remove)
    pods = tuple(
        pod
        for pod in changed.pods
        if pod.uid not in own and (pod.node_name or not (is_of_daemon_set(pod) and node_of(pod) in gone))
    )
    nodes = tuple(cordoned(node) if node.name in questions.drain else node for node in changed.nodes)
    return replace(changed, nodes=nodes, pods=pods), document


async def _place_waiting(simulation: Simulation, budgets: Budgets) -> None:
    await simulation.schedule_waiting()
    simulation.rest()
    for pod in simulation.placed():
        budgets.give(pod)


def _named(nodes: Iterable[Node], name: str) -> Node:
    return next(node for node in nodes if node.name == name)


async def _place_copies(
    simulation: Simulation,
    template: Template,
    copies: Iterator[Copy],
    questions: Questions,
    config: Config,
    new: list[tuple[Pod, int]],
    of_group: Callable[[Simulation, Copy, Iterator[Copy]], GroupCopies | None],
) -> Document:
    """Return {"of", "asked", "placed", "nodes": {name: number}, "groupSize"?, "waiting"?, "next"?}.

    asked: None for as many as fit. Those that fit are added to the `new` pods: one, and how many like it.

    groupSize: how many pods each copy has, if they are scheduled together: `of_group` returns copies of whole groups

    waiting: how many copies Permit plugins hold at the end, and what the first of them waits for: {"number", "name",
    "message", "permit"}

    next, the first copy that does not fit: {"name", "message", "gated"?, "nominatedNode", "victims", "explanation"}
    """
    nodes = Counter[str]()
    document: Document = {"of": str(template), "asked": questions.count, "placed": 0, "nodes": nodes}
    first = _asking_us(next(copies), config)
    together = of_group(simulation, first, copies)
    refused: list[Pod] = []
    if together is None:
        held, refused = await _place_alone(simulation, chain([first], copies), questions, config, nodes)
        await simulation.on_hold.let_time_pass()
        simulation.on_hold.show()
        document |= _of_held(simulation, held, nodes, refused)
        document["placed"] = nodes.total()
    else:
        document["groupSize"] = together.size
        document["placed"], held = await _place_together(simulation, together, questions, config, nodes)
        refused = [pod for pod in held if simulation.results[pod.uid]["node"] is None][:1]
    if refused:
        document["next"] = await _next(simulation, refused[0], template)
    for pod in {pod.uid: pod for pod in (*held, *refused)}.values():
        del simulation.results[pod.uid]
    if nodes:
        new.append((first[0], nodes.total()))
    document["nodes"] = dict(sorted(nodes.items(), key=lambda each: (-each[1], each[0])))
    if questions.fill and not refused and (together is not None or nodes.total() == MAX_COPIES):
        document["stopped"] = True
    return document


async def _place_alone(
    simulation: Simulation, copies: Iterator[Copy], questions: Questions, config: Config, nodes: Counter[str]
) -> tuple[list[Pod], list[Pod]]:
    """Place copies until one does not fit, and count them on `nodes`; return those on hold, and that one."""
    held, refused = list[Pod](), list[Pod]()
    for each in simulation.progress.counted(islice(copies, questions.copies), "placing copies", questions.count or 0):
        copy, objects = _asking_us(each, config)
        simulation.add_objects(objects)
        (result,) = await simulation.place_all([copy])
        if result["node"] is not None:
            nodes[result["node"]] += 1
            del simulation.results[copy.uid]
        elif simulation.engine.loop.is_binding(copy.uid):
            held.append(copy)
        else:
            refused.append(copy)
            break
    return held, refused


async def _place_together(
    simulation: Simulation, copies: GroupCopies, questions: Questions, config: Config, nodes: Counter[str]
) -> tuple[int, list[Pod]]:
    """Place whole groups until not all pods of one have a node; return how many that have, and the pods of that one."""
    most = max(1, min(questions.copies, MAX_COPIES // copies.size))
    wanted = simulation.progress.counted(islice(copies, most), "placing groups", questions.count or 0)
    for placed, (group, objects) in enumerate(wanted):
        pods = [_asking_us((pod, []), config)[0] for pod in group]
        simulation.add_objects(objects)
        results = await simulation.place_all(pods)
        await simulation.on_hold.let_time_pass()
        if any(result["node"] is None for result in results):
            return placed, pods
        nodes.update(result["node"] for result in results)
        for pod in pods:
            del simulation.results[pod.uid]
    return most, []


def _of_held(simulation: Simulation, held: Iterable[Pod], nodes: Counter[str], refused: list[Pod]) -> Document:
    """Count the copies that were on hold where they are now, and return {"waiting"?}: see `_place_copies`."""
    waiting = {each.pod.uid: each for each in simulation.on_hold}
    still = [waiting[pod.uid] for pod in held if pod.uid in waiting]
    for pod in held:
        result = simulation.results[pod.uid]
        if result["node"] is not None:
            nodes[result["node"]] += 1
        elif pod.uid not in waiting:
            refused.append(pod)
    return {"waiting": {"number": len(still), "name": str(still[0].pod), **described(still[0])}} if still else {}


async def _next(simulation: Simulation, pod: Pod, template: Template) -> Document:
    """Why a copy does not fit: see `_place_copies`."""
    result = simulation.results[pod.uid]
    keys = ("message", "gated", "nominatedNode", "victims")
    kept: Document = {key: result[key] for key in keys if key in result} | simulation.group_of(pod)
    simulation.engine.nominator.delete(pod.uid)
    explained = await explain(simulation.engine, pod, written_pod(pod, template.source))
    return {"name": str(pod), **kept, "explanation": explained}


def _asking_us(copy: Copy, config: Config) -> Copy:
    """Return a copy that asks one of our profiles. Raises ConfigError."""
    (pod,) = adopted([copy[0]], config)
    _check_asks_us(pod, config)
    return pod, copy[1]


def _check_asks_us(pod: Pod, config: Config) -> None:
    if pod.node_name:
        raise ConfigError([f"{pod}: spec.nodeName is {short(pod.node_name)}, so no scheduler is asked where it goes"])
    names = [profile.scheduler_name for profile in config.profiles]
    if pod.spec.scheduler_name not in names:
        near = near_names(pod.spec.scheduler_name, [*names, DEFAULT_SCHEDULER])
        hint = f": did you mean {near[0]!r}?" if near else f"; the profiles are {', '.join(names)}"
        raise ConfigError([f"{pod}: spec.schedulerName is {pod.spec.scheduler_name!r}, another scheduler's{hint}"])
