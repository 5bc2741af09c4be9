"""Devices with what kube-scheduler 1.37 decides otherwise than 1.36: a small world of its own drivers and claims."""

from collections.abc import Sequence
from typing import Final

from tests.conformance.generators.devices import named, opaque
from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned

LEFT, RIGHT, RANGED = "left.example.com", "right.example.com", "ranged.example.com"
CLAIMS: Final = tuple(f"newer-{i}" for i in range(6))
NAMESPACES: Final = ("default", "team")
CLASSES: Final = {"left": LEFT, "right": RIGHT, "ranged": RANGED, "whatever": ""}
BROKEN: Final = "example.com/broken"
COLOUR, TAGS, TWICE = "example.com/colour", "example.com/tags", "example.com/twice"
EXPRESSIONS: Final = (
    f'device.driver == "{LEFT}"',
    'device.attributes["example.com"].tags.exists(tag, tag == "fast")',
    'device.attributes["example.com"].tags.includes("fast")',
    'device.attributes["example.com"].colour.includes("red")',
    'device.attributes["example.com"].absent == 1',
    'device.attributes["example.com"].?colour.orValue("red") == "red"',
    '"slow" in device.attributes["example.com"].tags',
)
TOO_MUCH: Final = ("8E", "16E", "9223372036854775807", "1e19", "100m")


