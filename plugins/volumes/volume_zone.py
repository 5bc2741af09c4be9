"""Keep pods in the zones of their volumes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from plugins.shared.column_math import pick
from plugins.shared.queueing import any_pod
from plugins.volumes.objects import NotFound, claim_of, claims_named_by, class_of, volume_of
from plugins.volumes.volume_restrictions import after_claim, namespace_and_claims
from scheduler import framework as fw
from scheduler.api.storage.csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONES_DELIMITER
from scheduler.api.storage.volumes import WAIT_FOR_FIRST_CONSUMER, PersistentVolume, StorageClass

_PRE_FILTERED = "PreFilterVolumeZone"

OTHER_ZONE: Final = fw.unresolvable("node(s) had no available volume zone")

_TOPOLOGY_LABELS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_STABLE: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}
"""Beta label → the stable one, which a node may have instead."""


class _VolumeTopology(NamedTuple):
    """The topology of a volume: a node's label must have one of the values."""

    key: str
    values: frozenset[str]


class _VolumeTopologies(NamedTuple):
    topologies: tuple[_VolumeTopology, ...]


@dataclass
class VolumeZone(fw.PreFilterPlugin, fw.IgnoresPods, fw.ExplainPlugin):
    """Filter: the node is in the zone and region that the labels of the pod's bound volumes say, if it has any.

    Answers are not stored: they depend on claims and volumes as well as on the pod. Rule: volumezone/volume_zone.go at
    v1.36.3.
    """

    name: ClassVar[str] = "VolumeZone"

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: volume_zone.go (EventsToRegister), which has no hint for nodes."""
        add, update = fw.Action.ADD, fw.Action.UPDATE
        return (
            fw.on(fw.STORAGE_CLASS, add, _after_class_added, any_pod),
            fw.on(fw.NODE, add | fw.Action.UPDATE_NODE_LABEL),
            fw.on(fw.PERSISTENT_VOLUME_CLAIM, add | update, after_claim, namespace_and_claims),
            fw.on(fw.PERSISTENT_VOLUME, add | update, _after_volume, any_pod),
        )

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        """Find the topologies of the pod's volumes; skip pods without.

        A claim that is neither bound nor waits for its first consumer rejects the pod as a whole.
        """
        if not pod.storage.volumes:
            return fw.SKIP
        result = self._topologies_of(pod)
        if isinstance(result, fw.Status):
            return result
        if not result.topologies:
            return fw.SKIP
        state.write(_PRE_FILTERED, result)
        return None

    def concerns(self, pod: fw.Pod) -> bool:
        return bool(pod.storage.volumes)

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return 1 for each of `rows` in the wrong topology. Without `pre_filter`, looks the volumes up itself."""
        result = state.get(_PRE_FILTERED, _VolumeTopologies) or self._topologies_of(pod)
        if isinstance(result, fw.Status):
            return np.ones(len(rows), np.int32)
        right = _is_in(result.topologies[0], nodes, rows) if result.topologies else np.ones(len(rows), np.bool_)
        for topology in result.topologies[1:]:
            right &= _is_in(topology, nodes, rows)
        if right.all():
            return None
        elsewhere = np.flatnonzero(~right)
        codes = np.zeros(len(rows), np.int32)
        codes[elsewhere] = _have_topology(nodes, rows[elsewhere])
        return codes

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        if state.get(_PRE_FILTERED, _VolumeTopologies) is None:
            result = self._topologies_of(pod)
            if isinstance(result, fw.Status):
                return result
        return OTHER_ZONE

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        """Say which volumes are elsewhere, and where."""
        rows, nodes = np.array([node.row]), self.handle.nodes
        found = []
        for name in claims_named_by(pod):
            try:
                volume_name = claim_of(self.handle, pod.namespace, name).spec.volume_name
                topologies = topologies_of(volume_of(self.handle, volume_name)) if volume_name else ()
            except NotFound:
                return ()
            found += [
                fw.Obstacle(
                    f"volume {volume_name} of claim {name} is where {topology.key} is "
                    + " or ".join(sorted(topology.values)),
                )
                for topology in topologies
                if not _is_in(topology, nodes, rows)[0]
            ]
        return found

    def _topologies_of(self, pod: fw.Pod) -> _VolumeTopologies | fw.Status:
        topologies: list[_VolumeTopology] = []
        try:
            for name in claims_named_by(pod):
                result = self._topologies_of_claim(pod.namespace, name)
                if isinstance(result, fw.Status):
                    return result
                topologies += result
        except NotFound as error:
            return fw.unresolvable(str(error))
        return _VolumeTopologies(tuple(topologies))

    def _topologies_of_claim(self, namespace: str, name: str) -> Sequence[_VolumeTopology] | fw.Status:
        """Raises NotFound."""
        if not name:
            return fw.unresolvable("PersistentVolumeClaim had no name")
        claim = claim_of(self.handle, namespace, name)
        if claim.spec.volume_name:
            return topologies_of(volume_of(self.handle, claim.spec.volume_name))
        if not claim.class_name:
            return fw.unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        mode = class_of(self.handle, claim.class_name).volume_binding_mode
        if mode is None:
            return fw.unresolvable(f'VolumeBindingMode not set for StorageClass "{claim.class_name}"')
        return () if mode == WAIT_FOR_FIRST_CONSUMER else fw.unresolvable("PersistentVolume had no name")


def topologies_of(volume: PersistentVolume) -> list[_VolumeTopology]:
    """Return a volume's topology labels, except those with an empty zone in their list."""
    topologies = []
    for key in _TOPOLOGY_LABELS:
        label = volume.labels.get(key)
        if label is not None:
            values = frozenset(value.strip() for value in label.split(ZONES_DELIMITER))
            if "" not in values:
                topologies.append(_VolumeTopology(key, values))
    return topologies


def _is_in(topology: _VolumeTopology, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    """Return which of `rows` have the label with a right value; without a beta label the stable one counts."""
    result = _matching(topology.key, topology.values, nodes, rows)
    stable = _STABLE.get(topology.key)
    if stable is not None:
        absent = pick(nodes.label_codes(topology.key), rows) == 0
        result |= absent & _matching(stable, topology.values, nodes, rows)
    return result


def _matching(key: str, values: frozenset[str], nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    matching = np.array([value in values for value in nodes.label_values(key)], np.bool_)
    matching[0] = False  # no such label
    result: fw.BoolColumn = matching[pick(nodes.label_codes(key), rows)]
    return result


def _have_topology(nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    """Return which of `rows` have a topology label; nodes of a cluster with a single zone may have none."""
    result = np.zeros(len(rows), np.bool_)
    for key in _TOPOLOGY_LABELS:
        if len(nodes.label_values(key)) > 1:  # any node has the label
            result |= nodes.label_codes(key)[rows] != 0
    return result


# Queueing hints.


def _after_class_added(pod: fw.Pod, old: None, new: StorageClass) -> fw.QueueingHint:
    """A class helps that waits for the first consumer. Rule: isSchedulableAfterStorageClassAdded."""
    waits = new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return fw.QueueingHint.QUEUE if waits else fw.QueueingHint.SKIP


def _after_volume(pod: fw.Pod, old: PersistentVolume | None, new: PersistentVolume) -> fw.QueueingHint:
    """A new volume helps, and one with another topology. Rule: isSchedulableAfterPersistentVolumeChange."""
    moved = old is None or topologies_of(old) != topologies_of(new)
    return fw.QueueingHint.QUEUE if moved else fw.QueueingHint.SKIP
