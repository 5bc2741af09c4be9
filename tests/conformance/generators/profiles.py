"""KubeSchedulerConfiguration: which plugins, in which order, with which weights."""

from collections.abc import Sequence
from typing import Final

from tests.conformance.generators.topic import Draw, Json, Topic

NAMES: Final = ("default-scheduler", "batch", "spread-out")
DEFAULT_WEIGHTS: Final = {
    "SchedulingGates": 0,
    "PrioritySort": 0,
    "NodeName": 0,
    "NodeUnschedulable": 0,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 0,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": 0,
    "NodeVolumeLimits": 0,
    "VolumeBinding": 0,
    "VolumeZone": 0,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "DefaultPreemption": 0,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": 0,
    "NodeDeclaredFeatures": 0,
}
INDISPENSABLE: Final = ("PrioritySort", "DefaultBinder")
POINTS: Final = {
    "TaintToleration": ("filter", "preScore", "score"),
    "NodeAffinity": ("preFilter", "filter", "preScore", "score"),
    "NodePorts": ("preFilter", "filter"),
    "NodeResourcesFit": ("preFilter", "filter", "preScore", "score"),
    "VolumeRestrictions": ("preFilter", "filter"),
    "NodeVolumeLimits": ("preFilter", "filter"),
    "VolumeBinding": ("filter", "preScore", "score"),  # its Score fails without its PreFilter
    "VolumeZone": ("preFilter", "filter"),
    "PodTopologySpread": ("preFilter", "filter", "preScore", "score"),
    "InterPodAffinity": ("preFilter", "filter", "preScore", "score"),
    "DefaultPreemption": ("postFilter",),
    "NodeResourcesBalancedAllocation": ("preScore", "score"),
    "ImageLocality": ("score",),
    "NodeDeclaredFeatures": ("preFilter", "filter"),
    "DynamicResources": ("preFilter", "filter", "score"),
}


def configuration(draw: Draw, topics: Sequence[Topic]) -> Json:
    """A configuration with one profile, sometimes more."""
    names = NAMES[: draw.choice((1, 1, 1, 1, 2, 3))]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile(draw, name, topics) for name in names],
    }


def profile(draw: Draw, name: str, topics: Sequence[Topic]) -> Json:
    """One profile: usually the default plugins, sometimes others, in another order, without some extension points."""
    found: Json = {"schedulerName": name, "plugins": plugins(draw)}
    arguments: dict[str, Json] = {}
    for topic in topics:
        arguments |= topic.arguments(draw)
    if arguments:
        found["pluginConfig"] = [{"name": plugin, "args": args} for plugin, args in arguments.items()]
    return found


def plugins(draw: Draw) -> Json:
    """The `plugins` of a profile."""
    enabled = [plugin(name, weight) for name, weight in DEFAULT_WEIGHTS.items()]
    if draw.chance(0.65):
        return {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    if draw.chance(0.5):
        draw.shuffle(enabled)
    if draw.chance(0.5):
        enabled = [each for each in enabled if each["name"] in INDISPENSABLE or draw.chance(0.8)]
    if draw.chance(0.6):
        enabled = [plugin(each["name"], draw.choice((0, 1, 2, 7, 100))) for each in enabled]
    found: Json = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    if draw.chance(0.3):
        name = draw.choice(tuple(POINTS))
        found[draw.choice(POINTS[name])] = {"disabled": [{"name": name}]}
    if draw.chance(0.3):
        scoring = [name for name, points in POINTS.items() if "score" in points]
        names = draw.several([name for name in scoring if name != "VolumeBinding"], most=3)
        disabled = [{"name": "*"}] if draw.chance(0.5) else []
        names = [] if disabled and draw.chance(0.2) else names
        found["score"] = {"disabled": disabled, "enabled": [plugin(name, draw.choice((0, 1, 4))) for name in names]}
    return found


def plugin(name: str, weight: int) -> Json:
    """An entry of an `enabled` list; a weight of 0 is the same as none."""
    return {"name": name, "weight": weight} if weight else {"name": name}
