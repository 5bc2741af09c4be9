"""A generated cluster in which one thing after another changes, each as the API server would let it.

    ChangingCluster(draw) ──► change() ──► Change(what, old, new) ──► change() …

Many a change takes an earlier one back, since that helps pods that the earlier one harmed. What a change brings is
drawn by the topics of the cluster, as the cluster itself.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from tests.conformance import generate
from tests.conformance.generators import contention
from tests.conformance.generators import observed_events as observed
from tests.conformance.generators.profiles import configuration
from tests.conformance.generators.topic import Draw, Json, assigned

MORE_WAITING: Final = 12
"""Pods than in other generated clusters: whom a change helps is a matter of luck."""

Key: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""

Aspect: TypeAlias = Callable[[Draw, Json, Json], None]
"""Changes the first object; the second, another of its kind, has values to take over."""


class Change(NamedTuple):
    """An object before and after, either of which may be missing."""

    what: str
    """In words that are counted: `Node labels`."""
    old: Json | None
    new: Json | None
    is_reversible: bool = True

    @property
    def key(self) -> Key:
        return key_of(self.old or self.new or {})


class ChangingCluster:
    """The objects of a cluster as they are now, by key."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        # Few topics at a time, so that one change often makes the difference.
        base = generate.ALWAYS if draw.chance(0.3) else (contention.Room(),)
        others = contention.TOPICS if draw.chance(0.4) else generate.TOPICS
        self._topics = [*base, *draw.several(others, most=draw.choice((1, 1, 3)))]
        self.config: Json = configuration(draw, self._topics)
        self._cluster = generate.cluster_of(draw.choice((0, 1, 1, 2, 2, 3, 3, 4, 6, 9)))
        self._version = 0
        made = generate.objects_of(draw, self._topics, self.config, self._cluster)
        self.objects: dict[Key, Json] = {key_of(each): self._stored(each, each["metadata"]) for each in made}
        self._changes: list[Change] = []
        for _ in range(MORE_WAITING):
            pod = self._pod("waiting", on_node=False)
            self.objects.setdefault(key_of(pod), self._stored(pod, pod["metadata"]))

    def change(self) -> Change:
        """Change one object, or add or remove one."""
        change = self._taken_back() if self._draw.chance(0.4) else None
        while change is None:
            change = self._drawn()
        if change.new is None:
            del self.objects[change.key]
        else:
            self.objects[change.key] = change.new
        self._changes.append(change)
        return change

    def _stored(self, made: Json, before: Json) -> Json:
        """An object with the UID and version that the API server gives it; `before` has the UID if it had one."""
        self._version += 1
        uid = before.get("uid") or "/".join(key_of(made))
        return made | {"metadata": made["metadata"] | {"uid": uid, "resourceVersion": str(self._version)}}

    def _taken_back(self) -> Change | None:
        """An earlier change the other way round, if nothing came after it; a removed object comes back as a new one."""
        if not self._changes:
            return None
        change = self._changes.pop(self._draw.randrange(len(self._changes)))
        if not change.is_reversible or self.objects.get(change.key) is not change.new:
            return None
        if change.old is None:
            return Change(f"{change.what}, taken back", change.new, None)
        metadata = change.old["metadata"]
        if change.new is None:
            metadata = metadata | {"uid": f"{metadata['uid']}-again"}
        return Change(f"{change.what}, taken back", change.new, self._stored(change.old, metadata))

    def _drawn(self) -> Change | None:
        draw = self._draw
        subject = draw.choice((self._of_node, self._of_node, self._of_running, self._of_waiting, self._of_others))
        return subject()

    # Nodes.

    def _of_node(self) -> Change | None:
        draw, nodes = self._draw, self._all("Node")
        choice = draw.random()
        if choice < 0.2 or not nodes:
            names = {*self._cluster.node_names, "gone", "later"} - {each["metadata"]["name"] for each in nodes}
            if not names:
                return None
            return self._added("Node added", generate.node(draw, draw.choice(sorted(names)), self._topics))
        node = draw.choice(nodes)
        if choice < 0.4:
            return Change("Node deleted", node, None)
        donor = generate.node(draw, node["metadata"]["name"], self._topics)
        if choice < 0.5:  # all at once, as by a kubelet that registers anew
            return self._updated("Node replaced", node, lambda _, changed, other: changed.update(other), donor)
        aspect = draw.choice(observed.NODE_ASPECTS)
        return self._updated(f"Node {aspect.__name__}", node, aspect, donor)

    # Pods.

    def _of_running(self) -> Change | None:
        draw, pods = self._draw, [pod for pod in self._all("Pod") if assigned(pod)]
        choice = draw.random()
        if (choice < 0.2 or not pods) and self._cluster.node_names:
            return self._added("running Pod added", self._pod("running", on_node=True))
        if not pods:
            return None
        pod = draw.choice(pods)
        if choice < 0.5:
            return Change("running Pod deleted", pod, None)
        donor = self._pod("donor", on_node=True) if self._cluster.node_names else pod
        aspect = draw.choice((observed.labels, observed.requests, observed.reported, marked_deleted, ended))
        return self._updated(f"running Pod {aspect.__name__}", pod, aspect, donor, aspect in _REVERSIBLE)

    def _of_waiting(self) -> Change | None:
        draw, pods = self._draw, [pod for pod in self._all("Pod") if not assigned(pod)]
        choice = draw.random()
        if choice < 0.1 or not pods:
            return self._added("waiting Pod added", self._pod("waiting", on_node=False))
        pod = draw.choice(pods)
        if choice < 0.2:
            return Change("waiting Pod deleted", pod, None)
        donor = self._pod("donor", on_node=False)
        aspects = (observed.labels, observed.tolerations, observed.gates, claims_made, nominated, bound)
        aspect = draw.choice(aspects)
        return self._updated(f"waiting Pod {aspect.__name__}", pod, aspect, donor, aspect in _REVERSIBLE)

    def _pod(self, role: str, *, on_node: bool) -> Json:
        """A pod that is not there yet. Owners and claims made for pods know only some names."""
        draw = self._draw
        names = {f"{role}-{i}" for i in range(24)} - {name for kind, _, name in self.objects if kind == "Pod"}
        name = draw.choice(sorted(names) or [f"{role}-more"])
        schedulers = [profile["schedulerName"] for profile in self.config["profiles"]]
        return generate.pod(draw, name, schedulers, self._topics, self._cluster, on_node=on_node)

    # Other objects.

    def _of_others(self) -> Change | None:
        draw = self._draw
        donors = {key_of(each): each for each in generate.others_of(draw, self._topics, self._cluster)}
        there = {key: each for key, each in self.objects.items() if each["kind"] not in ("Node", "Pod")}
        kinds = sorted({kind for kind, _, _ in (*donors, *there)})
        if not kinds:
            return None
        kind = draw.choice(kinds)
        if draw.chance(0.3):
            gone = [each for each in there.values() if each["kind"] == kind]
            return Change(f"{kind} deleted", draw.choice(gone), None) if gone else None
        key = draw.choice([key for key in donors if key[0] == kind] or [None])
        if key is None:
            return None
        if key not in there:
            return self._added(f"{kind} added", donors[key])
        aspect = _UPDATES.get(kind)
        return None if aspect is None else self._updated(f"{kind} updated", there[key], aspect, donors[key])

    # What they share.

    def _all(self, kind: str) -> list[Json]:
        return [each for each in self.objects.values() if each["kind"] == kind]

    def _added(self, what: str, made: Json) -> Change | None:
        return None if key_of(made) in self.objects else Change(what, None, self._stored(made, made["metadata"]))

    def _updated(self, what: str, old: Json, aspect: Aspect, donor: Json, is_reversible: bool = True) -> Change | None:
        changed = copy.deepcopy(old)
        aspect(self._draw, changed, copy.deepcopy(donor))
        if changed == old:
            return None
        return Change(what, old, self._stored(changed, old["metadata"]), is_reversible)


