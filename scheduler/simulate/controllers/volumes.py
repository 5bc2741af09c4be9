"""The volumes that new claims are bound to before a pod is scheduled: those of classes that do not wait for one.

    claim ─► names a volume? ─► a free one that matches? ─► a provisioner? ─► a new one

Rules: pkg/controller/volume/persistentvolume/pv_controller.go (syncUnboundClaim) and component-helpers'
storage/volume/pv_helpers.go (FindMatchingVolume) at v1.36.3.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.generated_uids import uid_of
from scheduler.api.label_selectors import parse_label_selector
from scheduler.api.objects import LabelSelector
from scheduler.api.quantities.quantity import parse_quantity
from scheduler.simulate.controllers.workloads import part
from scheduler.simulate.other_objects import OtherObject

CLAIM: Final = "PersistentVolumeClaim"
_CLASS: Final = "StorageClass (storage.k8s.io/v1)"
_VOLUME: Final = "PersistentVolume"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_IN_TREE: Final = "kubernetes.io/"

Content = Mapping[str, Any]


class Volumes:
    """Binds claims, and makes volumes for them."""

    def __init__(self, others: Iterable[OtherObject]) -> None:
        self._classes: dict[str, Content] = {}
        self._free: dict[str, OtherObject] = {}
        self._made: Counter[str] = Counter()
        self._without: Counter[str] = Counter()
        self.missing: dict[str, list[str]] = {}
        """A class that is not there → the claims that name it."""
        for obj in others:
            name = str(obj.metadata.get("name"))
            if obj.label == _CLASS:
                self._classes[name] = obj.content
            elif obj.label == _VOLUME:
                self._free[name] = obj

    def bound(self, others: Iterable[OtherObject]) -> list[OtherObject]:
        """Return the objects with their claims bound, and the volumes of these."""
        changed: dict[tuple[str, str, str], OtherObject] = {}
        others = list(others)
        for obj in others:
            if obj.label != CLAIM:
                continue
            try:
                volume = self._volume_for(obj)
            except (Unreadable, ValueError):
                continue  # its decoder reports it
            if volume is not None:
                changed[obj.key] = _bound(obj, str(volume.metadata.get("name")))
                changed[volume.key] = volume
        there = [changed.pop(obj.key, obj) for obj in others]
        return [*there, *changed.values()]

    def notes(self) -> list[str]:
        """Say what a cluster might do in another way."""
        notes = []
        if self._made:
            notes.append(
                f"bound to new volumes that every node can use: {_listed(self._made)}; in a cluster their "
                "provisioner also chooses where they are"
            )
        if self._without:
            notes.append(
                f"not bound, so that pods wait: {_listed(self._without)}; no PersistentVolume in the files fits, "
                "and nothing provisions one"
            )
        return notes

    def _volume_for(self, claim: OtherObject) -> OtherObject | None:
        """Return the volume of a claim that binds at once, as it is then. Raises Unreadable, ValueError."""
        spec = part(claim.content, "spec")
        name = _class_of(claim)
        storage_class = self._classes.get(name)
        if name and storage_class is None and not spec.get("volumeName"):
            self.missing.setdefault(name, []).append("/".join(claim.key[1:]))
        if claim.metadata.get("resourceVersion"):
            return None  # what its controllers could do, they have done
        wanted = spec.get("volumeName")
        if wanted:
            volume = self._free.get(str(wanted))
            return None if volume is None or not _is_free_for(volume, claim) else self._taken(volume, claim)
        if name and (storage_class is None or storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"):
            return None
        matching = [volume for volume in self._free.values() if _matches(volume, claim, name)]
        if matching:
            return self._taken(min(matching, key=_size), claim)
        if storage_class is None or storage_class.get("provisioner") == _NO_PROVISIONER:
            self._without[name] += 1
            return None
        self._made[name] += 1
        return _provisioned(claim, name, storage_class)

    def _taken(self, volume: OtherObject, claim: OtherObject) -> OtherObject:
        del self._free[str(volume.metadata.get("name"))]
        spec = {**part(volume.content, "spec"), "claimRef": _reference(claim)}
        return volume._replace(content={**volume.content, "spec": spec, "status": {"phase": "Bound"}})


def _class_of(claim: OtherObject) -> str:
    old = part(claim.metadata, "annotations").get(_OLD_CLASS)
    return str(old if old is not None else part(claim.content, "spec").get("storageClassName") or "")


def _is_free_for(volume: OtherObject, claim: OtherObject) -> bool:
    reference = part(part(volume.content, "spec"), "claimRef")
    _, namespace, name = claim.key
    return not reference or (reference.get("namespace"), reference.get("name")) == (namespace, name)


def _matches(volume: OtherObject, claim: OtherObject, storage_class: str) -> bool:
    offered, wanted = part(volume.content, "spec"), part(claim.content, "spec")
    if part(offered, "claimRef"):
        return _is_free_for(volume, claim)
    selector = parse_label_selector(convert(wanted["selector"], LabelSelector)) if wanted.get("selector") else None
    return (
        (offered.get("storageClassName") or "") == storage_class
        and (offered.get("volumeMode") or "Filesystem") == (wanted.get("volumeMode") or "Filesystem")
        and set(_texts(wanted.get("accessModes"))) <= set(_texts(offered.get("accessModes")))
        and not volume.metadata.get("deletionTimestamp")
        and part(volume.content, "status").get("phase") == "Available"
        and (selector is None or selector.matches(part(volume.metadata, "labels")))
        and _size(volume)[1] >= parse_quantity(part(part(wanted, "resources"), "requests").get("storage") or 0)
    )


def _size(volume: OtherObject) -> tuple[bool, int, str]:
    """Sort by this for the volume that was made for the claim, then for the smallest."""
    spec = part(volume.content, "spec")
    size = parse_quantity(part(spec, "capacity").get("storage") or 0)
    return not part(spec, "claimRef"), size, str(volume.metadata.get("name"))


def _provisioned(claim: OtherObject, name: str, storage_class: Content) -> OtherObject:
    _, namespace, of_claim = claim.key
    volume = f"pvc-{uid_of(CLAIM, namespace, of_claim)}"
    wanted, provisioner = part(claim.content, "spec"), str(storage_class.get("provisioner") or "")
    spec: dict[str, Any] = {
        "capacity": part(part(wanted, "resources"), "requests"),
        "accessModes": wanted.get("accessModes"),
        "volumeMode": wanted.get("volumeMode"),
        "storageClassName": name,
        "claimRef": _reference(claim),
    }
    if not provisioner.startswith(_IN_TREE):
        spec["csi"] = {"driver": provisioner, "volumeHandle": volume}
    if topologies := convert(storage_class.get("allowedTopologies") or [], list[dict[str, Any]]):
        terms = [{"matchExpressions": _requirements(each)} for each in topologies]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    content = {
        "apiVersion": "v1",
        "kind": _VOLUME,
        "metadata": {"name": volume},
        "spec": spec,
        "status": {"phase": "Bound"},
    }
    return OtherObject(claim.place, _VOLUME, content)


def _requirements(topology: Content) -> list[dict[str, Any]]:
    expressions = convert(topology.get("matchLabelExpressions") or [], list[dict[str, Any]])
    return [{**each, "operator": "In"} for each in expressions]


def _texts(value: Any) -> list[str]:
    return convert(value or [], list[str])


def _reference(claim: OtherObject) -> dict[str, str]:
    _, namespace, name = claim.key
    return {"kind": CLAIM, "namespace": namespace, "name": name}


def _bound(claim: OtherObject, volume: str) -> OtherObject:
    annotations = {**part(claim.metadata, "annotations"), **_BOUND}
    content = {
        **claim.content,
        "metadata": {**claim.metadata, "annotations": annotations},
        "spec": {**part(claim.content, "spec"), "volumeName": volume},
        "status": {"phase": "Bound"},
    }
    return claim._replace(content=content)


def _listed(claims: Counter[str]) -> str:
    """3 claims of class blocks, 1 claim of no class."""
    return ", ".join(
        f"{number} claim{'s' if number > 1 else ''} of {f'class {name}' if name else 'no class'}"
        for name, number in sorted(claims.items())
    )
