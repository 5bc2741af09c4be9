"""The rules that hold at every moment, each with the sentence that it comes from."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from tests.campaigns.quota import lawful
from tests.campaigns.quota.model import Pod, State
from tests.campaigns.quota.world import ELASTIC, spelled

RULES: Final[dict[str, str]] = {
    "limit": "quota.md: `maximum`, never exceeded by the share and those below it; borrowingLimit, lendingLimit",
    "sums": "quota.md: all pods with a node count, no matter who placed them",
    "shown": "quota.md: a share includes all below it",
    "in vain": "quota.md: no victim is evicted unless the pod then fits; pods of other shares do not get that space",
    "again": "quota.md: while its victims end it evicts no others, and then it starts",
    "loop": "quota.md: while its victims end it evicts no others, and what was taken back is not borrowed again",
    "circle": "no two shares that evict each other more than once, while nothing else changes",
    "unneeded": "quota.md: no more pods go than are needed",
    "unlawful": "quota.md: who may evict whom; a share gives only what it has borrowed",
    "overtaken": "quota.md: those within the guarantee go first; … then the more important pod, then the older",
    "in part": "groups.md: all or nothing, in one step",
    "held": "quota.md: while its victims end, the pod is nominated to its node; not when they are gone",
    "left": "a pod that a fresh engine would place is placed without the five-minute flush",
    "fits": "quota.md: a smaller pod may start while a larger one waits; as many are woken as there is space for",
    "restless": "quota.md: a pod that finds no victims is tried again at least every five minutes",
    "guarantee": "quota.md: a pod may evict to take back what its share is guaranteed, whatever the order",
    "silent": "quota.md: a pod above its share waits, says for what",
    "leak": "quota.md: pods with a node count; so nothing is used, kept or nominated for what is gone",
    "crash": "the engine goes on",
}
STARTS_WITHIN: Final = 30.0
"""Seconds after the last victim is gone: a backoff has at most ten, with some to spare."""

HELD_FOR: Final = 60.0


@dataclass(frozen=True)
class Finding:
    kind: str
    text: str
    at: float


@dataclass
class Claim:
    """A pod for which others were evicted, and that has not started yet."""

    claimant: str
    victims: dict[str, float | None] = field(default_factory=dict)
    """Name → when it was gone; None while it ends."""

    rounds: list[float] = field(default_factory=list)
    """When victims were chosen."""

    for_nodes: bool = False
    """Whether it may be DefaultPreemption's, by whose rules a more important pod may take the node."""

    is_excused: bool = False
    """Whether something may have cost it its space since the last victims were chosen."""

    def excuse(self) -> None:
        self.is_excused = True
        self.rounds.clear()

    @property
    def gone_at(self) -> float | None:
        """When the last of them was gone; None while one is not."""
        times = [each for each in self.victims.values() if each is not None]
        return max(times) if len(times) == len(self.victims) else None


@dataclass
class Choice:
    """The victims of one moment, and what there was when the first of them was evicted."""

    at: float
    claimant: str
    before: State
    others: set[str]
    """Who else has evicted pods and not started yet: what they ask for is kept for them."""

    victims: list[str] = field(default_factory=list)


