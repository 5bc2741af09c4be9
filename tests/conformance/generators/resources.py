"""Requests and allocatable, in every notation and place that the API allows."""

from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, containers

EXTENDED: Final = ("example.com/gpu", "example.com/fpga", "vendor.io/nic")
HUGEPAGES: Final = "hugepages-2Mi"
SCORED: Final = ("cpu", "memory", "ephemeral-storage", HUGEPAGES, *EXTENDED)

CPU: Final = ("100m", "250m", "0.1", "0.5", "1", "1500m", "2", 1, "3e-1", "750m")
MEMORY: Final = (
    "64Mi",
    "256Mi",
    "1Gi",
    "1.5Gi",
    "2G",
    "1e9",
    "500M",
    "0.25Gi",
    100_000_000,
    "1e3",
    "100m",
    "128974848",
)
STORAGE: Final = ("1Gi", "5G", "10Gi", "0.5Gi")
SMALL_CPU: Final = ("100m", "0.1", "200m", "50m")
SMALL_MEMORY: Final = ("64Mi", "1e6", "32M", "10000000")

NODE_CPU: Final = ("2", "4", "3500m", "7.5", "8", "16", "0.5", 64, "1e1", "3920m")
NODE_MEMORY: Final = ("4Gi", "8Gi", "7.5Gi", "16e9", "32Gi", "1Ti", "3977456Ki", "16000000000")
NODE_PODS: Final = ("110", "110", "110", "110", "20", 8, "3", "1", "0")
HUGE: Final = ("8E", "12E", "9223372036854775807", "1e18")


class Resources(Topic):
    """cpu, memory, storage, huge pages and extended resources."""

    def dress_node(self, draw: Draw, node: Json) -> None:
        allocatable: Json = {
            "cpu": draw.choice(NODE_CPU),
            "memory": draw.choice(NODE_MEMORY),
            "pods": draw.choice(NODE_PODS),
        }
        if draw.chance(0.6):
            allocatable["ephemeral-storage"] = draw.choice(("100Gi", "50e9", "20Gi"))
        if draw.chance(0.4):
            allocatable[HUGEPAGES] = draw.choice(("64Mi", "1Gi", "0"))
        for name in draw.some(EXTENDED, most=3):
            allocatable[name] = draw.choice(("4", "8", 2, "1", "0", "1e3"))
        if draw.chance(0.03):
            allocatable[draw.choice(("memory", *EXTENDED))] = draw.choice(HUGE)
        if draw.chance(0.04):
            del allocatable[draw.choice(tuple(allocatable))]
        node["status"]["allocatable"] = allocatable
        node["status"]["capacity"] = dict(allocatable)

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        at_pod_level = draw.chance(0.15)
        for container in containers(pod):
            resources = small_requests(draw) if at_pod_level else requests(draw)
            if resources:
                container["resources"] = resources
        if at_pod_level:
            pod["spec"]["resources"] = pod_level(draw)
        if draw.chance(0.1):
            pod["spec"]["overhead"] = {"cpu": draw.choice(("250m", "0.1")), "memory": draw.choice(("120Mi", "1e8"))}

    def arguments(self, draw: Draw) -> dict[str, Json]:
        found = {}
        if draw.chance(0.6):
            found["NodeResourcesFit"] = fit_arguments(draw)
        if draw.chance(0.4):
            names = draw.several(SCORED, most=4)
            found["NodeResourcesBalancedAllocation"] = {"resources": [{"name": name, "weight": 1} for name in names]}
        return found


def requests(draw: Draw) -> Json:
    """Requests of a container as an API server stores them: what has a limit has a request."""
    wanted: Json = {}
    limits: Json = {}
    if draw.chance(0.75):
        wanted["cpu"] = draw.choice(CPU)
    if draw.chance(0.7):
        wanted["memory"] = draw.choice(MEMORY)
    if draw.chance(0.15):
        wanted["ephemeral-storage"] = draw.choice(STORAGE)
    if draw.chance(0.1):
        wanted[draw.choice(("cpu", "memory"))] = draw.choice(("0", 0))
    if draw.chance(0.15):
        limits |= dict(wanted)
    if draw.chance(0.15):
        limits[draw.choice(EXTENDED)] = draw.choice(("1", 2, "3", "0", "1e0"))
    if draw.chance(0.06) and wanted.keys() & {"cpu", "memory"}:
        limits[HUGEPAGES] = draw.choice(("2Mi", "64Mi", "16Mi"))
    if draw.chance(0.02):
        wanted["memory"] = draw.choice(("1e15", "100T", "1E"))
        limits.pop("memory", None)
    wanted |= limits
    return {key: value for key, value in (("requests", wanted), ("limits", limits)) if value}


def small_requests(draw: Draw) -> Json:
    """Requests that stay below what `pod_level` asks for, as the API demands of their sum."""
    wanted = {}
    if draw.chance(0.5):
        wanted["cpu"] = draw.choice(SMALL_CPU)
    if draw.chance(0.5):
        wanted["memory"] = draw.choice(SMALL_MEMORY)
    if draw.chance(0.1):
        wanted["ephemeral-storage"] = draw.choice(STORAGE)
    return {"requests": wanted} if wanted else {}


def pod_level(draw: Draw) -> Json:
    """Pod-level resources. With limits the API server defaults requests, so then all of them are there.

    No fraction with a binary suffix here: kube-scheduler 1.36.3 adds the pod's overhead into such a quantity of the
    pod's spec itself, so its verdict changes every time it looks at the pod (`PodRequests` adds to a map entry that
    shares its big decimal with the spec). An API server never hands one out, it writes 1536Mi for 1.5Gi.
    """
    wanted = {"cpu": draw.choice(("2", "2500m", 3)), "memory": draw.choice(("1Gi", "2e9", "1536Mi"))}
    if draw.chance(0.3):
        wanted[HUGEPAGES] = draw.choice(("4Mi", "32Mi"))
        return {"requests": wanted, "limits": wanted}
    if draw.chance(0.4):
        return {"requests": wanted, "limits": {"cpu": "4", "memory": "3Gi"}}
    if draw.chance(0.3):
        del wanted[draw.choice(("cpu", "memory"))]
    return {"requests": wanted}


def fit_arguments(draw: Draw) -> Json:
    """NodeResourcesFitArgs."""
    found: Json = {}
    if draw.chance(0.3):
        found["ignoredResources"] = draw.several((*EXTENDED, "cpu"), most=2)
    if draw.chance(0.25):
        found["ignoredResourceGroups"] = draw.several(("example.com", "vendor.io", "absent.io"), most=2)
    if draw.chance(0.85):
        kind = draw.choice(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
        strategy: Json = {"type": kind}
        if draw.chance(0.7):
            names = draw.several(SCORED, most=4)
            strategy["resources"] = [{"name": name, "weight": draw.choice((1, 1, 2, 5, 100, 0))} for name in names]
        if kind == "RequestedToCapacityRatio":
            strategy["requestedToCapacityRatio"] = {"shape": shape(draw)}
        found["scoringStrategy"] = strategy
    return found


def shape(draw: Draw) -> list[Json]:
    """Points of a broken line: utilization increases, scores need not."""
    points = sorted(draw.several((0, 1, 20, 33, 50, 70, 99, 100), most=4))
    return [{"utilization": point, "score": draw.randint(0, 10)} for point in points]
