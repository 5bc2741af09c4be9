"""Who may be evicted for whom, and whether fewer would do: the policies of docs/quota.md, which are Kueue's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from tests.campaigns.quota.model import Pod, State, summed
from tests.campaigns.quota.world import ELASTIC, Amounts


def needed(state: State, claimant: Pod) -> Amounts:
    """What must be free before it starts: of a group, all that it still needs."""
    if not claimant.group:
        return claimant.asks
    members = [pod for pod in state.pods.values() if pod.group == claimant.group]
    running = sum(1 for pod in members if pod.node and not pod.ending)
    waiting = [pod for pod in members if not pod.node][: max(1, claimant.minimum - running)]
    return summed(waiting)


def has_too_few(state: State, pod: Pod) -> bool:
    """Whether its group lacks pods, so that none is tried."""
    return sum(1 for each in state.pods.values() if each.group == pod.group and not each.ending) < pod.minimum


def is_spare(state: State, pod: Pod) -> bool:
    """Whether its group has as many members with a node as it needs without it."""
    return bool(pod.group) and sum(each.group == pod.group for each in state.running) >= pod.minimum


def may_lack_nodes(state: State, claimant: Pod) -> bool:
    """Whether its quota has space, so that DefaultPreemption may evict for it."""
    return state.world.default_preemption and not state.lacks(claimant.quota, needed(state, claimant), state.running)


def may_take_back(state: State, victim: Pod, others: list[Pod]) -> bool:
    """Whether the quota of a pod that DefaultPreemption evicts may evict to have it replaced."""
    takes = state.world.source == ELASTIC or (
        victim.quota in state.quotas and state.quotas[victim.quota].reclaim != "Never"
    )
    return takes and state.within(victim.quota, victim, others)


def objection(state: State, claimant: Pod, victims: Sequence[Pod], taken: Sequence[Pod]) -> str:
    """Say why these may not be evicted for the pod; empty if they may.

    `taken`: others that are nominated, or for which pods were evicted: what they ask for may be taken, too.
    """
    if claimant.never:
        return f"{claimant} evicts {victims[0]}"
    used = [*state.running, *woken(state, claimant), *taken]
    if not state.lacks(claimant.quota, needed(state, claimant), used):
        if state.world.has_ample_nodes and state.nodes:
            return f"{claimant} evicts {victims[0]}, although its quota has space, and so have the nodes"
        if state.world.default_preemption:
            more = next((victim for victim in victims if victim.priority >= claimant.priority), None)
            return f"{claimant} lacks only a node, and evicts {more}, no less important" if more else ""
    if may_lack_nodes(state, claimant) and all(victim.priority < claimant.priority for victim in victims):
        return ""
    case = _Case(state, entry_of(state, claimant), victims, taken)
    return next(filter(None, map(case.objection, victims)), "")


def _is_fair(state: State) -> bool:
    """Whether Kueue's fair sharing applies: a pod that borrows may evict from a share that borrows more."""
    return state.world.source != ELASTIC and state.world.order == "DominantShare"


