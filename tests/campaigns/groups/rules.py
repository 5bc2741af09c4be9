"""The rules about what the scheduler does: bindings, evictions, reservations. `quiet.py`: what it leaves."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tests.campaigns.groups import trees
from tests.campaigns.groups.evictions import EvictionRules
from tests.campaigns.groups.findings import Record
from tests.campaigns.groups.model import GroupState, Model, PodState
from tests.campaigns.groups.reservations import ReservationRules
from tests.campaigns.groups.scenarios import Settings


@dataclass
class StepOfGroup:
    """The bindings of a group at one moment."""

    at: float
    before: Collection[PodState]
    """The members that had a node before."""
    terminating: int
    """Pods with a node that are being deleted."""
    failed: int
    succeeded: int
    """Of pods that still exist."""
    minimum: int
    sent: list[PodState] = field(default_factory=list)
    """Without those whose binding has failed already."""
    has_failure: bool = False
    """Whether a binding has failed, and none was sent since: those before it could not know. Of a tree: ever."""
    parts: Mapping[int, int] = field(default_factory=dict)
    """Of a tree: the parts that existed, with their minimums."""
    level: str = ""
    """The narrowest level, from the preferred one up, of which one domain holds all pods; empty without one."""
    domains: Collection[Collection[str]] = ()
    """The nodes of each such domain."""
    cpus: Collection[int] = ()
    """What all pods ask for."""


class Rules:
    def __init__(
        self,
        model: Model,
        record: Record,
        settings: Settings,
        nominations: Callable[[], Iterable[tuple[str, str]]],
    ) -> None:
        self.reservations = ReservationRules(model, record, settings)
        self.evictions = EvictionRules(model, record, settings, nominations, self.reservations)
        self._model = model
        self._record = record
        self._nominations = nominations
        self._steps: dict[str, StepOfGroup] = {}

    # What happens outside.

    def time_passed(self) -> None:
        now = self._record.now
        for name, step in tuple(self._steps.items()):
            if step.at < now:
                self._close(name, self._steps.pop(name))
        self.evictions.time_passed()

    def left(self, pod: PodState) -> None:
        """A pod has ended, or its deletion has begun."""
        if pod.group:
            self.changed_group(pod.group)

    def changed_group(self, name: str) -> None:
        """A group was changed or has lost a member; "": any may have been changed."""
        self.evictions.excuse(name)
        for group in self._model.groups.values():
            if name in ("", group.plan.name):
                group.changed = self._record.now
                group.was_given_up = False

    def restarted(self) -> None:
        """What was in the memory of the scheduler is gone."""
        self.changed_group("")
        self.reservations.restarted()
        for group in self._model.groups.values():
            if not group.plan.has_object:  # the API server here lists no pods that have ended
                group.successes = [(of, False) for of, _ in group.successes]

    # Bindings.

    def binding_sent(self, pod: PodState, node: str) -> None:
        self._check_node(pod, node)
        self.evictions.bound(pod)
        if not pod.group:
            return
        group = self._model.groups[pod.group]
        if self._model.lacks_object(pod):
            self._violated("no object", "a member is bound", f"{pod.name} is bound, and there is no PodGroup")
        self._check_agreement(group, pod)
        if self._model.is_gated(group):
            self._violated(
                "gated", "a member is bound", f"{pod.name} is bound, and another pod of {pod.group} is gated"
            )
        self._check_least(group, pod)
        step = self._steps.get(pod.group)
        if step is None:
            step = self._steps[pod.group] = self._open(group, pod)
        step.sent.append(pod)
        step.has_failure &= bool(group.plan.parts)
        placed = [*step.before, *step.sent]
        is_complete = len(placed) + step.succeeded >= step.minimum
        if group.plan.parts:
            is_complete = trees.is_complete(group.plan, step.parts, placed)
        if is_complete:
            self.evictions.started(pod.group)
            group.complete = self._record.now
        self._check_level(group, pod, step)

    def binding_failed(self, pod: PodState) -> None:
        step = self._steps.get(pod.group)
        if step is not None and pod in step.sent:
            step.sent.remove(pod)
            step.has_failure = True
        if pod.group:
            self.changed_group(pod.group)
            self.evictions.overtaken(pod.group)

    def _check_node(self, pod: PodState, name: str) -> None:
        node = self._model.nodes[name]
        if not node.exists or node.is_dead or (node.is_cordoned and not pod.of_daemon):
            self._violated("node", "it takes no pods", f"{pod.name} is bound to {name}, which takes no pods")
        elif self._model.free(name) < 0:
            self._violated("node", "more than it has", f"{pod.name} is bound to {name}, which is full")
        if not (pod.is_licensed or self._model.has_license):
            self._violated("node", "without a license", f"{pod.name} is bound, and there is no license")

    def _check_agreement(self, group: GroupState, pod: PodState) -> None:
        waiting = [each for each in self._model.members(group.plan.name) if not each.place or each is pod]
        if len(self._model.said(waiting)) > 1:
            text = f"{pod.name} is bound, and the pods of {group.plan.name} without a node do not agree"
            self._violated("disagree", "a member is bound", text)

    def _check_least(self, group: GroupState, pod: PodState) -> None:
        free = self._model.own_and_free(group)
        if free < group.plan.least:
            text = f"{pod.name} is bound, and {group.plan.name} wants {group.plan.least} cpu free or its own: {free}"
            self._violated("least", "a member is bound", text)

    def _open(self, group: GroupState, first: PodState) -> StepOfGroup:
        name = group.plan.name
        pods = [pod for pod in self._model.pods.values() if pod.group == name and pod is not first]
        members = [pod for pod in pods if pod.is_active]
        waiting = [pod for pod in members if not pod.place]
        declared = [] if group.plan.has_object else [pod.minimum for pod in (*waiting, first)]
        step = StepOfGroup(
            self._record.now,
            [pod for pod in members if pod.place],
            sum(pod.is_deleting and bool(pod.node) for pod in pods),
            sum(pod.phase == "Failed" for pod in pods),
            self._model.succeeded(group, at_most=True),
            min([group.minimum, *declared]),
        )
        if group.plan.parts:
            step.parts = dict(group.parts)
            step.before = [pod for pod in trees.placed(self._model, group) if pod is not first]
        others = [
            uid for uid, _ in self._nominations() if uid != first.name and uid not in {pod.name for pod in waiting}
        ]
        if not step.before and group.plan.preferred and not others:
            self._note_preferred(group, step, [first, *(pod for pod in waiting if not pod.is_gated)])
        return step

    def _note_preferred(self, group: GroupState, step: StepOfGroup, pods: Collection[PodState]) -> None:
        """Note in which domains the pods would be together."""
        preferred, levels, model = group.plan.preferred, self._model.levels, self._model
        step.cpus = [pod.cpu for pod in pods]
        if len(set(step.cpus)) > 1:
            return  # they are placed in the order of their ranks, which may waste space
        own = [(pod.place, -pod.cpu) for pod in pods if pod.place]
        for level in (preferred, *(reversed(levels[: levels.index(preferred)]) if preferred in levels else ())):
            domains = [nodes for nodes in model.domains(level).values() if self._within_required(group, nodes)]
            step.domains = [nodes for nodes in domains if model.holds(nodes, step.cpus, own)]
            if step.domains:
                step.level = level
                return

    def _within_required(self, group: GroupState, nodes: Collection[str]) -> bool:
        level = group.plan.required
        domains = {self._model.domain(name, level) for name in nodes} if level else {()}
        return len(domains) == 1 and None not in domains

    def _check_level(self, group: GroupState, pod: PodState, step: StepOfGroup) -> None:
        level, model = group.plan.required, self._model
        if group.plan.parts:
            others = trees.placed(model, group)
            if not step.has_failure and trees.is_apart(model, group.plan, pod, others):
                text = f"{pod.name} is bound to {pod.place} beside {', '.join(each.name for each in others)}"
                self._violated("tree", trees.APART, text)
            return
        if not level:
            return
        domain = model.domain(pod.place, level)
        others = [each for each in model.members(group.plan.name) if each.place and each is not pod]
        if domain is None:
            self._violated("required", "a node without the label", f"{pod.name} is bound to {pod.place}: no {level}")
        for other in others:
            if model.domain(other.place, level) != domain:
                is_late = other in step.before
                is_unknown = not model.nodes[other.place].exists
                symptom = "the node of the others is gone for the moment" if is_unknown else "other domain"
                text = f"{pod.name} is bound to {pod.place}, and {other.name} has {other.place}: two of {level}"
                self._violated("late member" if is_late else "required", symptom, text)
                return

    def _close(self, name: str, step: StepOfGroup) -> None:
        group = self._model.groups[name]
        if group.plan.parts:
            sent = ", ".join(pod.name for pod in step.sent)
            faults = trees.faults(group.plan, step.parts, step.before, step.sent)
            for fault in () if step.has_failure else faults:
                text = f"{sent} of {name} bound beside {', '.join(pod.name for pod in step.before)}: {fault}"
                self._violated("tree", fault, text)
            return
        placed = len(step.before) + len(step.sent)
        if placed + step.succeeded < step.minimum and not step.has_failure:
            if placed + group.ever_succeeded >= step.minimum:
                symptom = "successes of another controller count"
            elif placed + step.succeeded + step.terminating >= step.minimum:
                symptom = "pods that are being deleted count"
            elif placed + step.succeeded + step.terminating + step.failed >= step.minimum:
                symptom = "pods that have failed count"
            else:
                symptom = "a part of it starts"
            sent = ", ".join(pod.name for pod in step.sent)
            text = (
                f"{sent} of {name} bound: {placed} members have a node, {step.succeeded} succeeded, "
                f"{step.minimum} are needed; {step.terminating} are being deleted"
            )
            self._violated("all or nothing", symptom, text)
        if placed + step.succeeded >= group.minimum:
            self.reservations.ended(name)
        self._check_preferred(group, step)

    def _check_preferred(self, group: GroupState, step: StepOfGroup) -> None:
        """Check that the pods are together if one domain holds them, also without what others took at that moment."""
        pods = [pod for pod in step.sent if pod.name in self._model.pods and pod.is_active]  # no others are members
        places = {pod.place for pod in pods if pod.place}
        if (
            not step.level
            or self.reservations.group
            or len(step.sent) > len(step.cpus)  # some came later in that moment
            or len({self._model.domain(place, step.level) for place in places}) <= 1
        ):
            return
        own = [(pod.place, -pod.cpu) for pod in pods if pod.place and pod.phase in ("Pending", "Running")]
        for nodes in step.domains:
            if self._model.holds(nodes, step.cpus, own):
                where = ", ".join(sorted(places))
                text = f"{group.plan.name} is on {where}, and one {step.level} holds it: {', '.join(nodes)}"
                self._violated("preferred", "one domain holds it", text)
                return

    def group_event(self, name: str, reason: str, text: str) -> None:
        if reason == "ReservationGivenUp":
            self._model.groups[name].was_given_up = True
            self.reservations.ended(name)
        elif reason == "NodesReserved":
            self.reservations.began(name, text)

    def _violated(self, rule: str, symptom: str, text: str) -> None:
        self._record.violated(rule, symptom, text)
