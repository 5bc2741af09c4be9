"""Reports the state of a group of pods, and why it waits.

States:

    missing        pods name it, and it does not exist
    invalid        its object, its annotations or its pods contradict themselves
    incomplete     it has fewer pods than it needs
    queued         it is next for an attempt
    unschedulable, waiting for preemption, failed: what its last attempt came to
    placed, partly placed
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from scheduler.api.pod import Pod
from scheduler.api.text import counted
from scheduler.engine.engine import Engine
from scheduler.explain.documents import GroupMember, GroupReport
from scheduler.explain.wake_events import events_in_words
from scheduler.framework.pod_groups import PodGroup, PodGroups
from scheduler.framework.queued import QueuedPod
from scheduler.groups.cycle import in_order
from scheduler.groups.records import GroupRecord, GroupRecords

MAX_MEMBERS: Final = 100
"""Members without a node that are listed."""

MAX_TRIED: Final = 1_000
"""Members of a group that is tried here: together they take a tenth of a second."""

STATES: Final = {
    "unschedulable": "unschedulable",
    "waiting_on_preemption": "waiting for preemption",
    "error": "failed",
}
"""Result of a decision → state."""

_PLACES: Final = {"active": "queued", "backoff": "backing off", "unschedulable": "unschedulable", "gated": "gated"}


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
    known, first = _groups(engine), pods[0]
    group, members = known.of(first), known.members(first)
    queued = {pod.uid: places[pod.uid] for pod in members.unscheduled if pod.uid in places}
    waiting = [pod for pod in pods if not pod.node_name and pod.uid not in members.assumed]
    report = GroupReport(
        namespace=first.namespace,
        name=name,
        found=True,
        needed=0 if group is None else group.minimum,
        members=len(pods),
        scheduled=members.scheduled_count,
        waiting=[GroupMember(pod.name, queued[pod.uid][0] if pod.uid in queued else "pending") for pod in waiting],
    )
    record = None
    if group is not None:
        report.source, report.priority = group.source, group.priority
        record = _records(engine).of(group)
        if record is None and tries and members.count >= group.minimum:
            record = _tried(engine, group, [each for _, each in queued.values() if _may_be_tried(engine, each)])
    report.state, report.text = _state(group, members.count, len(waiting), record)
    if record is not None:
        report.placement, report.victims = record.placement, record.victims
        if record.at:
            report.at = datetime.fromtimestamp(record.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    report.about = list(_about(engine, report, group, first, queued.values(), record))
    report.waiting = report.waiting[:MAX_MEMBERS]
    return report


def summary_of(engine: Engine, pod: Pod) -> tuple[str, str]:
    """Return the state of a pod's group that waits, and the sentence; empty if there is nothing to say."""
    known = _groups(engine)
    group = known.of(pod)
    waiting = len(known.members(pod).unscheduled)
    record = None if group is None else _records(engine).of(group)
    return _state(group, known.members(pod).count, waiting, record)


def _state(group: PodGroup | None, count: int, waiting: int, record: GroupRecord | None) -> tuple[str, str]:
    """Return the state, and the sentence."""
    if group is None:
        wait = "wait" if waiting != 1 else "waits"
        return "missing", f"{counted(waiting, 'pod')} {wait} for it, and it does not exist"
    if group.problem:
        return "invalid", group.problem
    if not waiting:
        return "placed", "" if record is None else record.text
    if count < group.minimum:
        return "incomplete", f"{counted(group.minimum, 'pod')} are needed at once, and there are {count:,}"
    if record is None:
        return "queued", ""
    return STATES.get(record.result, "partly placed"), record.text


def _about(
    engine: Engine,
    report: GroupReport,
    group: PodGroup | None,
    first: Pod,
    queued: Iterable[Place],
    record: GroupRecord | None,
) -> Iterator[str]:
    """Yield lines about the group: its pods, its last decision, what is reserved, and the events that would wake it."""
    yield f"{counted(report.members, 'pod')}: {report.scheduled:,} with a node, {len(report.waiting):,} without"
    if record is not None and record.at:
        times = "once" if record.decisions == 1 else f"{record.decisions:,} times"
        yield f"tried {times}, last at {report.at}"
    yield from _reserved(engine, group)
    if record is not None and record.victims and report.waiting:
        yield f"waits until these are gone: {', '.join(record.victims)}"
    framework = engine.frameworks.get(first.spec.scheduler_name)
    plugins = {name for place in queued for name in _rejectors(*place)}
    if framework is not None and plugins and report.state != "missing":
        events = framework.rejector_events()
        woken = events_in_words(each.event for plugin in sorted(plugins) for each in events.get(plugin, ()))
        yield f"refused by {', '.join(sorted(plugins))}; may be woken by {woken or 'nothing that is known'}"


def _reserved(engine: Engine, group: PodGroup | None) -> Iterator[str]:
    """Yield a line about the nodes that are reserved for the group, if there are any."""
    reservations = engine.group_parts.reservations
    reserved = None if reservations is None else reservations.reserved
    if reservations is not None and reserved is not None and group is not None and reserved.group.key == group.key:
        yield reservations.text(reserved)


def _rejectors(place: str, queued: QueuedPod) -> Iterable[str]:
    match place:
        case "gated":
            return (queued.gating_plugin,)
        case "unschedulable":
            return queued.unschedulable_plugins | queued.pending_plugins
        case _:
            return ()


def _may_be_tried(engine: Engine, queued: QueuedPod) -> bool:
    """Return whether nothing keeps a pod out of the queue now, whatever did before the group was complete."""
    pod = queued.pod
    plugins = engine.frameworks[pod.spec.scheduler_name].pre_enqueue
    try:
        return not queued.gated or all(plugin.pre_enqueue(pod) is None for plugin in plugins)
    except Exception:  # noqa: BLE001  a plugin may raise anything
        return False


def _tried(engine: Engine, group: PodGroup, queued: Sequence[QueuedPod]) -> GroupRecord | None:
    """Try the members together now, without preemption; nothing of it takes effect."""
    if not queued or len(queued) > MAX_TRIED or engine.pod_groups is None:
        return None
    framework = engine.frameworks[queued[0].pod.spec.scheduler_name]
    decision = engine.pod_groups.simulate(framework, in_order(queued), runs_post_filter=False)
    scheduled = _groups(engine).members(queued[0].pod).scheduled_count
    return GroupRecords(now=lambda: 0.0).add(group, framework.name, decision, len(queued), scheduled)


def _places(engine: Engine) -> dict[str, Place]:
    """Return UID → where in the queue a pod is."""
    parts = engine.queue.pending_pods().items()
    found = {each.pod.uid: (_PLACES[part], each) for part, pods in parts for each in pods}
    return found | {each.pod.uid: ("being tried", each) for each in engine.queue.in_flight_pods()}


def _groups(engine: Engine) -> PodGroups:
    return next(iter(engine.frameworks.values())).handle.pod_groups  # the same for all


def _records(engine: Engine) -> GroupRecords:
    groups = engine.group_parts.cycle
    return GroupRecords() if groups is None else groups.records
