"""The scheduler of the test kit over a cluster in which groups come, end, fail and are deleted, in virtual time.

The model is what the API server has. Each change is made there first, and shown to the scheduler at once.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.cycle.writers import Writers
from scheduler.framework.errors import BindRejected
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.process.virtual_time import BEGIN as BEGIN_SECONDS
from scheduler.testing.api_server import ApiServer
from tests.campaigns.groups import objects
from tests.campaigns.groups.findings import Record
from tests.campaigns.groups.model import ROOT, GroupState, Model, NodeState, PodState, racks
from tests.campaigns.groups.rules import Rules
from tests.campaigns.groups.scenarios import Scenario
from tests.campaigns.lives import Restartable

CONTROLLER_SECONDS: Final = 0.5
"""After which a controller replaces a pod."""

SAME_SECONDS: Final = 5.0
"""A group that is created again within this time has waited since before."""

MOMENT: Final = 1e-5
"""Seconds between things that happen one after the other."""


class Server(ApiServer):
    """An API server whose answers to bindings can fail, be slow or be lost, and where victims take time to end."""

    def __init__(self, world: "World") -> None:
        super().__init__()
        self.world = world
        self.fates: list[str] = []
        """Of the next bindings; after that, each succeeds."""

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        check()
        world = self.world
        fate = self.fates.pop(0) if self.fates else ""
        state = self._bindable(pod)
        world.binding_sent(state, node_name, fate)
        try:
            if fate == "conflict":
                raise BindRejected("409 Conflict: the object has been modified")
            if fate in ("error", "slow"):
                await asyncio.sleep(2)
                check()
                self._bindable(pod)
        except BaseException:
            world.binding_failed(state)
            raise
        self.messages.pop(pod.uid, None)
        self.nominated.pop(pod.uid, None)
        world.bound_to(state, node_name)
        if fate == "lost answer":
            await asyncio.sleep(3)
        return "500 Internal Server Error" if fate == "error" else ""

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        return self.world.evict(victim.uid, preemptor.uid)

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        super().unschedulable(pod, reason, message, nominated_node_name)
        state = self.world.model.pods.get(pod.uid)
        if state is not None and not state.refused_since:
            state.refused_since = self.world.clock()

    def group_event(self, group: PodGroup, member: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Implements GroupEvents."""
        self.world.group_event(group.name, reason, note)

    def _bindable(self, pod: Pod) -> PodState:
        """Raises BindRejected, as the API server refuses it."""
        state = self.world.model.pods.get(pod.uid)
        if state is None:
            raise BindRejected("404 Not Found: there is no such pod")
        if state.is_deleting or state.node:
            raise BindRejected("409 Conflict: the pod is being deleted, or has a node")
        return state

    def _show_nomination(self, uid: str, node_name: str) -> None:
        state = self.world.model.pods.get(uid)
        if state is not None and not state.node:
            self.world.show(state)


