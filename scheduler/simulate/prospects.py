"""Whether a group that does not fit now ever will, on these nodes.

now      as many of its pods as it needs have a node
later    they would fit if all other pods but those of DaemonSets, and static ones, had left
never    not even then
(empty)  it was not tried, or something else than the pods that run is in its way
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from scheduler.api.groups.owners import is_of_daemon_set, is_static
from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Unplaced
from scheduler.engine.engine import Engine
from scheduler.framework.queued import QueuedPod, in_order
from scheduler.groups.decision import GroupDecision

NOW: Final = "now"
LATER: Final = "later"
NEVER: Final = "never"

MAX_GROUPS: Final = 200
"""Groups that are tried a second time."""

_BY_PODS_AND_NODES: Final = frozenset(
    (
        "CapacityScheduling",
        "InterPodAffinity",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "PodTopologySpread",
        "TaintToleration",
    )
)
"""Plugins that refuse a pod for the nodes, other pods and quotas alone."""


def prospects(engine: Engine, groups: Sequence[tuple[str, Pod]]) -> Iterator[str]:
    """Yield the prospects of groups, given as the state that is reported and any pod of each.

    Takes all pods off the nodes if there is anything to find out: the simulation is over then.
    """
    queued = {each.pod.uid: each for part in engine.queue.pending_pods().values() for each in part}
    found: dict[str, str] = {}
    waiting = [(state, pod) for state, pod in groups if _may_be_tried(engine, state, pod)][:MAX_GROUPS]
    for state, pod in waiting:
        if state == "queued" and _prospect(engine, pod, queued) == LATER:  # it was not tried, and fits as it is
            found[pod.uid] = NOW
    waiting = [(state, pod) for state, pod in waiting if pod.uid not in found]
    if waiting:
        _empty(engine, queued)
    found |= {pod.uid: _prospect(engine, pod, queued) for _, pod in waiting}
    for state, pod in groups:
        yield found.get(pod.uid, NOW if state in ("placed", "partly placed") else "")


def _may_be_tried(engine: Engine, state: str, pod: Pod) -> bool:
    known = engine.frameworks[pod.spec.scheduler_name].handle.pod_groups
    is_complete = state not in ("placed", "partly placed", "missing", "invalid", "incomplete")
    return is_complete and not known.members(pod).scheduled_count


def _empty(engine: Engine, queued: Iterable[str]) -> None:
    """Take the pods off the nodes."""
    for uid in queued:
        engine.queue.delete(uid)  # so that no pod that leaves wakes any
    for pod in [each for each in engine.pods.values() if each.node_name]:
        if not (is_of_daemon_set(pod) or is_static(pod)):
            engine.handlers.pod_deleted(pod)


def _prospect(engine: Engine, pod: Pod, queued: Mapping[str, QueuedPod]) -> str:
    """Return whether a group fits on the nodes as they are by now: LATER, NEVER, or empty."""
    framework = engine.frameworks[pod.spec.scheduler_name]
    members = [queued[each.uid] for each in framework.handle.pod_groups.members(pod).unscheduled if each.uid in queued]
    if not members or engine.pod_groups is None:
        return ""
    decision = engine.pod_groups.simulate(framework, in_order(members))
    if decision.status is None:
        return LATER
    return NEVER if decision.is_rejected and _refusing(decision) <= _BY_PODS_AND_NODES else ""


def _refusing(decision: GroupDecision) -> set[str]:
    found = {decision.refused_by} - {""}
    for each in decision.members:
        if isinstance(each.decision, Unplaced):
            found |= each.decision.unschedulable_plugins
    return found
