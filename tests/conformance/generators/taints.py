"""Taints, tolerations and cordoned nodes."""

from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic

KEYS: Final = ("dedicated", "example.com/gpu", "node.kubernetes.io/not-ready", "spot")
VALUES: Final = ("", "a", "b", "5")
EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule", "PreferNoSchedule")
CORDONED: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class Taints(Topic):
    """Who keeps whom away."""

    def dress_node(self, draw: Draw, node: Json) -> None:
        taints: list[Json] = []
        for key in draw.some(KEYS, most=3):
            effects = set(draw.several(EFFECTS, most=2))
            taints += [taint(draw, key, effect) for effect in sorted(effects)]
        if draw.chance(0.15):
            node["spec"]["unschedulable"] = True
            if draw.chance(0.6):
                taints.append(dict(CORDONED))
        if taints:
            node["spec"]["taints"] = taints

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        tolerations = [toleration(draw) for _ in range(draw.choice((0, 1, 2, 3, 5)))]
        if draw.chance(0.1):
            tolerations.append(CORDONED | {"operator": "Exists"})
        if tolerations:
            pod["spec"]["tolerations"] = tolerations


def taint(draw: Draw, key: str, effect: str) -> Json:
    """A taint; an empty value is usually left out."""
    value = draw.choice(VALUES)
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def toleration(draw: Draw) -> Json:
    """A toleration: everything, a whole key, or one value; of one effect or all."""
    found: Json = {}
    if draw.chance(0.06):
        found = {"operator": "Exists"}
    elif draw.chance(0.5):
        found = {"key": draw.choice(KEYS), "operator": "Exists"}
    else:
        found = {"key": draw.choice(KEYS), "value": draw.choice(VALUES)}
        if draw.chance(0.5):
            found["operator"] = "Equal"
    if draw.chance(0.6):
        found["effect"] = draw.choice(EFFECTS)
    if found.get("effect") == "NoExecute" and draw.chance(0.5):
        found["tolerationSeconds"] = draw.choice((0, 300, -1))
    return found
