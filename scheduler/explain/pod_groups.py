"""Reports the state of a group of pods, and why it waits.

States:

    missing        pods name it, and it does not exist
    invalid        its object, its annotations or its pods contradict themselves
    incomplete     it has fewer pods than it needs, or fewer that may be tried
    queued         it is next for an attempt
    unschedulable, waiting for preemption, failed: what its last attempt came to
    placed, partly placed
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from scheduler.api.groups.owners import controller_of
from scheduler.api.groups.workloads import WORKLOADS
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import counted, some_of, timestamp
from scheduler.config.defaults import COSCHEDULING
from scheduler.engine.engine import Engine
from scheduler.explain.documents import GroupMember, GroupReport
from scheduler.explain.waiting import STATES, in_queue, refused_by
from scheduler.framework.groups.pod_groups import PodGroup, PodGroups
from scheduler.framework.queued import QueuedPod, in_order
from scheduler.groups.apis.owners import named_by
from scheduler.groups.records import GroupRecord, GroupRecords, nearest
from scheduler.groups.refusals import refused_at_once

MAX_MEMBERS: Final = 100
"""Members without a node that are listed."""

MAX_TRIED: Final = 1_000
"""Members of a group that is tried here: together they take a tenth of a second."""

RESULTS: Final = {
    "unschedulable": "unschedulable",
    "waiting_on_preemption": "waiting for preemption",
    "error": "failed",
}
"""Result of a decision → state."""

QUEUED: Final = "queued"
GATED: Final = "gated"

MAX_NAMED: Final = 3
"""Pods that a sentence names."""

MAX_SCHEDULER: Final = 63
"""Characters of a scheduler's name that are shown."""

Place = tuple[str, QueuedPod]
"""The part of the queue that a pod is in, and the pod."""


def reports_on_groups(engine: Engine, pods: Iterable[Pod]) -> Iterator[GroupReport]:
    """Yield a report on each group of these pods, in their order."""
    known, places = _groups(engine), _places(engine)
    members: dict[tuple[str, str], list[Pod]] = {
        (pod.namespace, name): [] for pod in pods if (name := known.name_of(pod))
    }
    for pod in engine.pods.values():
        found = members.get((pod.namespace, known.name_of(pod)))
        if found is not None:
            found.append(pod)
    for (_, name), its_pods in members.items():
        if its_pods:
            yield _report(engine, name, its_pods, places)


def name_of_group(engine: Engine, namespace: str, name: str) -> str:
    """Return the group of this name, or that of the pods of a workload of this name; empty if there is neither.

    The workload may have made the one that is the group, as a RayJob makes a RayCluster.
    """
    known, asked = _groups(engine), dict[str, bool]()
    for pod in engine.pods.values():
        if pod.namespace == namespace and (group := known.name_of(pod)):
            if group == name:
                return name
            owner = controller_of(pod)
            if group not in asked:
                asked[group] = name in (*group.split("/")[1:2], _maker_of(engine, known.of(pod)))
            asked[group] |= owner is not None and owner.name == name
    return next((group for group, is_meant in reversed(asked.items()) if is_meant), "")


def _maker_of(engine: Engine, group: PodGroup | None) -> str:
    """Return the name of the object that made the workload which is a group; empty if there is none."""
    workload = None if group is None or group.owner is None else WORKLOADS.get(group.owner.kind)
    if group is None or group.owner is None or workload is None:
        return ""
    found = engine.objects.get(workload.resource, group.owner.name, group.namespace)
    owners = () if found is None else found.metadata.owner_references or ()
    return next((owner.name for owner in owners if owner.controller), "")


def report_on_group_of(engine: Engine, pod: Pod, *, tries: bool = False) -> GroupReport | None:
    """Report on the group of a pod; None if it has none. `tries`: see `report_on`."""
    name = _groups(engine).name_of(pod)
    return report_on(engine, pod.namespace, name, tries=tries) if name else None


def group_names(engine: Engine) -> set[str]:
    """Return the groups that pods name, as namespace/name."""
    known = _groups(engine)
    return {f"{pod.namespace}/{name}" for pod in engine.pods.values() if (name := known.name_of(pod))}


def report_on(engine: Engine, namespace: str, name: str, *, tries: bool = False) -> GroupReport | None:
    """Report on a group; None if no pod names it. `tries`: whether it is tried here if it never was."""
    known = _groups(engine)
    pods = [pod for pod in engine.pods.values() if pod.namespace == namespace and known.name_of(pod) == name]
    return _report(engine, name, pods, _places(engine), tries=tries) if pods else None


