"""What happens to a node, a pod or another object: the object before and after, and who waits for it.

A node or a pod changes in one to three aspects, often to what another one of the same case has, so that the change
matters to the pods of the case.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Final

from tests.conformance.generators import volume_binding, volumes
from tests.conformance.generators.resize import Resize, container_status
from tests.conformance.generators.resources import CPU, EXTENDED, MEMORY
from tests.conformance.generators.topic import Cluster, Draw, Json, assigned

Aspect = Callable[[Draw, Json, Json], None]
"""Changes the first object; the second, another of its kind, has values to take over."""

CLASSES: Final = ("gpu-class", "nic-class")
IMPLICIT: Final = tuple(f"deviceclass.resource.kubernetes.io/{name}" for name in CLASSES)

NODE_UPDATES: Final = (
    "UpdateNodeAllocatable",
    "UpdateNodeLabel",
    "UpdateNodeTaint",
    "UpdateNodeCondition",
    "UpdateNodeAnnotation",
    "UpdateNodeDeclaredFeature",
    "UpdateNodePreemptionPolicy",
)
POD_UPDATES: Final = (
    "UpdatePodLabel",
    "UpdatePodScaleDown",
    "UpdatePodScaleUp",
    "UpdatePodToleration",
    "UpdatePodSchedulingGatesEliminated",
    "UpdatePodGeneratedResourceClaim",
    "Update",
)


def question(draw: Draw, nodes: Sequence[Json], pods: Sequence[Json]) -> Json:
    """Something that happens in a cluster, and a pod that waits there.

    It is asked under every name that it could have, whether or not the change deserves it.
    """
    waiting = [pod for pod in pods if not assigned(pod)]
    pod = copy.deepcopy(draw.choice(waiting))
    if draw.chance(0.1):  # which cannot be: yet it shows that what a kubelet reports is left out where it must be
        pod["status"]["containerStatuses"] = [container_status(draw, each) for each in pod["spec"]["containers"]]
    kinds = ["Pod", "Pod", "DeviceClass", "Storage", "Storage"] + (["Node"] * 4 if nodes else [])
    match draw.choice(kinds):
        case "Node":
            old, new = observed_event(draw, draw.choice(nodes), draw.choice(nodes), NODE_ASPECTS)
            return asked(pod, old, new, "Node", NODE_UPDATES)
        case "Pod":
            subject = draw.choice((pod, draw.choice(pods), draw.choice(pods)))
            old, new = observed_event(draw, subject, draw.choice(pods), POD_ASPECTS)
            there = new or old or {}
            waits = "TargetPod" if subject is pod and old and new else "UnscheduledPod"
            resource = "AssignedPod" if assigned(there) else waits
            return asked(pod, old, new, resource, POD_UPDATES)
        case "Storage":
            resource, make = draw.choice(STORAGE)
            old, new = make(draw), make(draw)
            before, after = draw.choice(((None, new), (old, None), (old, new), (old, new)))
            return asked(pod, before, after, resource, ("Update",))
        case _:
            if draw.chance(0.3):
                set_request(draw, pod, draw.choice(IMPLICIT), draw.choice(("1", "0")))
            old, new = classes(draw)
            return asked(pod, old, new, "resource.k8s.io/DeviceClass", ("Update",))


def asked(pod: Json, old: Json | None, new: Json | None, resource: str, updates: Sequence[str]) -> Json:
    """The question in the oracle's form."""
    actions = ("Add",) if old is None else ("Delete",) if new is None else updates
    events = [{"resource": resource, "actions": [action]} for action in actions]
    return {"pod": pod, "old": old, "new": new, "events": events}


def observed_event(
    draw: Draw, subject: Json, donor: Json, aspects: Sequence[Aspect]
) -> tuple[Json | None, Json | None]:
    """An object before and after: mostly an update."""
    kind = draw.choice(("add", "delete", "update", "update", "update"))
    if kind == "add":
        return None, subject
    if kind == "delete":
        return subject, None
    changed = copy.deepcopy(subject)
    for aspect in draw.several(aspects, most=3):
        aspect(draw, changed, donor)
    return subject, changed


def classes(draw: Draw) -> tuple[Json | None, Json]:
    """A DeviceClass before, or None, and after."""
    name = draw.choice(CLASSES)
    old, new = (device_class(name, draw.choice((None, "", *EXTENDED))) for _ in range(2))
    return (None if draw.chance(0.5) else old), new


def device_class(name: str, extended: str | None) -> Json:
    """A DeviceClass that stands for an extended resource, or does not."""
    spec = {} if extended is None else {"extendedResourceName": extended}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def some_claim(draw: Draw) -> Json:
    """A claim that a pod may name, or one that was made for a pod."""
    namespace = draw.choice(volumes.NAMESPACES)
    if draw.chance(0.3):
        return volumes.made_for(draw, namespace, f"waiting-{draw.randint(0, 3)}")
    return volumes.claim(draw, namespace, draw.choice(volumes.CLAIMS[:4]))


def some_class(draw: Draw) -> Json:
    """A storage class."""
    return volumes.storage_class(draw.choice(tuple(volumes.PROVISIONERS)))


def some_migration(draw: Draw) -> Json:
    """A node whose drivers have taken over some kinds of volumes, or none."""
    made = volume_binding.csi_node("n001")
    if draw.chance(0.5):
        del made["metadata"]["annotations"]
    return made