@dataclass(frozen=True)
class _Case:
    """Victims that quota has to explain. The claimant asks for all that its group needs."""

    state: State
    claimant: Pod
    victims: Sequence[Pod]
    taken: Sequence[Pod]

    @cached_property
    def staying(self) -> list[Pod]:
        return [pod for pod in self.state.running if not pod.ending]

    @cached_property
    def rest(self) -> list[Pod]:
        return [pod for pod in self.staying if pod not in self.victims]

    def objection(self, victim: Pod) -> str:
        quotas, claimant = self.state.quotas, self.claimant
        both = f"{claimant} of {claimant.quota} evicts {victim} of {victim.quota}"
        is_less = victim.priority < claimant.priority
        has_quota = [name in quotas for name in (claimant.quota, victim.quota)]
        if not any(has_quota):
            return "" if is_less else f"{both}, no less important, and neither has a quota"
        if not all(has_quota):
            return f"{both}: one of them has no quota"
        if victim.quota == claimant.quota:
            return "" if self._may_go_within(victim) else f"{both}: within the quota it may not"
        policy = "Any" if self.state.world.source == ELASTIC else quotas[claimant.quota].reclaim
        if not {"Never": False, "LowerPriority": is_less, "Any": True}[policy]:
            return f"{both}: reclaim is {policy}"
        lenders = self.state.apart(victim.quota, claimant.quota)
        for name in lenders[:1] if _is_fair(self.state) else lenders:
            if not self._borrows(name):
                return f"{both}: {name} uses no more than it is guaranteed"
        return "" if _is_fair(self.state) or self._takes_back(victim.quota) else f"{both}: it borrows itself then"

    def _may_go_within(self, victim: Pod) -> bool:
        state, claimant = self.state, self.claimant
        is_less = victim.priority < claimant.priority
        if state.world.source == ELASTIC:  # a pod within the minimum takes back from others
            return is_less and not state.within(claimant.quota, claimant, [*self.staying, *self.taken])
        is_newer = victim.priority == claimant.priority and int(victim.came) > int(claimant.came)
        policies = {"Never": False, "LowerPriority": is_less, "LowerOrNewerEqualPriority": is_less or is_newer}
        return policies[state.quotas[claimant.quota].within]

    def _borrows(self, name: str) -> bool:
        """Whether the last victim of a quota, or below it, still takes what is borrowed, in whatever order they go."""
        state, used = self.state, [*self.rest, *self.taken]
        return any(
            state.usage(name, resource, [*used, last]) > state.guaranteed(name, resource)
            for last in self.victims
            if name in state.path(last.quota)
            for resource in self.claimant.asks
        )

    def _takes_back(self, name: str) -> bool:
        """Whether the pod is within the guarantee of a quota that it is in, and the victim is not."""
        shares = [each for each in self.state.path(self.claimant.quota) if each in self.state.quotas]
        outside = self.state.path(name)
        return any(self.state.within(each, self.claimant, self.rest) for each in shares if each not in outside)


def woken(state: State, claimant: Pod) -> list[Pod]:
    """The pods and groups, each as one, that wait and for which what is free is reserved until they were tried.

    These are the ones ahead of the claimant that fit; if it does not fit beside them, all that do.
    """
    mine = entry_of(state, claimant)
    entries = {entry.group or entry.name: entry for entry in map(partial(entry_of, state), reversed(state.pending))}
    entries.pop(mine.group or mine.name, None)
    found: list[Pod] = []
    for are_ahead in (True, False):
        for entry in sorted(entries.values(), key=partial(_rank, state, mine)):
            if is_ahead(state, entry, mine) == are_ahead and entry.quota in state.quotas:
                found += [] if state.lacks(entry.quota, entry.asks, [*state.running, *found]) else [entry]
        if not state.lacks(mine.quota, mine.asks, [*state.running, *found]):
            break
    return found


def entry_of(state: State, pod: Pod) -> Pod:
    """Return what competes: a group asks for all that it needs, and is as old as the first of its pods that wait."""
    waiting = [each.came for each in state.pending if each.group == pod.group] if pod.group else []
    return replace(pod, asks=needed(state, pod), came=min(waiting, default=pod.came))


def is_ahead(state: State, entry: Pod, claimant: Pod) -> bool:
    """Whether it goes before the claimant, or was woken before that came, which is not more important."""
    one, other = _rank(state, claimant, entry), _rank(state, claimant, claimant)
    was_woken = one[0] == other[0] and entry.came <= claimant.came and entry.priority >= claimant.priority
    return one < other or was_woken


def _rank(state: State, claimant: Pod, entry: Pod) -> tuple[bool, int, bool, tuple[int, float]]:
    """Who goes first. In orders by what shares use, those of other shares may."""
    is_within = state.within(entry.quota, entry, state.running)
    quota = state.quotas.get(entry.quota)
    is_last = state.world.order != "Priority" and entry.quota == claimant.quota
    return not is_within, -quota.priority if quota else 0, is_last, entry.rank


