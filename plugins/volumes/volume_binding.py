"""Bind a pod's claims: keep it on nodes that can reach the volumes, and wait until the claims are bound."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from plugins.shared.shapes import MAX_SHAPE_SCORE, MAX_UTILIZATION, UtilizationShapePoint, line, problems_of_shape
from plugins.volumes.assume import AssumeCache
from plugins.volumes.claims import ClaimError, PodVolumeClaims, has_claims, volume_claims_of
from plugins.volumes.finding import PodVolumes, VolumeFinder, VolumeSearch, reasons_of
from plugins.volumes.hints import volume_binding_events
from plugins.volumes.obstacles import claim_obstacles, unbound_obstacles
from plugins.volumes.prebind import VolumeBinder
from scheduler import framework as fw
from scheduler.api.storage.volumes import PersistentVolume, PersistentVolumeClaim
from scheduler.framework.field_errors import invalid

DEFAULT_BIND_TIMEOUT_SECONDS: Final = 600

DEFAULT_SHAPE: Final = (UtilizationShapePoint(0, MAX_SHAPE_SCORE), UtilizationShapePoint(MAX_UTILIZATION, 0))

UNBOUND_IMMEDIATE: Final = fw.unresolvable("pod has unbound immediate PersistentVolumeClaims")

_REFUSALS: Final = tuple(fw.unresolvable(*reasons_of(codes)) for codes in range(16))


@dataclass(slots=True)
class _State:
    """A pod's volumes in one cycle."""

    claims: PodVolumeClaims
    search: VolumeSearch | None = None
    """How Filter found its last answer. Nothing changes between Filter and Reserve."""
    assumed: PodVolumes | None = None
    """The objects to write; None if there are none."""


