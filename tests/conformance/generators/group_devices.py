"""Pod groups whose members claim devices, which may stand for resources of their node."""

from tests.conformance.generators import groups
from tests.conformance.generators.devices import named
from tests.conformance.generators.gated_amounts import AMOUNTS, pool
from tests.conformance.generators.topic import Draw, Json, assigned, containers


def with_devices(seed: int) -> Json:
    """The case of this seed of pod groups, with devices on its nodes, and claims of most members."""
    case, draw = groups.generate(seed), Draw(f"devices-{seed}")
    nodes = [each["metadata"]["name"] for each in case["objects"] if each["kind"] == "Node"]
    waiting = [each for each in case["objects"] if each["kind"] == "Pod" and not assigned(each)]
    devices = [pool(draw, f"cores-{name}", draw.randint(2, 6), {"nodeName": name}) for name in nodes]
    claims = {(pod["metadata"]["namespace"], claiming(draw, pod)) for pod in waiting if draw.chance(0.7)}
    made = [claim(draw, *each) for each in sorted(claims)]
    gates = case["gates"]
    if groups.POLICY not in gates and draw.chance(0.6):
        gates = [*gates, AMOUNTS]
        for pod in waiting:  # which victims can stay is found out without the amounts of members: docs/differences.md
            pod["spec"]["preemptionPolicy"] = "Never"
    objects = [named("DeviceClass", "cores", spec={}), *devices, *made, *case["objects"]]
    return case | {"name": f"group-devices-{seed}", "gates": gates, "objects": objects}


def claiming(draw: Draw, pod: Json) -> str:
    """Have a pod name a claim, its own or one for several. Return the name."""
    name: str = pod["metadata"]["name"] if draw.chance(0.8) else "shared"
    pod["spec"]["resourceClaims"] = [{"name": "own", "resourceClaimName": name}]
    pod["status"].pop("nominatedNodeName", None)
    for container in containers(pod):
        container.setdefault("resources", {})["claims"] = [{"name": "own"}]
    return name


def claim(draw: Draw, namespace: str, name: str) -> Json:
    exactly = {"deviceClassName": "cores", "allocationMode": "ExactCount", "count": draw.choice((1, 1, 2))}
    spec = {"devices": {"requests": [{"name": "q", "exactly": exactly}]}}
    return named("ResourceClaim", name, namespace, spec=spec)
