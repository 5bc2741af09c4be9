"""Topics in which pods wait for one thing only, which others have: one change often lets one of them go.

The topics that verdicts are compared on are too colourful for that: their pods mostly have several reasons to wait.
"""

from typing import Final

from tests.conformance.generators import devices, spread, volumes
from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned

APP: Final = "web"
DISKS: Final = ("ssd", "hdd")
CLAIMS: Final = tuple(f"device-{i}" for i in range(6))
NAMESPACE: Final = "default"
GPU: Final = "accel.io/gpu"


class Room(Topic):
    """Nodes with room for every pod."""

    def dress_node(self, draw: Draw, node: Json) -> None:
        node["status"]["allocatable"] = {"cpu": "64", "memory": "1Ti", "pods": "110"}


class FewDevices(Topic):
    """A device or two on each node, and claims for one, some of which have it."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        names = ("gpu", "newer") if draw.chance(0.3) else ("gpu",)
        spec = {"extendedResourceName": GPU} if draw.chance(0.5) else {}
        made = [devices.named("DeviceClass", name, spec=dict(spec)) for name in names]
        for node in cluster.node_names:
            count = draw.choice((0, 1, 1, 2))
            pool = {"name": node, "generation": draw.choice((1, 1, 1, 2)), "resourceSliceCount": 1}
            held = [{"name": f"gpu-{i}"} for i in range(count)]
            content = {"driver": devices.GPU, "pool": pool, "nodeName": node, "devices": held}
            slices = (node, f"{node}-more")[: draw.choice((1, 1, 1, 2))]
            made += [devices.named("ResourceSlice", name, spec=content) for name in slices]
        return [*made, *(self._claim(draw, name, cluster) for name in CLAIMS if draw.chance(0.9))]

    def _claim(self, draw: Draw, name: str, cluster: Cluster) -> Json:
        mode = {"allocationMode": "All"} if draw.chance(0.2) else {"allocationMode": "ExactCount", "count": 1}
        request = {"name": "q0", "exactly": {"deviceClassName": "gpu", **mode}}
        made = devices.named("ResourceClaim", name, NAMESPACE, spec={"devices": {"requests": [request]}})
        if cluster.node_names and draw.chance(0.5):
            node = draw.choice(cluster.node_names)
            device = {"request": "q0", "driver": devices.GPU, "pool": node, "device": f"gpu-{draw.randint(0, 1)}"}
            made["status"] = {"allocation": {"devices": {"results": [device]}}}
        return made

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        pod["metadata"]["namespace"] = NAMESPACE
        if assigned(pod):
            return
        if draw.chance(0.3):
            amounts = {GPU: "1"}
            pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
        else:
            pod["spec"]["resourceClaims"] = [{"name": "r0", "resourceClaimName": draw.choice(CLAIMS)}]


class TightSpread(Topic):
    """Pods of one kind that must lie evenly, by their own constraints or by default, on the nodes that they select."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        service = spread.service(draw, APP, NAMESPACE)
        service["spec"] = {"selector": {spread.APP: draw.choice((APP, "other"))}}
        return [service] if draw.chance(0.8) else []

    def dress_node(self, draw: Draw, node: Json) -> None:
        if draw.chance(0.8):
            node["metadata"]["labels"]["disk"] = draw.choice(DISKS)

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        pod["metadata"] |= {"namespace": NAMESPACE, "labels": {spread.APP: APP if draw.chance(0.9) else "other"}}
        if assigned(pod):
            return
        if draw.chance(0.5):
            pod["spec"]["nodeSelector"] = {"disk": draw.choice(DISKS)}
        if draw.chance(0.6):
            constraint = self._constraint(draw) | {"labelSelector": {"matchLabels": {spread.APP: APP}}}
            pod["spec"]["topologySpreadConstraints"] = [constraint]

    def arguments(self, draw: Draw) -> dict[str, Json]:
        if draw.chance(0.3):
            return {}
        return {"PodTopologySpread": {"defaultingType": "List", "defaultConstraints": [self._constraint(draw)]}}

    def _constraint(self, draw: Draw) -> Json:
        made: Json = {
            "maxSkew": 1,
            "topologyKey": draw.choice((spread.HOSTNAME, spread.ZONE)),
            "whenUnsatisfiable": "DoNotSchedule",
        }
        if draw.chance(0.3):
            made["minDomains"] = draw.choice((2, 3))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if draw.chance(0.5):
                made[policy] = draw.choice(("Honor", "Ignore"))
        return made


class SharedStorage(Topic):
    """Disks that one pod may use, a claim that one pod may use, and claims that are bound to a volume of a zone."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        claim = volumes.claim(draw, NAMESPACE, "data")
        claim["spec"] |= {"accessModes": [draw.choice(("ReadWriteOncePod", "ReadWriteOnce"))], "volumeName": "pv-data"}
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        volume = volumes.volume(draw, "pv-data")
        return [claim, volume, *(volumes.csi_node(draw, name) for name in cluster.node_names if draw.chance(0.6))]

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        pod["metadata"]["namespace"] = draw.choice((NAMESPACE, NAMESPACE, "team"))
        disk = {"name": "disk", "gcePersistentDisk": {"pdName": draw.choice(("a", "b"))}}
        data = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        pod["spec"]["volumes"] = [data] if pod["metadata"]["namespace"] == NAMESPACE and draw.chance(0.5) else [disk]


TOPICS: Final = (FewDevices(), TightSpread(), SharedStorage())