def goes_first(state: State, waiting: Pod, started: Pod, taken: Sequence[Pod]) -> bool:
    """Whether one that waits was to start before one that has just started, and could.

    `taken`: all that have a node, or for which pods were evicted, so that what they ask for is kept.
    """
    if waiting.quota == started.quota:
        return waiting.rank < started.rank
    before = [pod for pod in taken if pod not in (waiting, started)]
    is_less = waiting.priority < started.priority  # that may have come later than the other was woken
    if is_less or not {waiting.quota, started.quota} <= state.quotas.keys():
        return False
    paths = [state.path(pod.quota) for pod in (waiting, started)]
    if paths[0][-1] != paths[1][-1] or state.lacks(waiting.quota, waiting.asks, before):
        return False
    entries = [entry_of(state, pod) for pod in state.pending if not has_too_few(state, pod)]
    ahead = [entry for entry in entries if _competes_before(state, entry, waiting, before)]
    head = min([waiting, *ahead], key=lambda pod: pod.rank)
    if head is not waiting:
        return goes_first(state, head, started, taken)
    # In fair sharing those compete that are below the same share; else, leaves do.
    apart = state.apart(waiting.quota, started.quota), state.apart(started.quota, waiting.quota)
    shares = [names[-1 if _is_fair(state) else 0] for names in apart]
    first, second = (
        (not state.within(share, pod, before), -state.quotas[pod.quota].priority)
        for share, pod in zip(shares, (waiting, started), strict=True)
    )
    if first == second and state.world.order == "Priority":
        return (_height(state, waiting, before), waiting.rank) < (_height(state, started, before), started.rank)
    return first < second


def _competes_before(state: State, entry: Pod, waiting: Pod, before: list[Pod]) -> bool:
    """Whether a pod or group is ahead of a pod that waits in its quota, and fits."""
    is_ahead = entry.quota == waiting.quota and entry.rank < waiting.rank
    return is_ahead and not state.lacks(entry.quota, entry.asks, before)


def _height(state: State, pod: Pod, before: list[Pod]) -> int:
    """How high above its quota, which has 0, a pod borrows."""
    path = state.path(pod.quota)
    asked = [r for r, amount in pod.asks.items() if amount and r in state.limited(pod.quota)]
    used = [*before, pod]
    return max(
        next(
            (state.height(name) for name in path if state.usage(name, r, used) <= state.guaranteed(name, r)), len(path)
        )
        for r in asked
    )


def spared(state: State, claimant: Pod, victims: Sequence[Pod], taken: Sequence[Pod]) -> Pod | None:
    """Return a victim that could stay, where only quota can be short; None if there is none.

    Some go only because the pod may not take back from others while it would borrow itself.
    """
    if not state.world.has_ample_nodes or any(pod.ending for pod in state.running):
        return None
    asked = replace(claimant, asks=needed(state, claimant))
    left = [pod for pod in [*state.running, *woken(state, claimant), *taken] if pod not in victims]
    by_kueue = state.world.source != ELASTIC and not _is_fair(state)
    need_not_borrow = by_kueue and state.within(claimant.quota, asked, left)
    for victim in victims:
        if need_not_borrow and not state.within(claimant.quota, asked, [*left, victim]):
            continue  # Kueue first looks for victims without whom it need not borrow
        rest = [other for other in victims if other is not victim]
        fits = not state.lacks(claimant.quota, asked.asks, [*left, victim])
        if fits and not (rest and objection(state, claimant, rest, taken)):
            return victim
    return None


def _goes_after(victim: Pod) -> tuple[bool, int, int]:
    return not victim.is_protected, -victim.priority, int(victim.started)


def preferable(state: State, claimant: Pod, victims: Sequence[Pod], taken: Sequence[Pod]) -> tuple[Pod, Pod] | None:
    """Return a victim, and a pod like it that had to go first: under no budget, or less important, or newer.

    Both may be taken back by the claimant's quota, or neither.
    """
    if not state.world.has_ample_nodes:
        return None
    for victim in victims:
        for other in state.running:
            is_alike = (other.quota, other.asks, other.node, other.group) == (
                victim.quota,
                victim.asks,
                victim.node,
                "",
            )
            is_alike &= state.gave_up_for(claimant.quota, other) == state.gave_up_for(claimant.quota, victim)
            is_less = _goes_after(victim) < _goes_after(other)
            if is_alike and is_less and not (victim.group or other.ending or other in victims):
                instead = [other if each is victim else each for each in victims]
                if not objection(state, claimant, instead, taken):
                    return victim, other
    return None
