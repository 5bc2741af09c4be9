"""A pod's claims on each node: bound volumes that can be reached, and others that match or can be provisioned.

Rule: volumebinding/binder.go (FindPodVolumes, checkBoundClaims, findMatchingVolumes, checkVolumeProvisions) at v1.37.2.
kube-scheduler works node by node; here each step covers all nodes that are still feasible.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from plugins.volumes.assume import AssumeCache
from plugins.volumes.capacity import CapacityIndex, requested_by
from plugins.volumes.claims import PodVolumeClaims
from plugins.volumes.csi_nodes import CsiNodeColumns
from plugins.volumes.index import PersistentVolumeIndex
from plugins.volumes.matching import NONE, Choices, Matching, by_size
from plugins.volumes.scoring import ClaimStorage, storage_scores
from plugins.volumes.topology import allowed, reachable
from scheduler import framework as fw
from scheduler.api.storage.volumes import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim, StorageClass

NODE_CONFLICT: Final = 1
BIND_CONFLICT: Final = 2
NOT_ENOUGH_SPACE: Final = 4
VOLUME_MISSING: Final = 8
"""Reason codes; a node can have several, added up."""

REASONS: Final = {
    NODE_CONFLICT: "node(s) didn't match PersistentVolume's node affinity",
    BIND_CONFLICT: "node(s) didn't find available persistent volumes to bind",
    NOT_ENOUGH_SPACE: "node(s) did not have enough free storage",
    VOLUME_MISSING: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


@dataclass(slots=True)
class PodVolumes:
    """The volumes of a pod to bind and to provision on one node: as they were found, or as they are to be written."""

    static_bindings: list[tuple[PersistentVolumeClaim, PersistentVolume]] = field(default_factory=list)
    """Claims that get an existing volume."""
    dynamic_provisions: list[PersistentVolumeClaim] = field(default_factory=list)
    """Claims for which a volume is to be provisioned."""


class VolumeFinder:
    """Looks for volumes in the cluster as it is, and as it is assumed to be."""

    def __init__(self, handle: fw.Handle, volumes: AssumeCache[PersistentVolume]) -> None:
        objects = handle.objects
        self._objects = objects
        self._volumes = volumes
        self._index = PersistentVolumeIndex(objects)
        self._migrated = CsiNodeColumns(handle)
        self.capacities = CapacityIndex(objects)

    def refusals(
        self, claims: PodVolumeClaims, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> tuple[fw.Int32Column | None, "VolumeSearch | None"]:
        """Return for each of `rows` the sum of its reason codes (None: no refusal at all), and how they were found.

        Raises AttemptFailed for what concerns the pod or its claims and not the nodes.
        """
        codes = self._bound_refusals(claims.bound, nodes, rows)
        if not claims.unbound_delayed:
            return codes, None
        search = VolumeSearch(self, claims.unbound_delayed, nodes, rows)
        return search.codes if codes is None else codes + search.codes, search

    def search(self, claims: PodVolumeClaims, nodes: fw.NodeColumns, rows: fw.Rows) -> "VolumeSearch":
        """Look for the volumes of unbound claims. Raises as `refusals`."""
        return VolumeSearch(self, claims.unbound_delayed, nodes, rows)

    def _bound_refusals(
        self, claims: list[PersistentVolumeClaim], nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """A node has the code of its first obstacle only."""
        codes: fw.Int32Column | None = None
        for claim in claims:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                code, refused = VOLUME_MISSING, np.ones(len(rows), np.bool_)
            else:
                reached = self._reachable(volume, nodes, rows, codes)
                if reached is None:
                    continue
                code, refused = NODE_CONFLICT, ~reached
            if codes is None:
                codes = np.zeros(len(rows), np.int32)
            codes[refused & (codes == 0)] = code
            if volume is None:
                break
        return codes

    def _reachable(
        self, volume: PersistentVolume, nodes: fw.NodeColumns, rows: fw.Rows, codes: fw.Int32Column | None
    ) -> fw.BoolColumn | None:
        """As `reachable`, for rows without an obstacle: errors of a volume must not be raised for the rest."""
        if codes is None or not codes.any():
            return reachable(volume, nodes, rows, self._migrated)
        reached = np.zeros(len(rows), np.bool_)
        still_feasible = codes == 0
        result = reachable(volume, nodes, rows[still_feasible], self._migrated)
        reached[still_feasible] = True if result is None else result
        return reached

    def matching(self, nodes: fw.NodeColumns, rows: fw.Rows) -> Matching:
        return Matching(self._index, self._volumes, nodes, rows)

    def storage_class(self, claim: PersistentVolumeClaim) -> StorageClass:
        """Return the class of a claim whose volume is to be provisioned. Raises AttemptFailed if there is none."""
        name = claim.class_name
        if not name:
            raise fw.AttemptFailed(f'no class for claim "{claim}"')
        result: StorageClass | None = self._objects.get(fw.STORAGE_CLASS, name)
        if result is None:
            raise fw.AttemptFailed(f'failed to find storage class "{name}"')
        return result

    def capacity(self, claim: PersistentVolumeClaim, nodes: fw.NodeColumns, rows: fw.Rows) -> ClaimStorage | None:
        """Return the storage in which a volume for the claim would be made; None if it is not tracked."""
        return self.capacities.storage(claim, self.storage_class(claim), nodes, rows)


class VolumeSearch:
    """One search for the volumes of unbound claims, on all of `rows`."""

    def __init__(
        self, finder: VolumeFinder, claims: list[PersistentVolumeClaim], nodes: fw.NodeColumns, rows: fw.Rows
    ) -> None:
        self._finder = finder
        self._nodes = nodes
        self._rows = rows
        self.codes: fw.Int32Column = np.zeros(len(rows), np.int32)
        selected = [claim for claim in claims if SELECTED_NODE in claim.annotations]
        self._refuse_other_nodes(selected)
        self._matching = finder.matching(nodes, rows)
        self._choices: list[tuple[PersistentVolumeClaim, Choices]] = []
        self._to_provision: list[tuple[PersistentVolumeClaim, fw.BoolColumn]] = [
            (claim, np.ones(len(rows), np.bool_)) for claim in selected
        ]
        if self._feasible().any():
            self._match([claim for claim in claims if SELECTED_NODE not in claim.annotations])
            self._provision()

    def volumes_on(self, row: int) -> PodVolumes | None:
        """Return the volumes to bind and to provision on one row; None if the row was not searched."""
        at = int(np.searchsorted(self._rows, row))
        if at == len(self._rows) or self._rows[at] != row:
            return None
        volumes = PodVolumes()
        for claim, choices in self._choices:
            if choices[at] != NONE:
                volumes.static_bindings.append((claim, self._matching.volume(int(choices[at]))))
        volumes.dynamic_provisions = [claim for claim, needed in self._to_provision if needed[at]]
        return volumes

    def scores(self, line: fw.Int64Column, rows: fw.Rows) -> fw.Int64Column | None:
        """Return the scores of `rows` by the storage used there; None if not all of them were searched."""
        if rows is self._rows or np.array_equal(rows, self._rows):
            return self._scores(line)
        places = np.minimum(np.searchsorted(self._rows, rows), len(self._rows) - 1)
        return self._scores(line)[places] if np.array_equal(rows, self._rows[places]) else None

    def _scores(self, line: fw.Int64Column) -> fw.Int64Column:
        size = len(self._rows)
        has_volume = np.zeros(size, np.bool_)
        for _, choices in self._choices:
            has_volume |= choices != NONE
        if not has_volume.any():
            return storage_scores(self._provisions(), line, size, adds_up=False)
        binds = [
            ClaimStorage(claim.class_name, requested_by(claim), *sizes)
            for (claim, _), sizes in zip(self._choices, self._matching.sizes(), strict=True)
        ]
        scores = storage_scores(binds, line, size, adds_up=True)
        if has_volume.all():
            return scores
        return np.where(has_volume, scores, storage_scores(self._provisions(), line, size, adds_up=False))

    def _provisions(self) -> list[ClaimStorage]:
        found: list[ClaimStorage] = []
        for claim, needed in self._to_provision:
            is_feasible = (needed & self._feasible()).any()  # elsewhere its class need not exist
            storage = self._finder.capacity(claim, self._nodes, self._rows) if is_feasible else None
            if storage is not None:
                storage.places[~needed] = len(storage.sizes) - 1
                found.append(storage)
        return found

    def _feasible(self) -> fw.BoolColumn:
        still_feasible: fw.BoolColumn = self.codes == 0
        return still_feasible

    def _refuse_other_nodes(self, selected: list[PersistentVolumeClaim]) -> None:
        """A claim whose volume is being provisioned for one node can only be used there."""
        for claim in selected:
            row = self._nodes.row_of(claim.annotations[SELECTED_NODE])
            self.codes[self._rows != (-1 if row is None else row)] = BIND_CONFLICT

    def _match(self, claims: list[PersistentVolumeClaim]) -> None:
        for claim in by_size(claims):
            choices = self._matching.choose(claim)
            self._choices.append((claim, choices))
            unmatched = choices == NONE
            if unmatched.any():
                self._to_provision.append((claim, unmatched))

    def _provision(self) -> None:
        """Refuse nodes on which a missing volume cannot be provisioned. The first obstacle counts."""
        for claim, needed in self._to_provision:
            asked = needed & self._feasible()
            if asked.any():
                for code, possible in self._conditions(claim):
                    if possible is not None:
                        self.codes[asked & self._feasible() & ~possible] = code

    def _conditions(self, claim: PersistentVolumeClaim) -> Iterator[tuple[int, fw.BoolColumn | None]]:
        storage_class = self._finder.storage_class(claim)
        if storage_class.provisioner in ("", NO_PROVISIONER):
            yield BIND_CONFLICT, np.zeros(len(self._rows), np.bool_)
            return
        yield BIND_CONFLICT, allowed(storage_class, self._nodes, self._rows)
        yield NOT_ENOUGH_SPACE, self._finder.capacities.enough(claim, storage_class, self._nodes, self._rows)


def reasons_of(codes: int) -> tuple[str, ...]:
    """The texts behind a sum of codes, in kube-scheduler's order."""
    return tuple(text for code, text in REASONS.items() if codes & code)
