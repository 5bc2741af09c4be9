"""Devices: classes, slices of pools, claims, and pods that have claims."""

from collections.abc import Sequence
from typing import Any, Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned, containers

GPU, NIC, SHARED, PARTS = "gpu.example.com", "nic.example.com", "shared.example.com", "parts.example.com"
NAMESPACES: Final = ("default", "team")
CLAIMS: Final = tuple(f"claim-{i}" for i in range(7))
MODELS: Final = ("A100", "H100", "T4")
CLASSES: Final = ("gpu", "gpu", "big-gpu", "nic", "shared", "parts", "anything", "configured")
IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
EXPLICIT: Final = {
    "gpu": "accel.io/gpu",
    "nic": "accel.io/nic",
    "big-gpu": "accel.io/big",
    "parts": "accel.io/part",
    "anything": "accel.io/any",
}
"""Class → the extended resource that it names, most of the time."""

UNSELECTIVE: Final = ("accel.io/any", IMPLICIT_PREFIX + "anything")
"""Resources of a class without selectors. NodeResourcesBalancedAllocation may balance no others: kube-scheduler 1.36.3
crashes with others."""

TAINT: Final = {"key": "example.com/broken", "value": "yes", "effect": "NoSchedule"}
EXPRESSIONS: Final = (
    f'device.driver == "{GPU}"',
    f'device.attributes["{GPU}"].model == "A100"',
    f'device.attributes["{GPU}"].model in ["A100", "H100"]',
    f'"cores" in device.attributes["{GPU}"] && device.attributes["{GPU}"].cores > 40',
    f'device.capacity["{GPU}"].memory.compareTo(quantity("30Gi")) >= 0',
    f'device.capacity["{GPU}"].memory.isGreaterThan(quantity("100Gi"))',
    f'device.attributes["{GPU}"].version.isLessThan(semver("2.0.0"))',
    f'has(device.attributes["{GPU}"].fast) && device.attributes["{GPU}"].fast',
    f'device.attributes["absent.example.com"].x == 1 || device.driver != "{NIC}"',
    '"absent" in device.attributes["absent.example.com"]',
    '!("absent.example.com" in device.attributes)',
    f'cel.bind(d, device.attributes["{GPU}"], has(d.model) && d.model.startsWith("A"))',
    "device.allowMultipleAllocations",
    f'device.attributes["{GPU}"].fast',
)


def selectors(draw: Draw, most: int = 2) -> list[Json]:
    """Expressions that hold for some devices and now and then fail for one."""
    return [{"cel": {"expression": expression}} for expression in draw.some(EXPRESSIONS, most)]


