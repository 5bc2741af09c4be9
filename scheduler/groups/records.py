"""The latest decision about each group of pods, in one sentence and in numbers.

64 pods are needed at once: 48 of 64 fit; 16 do not: Insufficient cpu (on 5 nodes), node(s) had untolerated
taint(s) (on 2 nodes)
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.api.wording.spelling import spelled
from scheduler.api.wording.text import MAX_MESSAGE, counted, encodable, shortened
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.framework.groups.pod_groups import GroupKey, PodGroup
from scheduler.framework.status import Code
from scheduler.groups.decision import GroupDecision, MemberOutcome
from scheduler.groups.topology.capacity import NearMiss

MAX_GROUPS: Final = 2_000
"""Of those that were decided about last."""

MAX_REASONS: Final = 3
"""In the sentence."""

MAX_VICTIMS: Final = 10
"""Names of victims that are kept."""


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A decision about a group."""

    group: PodGroup
    profile: str
    at: float
    """In seconds since 1970."""

    result: str
    """`scheduled`, `unschedulable`, `waiting_on_preemption` or `error`, as metrics say it."""

    text: str
    tried: int
    """How many members were tried together."""

    fitting: int
    """How many of them have a node."""

    placement: str = ""
    """The domain that was chosen, where there are several."""

    victims: tuple[str, ...] = ()
    """The first of the pods that are evicted for it."""

    plugins: frozenset[str] = frozenset()
    """Those that refused members, or the group."""

    decisions: int = 1
    """How many there were of this group."""


