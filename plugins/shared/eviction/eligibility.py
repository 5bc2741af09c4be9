"""Whether a pod may preempt others now, and the messages if it may not, or if no victims help.

Rules: PodEligibleToPreemptOthers in defaultpreemption/default_preemption.go at v1.36.3, and in
pkg/capacityscheduling/capacity_scheduling.go of scheduler-plugins.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from scheduler import framework as fw
from scheduler.framework.preemption import victims

NOT_HELPFUL: Final = fw.unresolvable("Preemption is not helpful for scheduling")
WAITING: Final = fw.unresolvable("waiting for the preemption for this pod to be finished")
GROUP_WAITING: Final = fw.unresolvable("waiting for the preemption for this pod group to be finished")


def of_preemption(status: fw.Status) -> fw.Status:
    """Return a status as PostFilter returns it for a pod."""
    return fw.unschedulable(f"preemption: {status.message}")


NEVER: Final = of_preemption(victims.NEVER)
LEAVING: Final = of_preemption(victims.LEAVING)
SOON: Final = of_preemption(victims.SOON)
IN_VAIN: Final = of_preemption(victims.IN_VAIN)
TERMINATING: Final = fw.unschedulable("preemption: not eligible due to a terminating pod on the nominated node.")


def newest_of(pod: fw.Pod, handle: fw.Handle) -> fw.Pod:
    """Return the newest version of a preemptor, or a resize as it is. Raises AttemptFailed."""
    if pod.is_resize:
        return pod
    newest = handle.pods.get(pod.uid)
    if newest is None:
        raise fw.AttemptFailed(f'preemption: pod "{pod.name}" not found')
    return newest


def leaving(handle: fw.Handle) -> Iterator[fw.Pod]:
    """Yield the pods with a node that leave it anyway: they are being deleted, or evicted."""
    uids = {**dict.fromkeys(handle.shares.leaving()), **dict.fromkeys(handle.preemptions.leaving())}
    return (pod for uid in uids if (pod := handle.pods.get(uid)) is not None)


def ineligibility(
    pod: fw.Pod,
    node_to_status: Mapping[str, fw.Status],
    nodes: fw.NodeColumns,
    is_on_the_way: Callable[[Collection[fw.Pod]], bool],
) -> fw.Status | None:
    """Say why a pod may not preempt; None if it may.

    `is_on_the_way`: whether one of the pods on its nominated node is leaving for it already.
    """
    if pod.spec.preemption_policy == "Never":
        return NEVER
    nominated = pod.nominated_node_name
    row = nodes.row_of(nominated) if nominated else None
    if row is None:
        return None
    status = node_to_status.get(nominated)
    if status is not None and status.code is fw.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return None  # no preemption on that node helps this pod
    return TERMINATING if is_on_the_way(nodes.info(row).pods) else None


def no_victims(refusals: Counter[fw.Status], nodes: int) -> fw.Status:
    """Say of all nodes why there are no victims; `refusals`: why nodes are no candidates → how many are not."""
    diagnosis = fw.Diagnosis(nodes)
    for status, count in refusals.items():
        diagnosis.add(status, count)
    others = nodes - refusals.total()
    if others:
        diagnosis.add(NOT_HELPFUL, others)
    return of_preemption(fw.unschedulable(diagnosis.message))
