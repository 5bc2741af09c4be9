"""Where Loadmaster tries a pod again after events by which kube-scheduler does not: docs/differences.md names them.

Two kinds: registrations for events that kube-scheduler's plugin does not register for, which come last, and hints that
say Queue where kube-scheduler's says QueueSkip. The latter are known by what was asked; anything else is a difference.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Json = dict[str, Any]
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

_EVERYTHING: Final = ("Add", "Delete", "Update")
FURTHER: Final[Mapping[str, Sequence[tuple[str, tuple[str, ...]]]]] = {
    "VolumeRestrictions": [("Node", ("Delete",))],
    "NodeVolumeLimits": [
        ("storage.k8s.io/CSINode", ("Delete",)),
        ("Node", ("Add",)),
        ("storage.k8s.io/CSIDriver", ("Delete", "Update")),
    ],
    "VolumeBinding": [("storage.k8s.io/CSIDriver", ("Delete",)), ("storage.k8s.io/CSINode", ("Delete",))],
    "InterPodAffinity": [("Node", ("Delete",)), ("Namespace", _EVERYTHING)],
    "PodTopologySpread": [
        ("AssignedPod", ("Update",)),
        ("Service", _EVERYTHING),
        ("ReplicationController", _EVERYTHING),
        ("apps/ReplicaSet", _EVERYTHING),
        ("apps/StatefulSet", _EVERYTHING),
    ],
    "DynamicResources": [
        ("resource.k8s.io/DeviceTaintRule", ("Delete", "Update")),
        ("resource.k8s.io/ResourceSlice", ("Delete",)),
        ("resource.k8s.io/DeviceClass", ("Delete",)),
    ],
}
"""Plugin → resources and actions that it registers for besides, after all others."""


def without_further(plugin: str, registered: Sequence[Json]) -> list[Json]:
    """What a plugin registered, without what goes beyond kube-scheduler at its end."""
    shared = list(registered)
    further = FURTHER.get(plugin, ())
    while shared and (shared[-1]["resource"], tuple(shared[-1]["actions"])) in further:
        shared.pop()
    return shared


def as_kube_scheduler_answers(
    plugin: str, case: Json, asked: Json, theirs: Mapping[str, str], ours: Mapping[str, str], registered: int
) -> dict[str, str]:
    """Our answers to the hints that both have, the first `registered`, with theirs where ours may go beyond it."""
    may_go_beyond = WIDER.get(plugin)
    found = {key: answer for key, answer in ours.items() if int(key.partition("/")[2]) < registered}
    for key, answer in found.items():
        if answer == "Queue" and theirs.get(key) == "QueueSkip" and may_go_beyond and may_go_beyond(case, asked):
            found[key] = "QueueSkip"
    return found


def _enforces_affinity(case: Json, asked: Json) -> bool:
    """NodeAffinity: a node was changed, and the profile adds required terms."""
    added = _arguments(case, "NodeAffinity").get("addedAffinity", {})
    return _is_update_of(asked, "Node") and REQUIRED in added


def _ignores_resources(case: Json, asked: Json) -> bool:
    """NodeResourcesFit: a node came or changed, and the profile ignores resources."""
    arguments = _arguments(case, "NodeResourcesFit")
    return _kind(asked) == "Node" and bool(arguments.get("ignoredResources") or arguments.get("ignoredResourceGroups"))


def _is_of_another_namespace(case: Json, asked: Json) -> bool:
    """VolumeRestrictions: a pod of another namespace is gone, which may have used a disk."""
    return asked["new"] is None and _kind(asked) == "Pod" and _namespace(asked["old"]) != _namespace(asked["pod"])


def _ends_limit_or_has_new_driver(case: Json, asked: Json) -> bool:
    """NodeVolumeLimits: a driver of a node had a limit and has none, or a driver is new there."""
    if not _is_update_of(asked, "CSINode"):
        return False
    before, now = (
        {each["name"]: each.get("allocatable", {}).get("count") for each in node["spec"]["drivers"]}
        for node in (asked["old"], asked["new"])
    )
    ended = any(limit is not None and now.get(name) is None for name, limit in before.items())
    return ended or bool(now.keys() - before.keys())


def _stops_tracking_storage(case: Json, asked: Json) -> bool:
    """VolumeBinding: a driver stops tracking its storage, and a claim of the pod may be for a volume of it."""
    if not _is_update_of(asked, "CSIDriver"):
        return False
    before, now = (bool(driver["spec"].get("storageCapacity")) for driver in (asked["old"], asked["new"]))
    volumes = asked["pod"]["spec"].get("volumes", ())
    return before and not now and any({"persistentVolumeClaim", "ephemeral"} & each.keys() for each in volumes)


def _has_affinity_or_several_anti_affinities(case: Json, asked: Json) -> bool:
    """InterPodAffinity: the pod may be the first of its group, or one of several terms towards a changed pod ends."""
    return bool(_required(asked["pod"], "podAffinity")) or (
        _is_update_of(asked, "Pod") and len(_required(asked["pod"], "podAntiAffinity")) > 1
    )


def _selects_nodes(case: Json, asked: Json) -> bool:
    """PodTopologySpread: a node got other labels, and the pod selects nodes by labels."""
    spec = asked["pod"]["spec"]
    selects = spec.get("nodeSelector") or REQUIRED in spec.get("affinity", {}).get("nodeAffinity", {})
    return _is_update_of(asked, "Node") and bool(selects)


WIDER: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "NodeAffinity": _enforces_affinity,
    "NodeResourcesFit": _ignores_resources,
    "VolumeRestrictions": _is_of_another_namespace,
    "NodeVolumeLimits": _ends_limit_or_has_new_driver,
    "VolumeBinding": _stops_tracking_storage,
    "InterPodAffinity": _has_affinity_or_several_anti_affinities,
    "PodTopologySpread": _selects_nodes,
}
"""Plugin → whether its hint may say Queue to a question where kube-scheduler's says QueueSkip."""


def _arguments(case: Json, plugin: str) -> Json:
    """Those of the first profile, which is asked."""
    configured = case["config"]["profiles"][0].get("pluginConfig", ())
    return next((each["args"] for each in configured if each["name"] == plugin), {})


def _kind(asked: Json) -> str:
    return str((asked["new"] or asked["old"])["kind"])


def _is_update_of(asked: Json, kind: str) -> bool:
    return bool(asked["old"] and asked["new"]) and _kind(asked) == kind


def _namespace(pod: Json) -> str:
    return str(pod["metadata"].get("namespace", "default"))


def _required(pod: Json, kind: str) -> Sequence[Json]:
    found: Sequence[Json] = pod["spec"].get("affinity", {}).get(kind, {}).get(REQUIRED, ())
    return found
