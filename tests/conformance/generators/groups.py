"""Pod groups: gangs and basic ones, complete and not, close together or wherever there is room, in full clusters.

A case of its own, not a topic that others mix with: a group's members must be nearly alike to have a chance together.
It is small: at most a dozen nodes, and ten members of a group that wait.
"""

from collections.abc import Sequence
from typing import Final

from tests.conformance.generators.preemption import APPS, budget
from tests.conformance.generators.taints import Taints
from tests.conformance.generators.topic import Cluster, Draw, Json

GENERIC: Final = "GenericWorkload"
TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"
POLICY: Final = "PodGroupPreemptionPolicy"
GATES: Final = (((GENERIC, TOPOLOGY), 73), ((GENERIC,), 19), ((GENERIC, POLICY), 8))
"""Each set of feature gates, and how often it is drawn of a hundred times."""

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
RACK: Final = "example.com/rack"
GROUP: Final = "example.com/group"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
REPLACEABLE: Final = ("DefaultPreemption", "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount")
AMOUNTS: Final = ("500m", "1", "1", "2")
LOW: Final = (0, 0, 0, 1, 10, -5)
HIGH: Final = (1, 10, 10, 100, 1000, 0)


def generate(seed: int) -> Json:
    """The case of this seed: a name, feature gates, a configuration and objects."""
    draw = Draw(f"groups-{seed}")
    gates = draw.choices([gates for gates, _ in GATES], weights=[weight for _, weight in GATES])[0]
    config = configuration(draw)
    cluster = Cluster(tuple(f"n{number:02}" for number in range(1, draw.choice((1, 2, 3, 4, 4, 5, 6, 8, 12)) + 1)))
    dress = (Taints(),) if draw.chance(0.1) else ()
    nodes = [node(draw, name, dress) for name in cluster.node_names]
    waiting = [one for i in range(draw.choice((1, 1, 1, 2))) for one in group(draw, f"job-{i}", cluster, config)]
    running = running_pods(draw, cluster) if draw.chance(0.75) else []
    budgets = [budget(draw, f"budget-{i}") for i in range(draw.choice((0, 0, 0, 1, 2)))]
    for pod in (*running, *waiting):
        for topic in dress if pod["kind"] == "Pod" else ():
            topic.dress_pod(draw, pod, cluster)
    if sum(each["kind"] == "PodGroup" for each in waiting) > 1:
        for each in waiting:  # kube-scheduler counts an empty pod for each that is nominated of another group
            each.get("status", {}).pop("nominatedNodeName", None)
    start(draw, [*running, *waiting])
    objects = [*budgets, *nodes, *running, *waiting]
    agree(draw, objects)
    if POLICY in gates:
        set_policies(Draw(f"policies-{seed}"), objects)
    return {"name": f"groups-{seed}", "gates": list(gates), "config": config, "objects": objects}


def among_groups(seed: int) -> Json:
    """The groups that run in the case of this seed, and one pod of its own that may preempt their pods."""
    return alone_among(generate(seed), Draw(f"among-groups-{seed}"), f"among-groups-{seed}")


def alone_among(case: Json, draw: Draw, name: str) -> Json:
    """The groups that run in a case, and one pod that may preempt their pods."""
    objects = [each for each in case["objects"] if each["kind"] != "Pod" or "nodeName" in each["spec"]]
    names = [each["metadata"]["name"] for each in objects if each["kind"] == "Node"]
    alone = pod(draw, "alone", "default", draw.choice(("1", "2", "2", "4")), draw.choice((10, 100, 1000)))
    if draw.chance(0.3):
        alone["spec"] |= draw.choice((near, apart, spread, preferred))(draw)
    if draw.chance(0.1):
        alone["status"]["nominatedNodeName"] = draw.choice(names)
    config = case["config"] | {"profiles": [{"schedulerName": "default-scheduler"}]}
    return case | {"name": name, "alone": True, "config": config, "objects": [*objects, alone]}


def configuration(draw: Draw) -> Json:
    """Usually what is in effect without a file."""
    profiles: list[Json] = [{"schedulerName": "default-scheduler"}]
    if draw.chance(0.12):
        without = draw.choice(REPLACEABLE)
        profiles[0]["plugins"] = {"multiPoint": {"disabled": [{"name": without}]}}
    if draw.chance(0.15):
        strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": draw.choice((1, 5))}]}
        profiles[0]["pluginConfig"] = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]
    if draw.chance(0.3):
        profiles.append({"schedulerName": "batch"})
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": profiles,
    }


def node(draw: Draw, name: str, dress: Sequence[Taints]) -> Json:
    """A node with a few cores, in a zone and a rack unless it is odd."""
    labels = {HOSTNAME: name}
    if draw.chance(0.92):
        labels[ZONE] = draw.choice(("zone-a", "zone-b"))
    if draw.chance(0.9):
        labels[RACK] = draw.choice(("r1", "r2", "r3", "r4"))
    amounts = {
        "cpu": draw.choice(("1", "2", "2", "4")),
        "memory": "16Gi",
        "pods": draw.choice(("110", "110", "2", "4")),
    }
    made: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"allocatable": dict(amounts), "capacity": dict(amounts)},
    }
    for topic in dress:
        topic.dress_node(draw, made)
    return made


