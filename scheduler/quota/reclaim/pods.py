"""Pods as units: the half that all rules have in common by which a pod, or a group, takes quota back."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from scheduler.api.pods.importance import created, importance, started
from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import PodGroup, PodGroups
from scheduler.framework.preemption.victims import group_that_goes, pods_of, pods_that_go
from scheduler.framework.shares import DisruptionBudgets, ReclaimVictims
from scheduler.quota.adapter import Asked
from scheduler.quota.ledger import Ledger
from scheduler.quota.policies import Policy
from scheduler.quota.reclaim.running import NO_LIMITS, Preemptor, QuotaUnit, may_evict, spare_first, total

if TYPE_CHECKING:
    from scheduler.quota.share_refs import ShareRef


class QuotaRequest(NamedTuple):
    """A question of a pod, or a group, to its share, with the state of all others."""

    ledger: Ledger
    share: str
    """Empty if it has none."""

    asked: Asked
    ref_of: "Callable[[Pod], ShareRef | None]"
    groups: PodGroups


class PodReclaim:
    """The part of framework.shares.ShareReclaim that no rule changes: who is gone, who may give, is that enough."""

    goes_by_nodes = False
    _preemptor: Preemptor
    _giving: Mapping[str, Policy]
    """The shares whose pods might be evicted, and which of these; under an empty name the pods without a share."""

    def __init__(self, request: QuotaRequest) -> None:
        ledger, share, asked, self._ref_of, self._groups = request
        self._ledger = ledger
        self._tree = ledger.tree
        self._share = share
        self._asked = asked
        self._rank = ledger.rank_of(share, asked)
        """Before any pod counts as gone."""
        self._away: set[str] = set()
        """The UIDs of pods that count as gone."""
        self._units: dict[str, QuotaUnit | None] = {}
        self._together: dict[str, QuotaUnit | None] = {}
        """The UID of a group that is disrupted as a whole → the unit that it is."""

    @property
    def helps(self) -> bool:
        return bool(self._giving)

    @property
    def takes_lower_only(self) -> bool:
        return all(policy is Policy.LOWER_PRIORITY for policy in self._giving.values())

    def may_give(self, pod: Pod) -> bool:
        share = self._share_of(pod)
        policy = None if share is None else self._giving.get(share)
        if policy is Policy.LOWER_OR_NEWER_EQUAL_PRIORITY:
            unit = self._unit(pod)
            return unit is not None and may_evict(policy, self._preemptor, unit)
        return policy is Policy.ANY or (policy is Policy.LOWER_PRIORITY and pod.priority < self._preemptor.priority)

    def is_leaving_for(self, pod: Pod) -> bool:
        return self.may_give(pod)

    @contextmanager
    def without(self, pods: Iterable[Pod]) -> Iterator[None]:
        taken: list[QuotaUnit] = []
        self._together.clear()
        try:
            for pod in pods:
                unit = self._unit(pod)
                if unit is not None and unit.uid not in self._away:
                    self._count(unit, -1)
                    self._away.add(unit.uid)
                    taken.append(unit)
            yield
        finally:
            self._together.clear()
            for unit in taken:
                self._count(unit, 1)
                self._away.discard(unit.uid)

    def fits(self) -> bool:
        with self._seen():
            return self._fits()

    def fits_soon(self) -> bool:
        with self._ledger.seen_by(self._asked, lambda: self._rank, self._ledger.stays_ahead):
            return self._fits()

    def _fits(self) -> bool:
        """The same while only what it sees counts."""
        return not self._share or self._ledger.refusal(self._share, self._asked) is None

    def _seen(self) -> AbstractContextManager[None]:
        """Have only those reservations count within a `with` block that it sees."""
        return self._ledger.seen_by(self._asked, lambda: self._rank)

    def _count(self, unit: QuotaUnit, sign: int) -> None:
        if unit.share:
            self._ledger.add(unit.share, unit.usage, sign)

    def _share_of(self, pod: Pod) -> str | None:
        """Return a pod's share, empty for none; None if it counts elsewhere, or against one that cannot be used."""
        ref = self._ref_of(pod)
        if ref is None:
            return ""
        return ref.name if ref.ledger is self._ledger and ref.name in self._tree.shares else None

    def _unit(self, pod: Pod) -> QuotaUnit | None:
        """Return a pod as a unit; None if it has no share in this sense."""
        uid = pod.metadata.uid
        if uid in self._units:
            return self._units[uid]
        ref, unit = self._ref_of(pod), None
        if ref is None or (ref.ledger is self._ledger and ref.name in self._tree.shares):
            unit = QuotaUnit(
                uid=uid,
                share="" if ref is None else ref.name,
                usage=NO_LIMITS if ref is None else self._ledger.used_by(pod, ref.said),
                priority=pod.priority,
                queued_at=created(pod),
                started=started(pod),
                pods=(pod,),
                is_of_group=bool(self._groups.name_of(pod)),
            )
        self._units[uid] = unit
        return unit

    def _whole(self, pod: Pod) -> QuotaUnit | None:
        """Return the unit that has to go if a pod goes; None if it cannot."""
        unit = self._unit(pod)
        group = group_that_goes(self._groups, pod) if unit is not None and unit.is_of_group else None
        if group is not None:
            if group.uid not in self._together:
                self._together[group.uid] = self._unit_of(group, pod)
            return self._together[group.uid]
        return None if pod.metadata.uid in self._away else unit

    def _spare_of(self, unit: QuotaUnit) -> tuple[str, int] | None:
        """As running.SpareOf."""
        pod = unit.pods[0]
        group = self._groups.of(pod) if unit.is_of_group and unit.uid == pod.uid else None
        if group is None or not group.minimum:
            return None
        members = self._groups.members(pod)
        leaving = sum(each.uid in self._away for each in members.scheduled) if self._away else 0
        return group.uid, members.scheduled_count - leaving - group.minimum

    def _unit_of(self, group: PodGroup, pod: Pod) -> QuotaUnit | None:
        """Return a group as a unit, without those that are going already; None if its pods have several shares."""
        pods = [each for each in pods_that_go(self._groups, group, pod) if each.uid not in self._away]
        found = [unit for each in pods if (unit := self._unit(each)) is not None]
        if not found or len(found) < len(pods) or len({unit.share for unit in found}) > 1:
            return None
        return QuotaUnit(
            uid=group.uid,
            share=found[0].share,
            usage=total(unit.usage for unit in found),
            priority=group.priority,
            queued_at=min(unit.queued_at for unit in found),
            started=min(unit.started for unit in found),
            pods=pods,
            is_of_group=True,
        )

    def _wholes(self, pods: Iterable[Pod]) -> list[QuotaUnit]:
        """Return the units of these pods, the least important first; not those that have other pods, too."""
        return list(spare_first(sorted(self._unordered(pods), key=attrgetter("order")), self._spare_of))

    def _unordered(self, pods: Iterable[Pod]) -> Iterator[QuotaUnit]:
        there = {pod.uid: pod for pod in pods}
        seen = set[str]()
        for pod in there.values():
            unit = self._whole(pod)
            if unit is not None and unit.uid not in seen:
                seen.add(unit.uid)
                if all(each.uid in there for each in unit.pods):
                    yield unit

    def _violating(self, units: Iterable[QuotaUnit], budgets: Callable[[], DisruptionBudgets]) -> set[str]:
        """Return the UIDs of the units that violate a budget if the most important go first."""
        tally, ordered = budgets(), sorted(units, key=lambda each: (-each.priority, each.started))
        return {unit.uid for unit in ordered if tally.use(unit.pods)}

    def _victims(self, units: Sequence[QuotaUnit], violating: Collection[str]) -> ReclaimVictims:
        """`violating`: the UIDs of units that violate a budget."""
        pods = sorted(pods_of(units), key=importance)
        violations = sum(len(unit.pods) for unit in units if unit.uid in violating)
        return ReclaimVictims(pods, violations, sum(unit.breaks_gang for unit in units))
