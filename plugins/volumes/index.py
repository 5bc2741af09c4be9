"""Persistent volumes as claims look for them: unbound ones, smallest first, and those pre-bound to a claim.

Kept up to date with each change, so that a decision looks at no volume that is in use: most of them are.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

import msgspec

from plugins.volumes.topology import only_label, terms_of
from scheduler import framework as fw
from scheduler.api.objects import ResourceList
from scheduler.api.quantities.quantity import parse_quantity, value_of
from scheduler.api.selectors import SelectorTerm
from scheduler.api.storage.volumes import PersistentVolume, PersistentVolumeClaim

AVAILABLE: Final = "Available"
FILESYSTEM: Final = "Filesystem"

Label: TypeAlias = tuple[str, frozenset[str]]
"""A label, and the values that will do."""


class Kind(NamedTuple):
    """A claim's requirements of a volume except size, topology and labels. Few kinds exist."""

    access_modes: frozenset[str]
    volume_mode: str
    attributes_class: str

    def serves(self, wanted: "Kind") -> bool:
        """Return whether a volume of this kind is what a claim wants."""
        return wanted.access_modes <= self.access_modes and wanted[1:] == self[1:]


class VolumeCandidate(msgspec.Struct, frozen=True, eq=False):
    """A volume, with the fields that are compared with a claim."""

    number: int
    """A unique number."""
    name: str
    capacity: int
    """Billionths of a byte."""
    size: int
    """The same in bytes, as an int64."""
    kind: Kind
    volume: PersistentVolume
    terms: tuple[SelectorTerm, ...] | None
    """The node affinity; None if any node will do."""
    label: Label | None
    """The same, if it is a single label."""
    order: tuple[int, str]
    """The smallest first. kube-scheduler takes any of equal ones; we take the first by name."""


_order = attrgetter("order")
_numbers = count()


def candidate_of(volume: PersistentVolume) -> VolumeCandidate:
    """Return the volume as a candidate for claims."""
    terms, name, capacity = terms_of(volume), volume.name, storage_of(volume.spec.capacity)
    return VolumeCandidate(
        number=next(_numbers),
        name=name,
        capacity=capacity,
        size=bytes_of(volume.spec.capacity),
        kind=kind_of(volume),
        volume=volume,
        terms=terms,
        label=None if terms is None else only_label(terms),
        order=(capacity, name),
    )


def kind_of(target: PersistentVolume | PersistentVolumeClaim) -> Kind:
    """Return the kind of a volume, or the one that a claim requires."""
    spec = target.spec
    modes = frozenset(spec.access_modes or ())
    return Kind(modes, spec.volume_mode or FILESYSTEM, spec.volume_attributes_class_name or "")


def storage_of(amounts: ResourceList | None) -> int:
    """Return the amount of storage in billionths of a byte; 0 if there is none, or none that can be read."""
    try:
        return parse_quantity((amounts or {}).get("storage", 0))
    except ValueError:
        return 0


def bytes_of(amounts: ResourceList | None) -> int:
    """Return the amount of storage in bytes, as an int64; 0 if there is none, or none that can be read."""
    try:
        return value_of((amounts or {}).get("storage", 0))
    except ValueError:
        return 0


class PersistentVolumeIndex:
    """All volumes that are not in use, by class and kind, and those with a claim, by that claim."""

    def __init__(self, objects: fw.ObjectLister) -> None:
        self._free: defaultdict[str, dict[Kind, list[VolumeCandidate]]] = defaultdict(dict)
        # Most volumes are in use: they are looked at more closely only on demand.
        self._prebound: defaultdict[str, dict[str, tuple[PersistentVolume, ...]]] = defaultdict(dict)
        """Namespace → name of a claim → the volumes that name it: one, except for mistakes."""
        objects.listen(fw.PERSISTENT_VOLUME, self._changed, self._reset)

    def free(self, class_name: str, kind: Kind, at_least: int) -> Sequence[VolumeCandidate]:
        """Return the unbound volumes of a class that serve, from this capacity on, smallest first."""
        parts = [
            candidates[bisect_left(candidates, (at_least, ""), key=_order) :]
            for each, candidates in self._free.get(class_name, {}).items()
            if each.serves(kind)
        ]
        return parts[0] if len(parts) == 1 else sorted((each for part in parts for each in part), key=_order)

    def prebound_to(self, claim: PersistentVolumeClaim) -> Iterator[VolumeCandidate]:
        """Yield the volumes that name this claim, whatever their other properties."""
        volumes = self._prebound.get(claim.namespace, {}).get(claim.name, ())
        for volume in sorted(volumes, key=attrgetter("name")):
            if is_bound_to_claim(volume, claim):
                yield candidate_of(volume)

    def _reset(self) -> None:
        self._free.clear()
        self._prebound.clear()

    def _changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if old is not None:
            self._take_out(old)
        if new is not None:
            self._put_in(new)

    def _put_in(self, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref
        if reference is not None:
            of_namespace = self._prebound[reference.namespace]
            of_namespace[reference.name] = (*of_namespace.get(reference.name, ()), volume)
        elif _is_free(volume):
            candidate = candidate_of(volume)
            insort(self._free[volume.class_name].setdefault(candidate.kind, []), candidate, key=_order)

    def _take_out(self, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref
        if reference is not None:
            of_namespace = self._prebound[reference.namespace]
            left = tuple(each for each in of_namespace[reference.name] if each is not volume)
            if left:
                of_namespace[reference.name] = left
            else:
                del of_namespace[reference.name]
                if not of_namespace:
                    del self._prebound[reference.namespace]
        elif _is_free(volume):
            of_class, kind = self._free[volume.class_name], kind_of(volume)
            candidates = of_class[kind]
            del candidates[bisect_left(candidates, (storage_of(volume.spec.capacity), volume.name), key=_order)]
            if not candidates:
                del of_class[kind]
            if not of_class:
                del self._free[volume.class_name]


def is_bound_to_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume names this claim. Rule: component-helpers, storage/volume (IsVolumeBoundToClaim)."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.namespace, claim.name)
        and reference.uid in ("", claim.metadata.uid)
    )


def _is_free(volume: PersistentVolume) -> bool:
    return volume.status.phase == AVAILABLE and volume.metadata.deletion_timestamp is None