class GroupRecords:
    """The latest record of each group."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        """`now`: seconds since 1970."""
        self._now = now
        self._records: dict[GroupKey, GroupRecord] = {}

    def of(self, group: PodGroup) -> GroupRecord | None:
        """Return the latest record of a group; None if none is kept, or if it is that of an earlier one of its name."""
        record = self._records.get(group.key)
        return record if record is not None and record.group.uid == group.uid else None

    def add(self, profile: str, decision: GroupDecision, tried: int) -> GroupRecord | None:
        """Note a decision before it takes effect; None if the group is gone."""
        group, result = decision.group, decision.result
        if group is None:
            return None
        key = group.key
        before = self._records.pop(key, None)
        fitting = sum([isinstance(each.decision, Placed) for each in decision.members])
        refused = [each.decision for each in decision.members if isinstance(each.decision, Unplaced)]
        record = self._records[key] = GroupRecord(
            group,
            profile,
            self._now(),
            result,
            _all_fit(group.minimum, tried, decision.scheduled)
            if result == "scheduled" and fitting == tried
            else sentence(group.minimum, decision, tried),
            tried,
            fitting,
            decision.placement,
            tuple([str(each) for each in victims_of(decision)[:MAX_VICTIMS]]),
            frozenset(filter(None, (decision.refused_by,))).union(*[each.unschedulable_plugins for each in refused]),
            1 if before is None or before.group.uid != group.uid else before.decisions + 1,
        )
        if len(self._records) > MAX_GROUPS:
            del self._records[next(iter(self._records))]
        return record


def victims_of(decision: GroupDecision) -> Sequence[Pod]:
    """Return the pods that are evicted for the group, or for its members one by one."""
    if decision.preemption.code is not Code.SUCCESS:
        return ()
    unplaced = [each.decision for each in decision.members if isinstance(each.decision, Unplaced)]
    of_members = {victim.uid: victim for each in unplaced for victim in each.victims}  # several may need the same
    return decision.preemption.victims or tuple(of_members.values())


def sentence(minimum: int, decision: GroupDecision, tried: int) -> str:
    note = f"; {decision.preemption.note}" if decision.preemption.note else ""
    return encodable(shortened("".join(_parts(minimum, decision, tried)) + note, MAX_MESSAGE))


def _parts(minimum: int, decision: GroupDecision, tried: int) -> Iterator[str]:
    result, fitting = decision.result, sum(each.is_placed for each in decision.members)
    if result == "error":
        yield decision.message
        return
    yield _needed(minimum, decision.scheduled)
    if decision.near_miss is not None:
        yield nearest(decision.near_miss)
        return
    if not decision.members:
        yield f"none of {tried:,} was tried: {decision.message}"
        return
    yield _fitting(fitting, tried, *(("gets a node", "get a node") if result == "scheduled" else ("fits", "fit")))
    if result == "waiting_on_preemption":
        victims = len(victims_of(decision))
        said = f"{_pods(victims, 'is', 'are')} evicted for it" if victims else "pods are gone that were evicted before"
        yield f"; it waits until {said}"
        return
    refused = [each for each in decision.members if isinstance(each.decision, Unplaced) and not each.node_name]
    if refused:
        yield f"; {len(refused):,} {_verb(len(refused), 'does', 'do')} not: "
        yield ", ".join(_reasons(refused))
    if skipped := tried - len(decision.members):
        yield f"; {skipped:,} {_verb(skipped, 'was', 'were')} not tried"


@lru_cache(maxsize=64)  # groups of one pod come by the thousand
def _all_fit(minimum: int, tried: int, scheduled: int) -> str:
    """Return the sentence about a group of which all pods get a node."""
    return f"{_needed(minimum, scheduled)}{_fitting(tried, tried, 'gets a node', 'get a node')}"


def _needed(minimum: int, scheduled: int) -> str:
    if not minimum:
        return ""
    before = f", {scheduled:,} of them {_verb(scheduled, 'has', 'have')} a node" if scheduled else ""
    return f"{_pods(minimum, 'is', 'are')} needed at once{before}: "


def _fitting(fitting: int, tried: int, one: str, several: str) -> str:
    return f"{fitting:,} of {tried:,} {_verb(fitting, one, several)}"


def nearest(miss: NearMiss) -> str:
    """Say which domain comes nearest to holding a group, and what it lacks: `rack r7, lacks 2 nodes with 8 gpus`."""
    if miss.is_fixed:
        text = f"its other pods run in {miss.domain}, which holds {miss.fits:,} of {miss.needed:,} more"
    elif miss.domain:
        nearest = f"the nearest, {miss.domain}, holds {miss.fits:,} of {miss.needed:,}"
        text = f"no domain of {miss.label} holds them; {nearest}"
    else:
        text = f"all nodes together hold {miss.fits:,} of {miss.needed:,}"
    if not miss.resource:
        return f"{text}: none of its {counted(miss.node_count, 'node')} takes such pods"
    lacking = f"{counted(miss.lacking_nodes, 'node')} with {spelled(miss.resource, miss.amount_each)} {miss.resource}"
    refusing = f"; {miss.refusing_count:,} of its {counted(miss.node_count, 'node')} take no such pods"
    lacks = "lacks" if miss.domain else "lack"
    return f"{text} and {lacks} {lacking} free{refusing if miss.refusing_count else ''}"


def _pods(count: int, one: str, several: str) -> str:
    return f"{counted(count, 'pod')} {_verb(count, one, several)}"


def _verb(count: int, one: str, several: str) -> str:
    return one if count == 1 else several


def _reasons(refused: Sequence[MemberOutcome]) -> Iterator[str]:
    """Yield why these members fit nowhere, that of the most members first."""
    pods, nodes = Counter[str](), Counter[str]()
    for each in refused:
        decision = each.decision
        assert isinstance(decision, Unplaced), "only such are refused"
        for refusal in decision.refusals:
            pods[refusal.reason] += 1
            nodes[refusal.reason] = max(nodes[refusal.reason], refusal.nodes)
        if not decision.refusals:
            pods[decision.message] += 1
    found = sorted(pods, key=lambda reason: (-pods[reason], -nodes[reason], reason))
    for reason in found[:MAX_REASONS]:
        where = [f"{counted(pods[reason], 'pod')}"] if pods[reason] < len(refused) else []
        where += [f"on {counted(nodes[reason], 'node')}"] if nodes[reason] else []
        yield f"{reason} ({', '.join(where)})" if where else reason
    if len(found) > MAX_REASONS:
        yield f"and {counted(len(found) - MAX_REASONS, 'more reason')}"