def key_of(made: Json) -> Key:
    metadata = made["metadata"]
    return made["kind"], metadata.get("namespace", ""), metadata["name"]


# Pods.


def marked_deleted(draw: Draw, pod: Json, donor: Json) -> None:
    """Its deletion has begun; it ends when its containers have."""
    pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3600}


def ended(draw: Draw, pod: Json, donor: Json) -> None:
    """It has run to its end."""
    pod["status"]["phase"] = draw.choice(("Succeeded", "Failed"))


def claims_made(draw: Draw, pod: Json, donor: Json) -> None:
    """ResourceClaims were made of the pod's templates."""
    made = [
        {"name": each["name"], "resourceClaimName": f"{pod['metadata']['name']}-own"}
        for each in pod["spec"].get("resourceClaims", ())
        if "resourceClaimTemplateName" in each
    ]
    if made:
        pod["status"]["resourceClaimStatuses"] = made


def nominated(draw: Draw, pod: Json, donor: Json) -> None:
    """Another node is nominated for it, or none any more."""
    pod["status"].pop("nominatedNodeName", None)
    if draw.chance(0.6):
        pod["status"]["nominatedNodeName"] = draw.choice(("n001", "n002", "n003"))


def bound(draw: Draw, pod: Json, donor: Json) -> None:
    """Another scheduler has placed it."""
    pod["spec"].pop("schedulingGates", None)
    pod["spec"]["nodeName"] = draw.choice(("n001", "n002", "n003", "gone"))
    pod["status"]["phase"] = "Running"


