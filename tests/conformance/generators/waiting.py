"""What makes a pod wait or yield: gates, priorities, nominations, deletion."""

from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned

PRIORITIES: Final = (0, 0, 10, 1000, -5, 2_000_000_000)


class Waiting(Topic):
    """Pods with a history."""

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        if draw.chance(0.7):
            pod["spec"]["priority"] = draw.choice(PRIORITIES)
        if draw.chance(0.05):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            pod["metadata"]["deletionGracePeriodSeconds"] = 30
        if assigned(pod):
            if draw.chance(0.1):
                pod["status"]["phase"] = draw.choice(("Succeeded", "Failed"))
        elif draw.chance(0.1):
            pod["spec"]["schedulingGates"] = [{"name": f"example.com/gate-{i}"} for i in range(draw.randint(1, 2))]
        elif draw.chance(0.35):
            pod["status"]["nominatedNodeName"] = draw.choice((*cluster.node_names, "gone"))