def pod(draw: Draw, name: str, namespace: str, amount: str, priority: int, on_node: str = "") -> Json:
    """A pod that asks for one container's cores."""
    spec: Json = {
        "schedulerName": "default-scheduler",
        "priority": priority,
        "containers": [{"name": "c0", "image": "app:v1", "resources": {"requests": {"cpu": amount}}}],
    }
    if on_node:
        spec["nodeName"] = on_node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{namespace}-{name}",
            "labels": {"app": draw.choice(APPS)},
        },
        "spec": spec,
        "status": {"phase": "Running" if on_node else "Pending"},
    }


def group(draw: Draw, name: str, cluster: Cluster, config: Json) -> list[Json]:
    """A PodGroup, unless it is missing, and its pods: some wait, some may have a place."""
    namespace = draw.choice(("default", "default", "team"))
    count = draw.choice((1, 2, 2, 3, 3, 4, 5, 6, 8, 10))
    priority = draw.choice(HIGH)
    members = members_of(draw, name, namespace, count, priority, cluster)
    if draw.chance(0.06):
        schedulers = [profile["schedulerName"] for profile in config["profiles"]]
        draw.choice(members)["spec"]["schedulerName"] = draw.choice((*schedulers, "somebody-else"))
    placed = placed_of(draw, name, namespace, priority, cluster) if draw.chance(0.2) else []
    join([*members, *placed], name)
    made = pod_group(draw, name, namespace, count + len(placed), priority)
    return [*([made] if draw.chance(0.97) else []), *placed, *members]


