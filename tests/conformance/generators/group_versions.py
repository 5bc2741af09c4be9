"""A case with pod groups in the words of a version of Kubernetes: it is written in those of 1.36."""

from collections.abc import Sequence
from typing import Final

from tests.conformance.generators.topic import Draw, Json
from tests.conformance.oracle import chosen

GENERIC: Final = "GenericWorkload"
GANG: Final = "GangScheduling"
TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"
PREEMPTION: Final = "WorkloadAwarePreemption"

_MODES: Final[Json] = {"Pod": {"single": {}}, "PodGroup": {"all": {}}}


def as_chosen(case: Json, draw: Draw) -> Json:
    """The case for the kube-scheduler that is chosen: in 1.37 gangs and preemption for groups have no own gates."""
    if chosen("groups").startswith("1.36."):
        return case
    gates = [gate for gate in case["gates"] if gate not in {GANG, PREEMPTION}]
    objects = [in_1_37(each, case["objects"], draw) if each["kind"] == "PodGroup" else each for each in case["objects"]]
    return case | {"gates": gates, "objects": objects}


def in_1_37(group: Json, objects: Sequence[Json], draw: Draw) -> Json:
    """A PodGroup of v1beta1. Its pods have its priority, mostly: with other ones it is not even tried."""
    spec = dict(group["spec"])
    if mode := spec.get("disruptionMode"):
        spec["disruptionMode"] = _MODES[mode]
    members = [each["spec"] for each in objects if each["kind"] == "Pod" and is_member(each, group)]
    if members and draw.chance(0.9):
        spec["priority"] = members[0]["priority"]
        for each in members:
            each["priority"] = spec["priority"]
    made = group | {"apiVersion": "scheduling.k8s.io/v1beta1", "spec": spec}
    if conditions := group.get("status", {}).get("conditions"):
        made["status"] = {"conditions": [each | {"type": "PodGroupInitiallyScheduled"} for each in conditions]}
    return made


def is_member(pod: Json, group: Json) -> bool:
    """Whether a pod names this group."""
    name, metadata = pod["spec"].get("schedulingGroup", {}).get("podGroupName"), group["metadata"]
    return (pod["metadata"]["namespace"], name) == (metadata["namespace"], metadata["name"])
