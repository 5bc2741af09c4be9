"""Clusters with pod groups whose outcome is worked out by hand from kube-scheduler's source.

They say whether the oracle itself is right: `record_groups` has it judge them, and the unit tests compare its verdicts
with what is written here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.conformance.generators.groups import GENERIC, POLICY, RACK, TOPOLOGY, ZONE
from tests.conformance.generators.trees import COMPOSITE

Json = dict[str, Any]
TREES: Final = (GENERIC, TOPOLOGY, COMPOSITE)
WORKLOAD: Final = {"workloadName": "w", "templateName": "t"}
UNSCHEDULABLE: Final = "pod group is unschedulable"
LOWER: Final = "PreemptLowerPriority"
NO_VICTIMS: Final = "pod group preemption: No preemption victims found for incoming preemptor"
ONGOING: Final = "pod group preemption: ongoing preemption on nominated nodes"
RELEASED: Final = "deallocation and deletion of ResourceClaims completed"


@dataclass(frozen=True, slots=True)
class Example:
    """A cluster with one group that waits, and what becomes of it."""

    name: str
    objects: Sequence[Json]
    code: str = "Success"
    message: str = ""
    members: Mapping[str, str] = field(default_factory=dict)
    """What each member gets: a node, or what it is told."""

    gated: Mapping[str, str] = field(default_factory=dict)
    victims: Sequence[str] = ()
    waiting: bool = False
    nominated: Mapping[str, str] = field(default_factory=dict)
    placement: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    """What is said of each group of pods that is part of the group."""

    gates: Sequence[str] = (GENERIC, TOPOLOGY)
    schedulers: Sequence[str] = ("default-scheduler",)

    @property
    def case(self) -> Json:
        """The case that both sides judge."""
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": name} for name in self.schedulers],
        }
        return {"name": self.name, "gates": list(self.gates), "config": config, "objects": list(self.objects)}


def node(name: str, cpu: str = "1", rack: str = "") -> Json:
    """A node with so many cores."""
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | ({RACK: rack} if rack else {})},
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def zoned(name: str, zone: str, rack: str) -> Json:
    """A node with a core in a zone and a rack."""
    made = node(name, rack=rack)
    made["metadata"]["labels"][ZONE] = zone
    return made


def group(name: str = "job", minimum: int | None = None, priority: int | None = 10, **spec: Any) -> Json:
    """A gang with this minimum, or a basic group."""
    policy: Json = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-group-{name}"},
        "spec": {"schedulingPolicy": policy} | ({} if priority is None else {"priority": priority}) | spec,
    }


def tree(name: str = "job", minimum: int | None = None, parent: str = "", priority: int = 10, **spec: Any) -> Json:
    """A group of groups; without a minimum one of them is enough."""
    policy: Json = {"basic": {}} if minimum is None else {"gang": {"minGroupCount": minimum}}
    above = {"parentCompositePodGroupName": parent} if parent else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-tree-{name}"},
        "spec": {"schedulingPolicy": policy, "priority": priority, "workloadRef": WORKLOAD} | above | spec,
    }


def part(name: str, minimum: int | None = None, parent: str = "job", **spec: Any) -> Json:
    """A group of pods that is part of a group of groups."""
    return group(name, minimum, workloadRef=WORKLOAD, parentCompositePodGroupName=parent, **spec)


def pod(name: str, of_group: str = "job", on_node: str = "", priority: int = 10, started: int = 0, **spec: Any) -> Json:
    """A pod that wants one core."""
    whole: Json = {
        "schedulerName": "default-scheduler",
        "priority": priority,
        "containers": [{"name": "c0", "image": "app:v1", "resources": {"requests": {"cpu": "1"}}}],
    }
    if of_group:
        whole["schedulingGroup"] = {"podGroupName": of_group}
    status = {"phase": "Pending"}
    if on_node:
        whole["nodeName"] = on_node
        status = {"phase": "Running", "startTime": f"2026-01-01T00:{started:02}:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "spec": whole | spec,
        "status": status,
    }


def leaving(victim: Json) -> Json:
    """A pod that was evicted by a preemption and is not gone yet."""
    victim["metadata"] |= {"deletionTimestamp": "2026-01-01T01:00:00Z", "deletionGracePeriodSeconds": 30}
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    victim["status"]["conditions"] = [condition]
    return victim


def nominated(member: Json, node_name: str) -> Json:
    """A pod that waits for space on a node."""
    member["status"]["nominatedNodeName"] = node_name
    return member


def volume(name: str) -> tuple[Json, Json]:
    """A claim for one pod at a time, and its volume."""
    how = {"accessModes": ["ReadWriteOncePod"], "storageClassName": "", "volumeMode": "Filesystem"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-of-{name}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": how | {"volumeName": name, "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }
    made = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": f"uid-of-volume-{name}"},
        "spec": how
        | {
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/data"},
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "name": name,
                "namespace": "default",
                "uid": f"uid-of-{name}",
            },
        },
        "status": {"phase": "Bound"},
    }
    return claim, made


def racks() -> Json:
    """The fields of a group that is to lie within one rack."""
    return {"schedulingConstraints": {"topology": [{"key": RACK}]}}


def insufficient(nodes: int) -> str:
    """What a member is told that fits on none of so many nodes."""
    return f"0/{nodes} nodes are available: {nodes} Insufficient cpu."


def too_few(minimum: int, scheduled: int, remaining: int = 0) -> str:
    """What is said of a group that cannot have its minimum any more."""
    return f"minCount ({minimum}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"


def no_placement(first: str) -> str:
    """What is said of a group that fits in none of one placement, which says this."""
    return f"{UNSCHEDULABLE}, 0/1 placements are available, first placement status: {first}"


def preempting(victims: int) -> str:
    """What is said of a group for which so many are evicted."""
    return f"pod group preemption: found a placement for podgroup, preempting {victims} victims"


OLD: Final = (pod("old-0", "old", "n1", 0, 1), pod("old-1", "old", "n2", 0, 2))

EXAMPLES: Final = (
    Example(
        "a gang that fits is placed",
        [node("n1"), node("n2"), group(minimum=2), pod("m0"), pod("m1")],
        members={"m0": "n1", "m1": "n2"},
    ),
    Example(
        "a gang that lacks room for one is not placed",
        [node("n1"), node("n2"), group(minimum=3), pod("m0"), pod("m1"), pod("m2")],
        code="Unschedulable",
        message=f"{no_placement(too_few(3, 2))}, {NO_VICTIMS}",
        members={
            "m0": f"{UNSCHEDULABLE}, {no_placement(too_few(3, 2))}, {NO_VICTIMS}",
            "m1": f"{UNSCHEDULABLE}, {no_placement(too_few(3, 2))}, {NO_VICTIMS}",
            "m2": insufficient(2),
        },
    ),
    Example(
        "the other members of a gang that cannot be complete any more are not tried",
        [node("n1"), group(minimum=3), pod("m0"), pod("m1"), pod("m2")],
        code="Unschedulable",
        message=f"{too_few(3, 1, 1)}, {NO_VICTIMS}",
        members={
            "m0": f"{UNSCHEDULABLE}, {too_few(3, 1, 1)}, {NO_VICTIMS}",
            "m1": insufficient(1),
            "m2": too_few(3, 1, 1),
        },
        gates=(GENERIC,),
    ),
    Example(
        "a gang above its minimum is placed without those that do not fit",
        [node("n1"), node("n2"), group(minimum=2), pod("m0"), pod("m1"), pod("m2")],
        members={"m0": "n1", "m1": "n2", "m2": insufficient(2)},
    ),
    Example(
        "a gang with too few pods does not get into the queue",
        [node("n1"), group(minimum=2), pod("m0")],
        code="",
        gated={"m0": "GangScheduling: waiting for minCount pods from a gang to appear in scheduling queue"},
    ),
    Example(
        "a pod waits for its group to be there",
        [node("n1"), pod("m0")],
        code="",
        gated={"m0": 'GangScheduling: waiting for pods\'s pod group "job" to appear in scheduling queue'},
    ),
    Example(
        "a member sees which volumes those before it use",
        [
            *(node("n1", "2"), *volume("data"), group(minimum=1)),
            *(
                pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
                for name in ("m0", "m1")
            ),
        ],
        members={
            "m0": "n1",
            "m1": "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod "
            "access mode already in-use by another pod.",
        },
    ),
    Example(
        "a basic group is placed as far as there is room",
        [node("n1"), group(), pod("m0"), pod("m1")],
        members={"m0": "n1", "m1": insufficient(1)},
    ),
    Example(
        "members that do not have the priority of their group are not tried",
        [node("n1"), group(), pod("m0"), pod("m1", priority=2)],
        code="",
        members=dict.fromkeys(
            ("m0", "m1"),
            "all pods in a single pod group should have the same priority as the pod group's priority, got 2 and 10",
        ),
    ),
    Example(
        "members with a node have to have the priority of their group, too",
        [node("n1"), node("n2"), group(), pod("m0"), pod("m1", on_node="n1", priority=2)],
        code="",
        members={
            "m0": "all pods in a single pod group should have the same priority as the pod group's priority, "
            "got 2 and 10"
        },
    ),
    Example(
        "a gang lies within the rack that has room for it",
        [
            *(node("n1", rack="r1"), node("n2", rack="r2"), node("n3", rack="r2")),
            *(group(minimum=2, **racks()), pod("m0"), pod("m1")),
        ],
        members={"m0": "n2", "m1": "n3"},
        placement="r2",
    ),
    Example(
        "of two racks that are equally good the first is chosen",
        [node("n1", rack="r2"), node("n2", rack="r1"), group(minimum=1, **racks()), pod("m0")],
        members={"m0": "n2"},
        placement="r1",
    ),
    Example(
        "a gang stays in the rack where a member has its place",
        [
            *(node("n1", "2", "r1"), node("n2", "4", "r2")),
            *(group(minimum=2, **racks()), pod("m0", on_node="n1"), pod("m1")),
        ],
        members={"m1": "n1"},
        placement="r1",
    ),
    Example(
        "a topology key that no node has leaves no placement",
        [node("n1"), group(minimum=1, **racks()), pod("m0")],
        code="Unschedulable",
        message=f"no feasible placements found, {NO_VICTIMS}",
        members={"m0": "no feasible placements found"},
    ),
    Example(
        "a group preempts a pod with lower priority",
        [node("n1"), pod("low", "", "n1", 0), group(minimum=1), pod("m0")],
        code="Unschedulable",
        message=f"{no_placement(too_few(1, 0))}, {preempting(1)}",
        members={"m0": insufficient(1)},
        nominated={"m0": "n1"},
        victims=["default/low"],
        waiting=True,
    ),
    Example(
        "a group whose victims are leaving evicts no others",
        [
            *(node("n1"), node("n2"), pod("low", "", "n2", 0), leaving(pod("victim", "", "n1", 0))),
            *(group(minimum=1), nominated(pod("m0"), "n1")),
        ],
        code="Unschedulable",
        message=f"{no_placement(too_few(1, 0))}, {ONGOING}",
        members={"m0": insufficient(2)},
        nominated={"m0": "n1"},
        waiting=True,
    ),
    Example(
        "what counts for a pod of a group is the priority of the group",
        [node("n1"), group("old", 1, 10), pod("low", "old", "n1", 0), group(minimum=1), pod("m0")],
        code="Unschedulable",
        message=f"{no_placement(too_few(1, 0))}, {NO_VICTIMS}",
        members={"m0": insufficient(1)},
    ),
    Example(
        "members that must not preempt keep their group from it",
        [node("n1"), pod("low", "", "n1", 0), group(minimum=1), pod("m0", preemptionPolicy="Never")],
        code="Unschedulable",
        message=(
            f"{no_placement(too_few(1, 0))}, {RELEASED}, "
            "pod group preemption: not eligible due to preemptionPolicy=Never."
        ),
        members={"m0": insufficient(1)},
    ),
    Example(
        "a group that must not preempt does not",
        [
            *(node("n1"), pod("low", "", "n1", 0)),
            *(group(minimum=1, preemptionPolicy="Never"), pod("m0", preemptionPolicy="Never")),
        ],
        code="Unschedulable",
        message=f"{too_few(1, 0)}, {RELEASED}, pod group preemption: not eligible due to preemptionPolicy=Never.",
        members={"m0": insufficient(1)},
        gates=(GENERIC, POLICY),
    ),
    *(
        Example(
            f"members have the preemption policy of their group: {its or 'none'}",
            [
                *(node("n1"), group(minimum=1, preemptionPolicy=its)),
                pod("m0", preemptionPolicy=of_pod),
            ],
            code="",
            members={
                "m0": "all pods in a single pod group should have the same preemption policy as the pod group's "
                f"preemption policy, got {of_pod or LOWER} and {its or LOWER}"
            },
            gates=(GENERIC, POLICY),
        )
        for its, of_pod in ((None, "Never"), ("Never", None))
    ),
    Example(
        "of a group that is disrupted pod by pod the pod goes that is in the way",
        [
            *(node("n1"), node("n2"), group("old", 1, 0, disruptionMode={"single": {}}), *OLD),
            *(group(minimum=1), pod("m0")),
        ],
        code="Unschedulable",
        message=f"{no_placement(too_few(1, 0))}, {preempting(1)}",
        members={"m0": insufficient(2)},
        nominated={"m0": "n1"},
        victims=["default/old-0"],
        waiting=True,
    ),
    Example(
        "a group that is disrupted as a whole goes as a whole",
        [
            *(node("n1"), node("n2"), group("old", 1, 0, disruptionMode={"all": {}}), *OLD),
            *(group(minimum=1), pod("m0")),
        ],
        code="Unschedulable",
        message=f"{no_placement(too_few(1, 0))}, {preempting(2)}",
        members={"m0": insufficient(2)},
        nominated={"m0": "n1"},
        victims=["default/old-0", "default/old-1"],
        waiting=True,
    ),
    Example(
        "members with different schedulers are not placed together",
        [node("n1", "2"), group(minimum=1), pod("m0"), pod("m1", schedulerName="batch")],
        code="",
        members=dict.fromkeys(
            ("m0", "m1"),
            "all pods in a single pod group should have the same .spec.schedulerName set, "
            'got: "batch" and "default-scheduler"',
        ),
        schedulers=("default-scheduler", "batch"),
    ),
    Example(
        "a tree of which enough groups fit is placed without the others",
        [
            *(node("n1"), node("n2"), tree(minimum=1)),
            *(
                part("a", 3),
                pod("a0", "a"),
                pod("a1", "a"),
                pod("a2", "a"),
                part("b", 2),
                pod("b0", "b"),
                pod("b1", "b"),
            ),
        ],
        members={
            "a0": f"{UNSCHEDULABLE}, {no_placement(too_few(3, 2))}",
            "a1": f"{UNSCHEDULABLE}, {no_placement(too_few(3, 2))}",
            "a2": insufficient(2),
            "b0": "n1",
            "b1": "n2",
        },
        parts={"a": no_placement(too_few(3, 2)), "b": ""},
        gates=TREES,
    ),
    Example(
        "a tree of which too few groups fit is not placed",
        [node("n1"), tree(minimum=2), part("a", 1), pod("a0", "a"), part("b", 1), pod("b0", "b")],
        code="Unschedulable",
        message=f"{no_placement(too_few(2, 1))}, {NO_VICTIMS}",
        members={
            "a0": no_placement(too_few(2, 1)),
            "b0": insufficient(1),
        },
        parts={
            "a": f"{no_placement(too_few(2, 1))}, {NO_VICTIMS}",
            "b": f"{no_placement(too_few(1, 0))}, {NO_VICTIMS}",
        },
        gates=TREES,
    ),
    Example(
        "the racks of groups lie in the zone of their tree",
        [
            *(zoned("n1", "a", "r1"), zoned("n2", "b", "r2"), zoned("n3", "b", "r3")),
            *(tree(minimum=2, schedulingConstraints={"topology": [{"key": ZONE}]}),),
            *(part("a", 1, **racks()), pod("a0", "a"), part("b", 1, **racks()), pod("b0", "b")),
        ],
        members={"a0": "n2", "b0": "n3"},
        parts={"a": "", "b": ""},
        placement="b",
        gates=TREES,
    ),
    Example(
        "a pod waits for the groups above its own",
        [node("n1"), group("job", 1, workloadRef=WORKLOAD, parentCompositePodGroupName="above"), pod("m0")],
        code="",
        gated={
            "m0": "GangScheduling: failed to build hierarchy snapshot: composite pod group object not found in state "
            "for compositepodgroup/default/above"
        },
        gates=TREES,
    ),
    Example(
        "a tree whose victims are leaving evicts no others",
        [
            *(node("n1"), node("n2"), pod("low", "", "n2", 0), leaving(pod("victim", "", "n1", 0))),
            *(tree(), part("a", 1), nominated(pod("a0", "a"), "n1")),
        ],
        code="Unschedulable",
        message=f"{no_placement(too_few(1, 0))}, {ONGOING}",
        members={"a0": insufficient(2)},
        parts={"a": f"{no_placement(too_few(1, 0))}, {ONGOING}"},
        nominated={"a0": "n1"},
        waiting=True,
        gates=TREES,
    ),
    Example(
        "a tree preempts for the groups that will start, not for others",
        [
            *(node("n1"), node("n2"), pod("low-1", "", "n1", 0, 1), pod("low-2", "", "n2", 0, 2), tree(minimum=1)),
            *(part("a", 3), pod("a0", "a"), pod("a1", "a"), pod("a2", "a"), part("b", 1), pod("b0", "b")),
        ],
        code="Unschedulable",
        message=f"{no_placement(too_few(1, 0))}, {preempting(1)}",
        members={
            "a0": insufficient(2),
            "a1": no_placement(too_few(3, 0, 2)),
            "a2": no_placement(too_few(3, 0, 2)),
            "b0": insufficient(2),
        },
        parts={
            "a": f"{no_placement(too_few(3, 0, 2))}, {preempting(1)}",
            "b": f"{no_placement(too_few(1, 0))}, {preempting(1)}",
        },
        nominated={"b0": "n1"},
        victims=["default/low-1"],
        waiting=True,
        gates=TREES,
    ),
)
