"""In-place resize: the status of a running pod says something else than its spec."""

from typing import Final

from tests.conformance.generators.resources import CPU, MEMORY
from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned

PENDING: Final = ("Infeasible", "Deferred")


class Resize(Topic):
    """Allocated and actuated resources, and the condition of a resize that waits."""

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        if not assigned(pod) or not draw.chance(0.5):
            return
        status = pod["status"]
        status["containerStatuses"] = [container_status(draw, c) for c in pod["spec"]["containers"] if draw.chance(0.8)]
        if "initContainers" in pod["spec"]:
            status["initContainerStatuses"] = [container_status(draw, c) for c in pod["spec"]["initContainers"]]
        if "resources" in pod["spec"] and draw.chance(0.7):
            status["resources"] = {"requests": some_resources(draw)}
            status["allocatedResources"] = some_resources(draw)
        if draw.chance(0.5):
            condition = {"type": "PodResizePending", "status": "True", "reason": draw.choice(PENDING)}
            status["conditions"] = [{"type": "PodResizeInProgress", "status": "True"}, condition]


def container_status(draw: Draw, container: Json) -> Json:
    """Without `resources` the kubelet has not reported yet, and then `allocatedResources` counts for nothing."""
    status: Json = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": True,
        "restartCount": 0,
    }
    if draw.chance(0.8):
        status["allocatedResources"] = some_resources(draw)
    if draw.chance(0.8):
        status["resources"] = {"requests": some_resources(draw)}
    return status


def some_resources(draw: Draw) -> Json:
    """cpu, memory or both: nothing else can be resized."""
    both = {"cpu": draw.choice(CPU), "memory": draw.choice(MEMORY)}
    return {name: both[name] for name in draw.several(("cpu", "memory"), most=2)}