@dataclass
class VolumeBinding(
    fw.PreFilterPlugin,
    fw.IgnoresPods,
    fw.PreScorePlugin,
    fw.ScoreNodesPlugin,
    fw.ReservePlugin,
    fw.PreBindPlugin,
    fw.ExplainPlugin,
):
    """PreFilter: the pod's claims can be used. Filter: their volumes are in reach, or can be found or made there.

    Score: by how much of the storage would be used. Reserve: take these volumes, in memory. PreBind: write that down,
    and wait until the claims are bound. Rule: volumebinding/volume_binding.go at v1.37.2.
    """

    name: ClassVar[str] = "VolumeBinding"
    scores_all: ClassVar[bool] = True
    writes: ClassVar[Sequence[fw.Write]] = (
        fw.Write(fw.PERSISTENT_VOLUME),
        fw.Write(fw.PERSISTENT_VOLUME_CLAIM),
    )

    bind_timeout_seconds: int = DEFAULT_BIND_TIMEOUT_SECONDS
    """How long a pod waits at PreBind for its claims to be bound."""
    shape: tuple[UtilizationShapePoint, ...] = DEFAULT_SHAPE
    """How full storage is best, as a line through points of rising utilization."""

    def __post_init__(self) -> None:
        self.shape = self.shape or DEFAULT_SHAPE

    @property
    def wait_seconds(self) -> float:
        return super().wait_seconds + self.bind_timeout_seconds

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle
        self._volumes: AssumeCache[PersistentVolume] = AssumeCache(handle.objects, fw.PERSISTENT_VOLUME)
        self._claims: AssumeCache[PersistentVolumeClaim] = AssumeCache(handle.objects, fw.PERSISTENT_VOLUME_CLAIM)
        # They grow with each object from now on, so no decision waits until they are built.
        self._finder = VolumeFinder(handle, self._volumes)
        self._binder = VolumeBinder(handle, self._volumes, self._claims, self.bind_timeout_seconds)

    def kept(self) -> tuple[AssumeCache[PersistentVolumeClaim], AssumeCache[PersistentVolume]]:
        """The assumed claims and volumes, which other pods must not be given."""
        return self._claims, self._volumes

    def take_over(self, kept: tuple[AssumeCache[PersistentVolumeClaim], AssumeCache[PersistentVolume]]) -> None:
        claims, volumes = kept
        self._claims.join(claims)
        self._volumes.join(volumes)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each problem of the arguments, with its place.

        Rule: validation_pluginargs.go (ValidateVolumeBindingArgsWithOptions) at v1.37.2.
        """
        if self.bind_timeout_seconds < 0:
            detail = "invalid BindTimeoutSeconds, should not be a negative value"
            yield "bindTimeoutSeconds", invalid(self.bind_timeout_seconds, detail)
        yield from problems_of_shape(self.shape, "shape")

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Claims, volumes, classes, nodes, and what CSI drivers report, most with a hint."""
        return volume_binding_events(self.handle)

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        """Skip pods without claims; reject those with a claim that fits no node.

        Raises ValueError for a class without a binding mode.
        """
        if not pod.spec.volumes:
            return fw.SKIP
        try:
            if not has_claims(pod, self.handle.objects):
                state.write(self.name, _State(PodVolumeClaims()))
                return fw.SKIP
        except ClaimError as error:
            return fw.unresolvable(str(error))
        claims = volume_claims_of(pod, self._claims, self.handle.objects)
        if claims.unbound_immediate:
            return UNBOUND_IMMEDIATE
        state.write(self.name, _State(claims))
        return None

    def concerns(self, pod: fw.Pod) -> bool:
        return bool(pod.storage.volumes)

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return for each of `rows` all reasons to reject it. Raises LookupError if `pre_filter` was not run."""
        known = state.read(self.name, _State, "not found")
        with self._counting_errors("predicate"):
            codes, known.search = self._finder.refusals(known.claims, nodes, rows)
        return codes

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return _REFUSALS[code]

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        """Each claim that cannot be used on the node. Raises as `filter_nodes`."""
        claims = state.read(self.name, _State, "not found").claims
        return list(claim_obstacles(claims, self._finder, self._volumes, self.handle.nodes, node))

    def obstacles_anywhere(self, state: fw.CycleState, pod: fw.Pod, refusal: fw.Status) -> Sequence[fw.Obstacle]:
        """Each claim that is not bound, and does not wait for the pod."""
        if refusal.reasons != UNBOUND_IMMEDIATE.reasons:
            return ()
        return list(unbound_obstacles(volume_claims_of(pod, self._claims, self.handle.objects)))

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Status | None:
        """Raises LookupError if `pre_filter` was not run for a pod with volumes."""
        if self.concerns_score(pod):
            state.read(self.name, _State, "not found")
        return None

    def concerns_score(self, pod: fw.Pod) -> bool:
        return bool(pod.storage.volumes)

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return how good the use of storage is on each of `rows`; None for a pod without claims that are unbound.

        Raises LookupError as `pre_score`, which a profile may leave out.
        """
        if not self.concerns_score(pod):
            return None
        known = state.read(self.name, _State, "not found")
        if known.search is None:
            return None
        line_ = line(self.shape)
        scores = known.search.scores(line_, rows)
        if scores is None:
            scores = self._finder.search(known.claims, nodes, rows).scores(line_, rows)
        return scores

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        """Take the volumes that the node has for the claims. Raises ValueError if one is no longer as it was."""
        known = state.get(self.name, _State)
        row = self.handle.nodes.row_of(node_name)
        if known is None or not known.claims.unbound_delayed or row is None:
            return None
        with self._counting_errors("assume"):
            volumes = None if known.search is None else known.search.volumes_on(row)
            if volumes is None:  # Filter did not see this node, or not last
                search = self._finder.search(known.claims, self.handle.nodes, np.array([row]))
                volumes = search.volumes_on(row)
            known.search = None
            if volumes is not None:
                known.assumed = self._binder.assume(volumes, node_name)
        return None

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        """Release unwritten changes."""
        known = state.get(self.name, _State)
        if known is not None and known.assumed is not None:
            self._binder.revert(known.assumed)

    def concerns_reserve(self, pod: fw.Pod) -> bool:
        return bool(pod.storage.volumes)

    def pre_bind_pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        """Skip pods whose claims are all bound."""
        known = state.get(self.name, _State)
        return fw.SKIP if known is None or known.assumed is None else None

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        """Bind the claims and wait for it. Raises ApiError or ValueError; then the pod is tried again."""
        known = state.get(self.name, _State)
        if known is not None and known.assumed is not None:
            with self._counting_errors("bind"):
                await self._binder.bind(pod, node_name, known.assumed)
        return None

    @contextmanager
    def _counting_errors(self, operation: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.handle.metrics.volume_stage_errors.labels(operation).inc()
            raise
