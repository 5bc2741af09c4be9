"""The rules about what the scheduler leaves: played at quiet points, when nothing has changed for some time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.testing import Scheduler
from scheduler.testing.api_server import ApiServer
from tests.campaigns.groups import objects, trees
from tests.campaigns.groups.model import GroupState, PodState
from tests.campaigns.groups.world import World

QUIET_SECONDS: Final = 50.0
"""Longer than any backoff, which is 10 seconds times the root of the number of pods; shorter than the flush."""

GIVEN_UP_SECONDS: Final = 600.0 + 60.0
RESERVED: Final = "reserved for the pod group"


class QuietPoint:
    """What there is at a quiet point of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.model = world.model
        self.nominations = dict(world.nominations())
        waiting = [pod for pod in self.model.pods.values() if pod.is_active and not pod.place and not pod.is_gated]
        self.lone = [pod for pod in waiting if not pod.group]
        self.groups = [self.model.groups[name] for name in sorted({pod.group for pod in waiting if pod.group})]

    def taken(self, *, without: str = "") -> list[tuple[str, int]]:
        """What is nominated: node and cores; not for a pod, or the pods of a group, of this name."""
        found = []
        for uid, node in self.nominations.items():
            pod = self.model.pods.get(uid)
            if pod is not None and not pod.place and without not in (pod.name, pod.group):
                found.append((node, pod.cpu))
        return found

    def refused_by_reservation(self, pod: PodState) -> bool:
        return RESERVED in self.world.message(pod)

    def lone_that_fit(self) -> Iterator[tuple[PodState, list[str]]]:
        """Yield the pods without a group that wait though something is free for them, with the nodes."""
        for pod in self.lone:
            if nodes := self.model.fits(pod, self.taken(without=pod.name)):
                yield pod, nodes

    def damaged_pairs(self) -> Iterator[tuple[list[str], list[str]]]:
        """Yield the pods with a node of two damaged groups, the first of which is complete if the second gives way."""
        damaged = [each for each in self.groups if self.model.is_damaged(each) and self._lacks_nodes_only(each)]
        for first, second in permutations(damaged, 2):
            more, fewer = self.model.placed(first), self.model.placed(second)
            may_be_either = len(more) == len(fewer) and self._is_complete(second, more)
            is_first = len(more) > len(fewer) or may_be_either
            if first.plan.priority == second.plan.priority and is_first and self._is_complete(first, fewer):
                yield [pod.name for pod in more], [pod.name for pod in fewer]

    def _lacks_nodes_only(self, group: GroupState) -> bool:
        return self._may_start(group, *self._waiting(group)) and not self._is_kept_waiting(group)

    def _waiting(self, group: GroupState) -> tuple[list[PodState], int]:
        """Return the pods of a group that wait for nodes, and how many of them it needs."""
        waiting = [pod for pod in self.model.members(group.plan.name) if not pod.place and not pod.is_gated]
        placed = len(self.model.placed(group))
        return waiting, self.model.minimum(group) - placed - self.model.succeeded(group)

    def _is_complete(self, group: GroupState, gone: Sequence[PodState]) -> bool:
        """Whether a group that lacks nodes only, and requires no level, surely has its minimum if these are gone."""
        name, model = group.plan.name, self.model
        waiting, need = self._waiting(group)
        if group.plan.required:
            return False
        taken = [*self.taken(without=name), *((pod.place, -pod.cpu) for pod in gone)]
        return model.holds(model.open_nodes(), sorted(pod.cpu for pod in waiting)[:need], taken)

    def check(self, *, is_late: bool = False) -> None:
        """Look for violations. `is_late`: each pod and group has been tried again since all came to rest."""
        self._check_nominations()
        violated = self.world.record.violated
        if self.world.scenario.settings.reservation_seconds and (name := self.world.rules.reservations.missing()):
            violated("reserved", "a group that waits has none", f"nothing is reserved for {name}")
        for pod, nodes in self.lone_that_fit():
            text = (
                f"{pod.name} ({pod.cpu} cpu) waits, and {', '.join(nodes)} would take it: {self.world.message(pod)!r}"
            )
            if not self.refused_by_reservation(pod):
                violated("lone fits", "it waits", text)
            elif pod.of_daemon or pod.priority > self._priority_of_reservation():
                violated("higher", "it is refused", text)
            elif not self.world.rules.reservations.group:
                violated("held", "a reservation for what is gone or placed", text)
        for group in self.groups:
            self._check_group(group)
            self._check_holds(group)
            self._check_messages(group)
        is_preempting = any(pod.is_deleting and pod.evicted_for in self.model.pods for pod in self.model.pods.values())
        if (self.lone or self.groups) and not is_preempting:  # victims on dead nodes stay for ever
            self._check_fresh(is_late=is_late)

    def _priority_of_reservation(self) -> int:
        name = self.world.rules.reservations.group
        return self.model.groups[name].plan.priority if name else 1000

    def _check_holds(self, group: GroupState) -> None:
        for pod in self.model.members(group.plan.name):
            if not pod.place and (held := self.world.outcome(objects.pod_object(pod)).held_by):
                self.world.record.violated("holds", "at Permit", f"{pod.name} waits at Permit: {', '.join(held)}")

    def _check_messages(self, group: GroupState) -> None:
        """Check that the members of a group that lacks nodes, or a license, say so: autoscalers ask for them."""
        waiting, need = self._waiting(group)
        if group.plan.parts or len(waiting) < max(1, need) or not self._is_consistent(group, waiting):
            return
        for pod in waiting:
            if not self.world.message(pod):
                self.world.record.violated("silent", "a member", f"{pod.name} waits, and does not say for what")

    def _check_nominations(self) -> None:
        for uid, node in self.nominations.items():
            pod = self.model.pods.get(uid)
            if pod is None or not pod.is_active:
                symptom = "the pod is gone"
            elif pod.place:
                symptom = "the pod is bound"
            elif pod.group and self.model.lacks_object(pod):
                symptom = "the PodGroup is gone"
            else:
                continue
            self.world.record.violated("nominated", symptom, f"{uid} is nominated to {node}: {symptom}")

    def _is_kept_waiting(self, group: GroupState) -> bool:
        """Whether a reservation for another group explains that it waits. The pods of a tree may not say that."""
        other = self.world.rules.reservations.group
        is_lower = other not in ("", group.plan.name) and self._priority_of_reservation() >= group.plan.priority
        return is_lower and (bool(group.plan.parts) or any(map(self.refused_by_reservation, self._waiting(group)[0])))

    def _check_group(self, group: GroupState) -> None:
        name = group.plan.name
        if group.plan.parts:
            self._check_tree(group)
            return
        if not self._lacks_nodes_only(group):
            return
        placed, (waiting, need) = self.model.placed(group), self._waiting(group)
        taken = self.taken(without=name)
        cpus = sorted(pod.cpu for pod in waiting)[: max(1, need)]
        for nodes in self.model.allowed(name):
            if self.model.holds(nodes, cpus, taken):
                rule, symptom = "group fits" if need > 0 else "elastic", self._state(group, placed, waiting)
                needed = f"{max(1, need)} pods of {name} ({', '.join(map(str, cpus))} cpu)"
                message = self.world.message(waiting[0])
                self.world.record.violated(rule, symptom, f"{needed} fit on {', '.join(nodes)}, and wait: {message!r}")
                return

    def _check_tree(self, group: GroupState) -> None:
        waiting = [pod for pod in self._waiting(group)[0] if not self.model.lacks_object(pod)]
        is_open = self._may_start(group, waiting, 1) and not self._is_kept_waiting(group)
        if not is_open or group.plan.required or self._depends_on_order(group):
            return
        taken = self.taken(without=group.plan.name)
        free = {name: self.model.free(name, also_taken=taken) for name in self.model.open_nodes()}
        if pods := trees.starts(self.model, group, waiting, free):
            text = f"{', '.join(pod.name for pod in pods)} fit, and wait: {self.world.message(pods[0])!r}"
            self.world.record.violated("group fits", "a tree waits", text)

    def _depends_on_order(self, group: GroupState) -> bool:
        """Whether a tree may fit in another order only: "Groups of `scheduling.k8s.io` get … no order of members but
        kube-scheduler's", which is by creation for parts, and for pods also by how often they were tried."""
        return any(part.required for part in group.plan.parts) or len({pod.cpu for pod in self._waiting(group)[0]}) > 1

    def _may_start(self, group: GroupState, waiting: Sequence[PodState], need: int) -> bool:
        """Whether nothing but space may keep it from its nodes."""
        has_license = self.model.has_license or not group.plan.needs_license
        has_least = not group.plan.least or self._is_free(group) >= group.plan.least
        is_complete = len(waiting) >= max(1, need) and self._is_consistent(group, waiting)
        return is_complete and has_license and has_least

    def _is_consistent(self, group: GroupState, waiting: Sequence[PodState]) -> bool:
        is_held = any(map(self.model.lacks_object, waiting)) or self.model.is_gated(group)
        return len(self.model.said(waiting)) == 1 and not is_held

    def _is_free(self, group: GroupState) -> int:
        """The cores that are free, or that the group has: no more than the scheduler may think."""
        name = group.plan.name
        own = sum(pod.cpu for pod in self.model.members(name) if pod.place)
        taken = self.taken(without=name)
        return own + sum(max(0, self.model.free(node, also_taken=taken)) for node in self.model.open_nodes())

    def _state(self, group: GroupState, placed: Sequence[PodState], waiting: Sequence[PodState]) -> str:
        if len(waiting) + len(placed) < group.minimum:
            return "it waits: its successes do not count"
        ending = [pod for pod in self.model.pods.values() if pod.group == group.plan.name and pod.is_deleting]
        if not group.plan.has_object and any(pod.minimum != group.minimum for pod in placed):
            return "its template has changed"
        if len({pod.cpu for pod in waiting}) > 1:
            return "its members differ"
        if ending and group.plan.required:
            return "a level is required, and pods are being deleted elsewhere"
        return "pods of it are being deleted" if ending else "it waits"

    def _check_fresh(self, *, is_late: bool) -> None:
        """Have a scheduler that has just been started look at the same state."""
        fresh = FreshScheduler(self.world, self.nominations)
        with fresh:
            fresh.begin()
            if is_late and fresh.evicted and not self.world.rules.reservations.group:
                text = f"{fresh.claimant} waits, and a fresh engine evicts {fresh.evicted[0].name} for it"
                self.world.record.violated("restless", "a fresh engine evicts", text)
            self._check_groups_of(fresh)
            for uid in fresh.placed:
                pod = self.model.pods[uid]
                group = self.model.groups.get(pod.group)
                may_fit_by_chance = group is not None and bool(group.plan.parts) and self._depends_on_order(group)
                is_kept = group is not None and self._is_kept_waiting(group)
                if may_fit_by_chance or is_kept or self.refused_by_reservation(pod):
                    continue
                text = f"{pod.name} waits ({self.world.message(pod)!r}), and a fresh engine places it"
                if pod.group and len(self.model.said(self._waiting(self.model.groups[pod.group])[0])) > 1:
                    self.world.record.violated("disagree", "a fresh engine binds a member", text)
                else:
                    symptom = "a pod of a group" if pod.group else "a pod without a group"
                    self.world.record.violated("fresh", symptom, text)

    def _check_groups_of(self, fresh: "FreshScheduler") -> None:
        """Check that the groups of which it has bound pods have as many as they need, in one domain."""
        places = {pod.uid: pod.node_name for pod in fresh.bound}
        for group in self.groups:
            name, model = group.plan.name, self.model
            members = [pod for pod in model.members(name) if pod.place or pod.name in places]
            minimum = min([group.minimum, *(pod.minimum for pod in members if pod.name in places and pod.minimum)])
            started = [pod.name for pod in members if pod.name in places]
            if group.plan.parts and started:
                sent = [replace(pod, node=places[pod.name]) for pod in members if pod.name in places]
                placed = trees.placed(model, group)
                faults = list(trees.faults(group.plan, group.parts, placed, sent))
                if any(trees.is_apart(model, group.plan, pod, (*placed, *sent)) for pod in sent):
                    faults.append(trees.APART)
                for fault in faults:
                    self.world.record.violated("tree", fault, f"a fresh engine binds {', '.join(started)} of {name}")
                continue
            if started and len(members) + model.succeeded(group, at_most=True) < minimum:
                text = f"{', '.join(started)} of {name}: {len(members)} have a node then, {minimum} are needed"
                self.world.record.violated("all or nothing", "a fresh engine binds a part", text)
            level = group.plan.required
            if started and level and len({model.domain(pod.place or places[pod.name], level) for pod in members}) > 1:
                text = f"{', '.join(started)} of {name} go to {', '.join(places[each] for each in started)}"
                self.world.record.violated("required", "a fresh engine leaves the domain", text)


class FreshServer(ApiServer):
    """Notes for whom the first pod is evicted."""

    claimant = ""

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        self.claimant = self.claimant or preemptor.name
        return await super().evict(victim, preemptor, message)


class FreshScheduler(Scheduler):
    """A scheduler that has just been started, on the state of a world. It evicts nobody: it ends where it would."""

    def __init__(self, world: World, nominations: dict[str, str]) -> None:
        settings = replace(world.scenario.settings, reservation_seconds=0, damaged_seconds=0)
        self._pods = FreshServer()
        super().__init__(objects.config(settings), objects.REGISTRY, server=self._pods)
        self._world = world
        self._nominations = nominations

    def begin(self) -> None:
        objects.show_all(self, self._world.model, self._world.scenario.settings, self._nominations)
        self.advance(2)

    @property
    def claimant(self) -> str:
        return self._pods.claimant

    @property
    def placed(self) -> list[str]:
        """The pods that it binds, in this order, until it would evict any."""
        return [] if self.evicted else [pod.uid for pod in self.bound]
