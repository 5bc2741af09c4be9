"""The cluster as the API server has it, kept apart from the scheduler's own tables, and simple arithmetic about it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.campaigns.groups.scenarios import GroupPlan, NodePlan
from tests.campaigns.groups.stories import BLOCK, RACK

Json = dict[str, Any]

ROOT: Final = -1
"""In the place of a part of a tree: the CompositePodGroup."""


@dataclass
class NodeState:
    plan: NodePlan
    exists: bool = True
    is_cordoned: bool = False
    is_dead: bool = False
    """Its kubelet does not answer: it is tainted, and its pods do not end."""

    @property
    def labels(self) -> Mapping[str, str]:
        return dict(self.plan.labels)

    @property
    def takes_pods(self) -> bool:
        return self.exists and not self.is_cordoned and not self.is_dead


@dataclass
class PodState:
    name: str
    cpu: int
    priority: int
    manifest: Json
    """As it was written last, without what the fields below say."""
    group: str = ""
    """Empty for a pod without one."""
    of_daemon: str = ""
    """The node that it is for, if it is one of a DaemonSet."""
    is_replaced: bool = False
    minimum: int = 0
    """For an annotated group, what it says that the group needs."""
    index: int = 0
    part: int = 0
    """That of a tree of groups."""
    controller: str = ""
    node: str = ""
    binding_to: str = ""
    """The node of a binding that was sent and not answered."""
    is_deleting: bool = False
    phase: str = "Pending"
    is_gated: bool = False
    grace: int = 0
    version: int = 1
    started: str = ""
    refused_since: str = ""
    seconds: int = 0
    is_announced: bool = False
    """Whether it says how many seconds it runs."""
    is_licensed: bool = True
    is_protected: bool = False
    """Whether a PodDisruptionBudget covers it that allows no disruption."""
    evicted_for: str = ""
    came: float = 0.0
    """When it was created."""

    @property
    def is_active(self) -> bool:
        """Whether it counts as a member: it has not ended, and nobody has deleted it."""
        return not self.is_deleting and self.phase in ("Pending", "Running")

    @property
    def place(self) -> str:
        """The node that it has, or is being bound to."""
        return self.node or self.binding_to


@dataclass
class GroupState:
    plan: GroupPlan
    minimum: int
    template_minimum: int
    object_exists: bool = False
    object_version: int = 0
    parts: dict[int, int] = field(default_factory=dict)
    """Of a tree: the parts whose PodGroup exists, with their minimums."""
    created: dict[int, float] = field(default_factory=dict)
    """When these were."""
    successes: list[tuple[str, bool]] = field(default_factory=list)
    """Of each pod that has succeeded: its controller, and whether it counts for certain: it was not being deleted."""
    ever_succeeded: int = 0
    """Pods of all controllers that it has had."""
    is_wanted: bool = False
    """Whether its owner wants it to run: a controller replaces what is missing."""
    generation: int = 0
    """How often it was created again."""
    object_generation: int = 0
    changed: float = 0.0
    """When its declaration or its pods were last changed."""
    came: float = 0.0
    """When its first pod was created."""
    left: float = -1000.0
    """When a pod of it was last gone."""
    complete: float = 0.0
    """When it last had as many pods with a node as it needs."""
    was_given_up: bool = False
    """Whether its reservation was given up since."""

    @property
    def controller(self) -> str:
        """The UID of the Job that its pods have now; empty without one."""
        return f"job {self.plan.name} {self.generation}" if self.plan.is_replaced else ""


@dataclass
class Model:
    levels: tuple[str, ...]
    nodes: dict[str, NodeState] = field(default_factory=dict)
    pods: dict[str, PodState] = field(default_factory=dict)
    """UID → each pod that exists."""
    groups: dict[str, GroupState] = field(default_factory=dict)
    has_license: bool = True
    nodes_came: float = 0.0
    """When a node last came: what no node took before did not lack space."""

    def members(self, group: str) -> list[PodState]:
        """The pods of a group that count as its members."""
        parts = self.groups[group].parts if self.groups[group].plan.parts else (0,)
        return [pod for pod in self.pods.values() if pod.group == group and pod.is_active and pod.part in parts]

    def lacks_object(self, pod: PodState) -> bool:
        """Whether a PodGroup is missing that a pod of a group needs."""
        group = self.groups[pod.group]
        is_missing = not group.object_exists or (bool(group.plan.parts) and pod.part not in group.parts)
        return group.plan.has_object and is_missing

    def is_gated(self, group: GroupState) -> bool:
        """Whether a pod of a group has scheduling gates, which keep all of it waiting."""
        return any(pod.is_gated for pod in self.members(group.plan.name))

    def minimum(self, group: GroupState) -> int:
        """How many pods it needs: for an annotated group, as its pods without a node say."""
        said = [pod.minimum for pod in self.members(group.plan.name) if not pod.place and not group.plan.has_object]
        return max(said, default=group.minimum)

    def said(self, pods: Collection[PodState]) -> set[tuple[int, int]]:
        """What must be the same for the pods of a group that have neither a node nor scheduling gates."""
        found = {
            (pod.priority, 0 if self.groups[pod.group].plan.has_object else pod.minimum)
            for pod in pods
            if not pod.is_gated
        }
        plans = [self.groups[pod.group].plan for pod in pods]
        return found | {(plan.priority, 0) for plan in plans if plan.parts}

    def placed(self, group: GroupState) -> list[PodState]:
        """The pods of a group that have a node."""
        return [pod for pod in self.members(group.plan.name) if pod.place]

    def is_damaged(self, group: GroupState, *, perhaps: bool = False) -> bool:
        """Whether some pods of a group have a node, and certainly, or `perhaps`, fewer than it needs."""
        placed = 0 if group.plan.parts else len(self.placed(group))  # nothing is given up for a tree
        return 0 < placed < self.minimum(group) - self.succeeded(group, at_most=not perhaps)

    def succeeded(self, group: GroupState, *, at_most: bool = False) -> int:
        """How many successes count: those of a controller that has pods in the group. `at_most`: may count."""
        controllers = {pod.controller for pod in self.members(group.plan.name)}
        if at_most:
            return sum(not of or of in controllers for of, _ in group.successes)
        return sum(bool(of) and of in controllers and is_certain for of, is_certain in group.successes)

    def free(self, node: str, *, also_taken: Iterable[tuple[str, int]] = ()) -> int:
        """The cores that are free on a node; less than 0 if it has more than it can take. `also_taken`: by node."""
        taken = sum(pod.cpu for pod in self.pods.values() if pod.place == node and pod.phase in ("Pending", "Running"))
        return self.nodes[node].plan.cpu - taken - sum(cpu for where, cpu in also_taken if where == node)

    def own_and_free(self, group: GroupState) -> int:
        """The cores that a group has, and that are free."""
        own = sum(pod.cpu for pod in self.placed(group))
        return own + sum(max(0, self.free(name)) for name, node in self.nodes.items() if node.exists)

    def domain(self, node: str, level: str) -> tuple[str, ...] | None:
        """The domain of a node at a level: with the wider levels' values, as two racks may have one name."""
        labels = self.nodes[node].labels
        wider = self.levels[: self.levels.index(level)] if level in self.levels else ()
        if level not in labels:
            return None
        return (*(labels.get(each, "") for each in wider), labels[level])

    def domains(self, level: str) -> Mapping[tuple[str, ...], list[str]]:
        """The domains of a level, with the nodes that take pods."""
        found: dict[tuple[str, ...], list[str]] = {}
        for name, node in self.nodes.items():
            domain = self.domain(name, level)
            if domain is not None and node.takes_pods:
                found.setdefault(domain, []).append(name)
        return found

    def fits(self, pod: PodState, taken: Collection[tuple[str, int]] = ()) -> list[str]:
        """The nodes that have as much free as a pod asks for."""
        names = [pod.of_daemon] if pod.of_daemon else [name for name, node in self.nodes.items() if node.takes_pods]
        return [
            name
            for name in names
            if self.nodes[name].exists
            and not self.nodes[name].is_dead
            and self.free(name, also_taken=taken) >= pod.cpu
            and (self.has_license or pod.is_licensed)
        ]

    def holds(self, nodes: Collection[str], cpus: Collection[int], taken: Collection[tuple[str, int]] = ()) -> bool:
        """Whether pods that ask for so much fit on these nodes together: true only if it is certain."""
        return self.holds_in({name: self.free(name, also_taken=taken) for name in nodes}, cpus)

    @staticmethod
    def holds_in(free: dict[str, int], cpus: Collection[int]) -> bool:
        """The same for nodes of which so much is free."""
        for cpu in sorted(cpus, reverse=True):
            name = min((each for each in free if free[each] >= cpu), key=lambda each: free[each], default=None)
            if name is None:
                return False
            free[name] -= cpu
        return True

    def open_nodes(self) -> list[str]:
        return [name for name, node in self.nodes.items() if node.takes_pods]

    def allowed(self, group: str) -> Iterator[list[str]]:
        """Yield sets of nodes, one of which all members without a node may go to by the level that they require."""
        level = self.groups[group].plan.required
        if not level:
            yield self.open_nodes()
            return
        places = {pod.place for pod in self.members(group) if pod.place}
        if places and not any(self.nodes[place].exists for place in places):
            return  # it waits until a node is back or the pods are gone
        taken = {self.domain(place, level) for place in places}
        for domain, nodes in self.domains(level).items():
            if not taken or taken == {domain}:
                yield nodes


def racks(node: NodePlan) -> str:
    labels = dict(node.labels)
    return "/".join(labels[key] for key in (BLOCK, RACK) if key in labels) or "no rack"
