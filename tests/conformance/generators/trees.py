"""Trees of groups: CompositePodGroups of two to four levels, whole and broken, in the clusters of `groups.py`."""

from collections.abc import Iterator, Sequence
from typing import Final

from tests.conformance.generators import groups
from tests.conformance.generators.groups import GENERIC, HIGH, HOSTNAME, LOW, POLICY, RACK, TOPOLOGY, ZONE
from tests.conformance.generators.preemption import budget
from tests.conformance.generators.topic import Cluster, Draw, Json

COMPOSITE: Final = "CompositePodGroup"
GATES: Final = (((GENERIC, TOPOLOGY, COMPOSITE), 4), ((GENERIC, TOPOLOGY, COMPOSITE, POLICY), 1))
"""Each set of feature gates, and how often it is drawn of five times."""


def generate(seed: int) -> Json:
    """The case of this seed: a tree that waits, perhaps a second one or a group by itself, and what is in their way."""
    draw = Draw(f"trees-{seed}")
    gates = draw.choices([gates for gates, _ in GATES], weights=[weight for _, weight in GATES])[0]
    config = groups.configuration(draw)
    cluster = Cluster(tuple(f"n{number:02}" for number in range(1, draw.choice((2, 3, 4, 4, 5, 6, 8, 12)) + 1)))
    nodes = [groups.node(draw, name, ()) for name in cluster.node_names]
    waiting = tree(draw, "job-0", cluster, config)
    if draw.chance(0.15):
        waiting += draw.choice((tree, groups.group))(draw, "job-1", cluster, config)
    running = running_pods(draw, cluster) if draw.chance(0.75) else []
    budgets = [budget(draw, f"budget-{i}") for i in range(draw.choice((0, 0, 0, 1, 2)))]
    for each in waiting:  # kube-scheduler counts an empty pod for each that is nominated of another group
        each.get("status", {}).pop("nominatedNodeName", None)
    groups.start(draw, [*running, *waiting])
    objects = [*budgets, *nodes, *running, *waiting]
    if POLICY in gates:
        set_policies(draw, objects)
    return {"name": f"trees-{seed}", "gates": list(gates), "config": config, "objects": objects}


def among_trees(seed: int) -> Json:
    """The groups that run in the case of this seed, and one pod of its own that may preempt their pods."""
    return groups.alone_among(generate(seed), Draw(f"among-trees-{seed}"), f"among-trees-{seed}")


def tree(draw: Draw, name: str, cluster: Cluster, config: Json) -> list[Json]:
    """CompositePodGroups, the PodGroups below them, and their pods: some wait, some may have a place."""
    namespace, priority = draw.choice(("default", "default", "team")), draw.choice(HIGH)
    made = list(branch(draw, name, namespace, priority, draw.choice((1, 1, 1, 2, 2, 3)), cluster))
    made[0]["spec"]["priority"] = priority
    pods = [each for each in made if each["kind"] == "Pod"]
    for each in pods:
        each["metadata"]["labels"][groups.GROUP] = name
    if draw.chance(0.8):
        agree(draw, pods, made)
    schedulers = [profile["schedulerName"] for profile in config["profiles"]]
    for field, values in (("priority", HIGH), ("schedulerName", (*schedulers, "somebody-else"))):
        if draw.chance(0.03):
            draw.choice(pods)["spec"][field] = draw.choice(values)
    if draw.chance(0.06):
        return broken(draw, made)
    return made


def agree(draw: Draw, pods: Sequence[Json], made: Sequence[Json]) -> None:
    """Let nothing keep the tree from being tried: pods have one priority and policy, and suffice for most groups."""
    policy = {"preemptionPolicy": "Never"} if draw.chance(0.1) else {}
    priority = pods[0]["spec"]["priority"]
    for each in pods:
        for field in ("schedulingGates", "preemptionPolicy"):
            each["spec"].pop(field, None)
        each["spec"] |= policy | {"priority": priority}
    made[0]["spec"]["priority"] = priority
    for each in made:
        gang = each["spec"].get("schedulingPolicy", {}).get("gang", {})
        below = sum(is_below(other, each) for other in made)
        for minimum in ("minCount", "minGroupCount"):
            if gang.get(minimum, 0) > below and draw.chance(0.9):
                gang[minimum] = max(below, 1)


def is_below(each: Json, group: Json) -> bool:
    """Whether a pod or a group is part of a group, as seen in their specs."""
    spec = each["spec"]
    parent: str = spec.get("schedulingGroup", {}).get("podGroupName") or spec.get("parentCompositePodGroupName", "")
    return parent == str(group["metadata"]["name"])


