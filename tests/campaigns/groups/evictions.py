"""The rules about evictions: for whom, of whom, how often, and whether the group starts then."""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.campaigns.groups import trees
from tests.campaigns.groups.findings import Record
from tests.campaigns.groups.model import GroupState, Model, PodState
from tests.campaigns.groups.reservations import ReservationRules
from tests.campaigns.groups.scenarios import Settings

START_SECONDS: Final = 60.0
"""A group starts within this time after its last victim is gone: its backoff is shorter."""


@dataclass
class Round:
    """The victims of one moment."""

    at: float
    group: str
    free: dict[str, int]
    """The cores that were free on each node that takes pods."""
    needed: Sequence[int]
    """What each pod that the group lacks asks for; empty where it is not certain which pods, or where, these are."""
    lower: Sequence[PodState] = ()
    """The pods of lower priority that ran."""
    victims: list[PodState] = field(default_factory=list)


@dataclass
class Claim:
    """Evictions for a group that has not started yet."""

    began: float
    victims: set[str] = field(default_factory=set)
    rounds: list[Round] = field(default_factory=list)
    due: float = float("inf")
    is_late: bool = False


def _stays_before(one: PodState, other: PodState) -> bool:
    """Whether one has to go after another: it is under a budget, or more important."""
    return (one.is_protected, one.priority) > (other.is_protected, other.priority)


