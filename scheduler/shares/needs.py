"""The amounts that pods need of a share: one by itself, or those together that a group still needs."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from scheduler.api.pod import Pod
from scheduler.framework.pod_groups import GroupMembers, PodGroup
from scheduler.state.share_usage import Tenant, amounts_of


class Need(NamedTuple):
    """Amounts that are needed at once."""

    pod: Pod
    """The pod, or any of the group."""

    uids: Collection[str]
    """Of the pods that are meant: their own nominations do not count."""

    requests: Mapping[str, int]
    """The amounts that they ask for together, at least."""

    pods: int


def need_of_pod(pod: Pod) -> Need:
    """Return what a pod needs. Raises ValueError for a quantity that cannot be read."""
    return Need(pod, (pod.metadata.uid,), amounts_of(pod), 1)


def need_of_group(
    group: PodGroup, members: GroupMembers, tenant_of: Callable[[Pod], Tenant]
) -> tuple[Tenant, Need] | None:
    """Return the tenant of a group, and the least of each resource that those members need which make it complete.

    So a group that is refused for it cannot fit, and one of which all pods are alike may start if it is not. None if
    each member is bound by itself, if there are too few of them, or if their tenants differ.
    """
    wanted, unscheduled = group.minimum - members.scheduled_count, members.unscheduled
    if wanted <= 0 or len(unscheduled) < wanted:
        return None
    kinds: Counter[int] = Counter()
    firsts: dict[int, Pod] = {}
    tenants: set[Tenant] = set()
    for pod in unscheduled:
        kind = id(pod.resources)  # shared by those that are alike
        kinds[kind] += 1
        firsts.setdefault(kind, pod)
        tenants.add(tenant_of(pod))
    if len(tenants) > 1:
        return None
    asked: dict[str, list[tuple[int, int]]] = {}
    for kind, pod in firsts.items():
        for name, amount in amounts_of(pod).items():
            asked.setdefault(name, []).append((amount, kinds[kind]))
    requests = {name: _least(each, len(unscheduled), wanted) for name, each in asked.items()}
    uids = frozenset([pod.uid for pod in unscheduled])
    return tenants.pop(), Need(next(iter(unscheduled)), uids, requests, wanted)


def _least(asked: list[tuple[int, int]], members: int, wanted: int) -> int:
    """Return the sum of the smallest amounts of so many of the members. `asked`: amounts, and how many ask for each.

    All others ask for none. They are counted, not listed: each member may name a resource of its own.
    """
    total = 0
    for amount, count in sorted([(0, members - sum(count for _, count in asked)), *asked]):
        taken = min(count, wanted)
        total += amount * taken
        wanted -= taken
    return total
