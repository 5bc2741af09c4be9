"""The amounts that pods need of a quota: a pod by itself, or together those that a group still lacks."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import GroupMembers, PodGroup
from scheduler.state.share_usage import ShareSelector, amounts_of

if TYPE_CHECKING:  # loaded once there are shares
    from scheduler.quota.devices import ClaimKey, WithClaims


class Need(NamedTuple):
    """Amounts that are needed at once."""

    pod: Pod
    """The pod, or the oldest of the group."""

    uids: Collection[str]
    """Of the pods that are meant: their own nominations do not count."""

    requests: Mapping[str, int]
    """The amounts that they ask for together, at least."""

    pods: int

    claims: "Collection[ClaimKey]" = ()
    """The ResourceClaims by which the amounts change when they come."""

    problem: str = ""
    """Why their devices cannot be counted; empty if they can."""

    preempts: bool = True
    """Whether others may be evicted for it."""


class Kind(NamedTuple):
    """The common properties of pods and groups for which there is space at the same time."""

    selector: ShareSelector
    pods: int
    """0 for those whose devices cannot be counted: there is none for them."""

    amounts: frozenset[tuple[str, int]]
    preempts: bool
    """Whether others may be evicted for them: one for which none may does not stand for those for which some may."""

    nodes: int = 0
    """Hash of the nodes that they ask for, 0 for any: who may be evicted for one, is no help for one of others."""


class Request(NamedTuple):
    """The need of a pod, or a group, and whose quota is meant. Implements queue.quota.Request."""

    selector: ShareSelector
    need: Need

    @property
    def kind(self) -> Kind:
        need = self.need
        if need.problem:
            return Kind(self.selector, 0, frozenset(), preempts=False)
        nodes = _nodes_asked_for(need.pod) if need.preempts else 0
        return Kind(self.selector, need.pods, frozenset(need.requests.items()), need.preempts, nodes)

    @property
    def sources(self) -> "Collection[ClaimKey]":
        return self.need.claims


def _nodes_asked_for(pod: Pod) -> int:
    labels, affinity = pod.spec.node_selector, pod.spec.affinity
    required = None if affinity is None or affinity.node_affinity is None else affinity.node_affinity.required
    return hash((frozenset((labels or {}).items()), required)) if labels or required is not None else 0


def need_of_pod(pod: Pod, asked: "WithClaims | None" = None) -> Need:
    """Return the needs of a pod: `asked`, if that is more than its own requests.

    Raises ValueError for a quantity that cannot be read.
    """
    uids = (pod.metadata.uid,)
    if asked is None:
        return Need(pod, uids, amounts_of(pod), 1)
    return Need(pod, uids, asked.amounts, 1, asked.claims, asked.problem)


def need_of_group(
    group: PodGroup,
    members: GroupMembers,
    selector_of: Callable[[Pod], ShareSelector],
    asked_by: "Callable[[Pod], WithClaims | None] | None" = None,
) -> tuple[ShareSelector, Need] | None:
    """Return the selector of a group, and the least of each resource that those members need which make it complete.

    So a group that is refused for it cannot fit, and one of which all pods are alike may start if it is not. None if
    each member is bound by itself, if there are too few of them, or if their selectors differ. `asked_by` returns
    `asked` of `need_of_pod`; members with a problem do not make a group complete.
    """
    wanted, unscheduled = group.minimum - members.scheduled_count, members.unscheduled
    if wanted <= 0 or len(unscheduled) < wanted:
        return None
    kinds: Counter[int] = Counter()
    firsts: dict[int, Need] = {}
    selectors: set[ShareSelector] = set()
    for pod in unscheduled:
        asked = None if asked_by is None else asked_by(pod)
        kind = id(pod.resources) if asked is None else id(pod)  # resources are shared by those that are alike
        if kind not in firsts:
            firsts[kind] = need_of_pod(pod, asked)
        if not firsts[kind].problem:
            kinds[kind] += 1
        selectors.add(selector_of(pod))
    if len(selectors) > 1:
        return None
    amounts: dict[str, list[tuple[int, int]]] = {}
    for kind, count in kinds.items():
        for name, amount in firsts[kind].requests.items():
            amounts.setdefault(name, []).append((amount, count))
    countable = kinds.total()
    requests = {name: _least(each, countable, min(wanted, countable)) for name, each in amounts.items()}
    uids = frozenset([pod.uid for pod in unscheduled])
    claims = {claim for each in firsts.values() for claim in each.claims}
    problem = "" if countable >= wanted else next(each.problem for each in firsts.values() if each.problem)
    oldest = min(unscheduled, key=lambda pod: pod.metadata.creation_timestamp or "")
    return selectors.pop(), Need(oldest, uids, requests, wanted, claims, problem)


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
