"""Pods that wait for quota, and what distinguishes them."""

from typing import NamedTuple

from scheduler.api.pod import Pod
from scheduler.framework.pod_groups import PodGroups
from scheduler.quota.adapters import AdaptedShares
from scheduler.quota.needs import Need
from scheduler.state.share_usage import ShareSelector


class Kind(NamedTuple):
    """All that is the same of pods for which there is space at the same time."""

    selector: ShareSelector
    pods: int
    amounts: frozenset[tuple[str, int]]


class Request(NamedTuple):
    """The need of a pod; of a member of a group, all that the group still needs."""

    selector: ShareSelector
    need: Need

    @property
    def kind(self) -> Kind:
        return Kind(self.selector, self.need.pods, frozenset(self.need.requests.items()))


def request_of(shares: AdaptedShares, groups: PodGroups, pod: Pod) -> Request:
    """Return what a pod needs, alone or for its group."""
    group = groups.of(pod)
    if group is not None:
        found = shares.need_of_group(group, groups.members(pod))
        if found is not None:
            return Request(*found)
    return Request(shares.selector_of(pod), shares.need_of_pod(pod))