class Judge:
    """Follows what happens, and notes what must not."""

    def __init__(self, state: State, say: Callable[[float, str], None]) -> None:
        self.findings: list[Finding] = []
        self.last_change = 0.0
        """When something last happened, of whatever kind."""

        self._state = state
        self._say = say
        self.now = 0.0
        self._claims: dict[str, Claim] = {}
        self._quiet_evictions: list[tuple[str, str]] = []
        """Quota of the claimant, of the victim: since the last change but replacements."""

        self._choices: list[Choice] = []
        """Since all was last at rest."""

        self._refused_at = -1.0
        """When a binding was refused last."""

        self._nodes_came = -STARTS_WITHIN
        """When pods may have waited for nodes: they come back one by one, after their backoffs."""

        self._overtaken: list[tuple[Pod, Pod, float]] = []
        """Who has started, who was to start before it, and when."""

        self._nominated_since: dict[str, float] = {}
        self._broken: set[str] = set()
        """Groups that have lost a member."""

    def find(self, rule: str, text: str) -> None:
        if not any(each.kind == rule and each.text == text for each in self.findings):
            self._say(self.now, f"! {rule}: {text}")
            self.findings.append(Finding(rule, text, self.now))

    def at(self, now: float) -> None:
        self.now = now

    def came(self, pod: Pod) -> None:
        self.last_change = pod.came

    def changed(self, now: float, kind: str) -> None:
        """Something happened that the engine did not do.

        An `arrival`, an `end` and a `node` that comes do a claim no harm. What is `outside` may cost it its space.
        """
        self.now = self.last_change = now
        self._quiet_evictions.clear()
        if kind == "node":
            self._nodes_came = now
        if kind == "outside":
            for claim in self._claims.values():
                claim.excuse()

    def refused(self, now: float, name: str) -> None:
        """A binding has failed: the pod is tried again after its backoff, and others may take its space."""
        self.changed(now, "outside")
        self.changed(now, "node")
        self._broken.add(self._claimant(self._state.pods[name]))
        self._refused_at = now

    def restarted(self, now: float) -> None:
        """What was in the memory of the scheduler is gone."""
        self.changed(now, "node")
        self._claims.clear()
        for pod in self._state.pods.values():
            pod.expense = frozenset()

    def bound(self, now: float, name: str, node: str) -> None:
        self.now = self.last_change = now
        pod = self._state.pods[name]
        pod.node, pod.started, pod.nominated = node, now, ""
        short = self._state.lacks(pod.quota, pod.asks, [p for p in self._state.running if p is not pod])
        if short:
            self.find("limit", f"{pod} starts, although {pod.quota} has {spelled(short)} less than it asks for")
        claim = self._claims.pop(self._claimant(pod), None)
        self._note_outranked(pod)
        if not pod.group and not claim:
            self._check_rank(pod)

    def evicted(self, now: float, victim_name: str, claimant_name: str) -> None:
        self.now = self.last_change = now
        state = self._state
        victim, claimant = state.pods[victim_name], state.pods.get(claimant_name)
        if claimant is None:
            self.find("leak", f"{victim_name} is evicted for {claimant_name}, which is gone")
            return
        lacks_nodes = lawful.may_lack_nodes(state, claimant)
        others = [pod for pod in state.running if pod is not victim]
        claim = self._claims.setdefault(self._claimant(claimant), Claim(claimant_name))
        claim.for_nodes |= lacks_nodes
        claim.victims[victim_name] = None
        if victim.ending and lacks_nodes:
            return  # DefaultPreemption chose it for two pods in a moment, as kube-scheduler does: it goes once
        choice = self._choice(claimant_name, victim_name)
        is_new = not choice.victims
        choice.victims.append(victim_name)
        victim.ending = True
        if is_new and not (claim.rounds and now == self._refused_at):  # else it was chosen with the others
            claim.is_excused = False
            claim.rounds.append(now)
        if lacks_nodes and victim.quota != claimant.quota and lawful.may_take_back(state, victim, others):
            claim.excuse()  # quota.md: DefaultPreemption goes by priority alone, and that share takes back
        rounds = len(claim.rounds)
        if rounds >= 2:
            rule = "again" if rounds == 2 else "loop"
            self.find(rule, f"evictions for {claimant} for the {rounds}. time, and it has not started")
        self._note_expense(claimant, victim)
        by_priority = lacks_nodes and victim.priority < claimant.priority
        if claimant.quota != victim.quota and not by_priority:  # quota.md: DefaultPreemption goes by priority alone
            self._note_circle(claimant.quota, victim.quota)
        if victim.group:
            self._broken.add(victim.group)
        self._note_outranked(claimant)

    def ended(self, now: float, name: str) -> Pod | None:
        self.now = self.last_change = now
        pod = self._state.pods.pop(name, None)
        for claim in self._claims.values():
            if name in claim.victims:
                claim.victims[name] = now
        if pod:
            self._claims.pop(self._claimant(pod), None)
            if pod.group:
                self._broken.add(pod.group)
        return pod

    def at_rest(self, now: float, nominated: Mapping[str, str], used: Mapping[str, Mapping[str, int]]) -> None:
        """Check what must be so whenever nothing is left to do but to wait."""
        self.now = now
        self._check_overtaken()
        self._judge_choices()
        for pod in self._state.pods.values():
            pod.nominated = "" if pod.node else nominated.get(pod.name, "")
        self._check_nominations(now, nominated)
        self._check_sums(used)
        self._check_claims(now)
        self._check_groups()

    def _judge_choices(self) -> None:
        # A pod whose binding is refused had its node and quota when others chose in that moment.
        for choice in [each for each in self._choices if each.at != self._refused_at]:
            of_moment = [each for each in self._choices if each.at == choice.at]
            alone = self._fault(choice, [])
            if alone and self._fault(choice, of_moment) and not self._was_first(choice, of_moment[0].before):
                self.find(*alone)
        self._choices.clear()

    def _was_first(self, choice: Choice, before: State) -> bool:
        """Whether a choice breaks no rule if it was made before all others of its moment."""
        has_all = all(name in before.pods and before.pods[name].node for name in choice.victims)
        return has_all and choice.claimant in before.pods and not self._fault(replace(choice, before=before), [])

    def _fault(self, choice: Choice, made: list[Choice]) -> tuple[str, str] | None:
        """Return the rule that a choice breaks, and how; None if it breaks none.

        `made`: choices of its moment that were perhaps made before it, as evictions reach the API in any order.
        """
        before = choice.before.copy()
        claimant, victims = before.pods[choice.claimant], [before.pods[victim] for victim in choice.victims]
        mine = self._claimant(claimant)
        made = [each for each in made if self._claimant(each.before.pods[each.claimant]) != mine]
        for name in {victim for each in made for victim in each.victims} & before.pods.keys() - {*choice.victims}:
            before.pods[name].ending = True
        pending = {self._claimant(pod): pod for pod in before.pending if self._claimant(pod) != mine}
        going = choice.others | {self._claimant(each.before.pods[each.claimant]) for each in made}
        going |= {self._claimant(pod) for pod in before.pending if pod.nominated}
        taken = [lawful.entry_of(before, pod) for name, pod in pending.items() if name in going]
        if text := lawful.objection(before, claimant, victims, taken):
            return "unlawful", text
        if spared := lawful.spared(before, claimant, victims, taken):
            return "unneeded", f"{claimant} fits although {spared} stays, of {', '.join(choice.victims)}"
        if pair := lawful.preferable(before, claimant, victims, taken):
            return "unneeded", f"{claimant} evicts {pair[0]}, and {pair[1]}, less important or newer, stays"
        return None

    def _choice(self, claimant: str, victim: str) -> Choice:
        """That to which a victim belongs: of one moment, and already running when the first of them was evicted."""
        for choice in self._choices:
            ran = choice.before.pods.get(victim)
            if (choice.at, choice.claimant) == (self.now, claimant) and ran and ran.node:
                return choice
        mine = self._claimant(self._state.pods[claimant])
        self._choices.append(Choice(self.now, claimant, self._state.copy(), {*self._claims} - {mine}))
        return self._choices[-1]

    def _claimant(self, pod: Pod) -> str:
        return pod.group or pod.name

    def _note_outranked(self, pod: Pod) -> None:
        """Note from whom a pod that starts or evicts takes what DefaultPreemption freed.

        As in kube-scheduler, that is kept only from less important pods; an equal may evict on the same node. Of
        elastic quotas, those count that are within their minimum.
        """
        state = self._state
        running = [each for each in state.running if each is not pod]
        asked = replace(pod, asks=lawful.needed(state, pod))
        is_guaranteed = state.world.source == ELASTIC and state.within(pod.quota, asked, running)
        for name, claim in self._claims.items():
            claimant = state.pods.get(claim.claimant)
            if claim.for_nodes and claimant is not None and self._claimant(pod) != name:
                borrows = not state.within(claimant.quota, claimant, running)
                is_ahead = pod.priority > claimant.priority - (not pod.node)
                if is_ahead or (is_guaranteed and borrows):
                    claim.excuse()

    def _check_rank(self, pod: Pod) -> None:
        """Note whom it overtakes, of those that ask for the same, where nodes are never short."""
        state = self._state
        if self.now - self._nodes_came < STARTS_WITHIN or not state.world.has_ample_nodes or pod.is_foreign:
            return
        for other in state.pending:
            is_alike = (other.asks, other.group, other.nominated) == (pod.asks, "", "")
            is_alike &= other.pinned_to in ("", pod.node)
            came_first = other.came <= (self.now if other.priority > pod.priority else pod.came) - 1
            if is_alike and came_first and lawful.goes_first(state, other, pod, self._taking()):
                self._overtaken.append((pod, other, self.now))

    def _check_overtaken(self) -> None:
        """Of two that start in the same moment it does not matter which was first."""
        for pod, other, at in self._overtaken:
            # All of that moment have started by now.
            is_first = other.quota == pod.quota or lawful.goes_first(self._state, other, pod, self._taking())
            waits = other.name in self._state.pods and not (other.node and other.started <= at + 1)
            is_excused = self._has_lost_to_another(pod, other, at) or self._was_represented(pod, other, at)
            if waits and is_first and not is_excused:
                self.find("overtaken", f"{pod} of {pod.quota} starts before {other} of {other.quota}, {other.came:g} s")
        self._overtaken.clear()

    def _has_lost_to_another(self, pod: Pod, other: Pod, at: float) -> bool:
        """Whether one that goes ahead of it has taken, in the same moment, what was reserved for it beside the pod."""
        state = self._state
        taken, evicted = self._taking(), {each.claimant for each in self._choices if at <= each.at <= at + 1}
        return any(
            each not in (pod, other)
            and (at <= each.started <= at + 1 or not each.node or each.name in evicted)
            and lawful.is_ahead(state, each, other)
            and not state.lacks(other.quota, other.asks, [rest for rest in taken if rest is not each])
            for each in taken
        )

    def _was_represented(self, pod: Pod, other: Pod, at: float) -> bool:
        """Whether one ahead of it in its quota has started in the same moment that was not to start before the pod."""
        taken = self._taking()
        return any(
            (each.quota, each is pod) == (other.quota, False)
            and each.rank < other.rank
            and at <= each.started <= at + 1
            and not lawful.goes_first(self._state, each, pod, taken)
            for each in taken
        )

    def _taking(self) -> list[Pod]:
        """Those that have a node, or have evicted pods, so that what they ask for is kept."""
        return [pod for pod in self._state.pods.values() if pod.node or self._claimant(pod) in self._claims]

    def _note_expense(self, claimant: Pod, victim: Pod) -> None:
        """Note whose pods went for one that runs from now on, or for all pods of a group."""
        gave = victim.expense | {*self._state.apart(victim.quota, claimant.quota)[-1:]}
        for pod in self._state.pods.values():
            if self._claimant(pod) == self._claimant(claimant):
                pod.expense |= gave

    def _note_circle(self, claimant: str, victim: str) -> None:
        self._quiet_evictions.append((claimant, victim))
        pair = {claimant, victim}
        turns = [each for each in self._quiet_evictions if set(each) == pair]
        changes = sum(1 for one, other in pairwise(turns) if one != other)
        if changes >= 3:
            self.find(
                "circle", f"{claimant} and {victim} evict each other again and again, though nothing else changes"
            )

    def _check_nominations(self, now: float, nominated: Mapping[str, str]) -> None:
        for name in [*self._nominated_since]:
            if name not in nominated:
                del self._nominated_since[name]
        for name, node in nominated.items():
            pod = self._state.pods.get(name)
            if pod is None:
                self.find("leak", f"{name} is gone, and nominated to {node}")
                continue
            since = self._nominated_since.setdefault(name, now)
            claim = self._claims.get(self._claimant(pod))
            gone = claim.gone_at if claim else since
            if (
                gone is not None
                and now - max(gone, since) > HELD_FOR
                and not any(p.ending for p in self._state.running)
            ):
                self.find(
                    "held",
                    f"{pod} is nominated to {node} for {now - max(gone, since):.0f} s since its victims are gone",
                )

    def _check_sums(self, used: Mapping[str, Mapping[str, int]]) -> None:
        for name, amounts in used.items():
            for resource in self._state.limited(name):
                counted = self._state.total(name, resource, self._state.running)
                if amounts.get(resource, 0) != counted:
                    self.find(
                        "sums", f"{name} uses {counted} {resource}, and the engine says {amounts.get(resource, 0)}"
                    )

    def _check_claims(self, now: float) -> None:
        for claim in self._claims.values():
            gone = claim.gone_at
            if gone is None or now - gone <= STARTS_WITHIN or claim.is_excused:
                continue
            if claim.claimant in self._state.pods:
                victims = ", ".join(claim.victims)
                claim.is_excused = True
                self.find("in vain", f"{claim.claimant} has not started {now - gone:.0f} s after {victims} went for it")

    def _check_groups(self) -> None:
        members: dict[str, list[Pod]] = defaultdict(list)
        for pod in self._state.pods.values():
            if pod.group and pod.group not in self._broken:
                members[pod.group].append(pod)
        for group, pods in members.items():
            running = sum(1 for pod in pods if pod.node)
            if 0 < running < pods[0].minimum:
                self.find("in part", f"{running} of group {group} run, which needs {pods[0].minimum}")
