"""What makes pods take other pods' places: full nodes, priorities, policies and disruption budgets."""

from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned

APPS: Final = ("web", "db", "cache")
LOW: Final = (0, 0, 0, 1, 1, 10, 10, 1000, -5, -2_147_483_648)
HIGH: Final = (1, 10, 10, 100, 1000, 1000, 2_000_000_000, 0)


class Preemption(Topic):
    """Small nodes, and pods that are not all equally important."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        return [budget(draw, f"budget-{i}") for i in range(draw.choice((0, 0, 1, 2, 3)))]

    def dress_node(self, draw: Draw, node: Json) -> None:
        if draw.chance(0.85):
            amounts = {"cpu": draw.choice(("1", "1500m", "2", "3")), "pods": draw.choice(("1", "2", "3", "4", "110"))}
            for kind in ("allocatable", "capacity"):
                node["status"].setdefault(kind, {}).update(amounts)

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        spec, status = pod["spec"], pod["status"]
        if draw.chance(0.9):
            pod["metadata"].setdefault("labels", {}).setdefault("app", draw.choice(APPS))
        if draw.chance(0.9):
            spec["priority"] = draw.choice(LOW if assigned(pod) else HIGH)
        if not assigned(pod):
            if draw.chance(0.15):
                spec["preemptionPolicy"] = draw.choice(("Never", "PreemptLowerPriority"))
            if draw.chance(0.2):
                status["nominatedNodeName"] = draw.choice((*cluster.node_names, "gone"))
        elif draw.chance(0.12):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            pod["metadata"]["deletionGracePeriodSeconds"] = 30
            if draw.chance(0.7):
                status["conditions"] = [target(draw)]

    def arguments(self, draw: Draw) -> dict[str, Json]:
        found: Json = {}
        if draw.chance(0.3):
            found["minCandidateNodesAbsolute"] = draw.choice((1, 2, 3, 7, 1000))
        if draw.chance(0.3):
            least = 0 if found else 1
            found["minCandidateNodesPercentage"] = max(least, draw.choice((0, 10, 40, 100)))
        return {"DefaultPreemption": found} if found else {}


def target(draw: Draw) -> Json:
    """The condition of a pod that is evicted, usually by a preemption."""
    reason = draw.choice(("PreemptionByScheduler", "PreemptionByScheduler", "EvictionByEvictionAPI"))
    return {
        "type": "DisruptionTarget",
        "status": draw.choice(("True", "True", "False")),
        "reason": reason,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def budget(draw: Draw, name: str) -> Json:
    """A PodDisruptionBudget. Of an empty selector the API server says that it selects all pods; the scheduler, none."""
    selector: Json = {}
    if draw.chance(0.8):
        selector["matchLabels"] = {"app": draw.choice(APPS)}
    elif draw.chance(0.8):
        values = draw.several(APPS, most=2)
        selector["matchExpressions"] = [{"key": "app", "operator": draw.choice(("In", "NotIn")), "values": values}]
    status: Json = {
        "disruptionsAllowed": draw.choice((0, 0, 0, 1, 2)),
        "currentHealthy": 3,
        "desiredHealthy": 1,
        "expectedPods": 3,
    }
    if draw.chance(0.3):
        names = draw.several([f"running-{i}" for i in range(12)], most=4)
        status["disruptedPods"] = dict.fromkeys(names, "2026-01-01T00:00:00Z")
    spec: Json = {"minAvailable": 1}
    if draw.chance(0.95):
        spec["selector"] = selector
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": draw.choice(("default", "default", "team")), "uid": f"uid-of-{name}"},
        "spec": spec,
        "status": status,
    }