STORAGE: Final[Sequence[tuple[str, Callable[[Draw], Json]]]] = (
    ("PersistentVolume", lambda draw: volumes.volume(draw, "pv-0")),
    ("PersistentVolumeClaim", some_claim),
    ("PersistentVolumeClaim", some_claim),
    ("storage.k8s.io/StorageClass", some_class),
    ("storage.k8s.io/CSINode", lambda draw: volumes.csi_node(draw, "n001")),
    ("storage.k8s.io/StorageClass", lambda draw: volume_binding.storage_class(draw, volume_binding.MADE)),
    ("storage.k8s.io/CSINode", some_migration),
    ("storage.k8s.io/CSIDriver", lambda draw: volume_binding.csi_driver(draw, draw.choice(volume_binding.DRIVERS))),
    (
        "storage.k8s.io/CSIStorageCapacity",
        lambda draw: volume_binding.capacity(draw, 0, Cluster(node_names=("n001",))),
    ),
    ("storage.k8s.io/VolumeAttachment", lambda draw: volumes.attachment(draw, "a", Cluster(node_names=("n001",)))),
)
"""Resource, and what makes an object of it."""


def allocatable(draw: Draw, node: Json, donor: Json) -> None:
    """All of it, or one resource: more, other or none."""
    own, others = node["status"]["allocatable"], donor["status"]["allocatable"]
    choice = draw.random()
    if choice < 0.3:
        node["status"]["allocatable"] = dict(others)
    elif choice < 0.8 and others:
        name = draw.choice(sorted(others))
        own[name] = others[name]
    elif choice < 0.9:
        own[draw.choice((*EXTENDED, "pods"))] = draw.choice(("1", "9", "500"))
    elif own:
        del own[draw.choice(sorted(own))]


def labels(draw: Draw, thing: Json, donor: Json) -> None:
    """One label: another value, a new one, or gone. A pod may get its first."""
    metadata = thing["metadata"]
    own = metadata.setdefault("labels", {})
    others = donor["metadata"].get("labels", {}) | {"app": draw.choice(("web", "db"))}
    if own and draw.chance(0.3):
        del own[draw.choice(sorted(own))]
    else:
        name = draw.choice(sorted(others))
        own[name] = others[name]
    if not own:
        del metadata["labels"]


def taints(draw: Draw, node: Json, donor: Json) -> None:
    """One less, or those of another node."""
    own = list(node["spec"].pop("taints", []))
    if own and draw.chance(0.6):
        own.remove(draw.choice(own))
    else:
        own = list(donor["spec"].get("taints", []))
    if own:
        node["spec"]["taints"] = own


def cordon(draw: Draw, node: Json, donor: Json) -> None:
    """Cordon or uncordon."""
    if not node["spec"].pop("unschedulable", False):
        node["spec"]["unschedulable"] = True


def condition(draw: Draw, node: Json, donor: Json) -> None:
    """A heartbeat, which is no change, or another status."""
    node["status"]["conditions"] = [
        {"type": "Ready", "status": draw.choice(("True", "False", "Unknown")), "reason": draw.choice(("a", "b"))}
    ]


def annotation(draw: Draw, node: Json, donor: Json) -> None:
    """Any annotation."""
    node["metadata"]["annotations"] = {"example.com/note": draw.choice(("a", "b"))}


def declared_features(draw: Draw, node: Json, donor: Json) -> None:
    """What the kubelet can do."""
    node["status"]["declaredFeatures"] = sorted(draw.several(("GuaranteedQoSPodCPUResize", "Other"), most=2))


def requests(draw: Draw, pod: Json, donor: Json) -> None:
    """A container asks for something else, as after a resize."""
    if draw.chance(0.3) and any("resources" in container for container in pod["spec"]["containers"]):
        wanted = [container for container in pod["spec"]["containers"] if "resources" in container]
        del draw.choice(wanted)["resources"]
        return
    name, amounts = draw.choice((("cpu", CPU), ("memory", MEMORY)))
    set_request(draw, pod, name, draw.choice(amounts))


def set_request(draw: Draw, pod: Json, name: str, amount: str | int) -> None:
    """One container asks for this much."""
    container = draw.choice(pod["spec"]["containers"])
    container.setdefault("resources", {}).setdefault("requests", {})[name] = amount


def reported(draw: Draw, pod: Json, donor: Json) -> None:
    """The kubelet reports what the pod has."""
    if assigned(pod):
        Resize().dress_pod(draw, pod, Cluster(node_names=()))


def tolerations(draw: Draw, pod: Json, donor: Json) -> None:
    """Further tolerations; the API lets nobody take one away."""
    more = donor["spec"].get("tolerations") or [{"operator": "Exists"}]
    pod["spec"]["tolerations"] = [*pod["spec"].get("tolerations", ()), *more]


def gates(draw: Draw, pod: Json, donor: Json) -> None:
    """One gate less, or none is left."""
    left = pod["spec"].pop("schedulingGates", [])[1:]
    if left and draw.chance(0.5):
        pod["spec"]["schedulingGates"] = left


def claims(draw: Draw, pod: Json, donor: Json) -> None:
    """A ResourceClaim was made for the pod."""
    pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": draw.choice(("a", "b"))}]


def nomination(draw: Draw, pod: Json, donor: Json) -> None:
    """A status that is nobody's business but the queue's."""
    pod["status"]["nominatedNodeName"] = draw.choice(("n001", "n002"))


NODE_ASPECTS: Final = (allocatable, labels, taints, cordon, condition, annotation, declared_features, allocatable)
POD_ASPECTS: Final = (labels, requests, requests, reported, tolerations, gates, claims, nomination)
