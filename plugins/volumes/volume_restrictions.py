"""Keep pods apart that must not use the same disk or claim at the same time."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec
import numpy as np

from plugins.shared.column_math import held
from plugins.volumes.objects import NotFound, claim_of, claims_named_by
from scheduler import framework as fw
from scheduler.api.objects import Volume
from scheduler.api.storage.pod_storage import VolumeKey, claim_key, conflicting_keys
from scheduler.api.storage.volumes import READ_WRITE_ONCE_POD, PersistentVolumeClaim

_PRE_FILTERED = "PreFilterVolumeRestrictions"

DISK_IN_USE: Final = fw.unschedulable("node(s) had no available disk")
CLAIM_IN_USE: Final = fw.unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

_DISK = 1
_CLAIM = 2
_REFUSALS: Final = {_DISK: DISK_IN_USE, _CLAIM: CLAIM_IN_USE}


class _PreFilterState(msgspec.Struct):
    disks: tuple[VolumeKey, ...]
    """Disks that must not be in use on the pod's node."""

    exclusive_claims: frozenset[str]
    """The pod's claims that only one pod in the cluster may use."""

    users: int
    """How many times other pods use them."""

    def clone(self) -> "_PreFilterState":
        return _PreFilterState(self.disks, self.exclusive_claims, self.users)

    def count(self, other: fw.Pod, sign: int) -> None:
        # The namespace of the other pod is ignored, as in kube-scheduler.
        self.users += sign * sum(name in self.exclusive_claims for name in claims_named_by(other))


@dataclass
class VolumeRestrictions(fw.PreFilterPlugin, fw.PreFilterExtensions, fw.FilterNodesPlugin, fw.ExplainPlugin):
    """Filter: no pod on the node uses a disk of the pod, and no pod anywhere a claim that is for one pod only.

    Pods may share disks of Google, iSCSI and Ceph that all of them only read. Answers are not stored: they depend on
    claims as well as on the pod. Rule: volumerestrictions/volume_restrictions.go at v1.36.3.
    """

    name: ClassVar[str] = "VolumeRestrictions"

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: volume_restrictions.go (EventsToRegister), which has no hint for a new node.

        Beyond it, a claim for one pod is free when the node of its user is deleted: that pod counts no longer.
        """
        return (
            fw.on(fw.ASSIGNED_POD, fw.Action.DELETE, _after_pod_deleted, _storage),
            fw.on(fw.NODE, fw.Action.ADD),
            fw.on(fw.PERSISTENT_VOLUME_CLAIM, fw.Action.ADD, after_claim, namespace_and_claims),
            fw.on(fw.NODE, fw.Action.DELETE, self._after_node_deleted, namespace_and_claims),
        )

    def _after_node_deleted(self, pod: fw.Pod, old: fw.Node, new: None) -> fw.QueueingHint:
        """A node helps if a claim of the pod is for one pod: its user may have been there."""
        try:
            helps = any(self._is_exclusive(pod.namespace, name) for name in claims_named_by(pod))
        except NotFound:
            helps = False
        return fw.QueueingHint.QUEUE if helps else fw.QueueingHint.SKIP

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        """Find what must not be in use; skip pods without such disks whose claims are free.

        A missing claim rejects the pod as a whole.
        """
        volumes = pod.storage.volumes
        if not volumes:
            return fw.SKIP
        try:
            claims = frozenset(name for name in claims_named_by(pod) if self._is_exclusive(pod.namespace, name))
        except NotFound as error:
            return fw.unresolvable(str(error))
        # One pod at most can use such a claim, so each counts once.
        users = sum(_is_used(claim_key(pod.namespace, name), nodes) for name in claims)
        if not users and not any(map(_has_disk, volumes)):
            return fw.SKIP
        state.write(_PRE_FILTERED, _PreFilterState(_conflicting(pod), claims, users))
        return None

    def concerns(self, pod: fw.Pod) -> bool:
        return bool(pod.storage.volumes)

    def _is_exclusive(self, namespace: str, name: str) -> bool:
        return READ_WRITE_ONCE_POD in (claim_of(self.handle, namespace, name).spec.access_modes or ())

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        """Count the claims of `other`. Raises LookupError if `pre_filter` was not run."""
        _prepared(state).count(other, 1)
        return None

    def remove_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        """Stop counting the claims of `other`. Raises LookupError if `pre_filter` was not run."""
        _prepared(state).count(other, -1)
        return None

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return for each of `rows` whether a disk is in use there, else whether a claim is in use anywhere.

        Raises LookupError if `pre_filter` was not run and a disk does not decide for every row.
        """
        prepared = state.get(_PRE_FILTERED, _PreFilterState)
        taken = np.zeros(len(rows), np.bool_)
        for key in prepared.disks if prepared is not None else _conflicting(pod):
            holders = nodes.volumes.users(key)
            if holders:
                taken |= held(holders, rows, nodes.size)
        if not taken.all() and _prepared(state).users > 0:
            return np.where(taken, np.int32(_DISK), np.int32(_CLAIM))
        return taken.astype(np.int32) if taken.any() else None

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return _REFUSALS[code]

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        """Say which disks are in use on the node, and which claims anywhere, and by whom."""
        users: dict[str, fw.Pod] = {}
        for key in _conflicting(pod):
            *_, disk, _mode = key
            user = min((other for other in node.pods if key in other.storage.keys), key=str, default=None)
            if user is not None:
                users.setdefault(disk, user)
        found = [fw.Obstacle(f"disk {disk} is in use there", example=f"by pod {user}") for disk, user in users.items()]
        prepared = state.get(_PRE_FILTERED, _PreFilterState)
        if not found and prepared is not None:
            found += [self._in_use(name, claim_key(pod.namespace, name)) for name in sorted(prepared.exclusive_claims)]
        return found

    def _in_use(self, name: str, key: VolumeKey) -> fw.Obstacle:
        """The obstacle of a claim that only one pod may use."""
        nodes = self.handle.nodes
        rows = (row for row in nodes.volumes.users(key) if nodes.in_use[row])
        users = ((pod, row) for row in rows for pod in nodes.info(row).pods if key in pod.storage.keys)
        user, row = min(users, key=lambda each: str(each[0]), default=(None, 0))
        return fw.Obstacle(
            f"claim {name} is for one pod at a time (ReadWriteOncePod)"
            + (f", and pod {user} on {nodes.names()[row]} uses it" if user is not None else ""),
            in_the_way=(fw.PodInTheWay(user),) if user is not None else (),
        )


