"""The decision about a group of pods in one cycle, before any of it takes effect, and what becomes of its members.

Rule: algorithmResult and podGroupAlgorithmResult in pkg/scheduler/schedule_one_podgroup.go at v1.37.2.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import msgspec

from scheduler.api.pods.pod import Pod
from scheduler.api.read_only import NOTHING
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import SchedulerError
from scheduler.framework.groups.pod_groups import GroupKey, GroupTree, PodGroup
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code, Status, unschedulable
from scheduler.groups.topology.capacity import NearMiss

UNSCHEDULABLE_GROUP: Final = "pod group is unschedulable"
NONE_PLACED: Final = unschedulable(UNSCHEDULABLE_GROUP)
"""The status of a group that is complete as it is, when no further member gets a node."""

WAITS_FOR_OTHERS: Final = "the pod group is unschedulable: this pod fits and waits for the others"

Verdict: TypeAlias = Placed | Unplaced | SchedulerError
"""The outcome for a member."""


@dataclass(slots=True, eq=False)
class MemberOutcome:
    """The decision about one member."""

    queued: QueuedPod
    state: CycleState
    decision: Verdict
    seconds: float = 0.0
    node_name: str = ""
    """The node that was chosen, on which the members after it see it."""

    @property
    def is_placed(self) -> bool:
        """Whether a node was chosen, and Reserve agrees."""
        return isinstance(self.decision, Placed)


class GroupPreemption(msgspec.Struct, frozen=True, eq=False):
    """The search for victims for the group as a whole."""

    code: Code | None = None
    """How it ended; None without one."""

    victims: Sequence[Pod] = ()
    """The pods that are evicted, in the order in which they were chosen."""

    members: Sequence[MemberOutcome] | None = None
    """As they fit without these; None if the decision before is about them."""

    nominations: Mapping[str, str] = NOTHING
    """UID of a member → the node that it gets once the victims are gone; empty if it is not nominated any more."""

    keeps_nominations: bool = False
    """Whether members stay nominated where they were: their victims are leaving."""

    given_up: Collection[GroupKey] = ()
    """The damaged groups of which what is left is evicted for it."""

    note: str = ""
    """Why nothing is evicted of other groups that are damaged as it is."""


NO_PREEMPTION: Final = GroupPreemption()


class GroupDecision(msgspec.Struct, frozen=True, eq=False):
    """The decision about the whole group."""

    members: Sequence[MemberOutcome] = ()
    """In the order in which they were decided; after an error, or once the group cannot fit, the others are missing."""

    status: Status | None = NONE_PLACED
    """None: those with a node are to be bound. Otherwise none of them is."""

    post_filter: str | None = None
    """The PodGroupPostFilter plugins' part of the message; None if it has none."""

    preemption: GroupPreemption = NO_PREEMPTION
    refused_by: str = ""
    """The plugin that refused the group before any of its members was looked at."""

    rejectors: frozenset[str] = frozenset()
    """The plugins that refused members in any placement, if it fits in none: `members` is about the first one."""

    placement: str = ""
    """The name of the placement that was chosen, where there are several."""

    seconds: float = 0.0
    """How long the search for nodes took, without that for victims."""

    group: PodGroup | None = None
    """The group, as it was then; None if it was gone."""

    scheduled: int = 0
    """How many of its pods had a node before."""

    changes: int = 0
    """The last change by others, as the cache numbers them, with which the members were known to fit their nodes."""

    parts: "Mapping[GroupKey, GroupDecision]" = NOTHING
    """The decisions about the groups that it consists of; in the end, about those of them that have the pods."""

    near_miss: NearMiss | None = None
    """The domain that comes nearest to holding a group that has a required level, and what it lacks."""

    def about(self, tree: GroupTree | None, **fields: Any) -> "GroupDecision":
        """Return it with what it is about, with a decision about each group that has pods, and with these fields."""
        if tree is not None:
            fields |= {"group": tree.group, "scheduled": tree.members.scheduled_count}
            if tree.group.minimum_groups:
                parts = dict(_parts(tree, self, None))
                fields |= {"parts": parts, "members": [each for part in parts.values() for each in part.members]}
        return msgspec.structs.replace(self, **fields)

    def all_rejectors(self) -> frozenset[str]:
        """Return the plugins that refused members, of any part and in any placement."""
        refused = [each.decision for each in self.members if isinstance(each.decision, Unplaced)]
        parts = [part.all_rejectors() for part in self.parts.values()]
        return self.rejectors.union(*[each.unschedulable_plugins for each in refused], *parts)

    def bound(self) -> Iterator[MemberOutcome]:
        """Yield the members that have a node, of parts that have what they need."""
        if not self.parts:
            yield from (each for each in self.members if each.is_placed)
        for part in self.parts.values():
            if part.status is None:
                yield from part.bound()

    def by_group(
        self, members: Sequence[QueuedPod], key_of: Callable[[Pod], GroupKey | None]
    ) -> "Sequence[tuple[GroupDecision, Sequence[QueuedPod]]]":
        """Return what is decided about each group that has pods, this or its parts, and which of `members` it has."""
        if not self.parts:
            return ((self, members),)
        of_part: dict[GroupKey | None, list[QueuedPod]] = {key: [] for key in self.parts}
        for queued in members:
            of_part.setdefault(key_of(queued.pod), []).append(queued)
        return [(self._part(key), pods) for key, pods in of_part.items()]

    def _part(self, key: GroupKey | None) -> "GroupDecision":
        """Return the decision about a part, with what is decided about all."""
        part = GroupDecision() if key is None else self.parts.get(key, GroupDecision())
        return msgspec.structs.replace(
            part,
            status=self.status if self.code is Code.ERROR else part.status,
            post_filter=self.post_filter,
            preemption=self.preemption,
            refused_by=self.refused_by,
            changes=self.changes,
        )

    @property
    def is_ours(self) -> bool:
        """Whether it is about a group of our own rules."""
        return self.group is not None and self.group.is_ours

    @property
    def is_waiting_for_preemption(self) -> bool:
        return self.preemption.code is Code.SUCCESS

    @property
    def code(self) -> Code:
        return Code.SUCCESS if self.status is None else self.status.code

    @property
    def result(self) -> str:
        """The result as metrics say it."""
        if self.status is None:
            return "scheduled"
        if self.is_rejected:
            return "waiting_on_preemption" if self.is_waiting_for_preemption else "unschedulable"
        return "error"

    @property
    def message(self) -> str:
        return self.refusal if self.post_filter is None else f"{self.refusal}, {self.post_filter}"

    @property
    def refusal(self) -> str:
        """The message without the answer of PodGroupPostFilter plugins."""
        return "" if self.status is None else self.status.message

    @property
    def is_rejected(self) -> bool:
        return self.status is not None and self.status.is_rejected


