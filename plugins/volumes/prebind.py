"""Before a pod is bound: write to the API server which volumes its claims get, and wait until they have them.

    write each volume's claim, each claim's node ──► CHECK ──every claim is bound──► done
                                                      │ ▲ └──undone, or the time is up──► error: the pod is tried again
                                                      ▼ │
                                 a change of a claim or of its volume, or a second

Rule: volumebinding/binder.go (AssumePodVolumes, BindPodVolumes, bindAPIUpdate, checkBindings) at v1.36.3, which looks
once a second. Writes are patches that hold only if the object is still the version that was seen.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import msgspec

from plugins.volumes.assume import AssumeCache
from plugins.volumes.claims import is_fully_bound
from plugins.volumes.finding import PodVolumes
from plugins.volumes.index import is_bound_to_claim
from plugins.volumes.topology import unreachable_because
from scheduler import framework as fw
from scheduler.api.storage.volumes import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from scheduler.api.versions import is_newer

LOOK_AGAIN_SECONDS: Final = 1.0
"""The longest time between two looks: no change of a claim shows whether pod and node are still there."""

TIMED_OUT: Final = "context deadline exceeded"


class VolumeBinder:
    """Assumes, reverts, writes and waits, for the pods of one profile."""

    def __init__(
        self,
        handle: fw.Handle,
        volumes: AssumeCache[PersistentVolume],
        claims: AssumeCache[PersistentVolumeClaim],
        timeout: float,
    ) -> None:
        """`timeout`: seconds for the claims of one pod to be bound."""
        self._handle = handle
        self._volumes = volumes
        self._claims = claims
        self._timeout = timeout
        self._waiting: defaultdict[tuple[str, str], set[asyncio.Event]] = defaultdict(set)
        handle.objects.listen(fw.PERSISTENT_VOLUME_CLAIM, self._claim_changed)
        handle.objects.listen(fw.PERSISTENT_VOLUME, self._volume_changed)

    def assume(self, volumes: PodVolumes, node_name: str) -> PodVolumes:
        """Assume the volumes found; return the objects to write.

        Raises AttemptFailed, with nothing assumed, if an object has changed meanwhile.
        """
        assumed = PodVolumes()
        try:
            for claim, volume in volumes.static_bindings:
                bound_volume = bind_volume_to_claim(volume, claim)
                if bound_volume is not volume:
                    self._volumes.assume(bound_volume)
                assumed.static_bindings.append((claim, bound_volume))
            for claim in volumes.dynamic_provisions:
                selected = _annotated(claim, SELECTED_NODE, node_name)
                self._claims.assume(selected)
                assumed.dynamic_provisions.append(selected)
        except ValueError:
            self.revert(assumed)
            raise
        return assumed

    def revert(self, assumed: PodVolumes) -> None:
        """Forget unwritten changes; written ones stay assumed until the watch shows them."""
        for _, volume in assumed.static_bindings:
            self._volumes.restore(volume)
        for claim in assumed.dynamic_provisions:
            self._claims.restore(claim)

    async def bind(self, pod: fw.Pod, node_name: str, assumed: PodVolumes) -> None:
        """Return once all claims are bound. Raises ApiError, or AttemptFailed if that is undone or takes too long."""
        await self._write(assumed)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        try:
            with self._watched_changes(assumed) as changed:
                while not self._is_bound(pod, node_name, assumed):
                    left = deadline - loop.time()
                    if left <= 0:
                        raise fw.AttemptFailed(TIMED_OUT)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(min(left, LOOK_AGAIN_SECONDS)):
                            await changed.wait()
                    changed.clear()
        except ValueError as error:
            raise fw.AttemptFailed(f"binding volumes: {error}") from error

    async def _write(self, assumed: PodVolumes) -> None:
        """One after the other, as kube-scheduler does: after a failure the rest stays as it is.

        What is written has the resource version that it got.
        """
        for i, (claim, volume) in enumerate(assumed.static_bindings):
            patch = _patch_of(volume, BOUND_BY_CONTROLLER)
            patch["spec"] = {"claimRef": msgspec.to_builtins(volume.spec.claim_ref)}
            written = await self._handle.api.patch(fw.PERSISTENT_VOLUME, volume.name, "", patch)
            assumed.static_bindings[i] = claim, _at_version(volume, written)
        for i, claim in enumerate(assumed.dynamic_provisions):
            patch = _patch_of(claim, SELECTED_NODE)
            written = await self._handle.api.patch(fw.PERSISTENT_VOLUME_CLAIM, claim.name, claim.namespace, patch)
            assumed.dynamic_provisions[i] = _at_version(claim, written)

    def _is_bound(self, pod: fw.Pod, node_name: str, assumed: PodVolumes) -> bool:
        """Return whether all claims are bound. Raises AttemptFailed for whatever calls for another attempt."""
        row = self._handle.nodes.row_of(node_name)
        if row is None:
            raise fw.AttemptFailed(f'failed to get node "{node_name}": node "{node_name}" not found')
        node = self._handle.nodes.info(row)
        if pod.uid not in self._handle.pods:
            raise fw.AttemptFailed(f'pod does not exist any more: pod "{pod.name}" not found')
        return all(self._has_volume(claim, volume, node) for claim, volume in assumed.static_bindings) and all(
            self._is_provisioned(claim, node) for claim in assumed.dynamic_provisions
        )

    def _has_volume(self, wanted: PersistentVolumeClaim, written: PersistentVolume, node: fw.NodeInfo) -> bool:
        try:
            volume = self._volumes.existing(written.name)
            claim = self._claims.existing(wanted.name, wanted.namespace)
        except ValueError as error:
            raise fw.AttemptFailed(f"failed to check binding: {error}") from error
        if is_newer(written.metadata.resource_version, volume.metadata.resource_version):
            return False  # the watch does not show our own write yet
        self._check_reach(volume, node, "failed to translate pv to csi: ")
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise fw.AttemptFailed(f'ClaimRef got reset for pv "{volume.name}"')
        return is_fully_bound(claim)

    def _is_provisioned(self, written: PersistentVolumeClaim, node: fw.NodeInfo) -> bool:
        try:
            claim = self._claims.existing(written.name, written.namespace)
        except ValueError as error:
            raise fw.AttemptFailed(f"failed to check provisioning pvc: {error}") from error
        if is_newer(written.metadata.resource_version, claim.metadata.resource_version):
            return False
        if not claim.annotations:
            raise fw.AttemptFailed(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.annotations.get(SELECTED_NODE, "") != node.name:
            # This is how a provisioner says that it cannot make the volume there.
            raise fw.AttemptFailed(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.seen(claim.spec.volume_name)
            if volume is None:
                return False  # the watch on volumes may be behind that on claims
            self._check_reach(volume, node)
        return is_fully_bound(claim)

    def _check_reach(self, volume: PersistentVolume, node: fw.NodeInfo, in_front: str = "") -> None:
        try:
            problem = unreachable_because(volume, node, self._handle.objects)
        except ValueError as error:
            raise fw.AttemptFailed(f"{in_front}{error}") from error
        if problem:
            raise fw.AttemptFailed(f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": {problem}')

    @contextmanager
    def _watched_changes(self, assumed: PodVolumes) -> Iterator[asyncio.Event]:
        changed = asyncio.Event()
        claims = [*(claim for claim, _ in assumed.static_bindings), *assumed.dynamic_provisions]
        keys = {(claim.namespace, claim.name) for claim in claims}
        for key in keys:
            self._waiting[key].add(changed)
        try:
            yield changed
        finally:
            for key in keys:
                self._waiting[key].discard(changed)
                if not self._waiting[key]:
                    del self._waiting[key]

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        for claim in (old, new):
            if claim is not None:
                self._wake(claim.namespace, claim.name)

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        for volume in (old, new):
            if volume is not None and volume.spec.claim_ref is not None:
                self._wake(volume.spec.claim_ref.namespace, volume.spec.claim_ref.name)

    def _wake(self, namespace: str, name: str) -> None:
        for waiting in self._waiting.get((namespace, name), ()):
            waiting.set()


def bind_volume_to_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return the volume with a reference to the claim; the same object if it is complete already.

    Rule: component-helpers, storage/volume/pv_helpers.go (GetBindVolumeToClaim) at v0.36.3.
    """
    metadata = claim.metadata
    reference = volume.spec.claim_ref
    # Whether the user had pre-bound it decides what the controller does when the claim is gone.
    changed = volume if is_bound_to_claim(volume, claim) else _annotated(volume, BOUND_BY_CONTROLLER, "yes")
    if reference is None or (reference.namespace, reference.name, reference.uid) != (
        metadata.namespace,
        metadata.name,
        metadata.uid,
    ):
        reference = ObjectReference(
            api_version="v1",
            kind="PersistentVolumeClaim",
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        )
        changed = msgspec.structs.replace(changed, spec=msgspec.structs.replace(changed.spec, claim_ref=reference))
    return changed


def _annotated(target: Any, key: str, value: str) -> Any:
    annotations = {**target.annotations, key: value}
    return msgspec.structs.replace(target, metadata=msgspec.structs.replace(target.metadata, annotations=annotations))


def _patch_of(target: Any, annotation: str) -> dict[str, Any]:
    """A merge patch with one annotation, if present, for this version of the object only."""
    metadata: dict[str, Any] = {"resourceVersion": target.metadata.resource_version}
    if annotation in target.annotations:
        metadata["annotations"] = {annotation: target.annotations[annotation]}
    return {"metadata": metadata}


def _at_version(target: Any, written: Any) -> Any:
    version = written.metadata.resource_version
    return msgspec.structs.replace(target, metadata=msgspec.structs.replace(target.metadata, resource_version=version))