def _report(
    engine: Engine, name: str, pods: Sequence[Pod], places: Mapping[str, Place], *, tries: bool = False
) -> GroupReport:
    known = _groups(engine)
    first = next((pod for pod in pods if not (pod.node_name or pod.is_deleting)), pods[0])
    group, members = known.of(first), known.members(first)
    staying = pods if group is None or not group.is_ours else [pod for pod in pods if not pod.is_deleting]
    queued = {pod.uid: _now(engine, places[pod.uid]) for pod in members.unscheduled if pod.uid in places}
    waiting = [pod for pod in staying if not pod.node_name and pod.uid not in members.assumed]
    report = GroupReport(
        namespace=first.namespace,
        name=name,
        found=True,
        needed=0 if group is None else group.minimum,
        members=len(staying),
        scheduled=members.scheduled_count,
        waiting=[GroupMember(pod.name, queued[pod.uid][0] if pod.uid in queued else "pending") for pod in waiting],
    )
    record = None
    if group is not None:
        report.source, report.priority = group.source, known.lineage(first)[-1].priority
        record = _records(engine).of(group)
        is_let_in = members.ready_count >= group.minimum and not _refused_with_its_tree(engine, first)
        if record is None and tries and is_let_in:
            record = _tried(engine, group, [each for place, each in queued.values() if place != GATED])
    report.state, report.text = _state(engine, first, record)
    if report.state == "incomplete":
        report.text += _not_counted(engine, staying, name, first.namespace)
    if record is not None:
        report.placement, report.victims = record.placement, record.victims
        if record.at:
            report.at = timestamp(record.at)
    leaving = len(pods) - len(staying)
    report.about = list(_about(engine, report, group, first, queued.values(), record, leaving))
    report.waiting = report.waiting[:MAX_MEMBERS]
    return report


def summary_of(engine: Engine, pod: Pod) -> tuple[str, str]:
    """Return the state of a pod's group that waits, and the sentence; empty if there is nothing to say."""
    known = _groups(engine)
    group = known.of(pod)
    return _state(engine, pod, None if group is None else _records(engine).of(group))


def _state(engine: Engine, pod: Pod, record: GroupRecord | None) -> tuple[str, str]:
    group, members = _groups(engine).of(pod), _groups(engine).members(pod)
    waiting = len(members.unscheduled)
    if group is None:
        wait = "wait" if waiting != 1 else "waits"
        return "missing", f"{counted(waiting, 'pod')} {wait} for it, and it does not exist"
    if group.problem:
        return "invalid", group.problem
    count = members.ready_count if group.is_ours else members.count
    if count < group.minimum:
        are = "is" if count == 1 else "are"
        return "incomplete", f"{counted(group.minimum, 'pod')} are needed at once, and there {are} {count:,}"
    if not waiting:
        return "placed", "" if record is None else record.text
    if record is None:
        refused = _refused_with_its_tree(engine, pod)
        return ("incomplete", refused) if refused else ("queued", "")
    if record.result == "scheduled" and not members.scheduled_count:
        return "queued", f"it fits now: {record.text}"
    return RESULTS.get(record.result, "partly placed"), record.text


def _refused_with_its_tree(engine: Engine, pod: Pod) -> str:
    """Return what keeps the tree of a pod's group out of the queue; empty if nothing does."""
    framework = engine.frameworks.get(pod.spec.scheduler_name)
    refusal = None if framework is None else refused_at_once(framework, pod, "GangScheduling")
    return "" if refusal is None else refusal.message


def _not_counted(engine: Engine, pods: Sequence[Pod], name: str, namespace: str) -> str:
    """Name the pods that the group lacks although they are there: gated ones, and those for other schedulers."""
    gated = [f"{pod.name} waits behind scheduling gates" for pod in pods if pod.spec.scheduling_gates]
    others = [
        f"{pod.name} is for the scheduler {pod.spec.scheduler_name[:MAX_SCHEDULER]!r}"
        for pod in engine.pods.values()
        if pod.namespace == namespace and pod.spec.scheduler_name not in engine.frameworks and named_by(pod) == name
    ]
    found = [*gated, *others]
    return f"; {some_of(found, MAX_NAMED)}" if found else ""