_REVERSIBLE: Final = (observed.labels, observed.requests, observed.reported, nominated)


# Other objects: what of them may change.


def fields(*paths: str) -> Aspect:
    """Take over these fields of the donor, or their absence."""

    def take_over(draw: Draw, made: Json, donor: Json) -> None:
        for path in paths:
            *parents, last = path.split(".")
            inside, other = made, donor
            for name in parents:
                inside, other = inside.setdefault(name, {}), other.get(name, {})
            if last in other:
                inside[last] = other[last]
            else:
                inside.pop(last, None)

    return take_over


def volume(draw: Draw, made: Json, donor: Json) -> None:
    """Nearly all; a volume stays the same disk on the same nodes."""
    fields("metadata.labels", "spec.capacity", "spec.accessModes", "spec.storageClassName", "spec.claimRef", "status")(
        draw, made, donor
    )
    if "nodeAffinity" not in made["spec"]:
        fields("spec.nodeAffinity")(draw, made, donor)


def volume_claim(draw: Draw, made: Json, donor: Json) -> None:
    """It is bound, a node is chosen for it or not any more, or its deletion begins."""
    if not made["spec"].get("volumeName") and donor["spec"].get("volumeName"):
        fields("spec.volumeName", "status")(draw, made, donor)
        made["metadata"].setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
    else:
        fields("metadata.annotations", "spec.volumeAttributesClassName", "status")(draw, made, donor)
    if draw.chance(0.1):
        made["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/keep"]}


def claim_status(draw: Draw, made: Json, donor: Json) -> None:
    """It gets devices, or gives them back; those that it has cannot become others."""
    if "allocation" in made.get("status", {}):
        del made["status"]
    else:
        fields("status")(draw, made, donor)


_UPDATES: Final[Mapping[str, Aspect]] = {
    "Namespace": fields("metadata.labels"),
    "PersistentVolume": volume,
    "PersistentVolumeClaim": volume_claim,
    "StorageClass": fields("allowedTopologies"),
    "CSINode": fields("metadata.annotations", "spec.drivers"),
    "CSIDriver": fields("spec.storageCapacity"),
    "CSIStorageCapacity": fields("capacity", "maximumVolumeSize"),
    "ResourceClaim": claim_status,
    "ResourceSlice": fields("spec.devices", "spec.sharedCounters", "spec.pool"),
    "DeviceClass": fields("spec"),
    "Service": fields("spec.selector"),
    "ReplicationController": fields("spec.selector"),
    "PodDisruptionBudget": fields("spec", "status"),
}
"""Kind → what changes. The other kinds are only added and removed."""
