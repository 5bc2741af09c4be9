"""The steps of a scenario: what happens in the cluster. Each kind of step of `scenarios.py` is a method."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from scheduler.testing import an_object
from tests.campaigns.groups import objects
from tests.campaigns.groups.license import LICENSES
from tests.campaigns.groups.model import ROOT, GroupState, NodeState, PodState
from tests.campaigns.groups.scenarios import Step
from tests.campaigns.groups.stories import OF_GROUP
from tests.campaigns.groups.world import CONTROLLER_SECONDS, World, described

T = TypeVar("T")

LONE_SECONDS = (0, 30, 120, 400)
PARTS = {"delete member": "member", "delete lone": "lone"}


class Life:
    """Makes the steps of a scenario happen in a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.model = world.model

    def begin(self) -> None:
        """Let the nodes be there."""
        scenario, world = self.world.scenario, self.world
        self.model.nodes.update({plan.name: NodeState(plan) for plan in scenario.nodes})
        for plan in scenario.groups:
            self.model.groups[plan.name] = GroupState(plan, plan.minimum, plan.minimum)
        world.record.note("scenario", f"{scenario.settings}")
        world.record.note("scenario", f"nodes: {described(self.model.nodes.values())}")
        for node in self.model.nodes.values():
            world.show_node(node)
        if scenario.settings.has_budgets and scenario.settings.preempts:
            world.engine.object_handlers.object_changed(objects.BUDGET, objects.budget())
        self._license()

    def do(self, step: Step) -> None:
        """Make one step happen. It may have nothing to change any more."""
        act: Callable[[Step], None] = getattr(self, f"_{step.kind.replace(' ', '_')}")
        act(step)

    def _pick(self, step: Step, among: Sequence[T]) -> T | None:
        return among[int(step.pick * len(among))] if among else None

    # Groups.

    def _group(self, step: Step) -> None:
        group = self.model.groups[step.group]
        if not group.is_wanted:
            plan = group.plan
            kind = "PodGroup" if plan.has_object else "annotated group"
            kind = "CompositePodGroup" if plan.parts else kind
            levels = "".join(f", {key.rsplit('/')[-1]}: {level}" for key, level in objects.topology(plan).items())
            text = f"{kind} {plan.name} comes: {len(plan.cpus)} pods of {plan.cpus} cpu, minimum {group.minimum}"
            text += f", {plan.needs} of {len(plan.parts)} groups: {plan.parts}" if plan.parts else ""
            self.world.note(f"group comes: {kind}", f"{text}, priority {plan.priority}{levels}")
            self._want(group, step.how)

    def _want(self, group: GroupState, how: str) -> None:
        group.is_wanted = True
        if group.plan.has_object and not group.object_exists:
            show = partial(self._return, group)
            if how == "pods first":
                self.world.later(3, show)
            else:
                show()
        self.world.fill(group, len(group.plan.cpus))

    def _return(self, group: GroupState) -> None:
        now = self.world.record.now
        if not group.object_exists:
            group.object_exists = True
            group.object_generation += 1
            group.created[ROOT] = now
        for part, plan in enumerate(group.plan.parts):
            if part not in group.parts:
                group.parts[part], group.created[part] = plan.minimum, now
        self.world.show_group(group)

    def _some_members(self, step: Step) -> None:
        group = self.model.groups[step.group]
        if not group.is_wanted and not self.model.members(step.group):
            self.world.note("group comes in part", f"a part of {step.group} comes: {group.plan}")
            if group.plan.has_object and not group.object_exists:
                self._return(group)
            self.world.fill(group, max(1, int(step.pick * len(group.plan.cpus))))

    def _delete_group(self, step: Step) -> None:
        group = self.model.groups[step.group]
        if self.model.members(step.group):
            self.world.note("group deleted", f"{step.group} is deleted, its pods take {step.number} s")
            self._drop_pods(group, step.number)
            self.world.drop_object(group)

    def _delete_part(self, step: Step) -> None:
        group = self.model.groups[step.group]
        if (part := self._pick(step, sorted(group.parts))) is not None:
            self.world.note("part of a tree deleted", f"{step.group}-{part} and its pods are deleted")
            self.world.rules.changed_group(step.group)
            self.world.drop_object(group, part)
            self._end_pods([pod for pod in self._of(step.group) if pod.part == part], step.number)

    def _drop_pods(self, group: GroupState, grace: int) -> None:
        group.is_wanted = False
        self._end_pods(self._of(group.plan.name), grace)

    def _end_pods(self, pods: Sequence[PodState], grace: int) -> None:
        for pod in pods:
            if pod.phase in ("Succeeded", "Failed"):
                self.world.remove_pod(pod)
            else:
                self.world.delete_pod(pod, grace)

    def _restart_group(self, step: Step) -> None:
        """Delete the job, and create it again under the same name."""
        group = self.model.groups[step.group]
        if group.is_wanted and self._of(step.group):
            self.world.note("group restarted", f"{step.group} is deleted and created again; {step.number} s to end")
            self._drop_pods(group, step.number)
            self.world.rules.changed_group(step.group)
            self.world.drop_object(group)
            group.generation += 1
            group.successes.clear()
            self._want(group, "")

    def _new_minimum(self, step: Step) -> None:
        group = self.model.groups[step.group]
        if group.plan.parts:
            self._new_minimum_of_part(step, group)
            return
        minimum = max(1, min(len(group.plan.cpus), group.minimum + step.number))
        if minimum == group.minimum or not self.model.members(step.group):
            return
        self.world.note("minimum changed", f"the minimum of {step.group} becomes {minimum}")
        group.minimum = group.template_minimum = minimum
        self.world.rules.changed_group(step.group)
        self.world.show_group(group)
        for pod in self._of(step.group):
            if not group.plan.has_object and pod.phase in ("Pending", "Running"):
                self._annotate(pod, minimum)
                self.world.show(pod)

    def _new_minimum_of_part(self, step: Step, group: GroupState) -> None:
        if (part := self._pick(step, sorted(group.parts))) is not None:
            minimum = max(1, min(group.plan.parts[part].size, group.parts[part] + step.number))
            self.world.note("minimum changed", f"the minimum of {step.group}-{part} becomes {minimum}")
            group.parts[part] = minimum
            self.world.rules.changed_group(step.group)
            self.world.show_group(group)

    @staticmethod
    def _annotate(pod: PodState, minimum: int) -> None:
        pod.minimum = minimum
        metadata = pod.manifest["metadata"]
        annotations = {**metadata["annotations"], "loadmaster.dev/pod-group-min-available": str(minimum)}
        pod.manifest = {**pod.manifest, "metadata": {**metadata, "annotations": annotations}}

    def _new_template(self, step: Step) -> None:
        group = self.model.groups[step.group]
        minimum = max(1, min(len(group.plan.cpus), group.template_minimum + step.number))
        if not group.plan.has_object and minimum != group.template_minimum and group.is_wanted:
            self.world.note("template changed", f"new pods of {step.group} will say that it needs {minimum}")
            group.template_minimum = group.minimum = minimum

    def _drop_object(self, step: Step) -> None:
        group = self.model.groups[step.group]
        if group.object_exists:
            self.world.note("PodGroup deleted", f"the PodGroup {step.group} is deleted, its pods are not")
            self.world.rules.changed_group(step.group)
            self.world.drop_object(group, ROOT if group.plan.parts else None)

    def _return_object(self, step: Step) -> None:
        group = self.model.groups[step.group]
        is_whole = group.object_exists and len(group.parts) == len(group.plan.parts)
        if group.plan.has_object and not is_whole and self._of(step.group):
            self.world.note("PodGroup returns", f"the PodGroup {step.group} is created")
            self._return(group)

    def _gated_member(self, step: Step) -> None:
        group = self.model.groups[step.group]
        if group.is_wanted:
            self.world.rules.evictions.excuse(step.group)  # "nothing is kept for it meanwhile"
            pod = self.world.add_extra_member(group, priority=group.plan.priority, is_gated=True)
            self.world.note("gated member", f"created {pod.name}, with a scheduling gate")

    def _odd_member(self, step: Step) -> None:
        group = self.model.groups[step.group]
        if group.is_wanted:
            self.world.rules.changed_group(step.group)
            pod = self.world.add_extra_member(group, priority=group.plan.priority + 1, is_gated=False)
            self.world.note("member of another priority", f"created {pod.name}, with priority {pod.priority}")

    def _ungate(self, step: Step) -> None:
        pod = self._pick(step, [each for each in self.model.pods.values() if each.is_gated and each.is_active])
        if pod is not None:
            self.world.note("gate removed", f"the gate of {pod.name} is removed")
            self.world.rules.changed_group(pod.group)  # "time with a gated pod does not count"
            pod.is_gated = False
            self.world.show(pod)

    # Pods.

    def _lone(self, step: Step) -> None:
        seconds = LONE_SECONDS[int(step.pick * 4)]
        if step.how in ("deadline", "expected"):
            seconds = seconds or 60
        self.world.add_lone(step.number, step.other, step.how, seconds, (0, 5, 30)[int(step.pick * 30) % 3])

    def _crowd(self, step: Step) -> None:
        for _ in range(step.number):
            self.world.add_lone(1, step.other, step.how, LONE_SECONDS[int(step.pick * 4)], 0)

    def _fill(self, step: Step) -> None:
        """Let as many pods come as there is space for, and some more."""
        free = sum(max(0, self.model.free(name)) for name in self.model.open_nodes())
        for _ in range(free + step.number):
            self.world.add_lone(
                1, step.other, step.how, LONE_SECONDS[int(step.pick * 4)], (0, 5, 30)[int(step.pick * 50) % 3]
            )

    def _daemon(self, step: Step) -> None:
        for name, node in self.model.nodes.items():
            if node.exists and all(pod.of_daemon != name for pod in self.model.pods.values()):
                pod_name = self.world.new_name(f"agent-{name}")
                written = objects.manifest(pod_name, 1, step.other, self.world.clock())
                objects.for_daemon(written, name)
                self.world.note("DaemonSet pod", f"created {pod_name}: 1 cpu, priority {step.other}, for {name}")
                self.world.add(PodState(pod_name, 1, step.other, written, of_daemon=name))

    def _succeed(self, step: Step) -> None:
        if (pod := self._pick(step, self._running(step))) is not None:
            self.world.end(pod, "Succeeded")

    def _fail(self, step: Step) -> None:
        if (pod := self._pick(step, self._running(step))) is not None:
            self.world.end(pod, "Failed")

    def _delete_member(self, step: Step) -> None:
        members = [pod for pod in self.model.pods.values() if pod.group and pod.is_active]
        self._delete_one(step, [pod for pod in members if step.how != OF_GROUP or pod.group == step.group])

    def _delete_lone(self, step: Step) -> None:
        self._delete_one(step, [pod for pod in self.model.pods.values() if not pod.group and pod.is_active])

    def _delete_one(self, step: Step, among: Sequence[PodState]) -> None:
        if (pod := self._pick(step, among)) is not None:
            self.world.note(f"{PARTS[step.kind]} deleted", f"{pod.name} is deleted, and takes {step.number} s to end")
            self.world.delete_pod(pod, step.number)

    def _running(self, step: Step) -> list[PodState]:
        nodes = self.model.nodes
        alive = [name for name, node in nodes.items() if node.exists and not node.is_dead]
        running = [pod for pod in self.model.pods.values() if pod.phase == "Running" and pod.node in alive]
        return [pod for pod in running if step.how != OF_GROUP or pod.group == step.group]

    def _of(self, group: str) -> list[PodState]:
        return [pod for pod in self.model.pods.values() if pod.group == group]

    # Nodes.

    def _cordon(self, step: Step) -> None:
        nodes = [node for node in self.model.nodes.values() if node.takes_pods]
        if (node := self._pick(step, nodes)) is not None:
            self._change(node, "node cordoned", f"{node.plan.name} is cordoned", is_cordoned=True)

    def _uncordon(self, step: Step) -> None:
        nodes = [node for node in self.model.nodes.values() if node.is_cordoned]
        if (node := self._pick(step, nodes)) is not None:
            self._change(node, "node uncordoned", f"{node.plan.name} is uncordoned", is_cordoned=False)

    def _lose_node(self, step: Step) -> None:
        nodes = [node for node in self.model.nodes.values() if node.exists]
        if step.how == OF_GROUP:
            nodes = self._with_members(step.group, nodes)
        if (node := self._pick(step, nodes)) is not None:
            how = "pods go" if step.how == "pods go" else "pods stay"
            self._change(node, f"node lost: {how}", f"{node.plan.name} is deleted, {how}", exists=False)
            if how == "pods go":
                for pod in self._on(node):
                    self.world.later(CONTROLLER_SECONDS, partial(self._collect, pod))

    def _collect(self, pod: PodState) -> None:
        """Play the garbage collector: a pod without a node is gone at once."""
        if pod.phase == "Running":
            self.world.delete_pod(pod, 0)
            self.world.remove_pod(pod)

    def _kill_node(self, step: Step) -> None:
        nodes = [node for node in self.model.nodes.values() if node.exists and not node.is_dead]
        if step.how == OF_GROUP:
            nodes = self._with_members(step.group, nodes)
        if (node := self._pick(step, nodes)) is not None:
            self._change(node, "node dead", f"{node.plan.name} is dead; its pods will be deleted", is_dead=True)
            for pod in self._on(node):
                self.world.later(5, partial(self.world.delete_pod, pod, 30))

    def _with_members(self, group: str, nodes: Sequence[NodeState]) -> list[NodeState]:
        used = {pod.node for pod in self.model.members(group)}
        return [node for node in nodes if node.plan.name in used]

    def _return_node(self, step: Step) -> None:
        nodes = [node for node in self.model.nodes.values() if node.is_dead or not node.exists]
        if (node := self._pick(step, nodes)) is not None:
            node.is_dead = False
            self._change(node, "node returns", f"{node.plan.name} is back", exists=True)
            for pod in self._on(node):
                if pod.is_deleting:
                    self.world.later(1, partial(self.world.kubelet_ends, pod))

    def _change(self, node: NodeState, kind: str, text: str, **changes: bool) -> None:
        self.world.note(kind, text)
        if kind in ("node returns", "node uncordoned"):
            self.model.nodes_came = self.world.record.now
        else:
            self.world.rules.evictions.excuse()
        for key, value in changes.items():
            setattr(node, key, value)
        self.world.show_node(node)

    def _on(self, node: NodeState) -> list[PodState]:
        """The pods on a node that have not ended."""
        return [pod for pod in self.model.pods.values() if pod.node == node.plan.name and pod.phase == "Running"]

    # All else.

    def _foreign_pod(self, step: Step) -> None:
        """Another scheduler binds a pod of its own."""
        nodes = [name for name in self.model.open_nodes() if self.model.free(name) > 0]
        if (node := self._pick(step, nodes)) is not None:
            self.world.rules.evictions.excuse()
            name = self.world.new_name("foreign")
            self.world.note("pod of another scheduler", f"another scheduler binds {name} (1 cpu) to {node}")
            written = objects.manifest(name, 1, step.other, self.world.clock())
            written["spec"]["schedulerName"] = "other"
            pod = PodState(name, 1, step.other, written, node=node, phase="Running", started=self.world.clock())
            self.world.add(pod)

    def _restart(self, step: Step) -> None:
        """Done already, outside the event loop."""

    def _wait(self, step: Step) -> None:
        """Only time passes."""

    def _bindings(self, step: Step) -> None:
        self.world.server.fates = [step.how] * step.number

    def _license(self, step: Step | None = None) -> None:
        site = an_object("site", version=1)
        if step is None:
            self.world.engine.object_handlers.object_changed(LICENSES, site)
            return
        self.model.has_license = not self.model.has_license
        handlers = self.world.engine.object_handlers
        self.world.note("license", f"there is {'a' if self.model.has_license else 'no'} license")
        if self.model.has_license:
            handlers.object_changed(LICENSES, site)
        else:
            self.world.rules.changed_group("")
            handlers.object_deleted(LICENSES, site)