class Devices(Topic):
    """resource.k8s.io in all that is on by default."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        return [*classes(draw), *slices(draw, cluster.node_names), *claims(draw, cluster.node_names)]

    def dress_node(self, draw: Draw, node: Json) -> None:
        if draw.chance(0.15):
            name = draw.choice((*EXPLICIT.values(), *(IMPLICIT_PREFIX + each for each in EXPLICIT)))
            amounts = {name: draw.choice(("0", "0", "1", "4"))}
            for field in ("allocatable", "capacity"):
                node["status"].setdefault(field, {}).update(amounts)

    def arguments(self, draw: Draw) -> dict[str, Json]:
        if not draw.chance(0.3):
            return {}
        fit = draw.several((*EXPLICIT.values(), IMPLICIT_PREFIX + "gpu", "cpu"), 3)
        kind = draw.choice(("LeastAllocated", "MostAllocated"))
        return {
            "NodeResourcesFit": {"scoringStrategy": {"type": kind, "resources": weighed(fit)}},
            "NodeResourcesBalancedAllocation": {"resources": weighed(draw.several(("cpu", *UNSELECTIVE), 3))},
        }

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        if draw.chance(0.35):
            extended_requests(draw, pod)
        if draw.chance(0.25 if not assigned(pod) else 0.6):
            return
        found: list[Json] = []
        statuses: list[Json] = []
        for i in range(draw.choice((1, 1, 1, 2, 3))):
            entry: Json = {"name": f"r{i}"}
            if draw.chance(0.2):
                entry["resourceClaimTemplateName"] = "template"
                if draw.chance(0.9):
                    name = None if draw.chance(0.1) else f"{pod['metadata']['name']}-own"
                    statuses.append({"name": entry["name"]} | ({"resourceClaimName": name} if name else {}))
            else:
                entry["resourceClaimName"] = draw.choice(CLAIMS)
            found.append(entry)
        pod["spec"]["resourceClaims"] = found
        # Should kube-scheduler hear of the pod before its claims, the pod is gated and its nomination does not count.
        pod["status"].pop("nominatedNodeName", None)
        if statuses:
            pod["status"]["resourceClaimStatuses"] = statuses


def weighed(names: Sequence[str]) -> list[Json]:
    """Resources that count in a score, all the same."""
    return [{"name": name, "weight": 1} for name in names]


def named(kind: str, name: str, namespace: str = "", **content: Any) -> Json:
    """An object of resource.k8s.io/v1."""
    metadata = {"name": name, "uid": f"{kind}-{namespace}-{name}"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, **content}


def classes(draw: Draw) -> list[Json]:
    """A class for each driver, some others; now and then one is missing."""
    by_driver = {"gpu": GPU, "nic": NIC, "shared": SHARED, "parts": PARTS, "configured": GPU}
    found = []
    for name in sorted(set(CLASSES)):
        spec: Json = {}
        if name in by_driver:
            spec["selectors"] = [{"cel": {"expression": f'device.driver == "{by_driver[name]}"'}}]
        if name == "big-gpu":
            both = f'device.driver == "{GPU}" && device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
            spec["selectors"] = [{"cel": {"expression": both}}]
        if name == "configured":
            spec["config"] = [opaque(GPU, i) for i in range(draw.randint(1, 2))]
        if name in EXPLICIT and draw.chance(0.8):
            spec["extendedResourceName"] = EXPLICIT[name]
        if not draw.chance(0.04):
            found.append(named("DeviceClass", name, spec=spec))
    if draw.chance(0.15):
        # Newer than another class of that name. Nobody asks for that one by its implicit name, as whether it has one
        # depends on the order in which kube-scheduler learns of the two.
        newer = named("DeviceClass", "newer", spec={"extendedResourceName": EXPLICIT["nic"]})
        newer["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        found.append(newer)
    return found


def extended_requests(draw: Draw, pod: Json) -> None:
    """Ask for extended resources in some containers; a limit is a request."""
    names = (
        *EXPLICIT.values(),
        IMPLICIT_PREFIX + "gpu",
        IMPLICIT_PREFIX + "shared",
        IMPLICIT_PREFIX + "newer",
        *UNSELECTIVE,
    )
    chosen = draw.several(names, 2)
    for container in containers(pod):
        if draw.chance(0.6):
            wanted = {name: draw.choice(("1", "1", "2", "3", "0", 1)) for name in draw.some(chosen, 2)}
            if draw.chance(0.02):
                wanted = dict.fromkeys(wanted, draw.choice(("33", "1000000", "9223372036854775807")))
            resources = container.setdefault("resources", {})
            for field in ("requests", "limits"):
                if wanted:
                    resources.setdefault(field, {}).update(wanted)


def opaque(driver: str, number: int) -> Json:
    return {"opaque": {"driver": driver, "parameters": {"kind": "Config", "number": number}}}


def slices(draw: Draw, nodes: Sequence[str]) -> list[Json]:
    """Pools: GPUs on most nodes, the others here and there."""
    found: list[Json] = []
    for node in nodes:
        if draw.chance(0.75):
            found += gpu_pool(draw, node)
        if draw.chance(0.25):
            found += parts_pool(draw, node)
    if draw.chance(0.6):
        found += nic_pool(draw)
    if draw.chance(0.5):
        found += shared_pool(draw, nodes)
    return found


def pool_slices(draw: Draw, driver: str, pool: str, place: Json, parts: Sequence[Sequence[Json]]) -> list[Json]:
    """The slices of a pool, now and then with an old generation beside it or one that is missing."""
    made = [
        named(
            "ResourceSlice",
            f"{pool}-{i}-{driver}",
            spec={
                "driver": driver,
                "pool": {"name": pool, "generation": 2, "resourceSliceCount": len(parts)},
                **place,
                "devices": devices,
            },
        )
        for i, devices in enumerate(parts)
    ]
    if draw.chance(0.08):
        old = draw.choice((1, 3))
        pool_of = {"name": pool, "generation": old, "resourceSliceCount": 1}
        devices = [gpu(draw, "of-another-generation")]
        made.append(
            named(
                "ResourceSlice",
                f"{pool}-old-{driver}",
                spec={"driver": driver, "pool": pool_of, **place, "devices": devices},
            )
        )
    if draw.chance(0.06):
        made.pop(0)
    draw.shuffle(made)
    return made


def gpu_pool(draw: Draw, node: str) -> list[Json]:
    names = [f"gpu-{i}" for i in range(draw.choice((1, 2, 2, 4, 8)))]
    if draw.chance(0.04):
        names.append("gpu-0")
    devices = [gpu(draw, name) for name in names]
    cut = draw.randint(0, len(devices)) if draw.chance(0.3) else len(devices)
    parts = [part for part in (devices[:cut], devices[cut:]) if part]
    return pool_slices(draw, GPU, draw.choice((node, f"pool-{node}")), {"nodeName": node}, parts)


def gpu(draw: Draw, name: str) -> Json:
    attributes: Json = {"model": {"string": draw.choice(MODELS)}}
    if draw.chance(0.7):
        attributes["numa"] = {"int": draw.randint(0, 1)}
    if draw.chance(0.7):
        attributes[f"{GPU}/cores"] = {"int": draw.choice((16, 64))}
    if draw.chance(0.6):
        attributes["version"] = {"version": draw.choice(("1.2.0", "2.0.0-rc.1", "2.0.0", "10.0.0"))}
    if draw.chance(0.5):
        attributes["fast"] = {"bool": draw.chance(0.6)}
    if draw.chance(0.5):
        attributes["fabric.example.com/rail"] = {"string": draw.choice(("r1", "r2"))}
    made: Json = {"name": name, "attributes": attributes}
    if draw.chance(0.8):
        made["capacity"] = {"memory": {"value": draw.choice(("20Gi", "40Gi", "80Gi"))}}
    if draw.chance(0.1):
        made["taints"] = [TAINT | {"effect": draw.choice(("NoSchedule", "NoExecute", "None"))}]
    if draw.chance(0.04):
        made["bindingConditions"] = ["example.com/attached"]
        made["bindingFailureConditions"] = ["example.com/failed"]
        made["bindsToNode"] = draw.chance(0.5)
    return made


def nic_pool(draw: Draw) -> list[Json]:
    """For all nodes, or for those of some zones, as a whole or device by device."""
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": draw.several(("zone-a", "zone-b"), 2)}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    devices: list[Json] = [
        {"name": f"nic-{i}", "attributes": {"fabric.example.com/rail": {"string": draw.choice(("r1", "r2"))}}}
        for i in range(draw.randint(1, 5))
    ]
    form = draw.choice(("all", "selector", "each"))
    if form == "each":
        for device in devices:
            device |= draw.choice(({"allNodes": True}, {"nodeSelector": selector}, {"nodeName": "n001"}))
        return pool_slices(draw, NIC, "nics", {"perDeviceNodeSelection": True}, [devices])
    place = {"allNodes": True} if form == "all" else {"nodeSelector": selector}
    return pool_slices(draw, NIC, "nics", place, [devices])


def shared_pool(draw: Draw, nodes: Sequence[str]) -> list[Json]:
    """Devices with a capacity that several claims share."""
    policies: Sequence[Json] = (
        {},
        {"requestPolicy": {"default": "1Gi"}},
        {"requestPolicy": {"default": "2Gi", "validValues": ["2Gi", "4Gi", "8Gi"]}},
        {"requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "max": "6Gi", "step": "1Gi"}}},
    )
    devices = [
        {
            "name": f"shared-{i}",
            "allowMultipleAllocations": draw.chance(0.8),
            "capacity": {"memory": {"value": draw.choice(("4Gi", "10Gi"))} | draw.choice(policies)},
        }
        for i in range(draw.randint(1, 3))
    ]
    place = {"nodeName": draw.choice(nodes)} if nodes and draw.chance(0.3) else {"allNodes": True}
    return pool_slices(draw, SHARED, "shared", place, [devices])


def parts_pool(draw: Draw, node: str) -> list[Json]:
    """Devices that are parts of one piece of hardware, which its counters say."""
    counters = {"name": "chip", "counters": {"slots": {"value": "4"}, "memory": {"value": "40Gi"}}}
    sizes = ((1, "10Gi"), (1, "10Gi"), (2, "20Gi"), (4, "40Gi"))
    devices = [
        {
            "name": f"part-{i}",
            "attributes": {"slots": {"int": slots}},
            "consumesCounters": [
                {"counterSet": "chip", "counters": {"slots": {"value": str(slots)}, "memory": {"value": memory}}}
            ],
        }
        for i, (slots, memory) in enumerate(draw.several(sizes, 4))
    ]
    pool = {"name": f"chip-{node}", "generation": 1, "resourceSliceCount": 2}
    of_all = {"driver": PARTS, "pool": pool, "nodeName": node}
    return [
        named("ResourceSlice", f"{node}-counters", spec=of_all | {"sharedCounters": [counters]}),
        named("ResourceSlice", f"{node}-parts", spec=of_all | {"devices": devices}),
    ]


def claims(draw: Draw, nodes: Sequence[str]) -> list[Json]:
    """The claims that pods name, in both namespaces, and those made from a template."""
    found = []
    for namespace in NAMESPACES:
        found += [claim(draw, name, namespace, nodes) for name in CLAIMS if draw.chance(0.95)]
        for i in range(8):
            pod = f"waiting-{i}"
            made = claim(draw, f"{pod}-own", namespace, nodes)
            uid = f"uid-of-{pod}" if draw.chance(0.9) else "another"
            owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}
            made["metadata"]["ownerReferences"] = [owner]
            found.append(made)
    return found


def claim(draw: Draw, name: str, namespace: str, nodes: Sequence[str]) -> Json:
    requests = [request(draw, f"q{i}") for i in range(draw.choice((1, 1, 1, 2, 2, 3)))]
    devices: Json = {"requests": requests}
    names = [each["name"] for each in requests]
    if draw.chance(0.3):
        kind = draw.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
        attribute = draw.choice((f"{GPU}/model", f"{GPU}/numa", "fabric.example.com/rail"))
        devices["constraints"] = [
            {kind: attribute} | ({"requests": draw.several(names, 3)} if draw.chance(0.5) else {})
        ]
    if draw.chance(0.25):
        devices["config"] = [
            opaque(GPU, i) | ({"requests": draw.several(names, 2)} if draw.chance(0.6) else {})
            for i in range(draw.randint(1, 2))
        ]
    made = named("ResourceClaim", name, namespace, spec={"devices": devices})
    if draw.chance(0.15):
        made["status"] = allocated(draw, nodes)
    if draw.chance(0.03):
        made["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/keep"]}
    return made


def request(draw: Draw, name: str) -> Json:
    if draw.chance(0.25):
        alternatives = [{"name": f"s{i}"} | wish(draw, admin=False) for i in range(draw.randint(1, 3))]
        return {"name": name, "firstAvailable": alternatives}
    return {"name": name, "exactly": wish(draw, admin=True)}


def wish(draw: Draw, *, admin: bool) -> Json:
    """What an exact request and an alternative have in common."""
    made: Json = {"deviceClassName": draw.choice(CLASSES) if draw.chance(0.97) else "unheard-of"}
    if draw.chance(0.15):
        made["allocationMode"] = "All"
    else:
        made |= {
            "allocationMode": "ExactCount",
            "count": draw.choice((1, 1, 1, 2, 2, 3, 5, 40 if draw.chance(0.1) else 1)),
        }
    if draw.chance(0.4):
        made["selectors"] = selectors(draw) or [{"cel": {"expression": "true"}}]
    if admin and draw.chance(0.1):
        made["adminAccess"] = draw.chance(0.8)
    if draw.chance(0.15):
        made["tolerations"] = [{"key": TAINT["key"], "operator": "Exists"} | draw.choice(({}, {"effect": "NoExecute"}))]
    if draw.chance(0.1) or (made["deviceClassName"] == "shared" and draw.chance(0.6)):
        made["capacity"] = {"requests": {"memory": draw.choice(("1Gi", "1500Mi", "3Gi", "6Gi", "20Gi"))}}
    return made


def allocated(draw: Draw, nodes: Sequence[str]) -> Json:
    """An allocation made before: of devices that are there, or were."""
    node = draw.choice(nodes) if nodes else "n001"
    results: list[Json] = [
        {"request": "q0", "driver": GPU, "pool": node, "device": f"gpu-{draw.randint(0, 2)}"}
        for _ in range(draw.randint(1, 2))
    ]
    if draw.chance(0.2):
        share = f"00000000-0000-0000-0000-{draw.randrange(10**12):012}"
        shared = {"driver": SHARED, "pool": "shared", "device": "shared-0", "shareID": share}
        results.append({"request": "q0", **shared, "consumedCapacity": {"memory": draw.choice(("1Gi", "3Gi"))}})
    if draw.chance(0.2):
        results.append({"request": "q0", "driver": PARTS, "pool": f"chip-{node}", "device": "part-0"})
    if draw.chance(0.1):
        results[0]["adminAccess"] = True
    allocation: Json = {"devices": {"results": results}}
    if draw.chance(0.8):
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    if draw.chance(0.1):
        results[0] |= {
            "bindingConditions": ["example.com/attached"],
            "bindingFailureConditions": ["example.com/failed"],
        }
        allocation["allocationTimestamp"] = draw.choice(("2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"))
    status: Json = {"allocation": allocation}
    if draw.chance(0.5):
        status["reservedFor"] = [{"resource": "pods", "name": "other", "uid": "uid-of-other"}]
    return status