def pod_group(draw: Draw, name: str, namespace: str, count: int, priority: int) -> Json:
    """A PodGroup for so many pods; its priority is theirs, unless it is odd."""
    gang = {"gang": {"minCount": draw.choice((count, count, max(1, count - 1), max(1, count // 2), 1, count + 1))}}
    spec: Json = {"schedulingPolicy": gang if draw.chance(0.8) else {"basic": {}}}
    if draw.chance(0.4):
        topology = [{"key": draw.choice((ZONE, RACK, RACK, RACK, HOSTNAME, "example.com/nowhere"))}]
        spec["schedulingConstraints"] = {"topology": topology} if draw.chance(0.95) else {}
    spec["disruptionMode"] = {draw.choice(("single", "single", "single", "all")): {}}  # the default is single
    if draw.chance(0.85):
        spec["priority"] = priority if draw.chance(0.85) else draw.choice(HIGH)
    made: Json = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-of-group-{namespace}-{name}"},
        "spec": spec,
    }
    if draw.chance(0.1):
        status, reason = draw.choice((("True", "Scheduled"), ("False", "Unschedulable"), ("False", "SchedulerError")))
        made["status"] = {
            "conditions": [
                {
                    "type": "PodGroupInitiallyScheduled",
                    "status": status,
                    "reason": reason,
                    "message": "as it was",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ]
        }
    return made


def members_of(draw: Draw, name: str, namespace: str, count: int, priority: int, cluster: Cluster) -> list[Json]:
    """The pods of a group that wait: nearly alike, and one that is not."""
    alike, mixed = draw.choice(AMOUNTS), draw.chance(0.25)
    made = []
    for i in range(count):
        amount = draw.choice(AMOUNTS) if mixed else alike
        made.append(pod(draw, f"{name}-{i}", namespace, amount, priority))
    if draw.chance(0.2):
        for each in made:
            each["spec"]["priority"] = draw.choice(HIGH)
    if draw.chance(0.35):
        want = draw.choice((near, apart, spread, preferred))(draw)
        some = made if draw.chance(0.6) else draw.several(made, most=count)
        for each in some:
            each["spec"] |= want
    if draw.chance(0.35):
        make_odd(draw, draw.choice(made), made, cluster)
    return made


def make_odd(draw: Draw, odd: Json, members: Sequence[Json], cluster: Cluster) -> None:
    """Let one member be gated, deleted, nominated, or want a place of its own; or let nobody preempt."""
    choice = draw.randrange(7)
    if choice == 0:
        odd["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    elif choice == 1:
        odd["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    elif choice == 2 and all(each["spec"]["priority"] > 0 for each in members):
        # For a member without priority kube-scheduler counts an empty pod for each other one that is nominated.
        for each in draw.several(members, most=len(members)):
            each["status"]["nominatedNodeName"] = draw.choice((*cluster.node_names, "gone"))
    elif choice in (2, 3):
        odd["spec"]["nodeSelector"] = {RACK: draw.choice(("r1", "r2", "r3", "r4"))}
    elif choice == 4:
        odd["spec"]["nodeSelector"] = {HOSTNAME: draw.choice(cluster.node_names)}
    else:
        for each in members if draw.chance(0.5) else [odd]:
            each["spec"]["preemptionPolicy"] = "Never"


def set_policies(draw: Draw, objects: Sequence[Json]) -> None:
    """Let groups say whether they may preempt, and most of their pods the same."""
    for each in objects:
        if each["kind"] != "PodGroup" or draw.chance(0.3):
            continue
        name, namespace = each["metadata"]["name"], each["metadata"]["namespace"]
        each["spec"]["preemptionPolicy"] = policy = draw.choice(("Never", "PreemptLowerPriority"))
        pods = [
            pod
            for pod in objects
            if pod["kind"] == "Pod"
            and pod["metadata"]["namespace"] == namespace
            and pod["spec"].get("schedulingGroup") == {"podGroupName": name}
        ]
        for pod in pods if draw.chance(0.8) else pods[:1]:
            pod["spec"]["preemptionPolicy"] = policy


def near(draw: Draw) -> Json:
    """Required affinity to the others of some group."""
    return {"affinity": {"podAffinity": {REQUIRED: [term(draw)]}}}


def apart(draw: Draw) -> Json:
    """Required anti-affinity to the others of some group."""
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term(draw)]}}}


def preferred(draw: Draw) -> Json:
    """Preferred affinity or anti-affinity to the others of some group."""
    kind = draw.choice(("podAffinity", "podAntiAffinity"))
    return {"affinity": {kind: {PREFERRED: [{"weight": draw.choice((1, 100)), "podAffinityTerm": term(draw)}]}}}


def term(draw: Draw) -> Json:
    """A term that selects a group's pods, or an app's."""
    labels = {GROUP: "job-0"} if draw.chance(0.8) else {"app": draw.choice(APPS)}
    return {"topologyKey": draw.choice((HOSTNAME, RACK, ZONE)), "labelSelector": {"matchLabels": labels}}


def spread(draw: Draw) -> Json:
    """A constraint on how evenly the group lies."""
    constraint = {
        "maxSkew": draw.choice((1, 1, 2)),
        "topologyKey": draw.choice((HOSTNAME, RACK, ZONE)),
        "whenUnsatisfiable": draw.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {GROUP: "job-0"}},
    }
    return {"topologySpreadConstraints": [constraint]}


def placed_of(draw: Draw, name: str, namespace: str, priority: int, cluster: Cluster) -> list[Json]:
    """Members that have a place already, usually near each other."""
    place = draw.choice(cluster.node_names)
    made = []
    for i in range(draw.choice((1, 1, 2, 3))):
        on_node = place if draw.chance(0.7) else draw.choice((*cluster.node_names, "gone"))
        made.append(pod(draw, f"{name}-placed-{i}", namespace, draw.choice(AMOUNTS), priority, on_node))
    return made


def agree(draw: Draw, objects: Sequence[Json]) -> None:
    """Let groups have the priority of their pods, mostly: with other ones they are not even tried."""
    for made in (each for each in objects if each["kind"] == "PodGroup"):
        members = [each["spec"] for each in objects if each["kind"] == "Pod" and is_member(each, made)]
        if members and draw.chance(0.9):
            made["spec"]["priority"] = members[0]["priority"]
            for each in members:
                each["priority"] = members[0]["priority"]


def is_member(pod: Json, group: Json) -> bool:
    """Whether a pod names this group."""
    name, metadata = pod["spec"].get("schedulingGroup", {}).get("podGroupName"), group["metadata"]
    return (pod["metadata"]["namespace"], name) == (metadata["namespace"], metadata["name"])


def join(members: Sequence[Json], name: str) -> None:
    """Make pods members of the group."""
    for each in members:
        each["spec"]["schedulingGroup"] = {"podGroupName": name}
        each["metadata"]["labels"][GROUP] = name


def running_pods(draw: Draw, cluster: Cluster) -> list[Json]:
    """Pods that may be in the way: lone ones, and groups that are disrupted pod by pod or as a whole."""
    made = []
    for place in cluster.node_names:
        for i in range(draw.choice((0, 1, 1, 2))):
            namespace = draw.choice(("default", "team"))
            made.append(pod(draw, f"lone-{place}-{i}", namespace, draw.choice(AMOUNTS), draw.choice(LOW), place))
    for i in range(draw.choice((0, 1, 1, 2))):
        name, namespace, priority = f"old-{i}", draw.choice(("default", "team")), draw.choice(LOW)
        places = [draw.choice(cluster.node_names) for _ in range(draw.randint(1, 5))]
        members = [
            pod(draw, f"{name}-{j}", namespace, draw.choice(AMOUNTS), priority, place) for j, place in enumerate(places)
        ]
        join(members, name)
        made += [pod_group(draw, name, namespace, len(members), priority), *members]
    for each in made:
        if each["kind"] == "Pod" and draw.chance(0.05):
            each["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    return made


def start(draw: Draw, objects: Sequence[Json]) -> None:
    """Say when pods started, no two at the same time: kube-scheduler has no rule which is more important."""
    running = [each for each in objects if each["kind"] == "Pod" and "nodeName" in each["spec"]]
    for minute, each in zip(draw.sample(range(len(running)), len(running)), running, strict=True):
        each["status"]["startTime"] = f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z"
