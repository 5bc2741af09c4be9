"""Devices that stand for resources of their node, or cost some."""

from collections.abc import Sequence
from typing import Final

from tests.conformance.generators.devices import named
from tests.conformance.generators.resources import HUGEPAGES
from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned, containers

AMOUNTS: Final = "DRANodeAllocatableResources"
DRIVER, MEMORY = "cores.example.com", "cores.example.com/memory"
CLAIMS: Final = tuple(f"amounts-{i}" for i in range(6))
OVERHEADS: Final = {
    "cpu": ("100m", "0.5", "1", "2", "0"),
    "memory": ("256Mi", "1Gi", "500M", "1e9", "1.5"),
    "ephemeral-storage": ("1Gi", "30G"),
    HUGEPAGES: ("2Mi", "64Mi"),
}
MULTIPLIERS: Final = ("1", "2", "500m", "1.5", "1Ki")


class GatedAmounts(Topic):
    """A pool of devices on most nodes, and one for all of them."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        made = [named("DeviceClass", "cores", spec={})]
        made += [
            pool(draw, f"cores-{node}", draw.randint(1, 4), {"nodeName": node})
            for node in cluster.node_names
            if draw.chance(0.8)
        ]
        if draw.chance(0.3):
            made.append(pool(draw, "cores-of-all", 2, {"allNodes": True}))
        if draw.chance(0.3) and cluster.node_names:
            made.append(pool(draw, "cores-of-some", 3, {"perDeviceNodeSelection": True}, cluster.node_names))
        return [*made, *(claim(draw, name, cluster) for name in CLAIMS)]

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        pod["metadata"]["namespace"] = "default"
        own = [{"name": f"a{i}", "resourceClaimName": name} for i, name in enumerate(draw.several(CLAIMS, most=2))]
        pod["spec"]["resourceClaims"] = own
        for container in containers(pod):
            if draw.chance(0.6):
                used = [{"name": each["name"]} for each in draw.several(own, most=2)]
                container.setdefault("resources", {})["claims"] = used
        if draw.chance(0.5 if assigned(pod) else 0.05):
            pod["status"]["nodeAllocatableResourceClaimStatuses"] = [written(draw, pod)]
        if assigned(pod):
            return
        pod["status"].pop("nominatedNodeName", None)
        if "resources" in pod["spec"] or draw.chance(0.1):
            as_a_whole(draw, pod)


def pool(draw: Draw, name: str, size: int, place: Json, nodes: Sequence[str] = ()) -> Json:
    devices = [device(draw, i) for i in range(size)]
    for each in devices if nodes else ():
        each |= draw.choice(({"allNodes": True}, {"nodeName": draw.choice(nodes)}))
    spec = {"driver": DRIVER, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}, "devices": devices}
    return named("ResourceSlice", name, spec=spec | place)


def device(draw: Draw, number: int) -> Json:
    made: Json = {"name": f"core-{number}", "capacity": {MEMORY: {"value": "4Gi"}}}
    if draw.chance(0.5):
        made["allowMultipleAllocations"] = True
        made["capacity"][MEMORY]["requestPolicy"] = {"default": "1Gi", "validRange": {"min": "512Mi"}}
    amounts: Json = {}
    if draw.chance(0.5):
        amounts["cpu"] = {"mapping": {"deviceMultiplier": draw.choice(("1", "2", "500m", "1.5"))}}
    if "allowMultipleAllocations" in made and draw.chance(0.5):
        multiplier = {"capacityMultiplier": draw.choice(MULTIPLIERS)}
        amounts["memory"] = {"mapping": {"capacityKey": MEMORY, **multiplier}}
    for name in draw.some(tuple(OVERHEADS), most=2):
        amounts.setdefault(name, {})["overhead"] = {
            key: draw.choice(OVERHEADS[name]) for key in draw.several(("perPod", "perContainer"), most=2)
        }
    if amounts and draw.chance(0.85):
        made["nodeAllocatableResources"] = amounts
    return made


def claim(draw: Draw, name: str, cluster: Cluster) -> Json:
    exactly: Json = {"deviceClassName": "cores", "allocationMode": "ExactCount", "count": draw.choice((1, 1, 2, 3))}
    if draw.chance(0.3):
        exactly["capacity"] = {"requests": {MEMORY: draw.choice(("1Gi", "2Gi", "1500M", "0.7Gi"))}}
    made = named("ResourceClaim", name, "default", spec={"devices": {"requests": [{"name": "q", "exactly": exactly}]}})
    if draw.chance(0.4) and cluster.node_names:
        made["status"] = {"allocation": taken(draw, cluster, may_be_wrong=name == CLAIMS[-1])}
        if draw.chance(0.4):
            other = {"resource": "pods", "name": "other", "uid": "other"}
            made["status"]["reservedFor"] = [other]
    return made


def taken(draw: Draw, cluster: Cluster, *, may_be_wrong: bool) -> Json:
    """Devices that a claim has; by mistake of two nodes, or without their capacity. One claim alone may be wrong:
    kube-scheduler reports any of several."""
    node = draw.choice(cluster.node_names)
    pools = [f"cores-{node}"]
    if may_be_wrong and draw.chance(0.3):
        pools.append(draw.choice(("cores-of-all", "cores-of-some", f"cores-{draw.choice(cluster.node_names)}")))
    results: list[Json] = [{"request": "q", "driver": DRIVER, "pool": each, "device": "core-0"} for each in pools]
    for each in results:
        if not may_be_wrong or draw.chance(0.7):
            each["consumedCapacity"] = {MEMORY: draw.choice(("1Gi", "2Gi", "1536Mi", "1e9"))}
    allocation: Json = {"devices": {"results": results}}
    if draw.chance(0.5):
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    return allocation


def written(draw: Draw, pod: Json) -> Json:
    """What the status of a pod says that it takes by a claim."""
    names = [each["name"] for each in containers(pod)]
    made: Json = {"resourceClaimName": pod["spec"]["resourceClaims"][0]["resourceClaimName"]}
    if draw.chance(0.7):
        made["containers"] = draw.several(names, most=len(names))
    if draw.chance(0.7):
        made["mapping"] = [{"name": name, "quantity": draw.choice(OVERHEADS[name])} for name in ("cpu", "memory")]
    if draw.chance(0.5):
        name = draw.choice(tuple(OVERHEADS))
        kinds = draw.several(("perPod", "perContainer"), most=2)
        made["overhead"] = [{"name": name} | {key: draw.choice(OVERHEADS[name]) for key in kinds}]
    return made


def as_a_whole(draw: Draw, pod: Json) -> None:
    """Have the pod ask for one resource as a whole: kube-scheduler names any of several that are not enough."""
    for container in containers(pod):
        container.get("resources", {}).pop("requests", None)
        container.get("resources", {}).pop("limits", None)
    name, amounts = draw.choice((("cpu", ("1", "3", "5")), ("memory", ("1Gi", "4Gi")), (HUGEPAGES, ("4Mi", "64Mi"))))
    amount = {name: draw.choice(amounts)}
    pod["spec"]["resources"] = {"requests": amount, "limits": amount}
    limited = draw.choice(containers(pod))
    small = {"cpu": "500m", "memory": "512Mi", HUGEPAGES: "4Mi"}[name]
    most = small if name == HUGEPAGES else draw.choice((small, amount[name]))
    limited.setdefault("resources", {}).update(requests={name: small}, limits={name: most})