class EvictionRules:
    def __init__(
        self,
        model: Model,
        record: Record,
        settings: Settings,
        nominations: Callable[[], Iterable[tuple[str, str]]],
        reservations: ReservationRules,
    ) -> None:
        self._reservations = reservations
        self._model = model
        self._record = record
        self._settings = settings
        self._nominations = nominations
        self._claims: dict[str, Claim] = {}
        self._overtaken: dict[str, float] = {}
        """Group → when it last was: what is evicted for it in that moment was chosen before."""
        self._rounds: list[Round] = []
        """Those that were not looked at yet."""
        self._given_up: dict[str, tuple[float, Collection[str]]] = {}
        """Damaged groups of which pods were evicted for others of their priority: when, and which had a node."""

    def time_passed(self) -> None:
        now = self._record.now
        for name, (at, pods) in tuple(self._given_up.items()):
            if at < now:
                del self._given_up[name]
                self._check_given_up(name, pods)
        for each in [each for each in self._rounds if each.at < now]:
            self._rounds.remove(each)
            self._check_needed(each)
        for name, claim in self._claims.items():
            if claim.due < now and not claim.is_late:
                claim.is_late = True
                if self._has_all_but_space(self._model.groups[name]):
                    self._violated_in_vain(name, claim)

    def gone(self, pod: PodState) -> None:
        for claim in self._claims.values():
            claim.victims.discard(pod.name)
            if not claim.victims and claim.due == float("inf"):
                claim.due = self._record.now + START_SECONDS

    def excuse(self, group: str = "") -> None:
        """Something outside has changed for a group; "": perhaps for all."""
        self._claims = {name: claim for name, claim in self._claims.items() if group not in ("", name)}

    def overtaken(self, group: str) -> None:
        """A binding of a group has failed, or more important pods have taken its space."""
        self._overtaken[group] = self._record.now
        self.excuse(group)

    def bound(self, pod: PodState) -> None:
        for name in self._trees_below(pod):
            self.overtaken(name)
        for each in self._rounds:
            if each.at == self._record.now and each.group != pod.group:
                each.needed = []  # what it got was not free

    def _trees_below(self, pod: PodState) -> list[str]:
        """Return the trees that evict and are less important: their nodes "pods of higher priority may still take"."""
        plans = [(name, self._model.groups[name].plan) for name in self._claims]
        return [name for name, plan in plans if plan.parts and plan.priority < pod.priority]

    def started(self, group: str) -> None:
        self._claims.pop(group, None)

    def evicted(self, victim: PodState, claimant: PodState | None) -> None:
        if claimant is None:
            return
        gives_way = victim.priority == claimant.priority and self._gives_way(victim, claimant)
        if gives_way or self._leaves_whole(victim):
            placed = [pod for pod in self._model.placed(self._model.groups[victim.group]) if self._has_node(pod)]
            self._given_up.setdefault(victim.group, (self._record.now, [pod.name for pod in placed]))
        if victim.priority >= claimant.priority and not gives_way:
            text = f"{victim.name} of priority {victim.priority} is evicted for {claimant.name} of {claimant.priority}"
            self._record.violated("victim", "not of lower priority", text)
        for name in self._trees_below(claimant):
            self.excuse(name)
        now = self._record.now
        if not claimant.group or now == self._overtaken.get(claimant.group):
            return
        claim = self._claims.setdefault(claimant.group, Claim(now))
        claim.victims.add(victim.name)
        if not claim.rounds or claim.rounds[-1].at < now:
            claim.rounds.append(self._round(self._model.groups[claimant.group], gives_way))
        claim.rounds[-1].victims.append(victim)
        if len(claim.rounds) > 1:
            times = ", ".join(f"{each.at:.1f}" for each in claim.rounds)
            text = f"{claimant.group} evicted at {times} s and has not started"
            self._record.violated("loop", "evicts again and again", text)

    def _round(self, group: GroupState, gives_way: bool) -> Round:
        """What there is before the first of its victims goes."""
        model, plan = self._model, group.plan
        waiting = [pod for pod in model.members(plan.name) if not pod.place and not pod.is_gated]
        needed = [pod.cpu for pod in waiting][
            : model.minimum(group) - len(model.placed(group)) - model.succeeded(group)
        ]
        # Those of a group that is being tried are known to the scheduler, and not to its nominator.
        others = [uid for uid, _ in self._nominations() if uid not in {pod.name for pod in waiting}]
        others += [name for name in self._claims if name != plan.name]
        is_open = gives_way or others or self._reservations.group or any(pod.is_deleting for pod in model.pods.values())
        if is_open or plan.parts or plan.required or plan.preferred or len({pod.cpu for pod in waiting}) > 1:
            needed = []
        lower = [pod for pod in model.pods.values() if pod.phase == "Running" and pod.priority < plan.priority]
        made = Round(
            self._record.now, plan.name, {name: model.free(name) for name in model.open_nodes()}, needed, lower
        )
        self._rounds.append(made)
        return made

    def _check_needed(self, made: Round) -> None:
        """Check that no victim could stay, and none less important on the same node could go for it."""
        for victim in itertools.filterfalse(self._leaves_whole, made.victims if made.needed else ()):
            free = dict(made.free)
            for other in made.victims:
                if other is not victim and other.place in free:
                    free[other.place] += other.cpu
            if self._model.holds_in(free, made.needed):
                text = f"{len(made.needed)} pods fit although {victim.name} stays"
                self._record.violated("unneeded", "one could stay", text)
            for other in made.lower:
                is_alike = (other.place, other.cpu) == (victim.place, victim.cpu) and not victim.of_daemon
                if is_alike and _stays_before(victim, other) and other not in made.victims:
                    self._record.violated(
                        "unneeded", "another is less important", f"{victim.name} goes, not {other.name}"
                    )

    def _has_node(self, pod: PodState) -> bool:
        """Whether the node of a pod exists: no pod is evicted from one that is gone."""
        return self._model.nodes[pod.place].exists

    def _leaves_whole(self, victim: PodState) -> bool:
        group = self._model.groups.get(victim.group)
        return group is not None and group.plan.leaves_whole and group.object_exists and victim.part in group.parts

    def _gives_way(self, victim: PodState, claimant: PodState) -> bool:
        """Whether both are of groups that may have lost pods: a pod that succeeds while it is deleted may not count."""
        groups = [self._model.groups.get(pod.group) for pod in (victim, claimant)]
        are_damaged = all(group is not None and self._model.is_damaged(group, perhaps=True) for group in groups)
        return are_damaged and bool(self._settings.damaged_seconds)

    def _check_given_up(self, name: str, pods: Collection[str]) -> None:
        left = [pod.name for pod in self._model.members(name) if pod.name in pods]
        if left:
            self._record.violated("damaged", "a part of it is evicted", f"{', '.join(left)} of {name} stay")

    def _has_all_but_space(self, group: GroupState) -> bool:
        """Whether a group has its pods, which agree, and what it wants in the whole cluster, as when it evicted."""
        model = self._model
        if group.plan.parts:
            members = model.members(group.plan.name)
            return (
                trees.is_complete(group.plan, group.parts, members)
                and group.object_exists
                and not model.is_gated(group)
            )
        members = model.members(group.plan.name)
        has_pods = len(members) + model.succeeded(group, at_most=True) >= model.minimum(group)
        agree = len(model.said([pod for pod in members if not pod.place])) < 2
        is_free = model.own_and_free(group) >= group.plan.least
        return has_pods and agree and not model.is_gated(group) and is_free

    def _violated_in_vain(self, name: str, claim: Claim) -> None:
        plan = self._model.groups[name].plan
        symptom = "of a group with a topology" if plan.required or plan.preferred else "of a group without a topology"
        text = f"pods were evicted for {name} at {claim.began:.1f} s, and it does not start"
        self._record.violated("in vain", symptom, text)
