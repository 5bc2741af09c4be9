"""A case with pod groups in the words of a version of Kubernetes: it is written in those of 1.36."""

from typing import Final

from tests.conformance.generators.topic import Json
from tests.conformance.oracle import chosen

GENERIC: Final = "GenericWorkload"
GANG: Final = "GangScheduling"
TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"
PREEMPTION: Final = "WorkloadAwarePreemption"

_MODES: Final[Json] = {"Pod": {"single": {}}, "PodGroup": {"all": {}}}


def as_chosen(case: Json) -> Json:
    """The case for the kube-scheduler that is chosen: in 1.37 gangs and preemption for groups have no own gates."""
    if chosen().startswith("1.36."):
        return case
    gates = [gate for gate in case["gates"] if gate not in {GANG, PREEMPTION}]
    objects = [in_1_37(each) if each["kind"] == "PodGroup" else each for each in case["objects"]]
    return case | {"gates": gates, "objects": objects}


def in_1_37(group: Json) -> Json:
    """A PodGroup of v1beta1."""
    spec = dict(group["spec"])
    if mode := spec.get("disruptionMode"):
        spec["disruptionMode"] = _MODES[mode]
    made = group | {"apiVersion": "scheduling.k8s.io/v1beta1", "spec": spec}
    if conditions := group.get("status", {}).get("conditions"):
        made["status"] = {"conditions": [each | {"type": "PodGroupInitiallyScheduled"} for each in conditions]}
    return made
