"""The configuration and the objects of a scenario as the scheduler sees them."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from typing import Final

from msgspec.structs import replace

import plugins
from scheduler.api.decoding import convert
from scheduler.api.groups import pod_groups
from scheduler.api.groups.coscheduling import POD_GROUP_LABEL, PodGroup, PodGroupSpec, PodGroupStatus
from scheduler.api.objects import GroupAnnotations, GroupedMeta, Node, ObjectMeta, Taint
from scheduler.api.pods.pod import Pod
from scheduler.api.unstructured import Unstructured
from scheduler.config.feature_gates import read_gates
from scheduler.config.load import config_from_dict
from scheduler.config.types import Config
from scheduler.framework import Plugin
from scheduler.framework.events import COMPOSITE_POD_GROUP, COSCHEDULING_POD_GROUP, POD_GROUP_V1BETA1
from scheduler.testing import Scheduler, a_node, an_object, pod_from_dict
from scheduler.testing.api_server import BEGIN
from tests.campaigns.groups.license import LABEL, LICENSES, License
from tests.campaigns.groups.model import ROOT, GroupState, Json, Model, NodeState, PodState
from tests.campaigns.groups.scenarios import GroupPlan, Settings

REGISTRY: Final[dict[str, type[Plugin]]] = {**plugins.SHIPPED, License.name: License}
PROFILE: Final = "default-scheduler"
PLUGINS: Final = (
    "PrioritySort",
    "SchedulingGates",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "DefaultBinder",
    "Coscheduling",
    License.name,
)
"""The plugins that have something to do here: an engine with all of them takes twice as long to start."""

FOR_TREES: Final = ("GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount")
GATES: Final = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
BUDGET: Final = "policy/PodDisruptionBudget"
PROTECTED: Final = {"protected": "yes"}
AMPLE_QUOTA: Final = {
    "name": "CapacityScheduling",
    "args": {
        "elasticQuotas": False,
        "shares": [
            {"name": "root", "minimum": {"cpu": "10000"}},
            {"name": "all", "parent": "root", "namespaces": ["default"], "minimum": {"cpu": "1000"}, "reclaim": "Any"},
        ],
    },
}
CORDONED: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
UNREACHABLE: Final = (
    Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
    Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"),
)
TOLERATIONS: Final = [
    {"key": CORDONED.key, "operator": "Exists"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
]
"""Of the pods of a DaemonSet. They do not tolerate dead nodes here: it would only be one more case."""


@cache
def config(settings: Settings) -> Config:
    """Return the configuration of a scenario."""
    further = {
        "DefaultPreemption": settings.preempts,
        "CapacityScheduling": settings.has_quota,
        **dict.fromkeys(FOR_TREES, settings.has_trees),
    }
    names = [*PLUGINS, *(name for name, is_on in further.items() if is_on)]
    gates, _ = read_gates([",".join(f"{gate}=true" for gate in GATES)] if settings.has_trees else [])
    multi_point = {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]}
    return config_from_dict(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {"schedulerName": PROFILE, "plugins": {"multiPoint": multi_point}, "pluginConfig": [AMPLE_QUOTA]}
            ],
            "loadmaster": {
                "topologyLevels": list(settings.levels),
                "groupReservationSeconds": settings.reservation_seconds,
                "groupBackfill": settings.backfill,
                "damagedGroupSeconds": settings.damaged_seconds,
            },
        },
        REGISTRY,
        gates=gates,
    )


def clock(seconds: float) -> str:
    """The time of day at a time of the event loop."""
    return (BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def manifest(name: str, cpu: int, priority: int, created: str) -> Json:
    """A pod as it is created."""
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": created,
            "labels": {},
            "annotations": {},
        },
        "spec": {
            "schedulerName": PROFILE,
            "priority": priority,
            "containers": [{"name": "main", "image": "img", "resources": {"requests": {"cpu": str(cpu)}}}],
        },
    }


def announce(written: Json, how: str, seconds: int) -> None:
    """Let a pod say how long it runs."""
    if how == "deadline":
        written["spec"]["activeDeadlineSeconds"] = seconds
    elif how == "expected":
        written["metadata"]["annotations"]["loadmaster.dev/expected-seconds"] = str(seconds)


def join(written: Json, plan: GroupPlan, minimum: int, index: int) -> None:
    """Let a pod be one of a group."""
    labels, annotations = written["metadata"]["labels"], written["metadata"]["annotations"]
    labels["batch.kubernetes.io/job-completion-index"] = str(index)
    if plan.needs_license:
        labels[LABEL] = "needed"
    if plan.parts:
        written["spec"]["schedulingGroup"] = {"podGroupName": f"{plan.name}-{plan.part_of(index)}"}
        return
    if plan.has_object:
        labels[POD_GROUP_LABEL] = plan.name
        return
    annotations["loadmaster.dev/pod-group"] = plan.name
    annotations["loadmaster.dev/pod-group-min-available"] = str(minimum)
    annotations.update(topology(plan))


def own(written: Json, name: str, uid: str) -> None:
    """Let a Job control a pod."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    written["metadata"]["ownerReferences"] = [owner]