def _about(
    engine: Engine,
    report: GroupReport,
    group: PodGroup | None,
    first: Pod,
    queued: Iterable[Place],
    record: GroupRecord | None,
    leaving: int,
) -> Iterator[str]:
    """Yield lines about the group: its pods, its last decision, what is reserved, and the events that would wake it."""
    left = f"; {leaving:,} more being deleted" if leaving else ""
    yield f"{counted(report.members, 'pod')}: {report.scheduled:,} with a node, {len(report.waiting):,} without{left}"
    if record is not None and record.at:
        times = "once" if record.decisions == 1 else f"{record.decisions:,} times"
        yield f"tried {times}, last at {report.at}"
    yield from _reserved(engine, group, waits_for_nodes=report.state == "unschedulable")
    if record is not None and record.victims and report.waiting:
        yield f"waits until these are gone: {', '.join(record.victims)}"
    framework = engine.frameworks.get(first.spec.scheduler_name)
    plugins = {name for place in queued for name in _rejectors(*place)} or set(() if record is None else record.plugins)
    plugins.discard(COSCHEDULING)  # a member that waits for the group: what brings it back is in the sentence
    yield from _lacking(engine, report, group, first)
    if framework is not None and plugins and report.state != "missing":
        yield refused_by(framework, plugins)


def _lacking(engine: Engine, report: GroupReport, group: PodGroup | None, first: Pod) -> Iterator[str]:
    """Yield a line about what the nodes lack for a group that requires no topology: a domain is in the sentence."""
    framework = engine.frameworks.get(first.spec.scheduler_name)
    if group is None or framework is None or report.state != "unschedulable" or group.required_level:
        return
    pods = [pod for pod in _groups(engine).members(first).unscheduled if not pod.spec.scheduling_gates]
    try:
        miss = engine.group_parts.levels.nearest_miss(framework, group, pods[:MAX_TRIED])
    except Exception:  # noqa: BLE001  a plugin may raise anything
        return
    if miss is not None:
        yield nearest(miss)


def _reserved(engine: Engine, group: PodGroup | None, *, waits_for_nodes: bool) -> Iterator[str]:
    """Yield a line about the nodes that are reserved for the group, or for one that goes first."""
    reservations = engine.group_parts.reservations
    reserved = None if reservations is None else reservations.reserved
    if reservations is None or reserved is None or group is None:
        return
    if reserved.group.key == group.key:
        yield reservations.text(reserved)
    elif waits_for_nodes:
        yield f"the group {reserved.group} goes first: {counted(len(reserved.plan.kept), 'node')} reserved for it"


def _rejectors(place: str, queued: QueuedPod) -> Iterable[str]:
    match place:
        case "gated":  # GATED
            return (queued.gate,)
        case "unschedulable":
            return queued.unschedulable_plugins | queued.pending_plugins
        case _:
            return ()


def _now(engine: Engine, place: Place) -> Place:
    """Return a place without the gate of a pod that came before its group was complete: it is tried with the others."""
    return (QUEUED, place[1]) if place[0] == GATED and may_be_tried(engine, place[1]) else place


def may_be_tried(engine: Engine, queued: QueuedPod) -> bool:
    """Return whether nothing keeps a pod out of the queue now, whatever did before the group was complete."""
    pod = queued.pod
    plugins = engine.frameworks[pod.spec.scheduler_name].pre_enqueue
    try:
        return not queued.gate or all(plugin.pre_enqueue(pod) is None for plugin in plugins)
    except Exception:  # noqa: BLE001  a plugin may raise anything
        return False


def _tried(engine: Engine, group: PodGroup, queued: Sequence[QueuedPod]) -> GroupRecord | None:
    """Try the members together now, with those of its tree, without preemption; nothing of it takes effect."""
    together = _with_its_tree(_groups(engine), queued)
    if not together or len(together) > MAX_TRIED or engine.pod_groups is None:
        return None
    framework = engine.frameworks[together[0].pod.spec.scheduler_name]
    decision = engine.pod_groups.simulate(framework, in_order(together))
    parts = decision.by_group(together, _groups(engine).key_of)
    part = next((each for each, _ in parts if each.group is not None and each.group.key == group.key), decision)
    return GroupRecords(now=lambda: 0.0).add(framework.name, part, len(queued))


def _with_its_tree(groups: PodGroups, queued: Sequence[QueuedPod]) -> Sequence[QueuedPod]:
    tree = groups.tree_of(queued[0].pod) if queued else None
    entry = queued[0].group if tree is not None and tree.is_composite else None
    return queued if entry is None else entry.members


def _places(engine: Engine) -> dict[str, Place]:
    """Return UID → where in the queue a pod is."""
    return {each.pod.uid: (STATES[part], each) for part, each in in_queue(engine)}


def _groups(engine: Engine) -> PodGroups:
    return engine.group_parts.groups


def _records(engine: Engine) -> GroupRecords:
    groups = engine.group_parts.cycle
    return GroupRecords() if groups is None else groups.records
