"""Taints with numbers, and tolerations that compare with them: the gate TaintTolerationComparisonOperators."""

from typing import Final

from tests.conformance.generators.taints import EFFECTS, KEYS, Taints
from tests.conformance.generators.topic import Cluster, Draw, Json

COMPARISONS: Final = "TaintTolerationComparisonOperators"
NUMBERS: Final = ("0", "5", "9", "10", "-5", "9223372036854775807", "-9223372036854775808", "10")
OF_TAINTS: Final = (*NUMBERS, "", "gold", "05", "9223372036854775808")
"""A taint may have any value, a comparison only an integer of 64 bits."""


class GatedTaints(Taints):
    """Who keeps whom away, by numbers."""

    def dress_node(self, draw: Draw, node: Json) -> None:
        super().dress_node(draw, node)
        for taint in node["spec"].get("taints", ()):
            if taint["key"] in KEYS and draw.chance(0.8):
                taint["value"] = draw.choice(OF_TAINTS)

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        super().dress_pod(draw, pod, cluster)
        more = [comparison(draw) for _ in range(draw.choice((0, 1, 2, 3, 20)))]
        if more:
            pod["spec"]["tolerations"] = [*pod["spec"].get("tolerations", ()), *more]


def comparison(draw: Draw) -> Json:
    """A toleration of one effect or all."""
    made: Json = {"key": draw.choice(KEYS), "operator": draw.choice(("Lt", "Gt")), "value": draw.choice(NUMBERS)}
    return made | ({"effect": draw.choice(EFFECTS)} if draw.chance(0.4) else {})