def topology(plan: GroupPlan) -> dict[str, str]:
    """The annotations about the topology."""
    wishes = {"loadmaster.dev/required-topology": plan.required, "loadmaster.dev/preferred-topology": plan.preferred}
    return {key: level for key, level in wishes.items() if level}


def budget() -> Unstructured:
    """A PodDisruptionBudget that allows nothing."""
    spec = {"selector": {"matchLabels": PROTECTED}}
    status = {"disruptionsAllowed": 0, "disruptedPods": {}}
    return an_object("budget", namespace="default", version=1, spec=spec, status=status)


def for_daemon(written: Json, node: str) -> None:
    """Let a pod be one of a DaemonSet."""
    written["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "agent", "controller": True}
    ]
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
    written["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    written["spec"]["tolerations"] = TOLERATIONS


def show_all(scheduler: Scheduler, model: Model, settings: Settings, nominated: Mapping[str, str]) -> None:
    """Show a scheduler that has just been started what there is. `nominated`: pod → node."""
    if model.has_license:
        scheduler.put(LICENSES, an_object("site", version=1))
    if settings.has_budgets and settings.preempts:
        scheduler.put(BUDGET, budget())
    for group in model.groups.values():
        for resource, shown in group_objects(group):
            scheduler.put(resource, shown)
    scheduler.set_node(*(node_object(node) for node in model.nodes.values() if node.exists))
    pods = sorted(model.pods.values(), key=lambda pod: not pod.place)
    scheduler.create(*(pod_object(pod, nominated.get(pod.name, "")) for pod in pods))


def group_objects(group: GroupState) -> Iterator[tuple[str, PodGroup | pod_groups.PodGroup]]:
    """Yield the objects that a group has, each with its resource."""
    plan = group.plan
    if group.object_exists and not plan.parts:
        yield COSCHEDULING_POD_GROUP, group_object(group)
    elif group.object_exists:
        yield (
            COMPOSITE_POD_GROUP,
            _of_kubernetes(group, plan.name, group.created[ROOT], plan.required, min_group_count=plan.needs),
        )
    for part, minimum in group.parts.items():
        level, created = plan.parts[part].required, group.created[part]
        yield POD_GROUP_V1BETA1, _of_kubernetes(group, f"{plan.name}-{part}", created, level, min_count=minimum)


def _of_kubernetes(group: GroupState, name: str, created: float, level: str, **gang: int) -> pod_groups.PodGroup:
    is_root = name == group.plan.name
    metadata = ObjectMeta(
        name=name,
        namespace="default",
        uid=f"{name} {created}",
        resource_version=str(group.object_version),
        generation=1,
        creation_timestamp=clock(created),
    )
    topology = (pod_groups.TopologyConstraint(level),) if level else ()
    spec = pod_groups.PodGroupSpec(
        pod_groups.SchedulingPolicy(pod_groups.GangPolicy(**gang)),
        pod_groups.SchedulingConstraints(topology) if topology else None,
        pod_groups.DisruptionMode(all={}) if is_root and group.plan.leaves_whole else None,
        group.plan.priority,
        None if is_root else group.plan.name,
    )
    return pod_groups.PodGroup(metadata, spec)


def pod_object(pod: PodState, nominated: str = "") -> Pod:
    """A pod as the watch shows it."""
    written = pod.manifest
    metadata = {**written["metadata"], "resourceVersion": str(pod.version)}
    spec = dict(written["spec"])
    status: Json = {"phase": pod.phase}
    if pod.is_deleting:
        metadata["deletionTimestamp"] = metadata["creationTimestamp"]
    if pod.is_gated:
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    if pod.node:
        spec["nodeName"] = pod.node
        status["startTime"] = pod.started
    if nominated and not pod.node:
        status["nominatedNodeName"] = nominated
    if pod.refused_since and not pod.node:
        refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status["conditions"] = [{**refusal, "lastTransitionTime": pod.refused_since}]
    if pod.is_deleting and pod.evicted_for:
        status["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    return pod_from_dict({"metadata": metadata, "spec": spec, "status": status})


def node_object(node: NodeState) -> Node:
    taints = [*([CORDONED] if node.is_cordoned else ()), *(UNREACHABLE if node.is_dead else ())]
    plan = node.plan
    return a_node(plan.name, cpu=plan.cpu, labels=node.labels, taints=taints, unschedulable=node.is_cordoned)


def group_object(group: GroupState) -> PodGroup:
    """The PodGroup of a group, with the status that the leading replica writes."""
    plan = group.plan
    metadata = GroupedMeta(
        name=plan.name,
        namespace="default",
        uid=f"group {plan.name} {group.object_generation}",
        resource_version=str(group.object_version),
        group_annotations=convert(topology(plan), GroupAnnotations) if topology(plan) else None,
    )
    spec = PodGroupSpec(group.minimum, {"cpu": plan.least} if plan.least else None)
    succeeded = sum(controller == group.controller for controller, _ in group.successes)
    return replace(PodGroup(metadata, spec), status=PodGroupStatus(phase="Running", succeeded=succeeded))
