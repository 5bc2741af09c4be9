"""Claims of a group of pods, with the gate DRAWorkloadResourceClaims: given back if the group does not fit.

Rule: dynamicresources/dynamicresources.go at v1.37.2 (deallocatePodGroupClaims).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from plugins.dynamic_resources.claim_state import ClaimState
from plugins.dynamic_resources.claim_writer import ClaimWriter
from plugins.dynamic_resources.pod_claims import consumer
from scheduler import framework as fw
from scheduler.api.devices import ResourceClaim

DEALLOCATED: Final = fw.unschedulable("deallocation of PodGroup ResourceClaim completed")
UNRESERVED: Final = fw.unresolvable("ResourceClaim unreserved for PodGroup")


def release_of_group(
    group: fw.PodGroup, states: Sequence[tuple[ClaimState, fw.Pod]], groups: fw.PodGroups, writer: ClaimWriter
) -> fw.Status | None:
    """Give back one claim of a group of which no pod has a node; return None if there is none. `states`: one at least.

    First the devices of one that some node cannot use; else the group no longer reserves one.
    """
    first = states[0][1]
    if groups.members(first).scheduled_count:
        return None
    for claim_state, pod in states:
        for claim in only_for(claim_state, group.uid):
            writer.deallocate(pod, claim)
            return DEALLOCATED
    for claim_state, pod in states:
        for claim in claim_state.users:
            reserved = {each.uid for each in claim.status.reserved_for or ()}
            is_in_use = claim.status.allocation is not None and reserved & {group.uid, first.uid}
            if is_in_use and consumer(pod, claim, group).uid == group.uid:
                writer.unreserve(pod, claim, group.uid)
                return UNRESERVED
    return None


def only_for(claim_state: ClaimState, uid: str) -> Iterator[ResourceClaim]:
    """Yield the claims whose devices some node cannot use, and that are reserved for nothing else."""
    for i in sorted(claim_state.unavailable):
        claim = claim_state.claims[i]
        if {consumer.uid for consumer in claim.status.reserved_for or ()} <= {uid}:
            yield claim
