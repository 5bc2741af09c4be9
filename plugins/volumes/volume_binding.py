"""Give a pod's claims their volumes: only nodes from which they can be reached, and only once they are bound."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from plugins.volumes.assume import AssumeCache
from plugins.volumes.capacity import CapacityIndex
from plugins.volumes.claims import ClaimError, PodVolumeClaims, has_claims, volume_claims_of
from plugins.volumes.finding import VolumeFinder, VolumeSearch, reasons_of
from plugins.volumes.hints import volume_binding_events
from plugins.volumes.index import PersistentVolumeIndex
from plugins.volumes.migrated import MigratedNodes
from plugins.volumes.prebind import AssumedVolumes, VolumeBinder
from scheduler import framework as fw
from scheduler.api.volumes import PersistentVolume, PersistentVolumeClaim
from scheduler.framework.field_errors import invalid

DEFAULT_BIND_TIMEOUT_SECONDS: Final = 600

UNBOUND_IMMEDIATE: Final = fw.unresolvable("pod has unbound immediate PersistentVolumeClaims")

_REFUSALS: Final = tuple(fw.unresolvable(*reasons_of(codes)) for codes in range(16))


@dataclass(slots=True)
class _Found:
    """What one cycle knows of a pod's volumes."""

    claims: PodVolumeClaims
    search: VolumeSearch | None = None
    """How Filter found its last answer. Nothing changes between Filter and Reserve."""
    assumed: AssumedVolumes | None = None
    """What is to be written; None if nothing is."""


class _Volumes:
    """What outlives a cycle: what there is to choose from, and what was decided and is not yet confirmed."""

    def __init__(self, handle: fw.Handle, bind_timeout_seconds: int) -> None:
        # All from the start: it grows with each object that comes, and no decision waits for all of them.
        objects = handle.objects
        volumes: AssumeCache[PersistentVolume] = AssumeCache(objects, fw.PERSISTENT_VOLUME)
        self.claims: AssumeCache[PersistentVolumeClaim] = AssumeCache(objects, fw.PERSISTENT_VOLUME_CLAIM)
        self.finder = VolumeFinder(
            objects,
            volumes,
            PersistentVolumeIndex(objects),
            CapacityIndex(objects),
            MigratedNodes(handle.nodes, objects),
        )
        self.binder = VolumeBinder(handle, volumes, self.claims, bind_timeout_seconds)


@dataclass
class VolumeBinding(
    fw.PreFilterPlugin,
    fw.IgnoresPods,
    fw.PreScorePlugin,
    fw.ScoreNodesPlugin,
    fw.ReservePlugin,
    fw.PreBindPlugin,
):
    """PreFilter: the pod's claims can be used. Filter: their volumes are in reach, or can be found or made there.

    Reserve: take these volumes, in memory. PreBind: write that down, and wait until the claims are bound.
    Rule: volumebinding/volume_binding.go at v1.36.3, where the feature StorageCapacityScoring is off.
    """

    name: ClassVar[str] = "VolumeBinding"
    writes: ClassVar[Sequence[fw.Write]] = (
        fw.Write(fw.PERSISTENT_VOLUME),
        fw.Write(fw.PERSISTENT_VOLUME_CLAIM),
    )

    bind_timeout_seconds: int = DEFAULT_BIND_TIMEOUT_SECONDS
    """How long a pod waits at PreBind for its claims to be bound."""
    shape: tuple[Any, ...] | None = None
    """For a feature that is off."""

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle
        self._volumes = _Volumes(handle, self.bind_timeout_seconds)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the arguments, each with its place.

        Rule: validation_pluginargs.go (ValidateVolumeBindingArgsWithOptions) at v1.36.3.
        """
        if self.bind_timeout_seconds < 0:
            detail = "invalid BindTimeoutSeconds, should not be a negative value"
            yield "bindTimeoutSeconds", invalid(self.bind_timeout_seconds, detail)
        if self.shape is not None:
            detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            yield "shape", invalid(self.shape, detail)

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Claims, volumes, classes, nodes, and what CSI drivers tell, most with a closer look."""
        return volume_binding_events()

    def pre_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns
    ) -> fw.PreFilterResult | fw.Status | None:
        """Skip pods without claims; refuse those with a claim that no node could help.

        Raises ValueError for a class without a binding mode.
        """
        if not pod.spec.volumes:
            return fw.SKIP
        try:
            if not has_claims(pod, self.handle.objects):
                return fw.SKIP
        except ClaimError as error:
            return fw.unresolvable(str(error))
        claims = volume_claims_of(pod, self._volumes.claims, self.handle.objects)
        if claims.immediate:
            return UNBOUND_IMMEDIATE
        state.write(self.name, _Found(claims))
        return None

    def concerns(self, pod: fw.Pod) -> bool:
        return bool(pod.storage.volumes)

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return for each of `rows` all the reasons against it. Raises LookupError if `pre_filter` was not run."""
        found = state.read(self.name, _Found, "not found")
        with self._counting_errors("predicate"):
            codes, found.search = self._volumes.finder.refusals(found.claims, nodes, rows)
        return codes

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return _REFUSALS[code]

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Status | None:
        """Skip: nodes are rated by their storage only with the feature StorageCapacityScoring."""
        return fw.SKIP

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Rate all nodes the same."""
        return None

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        """Take the volumes that the node has for the claims. Raises ValueError if one is no longer as it was."""
        found = state.get(self.name, _Found)
        row = self.handle.nodes.row_of(node_name)
        if found is None or not found.claims.delayed or row is None:
            return None
        with self._counting_errors("assume"):
            volumes = None if found.search is None else found.search.found(row)
            if volumes is None:  # Filter was not asked about this node, or last about others
                search = self._volumes.finder.search(found.claims, self.handle.nodes, np.array([row]))
                volumes = search.found(row)
            found.search = None
            if volumes is not None:
                found.assumed = self._volumes.binder.assume(volumes, node_name)
        return None

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        """Give back what is not written yet."""
        found = state.get(self.name, _Found)
        if found is not None and found.assumed is not None:
            self._volumes.binder.revert(found.assumed)

    def pre_bind_pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        """Skip pods whose claims are all bound."""
        found = state.get(self.name, _Found)
        return fw.SKIP if found is None or found.assumed is None else None

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        """Bind the claims and wait for it. Raises ApiError or ValueError; then the pod is tried again."""
        found = state.get(self.name, _Found)
        if found is not None and found.assumed is not None:
            with self._counting_errors("bind"):
                await self._volumes.binder.bind(pod, node_name, found.assumed)
        return None

    @contextmanager
    def _counting_errors(self, operation: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.handle.metrics.volume_stage_errors.labels(operation).inc()
            raise