class World(Restartable):
    """A scheduler and its cluster. Methods without an underscore are called from outside the event loop only once it
    runs; those of the cluster's life are in `life.py`."""

    def __init__(self, scenario: Scenario, record: Record) -> None:
        super().__init__(objects.config(scenario.settings), objects.REGISTRY)
        self.server = Server(self)
        self._server = self.server
        make = self._make

        def with_events(writers: Writers, *others: object) -> object:
            return make(replace(writers, group_events=self.server), *others)  # type: ignore[arg-type]

        self._make = with_events  # type: ignore[assignment]
        self.scenario = scenario
        self.record = record
        self.model = Model(scenario.settings.levels)
        self.rules = Rules(self.model, record, scenario.settings, self.nominations)
        self.is_calm = False
        """Whether nothing ends by itself any more, except what has been announced."""
        self.last_change = 0.0
        self._serial = self._moments = self._reloads = 0

    # Time.

    def now(self) -> float:
        return self._runner.get_loop().time() - BEGIN_SECONDS

    def clock(self) -> str:
        return objects.clock(self._runner.get_loop().time())

    def tick(self) -> None:
        """Note the time, before anything is said about it."""
        self.record.now = self.now()
        self.rules.time_passed()

    def note(self, kind: str, text: str) -> None:
        self.last_change = self.record.now
        self.record.note(kind, text)

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something after some time, and nothing else at that moment. What goes wrong in it is a finding."""
        self._moments += 1

        def act_now() -> None:
            self.tick()
            try:
                act()
            except Exception as error:  # noqa: BLE001 - a handler of the scheduler has failed
                self.record.violated("broken", type(error).__name__, repr(error))

        self._runner.get_loop().call_later(seconds + self._moments * MOMENT, act_now)

    def act(self, act: Callable[[], None], seconds: float) -> None:
        """Let something happen, and time pass after it."""

        def act_now(_: object) -> None:
            self.tick()
            act()

        self._do(act_now, (None,), seconds)
        self.tick()

    def restart(self) -> None:
        self.tick()
        self.note("restart", "the scheduler is started anew")
        super().restart()
        self.rules.restarted()
        objects.show_all(self, self.model, self.scenario.settings, self.server.nominated)

    def reload_alike(self) -> None:
        """Have another configuration that does the same: with so few nodes, all have scores."""
        config, self._reloads = objects.config(self.scenario.settings), self._reloads + 1
        self.reload(replace(config, percentage_of_nodes_to_score=98 + self._reloads % 2), objects.REGISTRY)

    # What the watch shows.

    def show(self, pod: PodState) -> None:
        """Show the newest version of a pod."""
        pod.version += 1
        self._show(objects.pod_object(pod, self.server.nominated.get(pod.name, "")))

    def show_node(self, node: NodeState) -> None:
        if node.exists:
            self.engine.handlers.node_changed(objects.node_object(node))
        else:
            self.engine.handlers.node_deleted(objects.node_object(node))

    def show_group(self, group: GroupState) -> None:
        """Show the objects that the group has."""
        group.object_version += 1
        for resource, shown in objects.group_objects(group):
            self.engine.object_handlers.object_changed(resource, shown)

    def drop_object(self, group: GroupState, part: int | None = None) -> None:
        """Delete the objects of a group, or that of one of its parts, or of the root."""
        before = list(objects.group_objects(group))
        group.object_exists &= part not in (None, ROOT)
        group.parts = {each: minimum for each, minimum in group.parts.items() if part not in (None, each)}
        left = {shown.metadata.name for _, shown in objects.group_objects(group)}
        for resource, shown in before:
            if shown.metadata.name not in left:
                self.engine.object_handlers.object_deleted(resource, shown)

    # Pods.

    def new_name(self, prefix: str) -> str:
        self._serial += 1
        return f"{prefix}-{self._serial}"

    def add(self, pod: PodState) -> None:
        pod.came = self.record.now
        if pod.group and not any(each.group == pod.group for each in self.model.pods.values()):
            group = self.model.groups[pod.group]
            group.came = group.came if pod.came - group.left < SAME_SECONDS else pod.came
        self.model.pods[pod.name] = pod
        self.show(pod)

    def delete_pod(self, pod: PodState, grace: float) -> None:
        """Delete a pod: it is gone at once if it has no node, and never while its node's kubelet does not answer."""
        if pod.is_deleting or pod.name not in self.model.pods or pod.phase not in ("Pending", "Running"):
            return
        pod.is_deleting = True
        self.rules.left(pod)
        node = self.model.nodes.get(pod.node)
        if pod.node and pod.phase == "Running" and (grace or node is None or node.is_dead or not node.exists):
            self.show(pod)
            self.later(grace, lambda: self.kubelet_ends(pod))
        else:
            self.remove_pod(pod)
        self.later(CONTROLLER_SECONDS, lambda: self.replace_of(pod))

    def kubelet_ends(self, pod: PodState) -> None:
        node = self.model.nodes.get(pod.node)
        if pod.name in self.model.pods and node is not None and node.exists and not node.is_dead:
            self.note("victim or deleted pod is gone", f"{pod.name} is gone")
            self.remove_pod(pod)

    def remove_pod(self, pod: PodState) -> None:
        if self.model.pods.pop(pod.name, None) is None:
            return
        if pod.phase in ("Pending", "Running"):
            self.engine.handlers.pod_deleted(objects.pod_object(pod))
        self.last_change = self.record.now
        self.rules.evictions.gone(pod)
        if pod.group:
            group = self.model.groups[pod.group]
            group.left = self.record.now
            if group.plan.parts:  # as in kube-scheduler, its pods count until they are gone
                self.rules.changed_group(pod.group)

    def _end_by_itself(self, pod: PodState) -> None:
        node = self.model.nodes[pod.node]
        if node.exists and not node.is_dead and (pod.is_announced or not self.is_calm):
            self.end(pod, "Succeeded")

    def end(self, pod: PodState, phase: str) -> None:
        """A running pod succeeds or fails."""
        if pod.name not in self.model.pods or pod.phase != "Running" or not pod.node:
            return
        self.note(f"pod {phase.lower()}", f"{pod.name} on {pod.node} has {phase.lower()}")
        pod.phase = phase
        self.rules.left(pod)
        group = self.model.groups.get(pod.group)
        self.show(pod)
        self.rules.evictions.gone(pod)
        if group is not None and phase == "Succeeded":
            group.ever_succeeded += 1
            group.successes.append((pod.controller, not pod.is_deleting))
            self.show_group(group)
        if pod.is_deleting:
            self.remove_pod(pod)
        elif phase == "Failed" or group is None:
            self.later(CONTROLLER_SECONDS, lambda: self.replace_of(pod))

    def replace_of(self, pod: PodState) -> None:
        """Play the controller of a pod that has failed or is being deleted."""
        if pod.group:
            group = self.model.groups[pod.group]
            if group.is_wanted and group.plan.is_replaced:
                self.fill(group, len(group.plan.cpus))
        elif pod.is_replaced and not pod.of_daemon and not self.is_calm:
            self.add_lone(pod.cpu, pod.priority, "replaced", pod.seconds, pod.grace)

    def fill(self, group: GroupState, size: int) -> None:
        """Create the members of a group that there are not, up to so many."""
        plan = group.plan
        there = {pod.index for pod in self.model.pods.values() if pod.group == plan.name and self._counts(pod)}
        missing = [index for index in range(size) if index not in there]
        if missing:
            created = [self._add_member(group, index) for index in missing]
            self.note("member created", f"created of {plan.name}: {', '.join(each.name for each in created)}")

    def add_extra_member(self, group: GroupState, *, priority: int, is_gated: bool) -> PodState:
        """Create a member beyond those that are planned."""
        return self._add_member(group, 100 + self._serial, priority=priority, is_gated=is_gated)

    def add_lone(self, cpu: int, priority: int, how: str, seconds: int, grace: int) -> PodState:
        name = self.new_name("lone")
        written = objects.manifest(name, cpu, priority, self.clock())
        objects.announce(written, how, seconds)
        pod = PodState(name, cpu, priority, written, is_replaced=how == "replaced", seconds=seconds, grace=grace)
        pod.is_announced = how in ("deadline", "expected")
        pod.is_protected = self.scenario.settings.has_budgets and self._serial % 3 == 0
        written["metadata"]["labels"] = objects.PROTECTED if pod.is_protected else {}
        how = "".join(f", {each}" for each in (how, "under a budget" if pod.is_protected else "") if each)
        self.note("lone pod", f"created {name}: {cpu} cpu, priority {priority}{how}")
        self.add(pod)
        return pod

    def _add_member(
        self, group: GroupState, index: int, *, priority: int | None = None, is_gated: bool = False
    ) -> PodState:
        plan = group.plan
        name = self.new_name(f"{plan.name}.{index}")
        cpu = plan.cpus[index] if index < len(plan.cpus) else plan.cpus[0]
        written = objects.manifest(name, cpu, plan.priority if priority is None else priority, self.clock())
        objects.join(written, plan, group.template_minimum, index)
        objects.announce(written, plan.announces, plan.seconds)
        if group.controller:
            objects.own(written, plan.name, group.controller)
        pod = PodState(name, cpu, written["spec"]["priority"], written, plan.name, index=index, is_gated=is_gated)
        pod.minimum, pod.grace, pod.seconds = group.template_minimum, plan.grace, plan.seconds
        pod.is_licensed, pod.part = not plan.needs_license, plan.part_of(index)
        pod.is_announced = bool(plan.announces)
        pod.is_replaced, pod.controller = plan.is_replaced, group.controller
        self.add(pod)
        return pod

    @staticmethod
    def _counts(pod: PodState) -> bool:
        return pod.is_active or pod.phase == "Succeeded"

    # What the scheduler does.

    def binding_sent(self, pod: PodState, node: str, fate: str) -> None:
        self.tick()
        pod.binding_to = node
        if fate:
            self.note(f"binding: {fate}", f"the binding of {pod.name} to {node} is sent: {fate}")
        self.rules.binding_sent(pod, node)

    def binding_failed(self, pod: PodState) -> None:
        self.tick()
        self.last_change = self.record.now
        pod.binding_to = ""
        self.rules.binding_failed(pod)

    def bound_to(self, pod: PodState, node: str) -> None:
        self.tick()
        pod.binding_to, pod.node, pod.phase, pod.started = "", node, "Running", self.clock()
        pod.refused_since = ""
        self.note("bound: member" if pod.group else "bound: lone pod", f"{pod.name} is bound to {node}")
        if pod.seconds:
            self.later(pod.seconds, lambda: self._end_by_itself(pod))
        self.show(pod)

    def evict(self, uid: str, claimant: str) -> bool:
        self.tick()
        pod, of = self.model.pods.get(uid), self.model.pods.get(claimant)
        if pod is None:
            return False
        if not pod.is_deleting and pod.phase in ("Pending", "Running"):
            kind = "evicted for a group" if of is not None and of.group else "evicted for a lone pod"
            self.note(kind, f"{pod.name} on {pod.place} is evicted for {claimant}, and takes {pod.grace} s to end")
            pod.evicted_for = claimant
            self.rules.evictions.evicted(pod, of)
            self.delete_pod(pod, pod.grace)
        return True

    def group_event(self, name: str, reason: str, note: str) -> None:
        self.tick()
        self.record.note(f"event: {reason}", f"{reason} {name}: {note}")
        self.rules.group_event(name, reason, note)

    def nominations(self) -> Iterator[tuple[str, str]]:
        """Yield each pod that the scheduler has nominated, with its node."""
        for node, pods in self.engine.nominator.by_node():
            for pod in pods:
                yield pod.uid, node

    def message(self, pod: PodState) -> str:
        return self.server.messages.get(pod.name, "")


def described(nodes: Iterable[NodeState]) -> str:
    return ", ".join(f"{node.plan.name} ({node.plan.cpu} cpu, {racks(node.plan)})" for node in nodes)