def _prepared(state: fw.CycleState) -> _PreFilterState:
    return state.read(_PRE_FILTERED, _PreFilterState, 'cannot read "{key}" from cycleState')


def _conflicting(pod: fw.Pod) -> tuple[VolumeKey, ...]:
    """The disks that must not be in use on the pod's node."""
    return tuple(key for volume in pod.storage.volumes for key in conflicting_keys(volume))


def _is_used(key: VolumeKey, nodes: fw.NodeColumns) -> bool:
    """Return whether a pod uses it on a row that is a node. Rule: snapshot.go (IsPVCUsedByPods)."""
    in_use = nodes.in_use
    return any(in_use[row] for row in nodes.volumes.users(key))


def _has_disk(volume: Volume) -> bool:
    """Rule: volume_restrictions.go (needsRestrictionsCheck)."""
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


# Queueing hints.


def namespace_and_claims(pod: fw.Pod) -> Hashable:
    """The key for hints that look for the pod's claims."""
    return pod.namespace, claims_named_by(pod)


def after_claim(pod: fw.Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> fw.QueueingHint:
    """A claim helps that the pod names. Rule: isSchedulableAfterPersistentVolumeClaimAdded."""
    named = new.namespace == pod.namespace and new.name in claims_named_by(pod)
    return fw.QueueingHint.QUEUE if named else fw.QueueingHint.SKIP


def _storage(pod: fw.Pod) -> Hashable:
    return pod.namespace, pod.storage.keys


def _after_pod_deleted(pod: fw.Pod, old: fw.Pod, new: None) -> fw.QueueingHint:
    """A pod helps that used a claim of the pod, or a disk. Rule: isSchedulableAfterPodDeleted.

    The claim's access mode is ignored, as in kube-scheduler. There pods of other namespaces never help; but a disk is
    in use by any pod.
    """
    if not old.storage.keys:
        return fw.QueueingHint.SKIP
    used = set(old.storage.keys)
    claims = (claim_key(pod.namespace, name) for name in claims_named_by(pod))
    shared = any(key in used for keys in (claims, _conflicting(pod)) for key in keys)
    return fw.QueueingHint.QUEUE if shared else fw.QueueingHint.SKIP
