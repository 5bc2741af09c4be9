"""Who may be evicted for whom, and whether fewer would do: the policies of docs/quota.md, which are Kueue's."""

from collections.abc import Sequence
from dataclasses import replace

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


def may_lack_nodes(state: State, claimant: Pod) -> bool:
    """Whether its quota has space, so that DefaultPreemption may evict for it."""
    return state.world.default_preemption and not state.lacks(claimant.quota, needed(state, claimant), state.running)


def objection(state: State, claimant: Pod, victims: Sequence[Pod], others: bool) -> str:
    """Say why these may not be evicted for the pod; empty if they may.

    `others`: others are nominated, and what these ask for is taken, too.
    """
    if claimant.never:
        return f"{claimant} evicts {victims[0]}"
    has_quota = not state.lacks(claimant.quota, needed(state, claimant), state.running)
    if has_quota and not others and state.world.has_ample_nodes and state.nodes:
        return f"{claimant} evicts {victims[0]}, although its quota has space, and so have the nodes"
    if may_lack_nodes(state, claimant):
        return ""
    staying = [pod for pod in state.running if not pod.ending]
    for victim in victims:
        if text := _objection(state, claimant, victim, victims, staying):
            return text
    return ""


def _objection(state: State, claimant: Pod, victim: Pod, victims: Sequence[Pod], staying: list[Pod]) -> str:
    both = f"{claimant} of {claimant.quota} evicts {victim} of {victim.quota}"
    if victim.quota == claimant.quota:
        return "" if _within(state, claimant, victim) else f"{both}: withinShare does not allow it"
    if victim.quota not in state.quotas or claimant.quota not in state.quotas:
        return f"{both}: one of them has no quota"
    if state.world.source != ELASTIC:
        policy = state.quotas[claimant.quota].reclaim
        if policy == "Never" or (policy == "LowerPriority" and victim.priority >= claimant.priority):
            return f"{both}: reclaim is {policy}"
    if not _borrows(state, claimant, victim.quota, victims, staying):
        return f"{both}: that uses no more than it is guaranteed"
    if state.world.order != "DominantShare" and not _takes_back(state, claimant, victim.quota, victims, staying):
        return f"{both}: it borrows itself then"
    return ""


def _within(state: State, claimant: Pod, victim: Pod) -> bool:
    if state.world.source == ELASTIC:
        return victim.priority < claimant.priority
    policy = state.quotas[claimant.quota].within
    newer = victim.priority == claimant.priority and victim.came >= claimant.came
    return policy != "Never" and (
        victim.priority < claimant.priority or (newer and policy == "LowerOrNewerEqualPriority")
    )


def _borrows(state: State, claimant: Pod, name: str, victims: Sequence[Pod], staying: list[Pod]) -> bool:
    """Whether the last victim of a quota still takes what is borrowed, in whatever order they go."""
    given = [victim for victim in victims if victim.quota == name]
    for resource in claimant.asks:
        amounts = [victim.asks.get(resource, 0) for victim in given]
        used = sum(pod.asks.get(resource, 0) for pod in staying if pod.quota == name)
        if used - sum(amounts) + max(amounts) > state.guaranteed(name, resource):
            return True
    return False


def _takes_back(state: State, claimant: Pod, name: str, victims: Sequence[Pod], staying: list[Pod]) -> bool:
    """Whether the pod is within the guarantee of a quota that it is in, and the victim is not."""
    rest, asked = [pod for pod in staying if pod not in victims], replace(claimant, asks=needed(state, claimant))
    outside = set(state.path(name))
    return any(
        state.within(each, asked, rest)
        for each in state.path(claimant.quota)
        if each not in outside and each in state.quotas
    )


def spared(state: State, claimant: Pod, victims: Sequence[Pod]) -> Pod | None:
    """Return a victim that could stay, where only quota can be short; None if there is none.

    Some go only because the pod may not take back from others while it would borrow itself.
    """
    if not state.world.has_ample_nodes or any(pod.ending for pod in state.running):
        return None
    asked = replace(claimant, asks=needed(state, claimant))
    left = [pod for pod in state.running if pod not in victims]
    by_kueue = state.world.source != ELASTIC and state.world.order != "DominantShare"
    need_not_borrow = by_kueue and state.within(claimant.quota, asked, left)
    for victim in victims:
        if need_not_borrow and not state.within(claimant.quota, asked, [*left, victim]):
            continue  # Kueue first looks for victims without whom it need not borrow
        rest = [other for other in victims if other is not victim]
        fits = not state.lacks(claimant.quota, asked.asks, [*left, victim])
        if fits and not (rest and objection(state, claimant, rest, others=False)):
            return victim
    return None