class NewerDevices(Topic):
    """Taint rules, pools of one name, lists, ranges and counts at their limits."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        made = [device_class(draw, name, driver) for name, driver in CLASSES.items() if draw.chance(0.97)]
        for node in cluster.node_names:
            for driver in (LEFT, RIGHT):
                if draw.chance(0.6):
                    made += parts(draw, driver, node)
            if draw.chance(0.5):
                made.append(ranged(draw, node))
        made += [taint_rule(draw, i, cluster.node_names) for i in range(draw.choice((0, 1, 2, 4)))]
        return [*made, *(claim(draw, name, space, cluster.node_names) for space in NAMESPACES for name in CLAIMS)]

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        if assigned(pod) or draw.chance(0.2) or pod["metadata"]["namespace"] not in NAMESPACES:
            return
        names = draw.several(CLAIMS, most=2)
        found = [{"name": f"newer{i}", "resourceClaimName": name} for i, name in enumerate(names)]
        pod["spec"].setdefault("resourceClaims", []).extend(found)
        pod["status"].pop("nominatedNodeName", None)


def device_class(draw: Draw, name: str, driver: str) -> Json:
    spec: Json = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]} if driver else {}
    if draw.chance(0.3):
        spec["config"] = [opaque(LEFT, 7)]
    return named("DeviceClass", name, spec=spec)


def parts(draw: Draw, driver: str, node: str) -> list[Json]:
    """Parts of one piece of hardware; the pools of both drivers are called alike, and so are their counters."""
    counters = [{"name": "chip", "counters": {"slots": {"value": draw.choice(("2", "3", "8"))}}}]
    pool = {"name": f"chip-{node}", "generation": 1, "resourceSliceCount": 3 if draw.chance(0.05) else 2}
    place: Json = {"nodeName": node} if draw.chance(0.8) else {"allNodes": True}
    of_all = {"driver": driver, "pool": pool}
    devices = [part(draw, i) for i in range(draw.randint(1, 4))]
    if draw.chance(0.1):
        for device in devices:
            device["consumesCounters"][0]["compatibilityGroups"] = [draw.choice(("a", "b"))]
    return [
        named("ResourceSlice", f"{node}-{driver}-counters", spec=of_all | place | {"sharedCounters": counters}),
        named("ResourceSlice", f"{node}-{driver}-parts", spec=of_all | place | {"devices": devices}),
    ]


def part(draw: Draw, number: int) -> Json:
    slots = draw.choice(("1", "1", "2", "9223372036854775807" if draw.chance(0.1) else "1"))
    counter_set = "chip" if draw.chance(0.97) else "unheard-of"
    made: Json = {
        "name": f"part-{number}",
        "attributes": {COLOUR: {"string": draw.choice(("red", "red", "blue"))}},
        "consumesCounters": [{"counterSet": counter_set, "counters": {"slots": {"value": slots}}}],
    }
    if draw.chance(0.5):
        made["attributes"][TAGS] = {"strings": draw.several(("fast", "slow", "new"), most=2)}
    if draw.chance(0.25):
        made |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "4Gi"}}}
    return made


def ranged(draw: Draw, node: str) -> Json:
    """Devices with a capacity of which amounts in a range can be had."""
    least, most, step = draw.choice((("1", "6", "1"), ("1", "6", "2"), ("1Gi", "6Gi", "1Gi"), ("500m", "6", "250m")))
    policy: Json = {"default": least, "validRange": {"min": least}}
    if draw.chance(0.7):
        policy["validRange"]["max"] = most
    if draw.chance(0.7):
        policy["validRange"]["step"] = step
    devices = [
        {
            "name": f"ranged-{i}",
            "allowMultipleAllocations": draw.chance(0.8),
            "capacity": {
                "amount": {"value": draw.choice(("10", "10Gi"))}
                | ({"requestPolicy": policy} if draw.chance(0.8) else {})
            },
        }
        for i in range(draw.randint(1, 2))
    ]
    pool = {"name": f"ranged-{node}", "generation": 1, "resourceSliceCount": 1}
    return named(
        "ResourceSlice",
        f"{node}-ranged",
        spec={"driver": RANGED, "pool": pool, "nodeName": node, "devices": devices},
    )


def taint_rule(draw: Draw, number: int, nodes: Sequence[str]) -> Json:
    """A rule; without a selector it taints nothing, with an empty one everything."""
    spec: Json = {"taint": {"key": BROKEN, "value": "yes", "effect": draw.choice(("NoSchedule", "NoExecute", "None"))}}
    if draw.chance(0.9):
        spec["deviceSelector"] = {}
        if draw.chance(0.6):
            spec["deviceSelector"]["driver"] = draw.choice((LEFT, RIGHT, RANGED))
        if draw.chance(0.4) and nodes:
            spec["deviceSelector"]["pool"] = f"chip-{draw.choice(nodes)}"
        if draw.chance(0.3):
            spec["deviceSelector"]["device"] = f"part-{draw.randint(0, 2)}"
    return named("DeviceTaintRule", f"rule-{number}", spec=spec)


def claim(draw: Draw, name: str, namespace: str, nodes: Sequence[str]) -> Json:
    requests = [request(draw, f"q{i}") for i in range(draw.choice((1, 1, 2)))]
    devices: Json = {"requests": requests}
    if draw.chance(0.3):
        devices["constraints"] = [{draw.choice(("distinctAttribute", "matchAttribute")): draw.choice((COLOUR, TAGS))}]
    if any(
        "derivedAttributes" in wish for each in requests for wish in each.get("firstAvailable", [each.get("exactly")])
    ):
        devices["constraints"] = [{"matchAttribute": TWICE}]
    if draw.chance(0.4):
        some = [each["name"] for each in requests]
        devices["config"] = [opaque(LEFT, i) | draw.choice(({}, {"requests": some[:1]})) for i in range(2)]
    made = named("ResourceClaim", name, namespace, spec={"devices": devices})
    if draw.chance(0.15) and nodes:
        made["status"] = {"allocation": taken(draw, draw.choice(nodes))}
    return made


def taken(draw: Draw, node: str) -> Json:
    """An allocation of part of a device."""
    results: list[Json] = [{"request": "q0", "driver": LEFT, "pool": f"chip-{node}", "device": "part-0"}]
    if draw.chance(0.5):
        share = {
            "shareID": f"00000000-0000-0000-0000-{draw.randrange(10**12):012}",
            "consumedCapacity": {"amount": "2"},
        }
        results = [{"request": "q0", "driver": RANGED, "pool": f"ranged-{node}", "device": "ranged-0", **share}]
    return {"devices": {"results": results}}


def request(draw: Draw, name: str) -> Json:
    if draw.chance(0.25):
        return {"name": name, "firstAvailable": [{"name": f"s{i}"} | wish(draw) for i in range(draw.randint(1, 2))]}
    return {"name": name, "exactly": wish(draw)}


def wish(draw: Draw) -> Json:
    made: Json = {"deviceClassName": draw.choice(tuple(CLASSES))}
    if draw.chance(0.2):
        made["allocationMode"] = "All"
    else:
        made |= {"allocationMode": "ExactCount", "count": draw.choice((1, 1, 2, 2, 3, 33 if draw.chance(0.2) else 1))}
    if draw.chance(0.15):
        made["selectors"] = [{"cel": {"expression": draw.choice(EXPRESSIONS)}}]
    if draw.chance(0.3):
        made["tolerations"] = [{"key": BROKEN, "operator": "Exists"} | draw.choice(({}, {"effect": "NoSchedule"}))]
    if draw.chance(0.1) or (made["deviceClassName"] == "ranged" and draw.chance(0.7)):
        amount = draw.choice(("1", "2", "3", "4", "5", "1500m", "2Gi", *(TOO_MUCH if draw.chance(0.2) else ())))
        made["capacity"] = {"requests": {"amount": amount}}
    if draw.chance(0.03):
        made["derivedAttributes"] = [{"name": TWICE, "expression": "true"}]
    return made