def _parts(
    tree: GroupTree, decision: GroupDecision | None, above: Status | None
) -> Iterator[tuple[GroupKey, GroupDecision]]:
    """Yield the decision about each group that has pods; `above`: the refusal of the group that one is part of.

    Rule: completeCompositePodGroupAlgorithmResultMap.
    """
    if decision is None or (above is not None and decision.status is None):
        decision = GroupDecision(status=above, parts=NOTHING if decision is None else decision.parts)
    if tree.is_composite:
        for child in tree.children:
            yield from _parts(child, decision.parts.get(child.key), decision.status)
    else:
        yield tree.key, decision.about(tree)


def verdicts_of(
    decision: GroupDecision, members: Sequence[QueuedPod]
) -> Iterator[tuple[QueuedPod, MemberOutcome | None, Verdict]]:
    """Yield the decision about each member, and what becomes of it.

    If a group of our own rules was refused as a whole, its first member names the plugin for all of them.
    """
    # Not by position: ranks may have given them another order, and after an error some are missing.
    decided = {outcome.queued.pod.metadata.uid: outcome for outcome in decision.members}
    for number, queued in enumerate(members):
        outcome = decided.get(queued.pod.metadata.uid)
        verdict = _verdict_of(decision, queued, outcome)
        if decision.is_ours and number and outcome is None and isinstance(verdict, Unplaced):
            verdict = replace(verdict, unschedulable_plugins=frozenset())
        yield queued, outcome, verdict


def _verdict_of(decision: GroupDecision, queued: QueuedPod, outcome: MemberOutcome | None) -> Verdict:
    """Return what becomes of one member. Rule: submitPodGroupAlgorithmResult."""
    if decision.status is None and outcome is not None and isinstance(outcome.decision, Placed):
        return outcome.decision
    if decision.code is Code.ERROR:
        if outcome is not None and isinstance(outcome.decision, SchedulerError):
            return outcome.decision
        return SchedulerError(decision.message)
    preemption = decision.preemption
    refused_by, nominated = frozenset(filter(None, (decision.refused_by,))), preemption.nominations.get(queued.pod.uid)
    if outcome is None:  # it was not looked at
        return Unplaced(
            decision.refusal,
            nominated_node_name=nominated,
            unschedulable_plugins=refused_by,
            refused_group_by=decision.refused_by,
        )
    if preemption.keeps_nominations:
        plugins = outcome.decision.unschedulable_plugins if isinstance(outcome.decision, Unplaced) else refused_by
        return Unplaced(decision.message, nominated_node_name=None, unschedulable_plugins=plugins)
    if isinstance(outcome.decision, Placed):
        if decision.is_waiting_for_preemption:
            return Unplaced(decision.message, nominated_node_name=nominated, unschedulable_plugins=refused_by)
        return Unplaced(WAITS_FOR_OTHERS if decision.is_ours else f"{UNSCHEDULABLE_GROUP}, {decision.message}")
    if decision.is_ours and decision.status is None and isinstance(outcome.decision, Unplaced):
        # The others have what was freed for the group: nothing is kept for this one.
        return replace(outcome.decision, nominated_node_name="")
    if nominated is not None and isinstance(outcome.decision, Unplaced):
        return replace(outcome.decision, nominated_node_name=nominated)
    return outcome.decision
