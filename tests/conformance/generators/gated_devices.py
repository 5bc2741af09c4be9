"""Devices with what is behind feature gates: lists, derived attributes, compatibility groups, skipped operations."""

from typing import Final

from tests.conformance.generators.devices import named
from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned

LISTS, DERIVED = "DRAListTypeAttributes", "DRADerivedAttributes"
GROUPS, OPERATIONS = "DRADeviceCompatibilityGroups", "DRAOptionalNodeOperations"
GATES: Final = ((LISTS,), (DERIVED,), (GROUPS,), (OPERATIONS,), (LISTS, DERIVED), (LISTS, DERIVED, GROUPS, OPERATIONS))
"""The sets of gates that are tried; each needs a kube-scheduler of its own."""

DRIVER, DOMAIN = "chip.example.com", "example.com"
CLAIMS: Final = tuple(f"gated-{i}" for i in range(6))
TAGS, COLOUR, SIZE, NEAR = (f"{DOMAIN}/{name}" for name in ("tags", "colour", "size", "near"))
EXPRESSIONS: Final = (
    f'device.attributes["{DOMAIN}"].colour',
    f'device.attributes["{DOMAIN}"].colour + "ish"',
    f'device.attributes["{DOMAIN}"].size % 2',
    f'device.attributes["{DOMAIN}"].size > 1',
    f'device.attributes["{DOMAIN}"].tags',
    f'device.attributes["{DOMAIN}"].version',
    f'[device.attributes["{DOMAIN}"].colour, dyn("grey")]',
    f'device.attributes["{DOMAIN}"].?size.orValue(7)',
    '["one", "two"].filter(x, x == "three")',
    "semver('1.2.3')",
    f'device.attributes["{DOMAIN}"].size == 2 ? dyn(1.5) : dyn("a")',
    '[dyn(1), dyn("a")]',
    "[dyn(1.5)]",
    "device.driver",
    "1.5",
    "device.",
    f'device.attributes["{DOMAIN}"].absent',
)


class GatedDevices(Topic):
    """Pools of devices on each node and one that all nodes share."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        made = [named("DeviceClass", "chips", spec={})]
        for node in cluster.node_names:
            if draw.chance(0.8):
                made += chips(draw, f"chips-{node}", {"nodeName": node})
        if draw.chance(0.3):
            made += chips(draw, "chips-of-all", {"allNodes": True})
        return [*made, *(claim(draw, name, cluster) for name in CLAIMS)]

    def dress_node(self, draw: Draw, node: Json) -> None:
        if draw.chance(0.5):
            node["status"]["declaredFeatures"] = [OPERATIONS]

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        pod["metadata"]["namespace"] = "default"
        if not assigned(pod):
            names = draw.several(CLAIMS, most=2)
            pod["spec"]["resourceClaims"] = [
                {"name": f"g{i}", "resourceClaimName": each} for i, each in enumerate(names)
            ]
            pod["status"].pop("nominatedNodeName", None)


def chips(draw: Draw, pool: str, place: Json) -> list[Json]:
    """A pool with the counters of two chips, and parts of them."""
    counters = [{"name": name, "counters": {"slots": {"value": "4"}}} for name in ("first", "second")]
    spec = {"driver": DRIVER, "pool": {"name": pool, "generation": 1, "resourceSliceCount": 2}} | place
    devices: Json = {"devices": [chip(draw, i) for i in range(draw.randint(1, 5))]}
    if draw.chance(0.3):
        devices["skipNodeOperations"] = draw.choice((["*"], ["NodeUnprepareResources"]))
    return [
        named("ResourceSlice", f"{pool}-counters", spec=spec | {"sharedCounters": counters}),
        named("ResourceSlice", f"{pool}-parts", spec=spec | devices),
    ]


def chip(draw: Draw, number: int) -> Json:
    made: Json = {
        "name": f"part-{number}",
        "attributes": {
            COLOUR: {"string": draw.choice(("red", "red", "blue"))},
            SIZE: {"int": draw.choice((1, 2, 3))},
            f"{DOMAIN}/version": {"version": draw.choice(("1.0.0", "2.0.0-rc.1"))},
        },
    }
    if draw.chance(0.6):
        made["attributes"][TAGS] = draw.choice(
            ({"strings": draw.several(("fast", "slow", "new"), most=2)}, {"string": "fast"}, {"ints": [1, 2]})
        )
    if draw.chance(0.6):
        names = draw.choice((["first"], ["second"], ["first", "second"]))
        made["consumesCounters"] = [drawn(draw, name) for name in names]
    if draw.chance(0.2):
        made |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "4Gi"}}}
    return made


def drawn(draw: Draw, counter_set: str) -> Json:
    """What a part draws on a counter set, and with whom it can share it."""
    made: Json = {"counterSet": counter_set, "counters": {"slots": {"value": draw.choice(("1", "2"))}}}
    if draw.chance(0.5):
        made["compatibilityGroups"] = draw.choice((["a"], ["b"], ["a", "b"]))
    return made


def claim(draw: Draw, name: str, cluster: Cluster) -> Json:
    attribute = draw.choice((TAGS, TAGS, COLOUR, SIZE, NEAR))
    requests = [request(draw, f"q{i}", attribute) for i in range(draw.choice((1, 1, 2)))]
    devices: Json = {"requests": requests}
    if draw.chance(0.7) or any("derivedAttributes" in each["exactly"] for each in requests if "exactly" in each):
        devices["constraints"] = [{draw.choice(("distinctAttribute", "matchAttribute")): attribute}]
    made = named("ResourceClaim", name, "default", spec={"devices": devices})
    if draw.chance(0.2) and cluster.node_names:
        result: Json = {
            "request": "q0",
            "driver": DRIVER,
            "pool": f"chips-{draw.choice(cluster.node_names)}",
            "device": "part-0",
        }
        if draw.chance(0.4):
            result["skipNodeOperations"] = ["*"]
        made["status"] = {"allocation": {"devices": {"results": [result]}}}
    return made


def request(draw: Draw, name: str, attribute: str) -> Json:
    exactly: Json = {"deviceClassName": "chips"}
    if draw.chance(0.15):
        exactly["allocationMode"] = "All"
    else:
        exactly |= {"allocationMode": "ExactCount", "count": draw.choice((1, 2, 2, 3))}
    if draw.chance(0.3):
        exactly["derivedAttributes"] = [{"name": attribute, "expression": draw.choice(EXPRESSIONS)}]
    return {"name": name, "exactly": exactly}