def branch(
    draw: Draw, name: str, namespace: str, priority: int, levels: int, cluster: Cluster, parent: str = ""
) -> Iterator[Json]:
    """A group with so many levels of groups below it at most."""
    if not levels:
        yield from leaf(draw, name, namespace, priority, cluster, parent)
        return
    count = draw.choice((1, 2, 2, 2, 3, 3, 4)) if levels == 1 else draw.choice((1, 2, 2, 3))
    yield composite(draw, name, namespace, count, parent)
    for letter in "abcd"[:count]:
        below = levels - 1 if draw.chance(0.75) else 0
        yield from branch(draw, f"{name}-{letter}", namespace, priority, below, cluster, name)


def composite(draw: Draw, name: str, namespace: str, count: int, parent: str) -> Json:
    """A CompositePodGroup of so many groups."""
    gang = {"gang": {"minGroupCount": draw.choice((count, count, max(1, count - 1), 1, count + draw.choice((0, 1))))}}
    made: Json = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": metadata(draw, name, namespace, "composite"),
        "spec": {
            "workloadRef": {"workloadName": "w", "templateName": "t"},
            "schedulingPolicy": gang if draw.chance(0.8) else {"basic": {}},
            "disruptionMode": {draw.choice(("single", "single", "all")): {}},
            "priority": draw.choice(HIGH),
        },
    }
    if draw.chance(0.5):
        topology = [{"key": draw.choice((ZONE, ZONE, RACK, RACK, HOSTNAME, "example.com/nowhere"))}]
        made["spec"]["schedulingConstraints"] = {"topology": topology}
    if parent:
        made["spec"]["parentCompositePodGroupName"] = parent
    return made


def metadata(draw: Draw, name: str, namespace: str, kind: str) -> Json:
    """Names, and when it was created: children are tried in that order."""
    created = f"2026-01-01T00:00:{draw.randrange(4):02}Z"
    return {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-of-{kind}-{namespace}-{name}",
        "creationTimestamp": created,
    }


def leaf(draw: Draw, name: str, namespace: str, priority: int, cluster: Cluster, parent: str) -> list[Json]:
    """A PodGroup that is part of a tree, unless it is missing, and its pods."""
    members = groups.members_of(draw, name, namespace, draw.choice((1, 1, 2, 2, 3, 4)), priority, cluster)
    placed = groups.placed_of(draw, name, namespace, priority, cluster) if draw.chance(0.1) else []
    members = members if draw.chance(0.9) or not placed else []
    groups.join([*members, *placed], name)
    made = groups.pod_group(draw, name, namespace, len([*members, *placed]), priority)
    made["metadata"] = metadata(draw, name, namespace, "group")
    made["spec"] |= {
        "parentCompositePodGroupName": parent,
        "workloadRef": {"workloadName": "w", "templateName": "t"},
    }
    return [*([made] if draw.chance(0.98) else []), *placed, *members]


def broken(draw: Draw, made: list[Json]) -> list[Json]:
    """The tree without a group that is above others, or with one that is below itself."""
    composites = [each for each in made if each["kind"] == "CompositePodGroup"]
    if draw.chance(0.5):
        made.remove(draw.choice(composites))
    else:
        composites[0]["spec"]["parentCompositePodGroupName"] = draw.choice(composites)["metadata"]["name"]
    return made


def running_pods(draw: Draw, cluster: Cluster) -> list[Json]:
    """Pods that may be in the way, some of them in trees that are disrupted at some level."""
    made = groups.running_pods(draw, cluster)
    for i in range(draw.choice((0, 1, 1, 2))):
        namespace, priority = draw.choice(("default", "team")), draw.choice(LOW)
        old = list(branch(draw, f"past-{i}", namespace, priority, draw.choice((1, 1, 2)), cluster))
        old[0]["spec"]["priority"] = priority
        for each in old:
            if each["kind"] == "Pod":
                each["spec"] |= {"nodeName": draw.choice(cluster.node_names), "priority": priority}
                each["spec"].pop("schedulingGates", None)
                each["status"]["phase"] = "Running"
        made += sorted(old, key=lambda each: each["metadata"]["name"])  # as they are on nodes
    return made


def set_policies(draw: Draw, objects: Sequence[Json]) -> None:
    """Let groups say whether they may preempt, and most pods in the cluster the same."""
    policy = draw.choice(("Never", "PreemptLowerPriority"))
    for each in objects:
        if each["kind"] in {"Pod", "PodGroup", "CompositePodGroup"} and draw.chance(0.98):
            each["spec"]["preemptionPolicy"] = policy
