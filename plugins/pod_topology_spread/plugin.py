"""Spread pods evenly over zones, nodes or any other topology."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM,
    SYSTEM_DEFAULTS,
    SpreadConstraint,
    default_constraints,
    parse_constraints,
    problems_of_arguments,
    with_selector,
)
from plugins.pod_topology_spread.default_selectors import RESOURCES, DefaultSelectors
from plugins.pod_topology_spread.domains import MISSING_LABEL, HardSpread
from plugins.pod_topology_spread.hints import SpreadHints
from plugins.pod_topology_spread.nodes import ExcludedNodes
from plugins.pod_topology_spread.obstacles import SpreadObstacles
from plugins.pod_topology_spread.scoring import SoftSpread, normalized_spread
from scheduler import framework as fw
from scheduler.api.groups.owners import controller_of
from scheduler.api.objects import TopologySpreadConstraint

_PRE_FILTERED: Final = "PreFilterPodTopologySpread"
_EXPLAINED: Final = "ExplainPodTopologySpread"
_PRE_SCORED: Final = "PreScorePodTopologySpread"

UNEVEN: Final = fw.unschedulable("node(s) didn't match pod topology spread constraints")
NO_DOMAIN: Final = fw.unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")


@dataclass
class PodTopologySpread(
    fw.PreFilterPlugin,
    fw.PreFilterExtensions,
    fw.FilterNodesPlugin,
    fw.PreScorePlugin,
    fw.ScoreNodesPlugin,
    fw.NormalizeScorePlugin,
    fw.ExplainPlugin,
):
    """Filter: with this pod, no domain has more than maxSkew matching pods more than the one with the fewest.

    Score: the fewer matching pods in the node's domains the better, by the constraints that only prefer.
    Rule: podtopologyspread/{plugin,filtering,scoring}.go at v1.36.3.
    """

    name: ClassVar[str] = "PodTopologySpread"
    reads: ClassVar[Sequence[str]] = RESOURCES
    parts: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys(RESOURCES, ("spec.selector",))

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """For pods without constraints of their own, with `defaultingType: List`."""
    defaulting_type: str = SYSTEM
    """`System`, also if empty: prefer to spread over nodes and zones pods that a Service or controller stands above."""

    def __post_init__(self) -> None:
        self.defaulting_type = self.defaulting_type or SYSTEM
        defaults = SYSTEM_DEFAULTS if self.defaulting_type == SYSTEM else self.default_constraints
        self._hard_defaults = default_constraints(defaults, DO_NOT_SCHEDULE)
        self._soft_defaults = default_constraints(defaults, SCHEDULE_ANYWAY)

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle
        self._selectors = DefaultSelectors(handle)
        self._excluded_nodes = ExcludedNodes(handle)

    def problems(self) -> list[tuple[str, str]]:
        """Return each problem of the arguments, with its place."""
        return list(problems_of_arguments(self.defaulting_type, self.default_constraints))

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: plugin.go (EventsToRegister)."""
        return SpreadHints(self._hard, self._key_of_defaults, has_defaults=bool(self._hard_defaults)).events()

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        """Count the pods of each domain; skip pods without hard constraints.

        Raises AttemptFailed if a constraint's selector is not valid.
        """
        try:
            constraints = self._hard(pod)
        except ValueError as error:
            raise fw.AttemptFailed(f"get constraints from pod: {error}") from error
        if not constraints:
            return fw.SKIP
        state.write(_PRE_FILTERED, HardSpread.of(constraints, pod, nodes, self._excluded_nodes))
        return None

    def concerns(self, pod: fw.Pod) -> bool:
        return bool(pod.spec.topology_spread_constraints or (self._hard_defaults and self._selectors.exist))

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        """Count `other` in the domains of `node`."""
        state.read(_PRE_FILTERED, HardSpread).change(other, node.row, 1)
        return None

    def remove_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        """Stop counting `other` in the domains of `node`."""
        state.read(_PRE_FILTERED, HardSpread).change(other, node.row, -1)
        return None

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return for each of `rows` whether the pod would exceed maxSkew, or the node is in no domain.

        Raises LookupError if `pre_filter` was not run.
        """
        return state.read(_PRE_FILTERED, HardSpread).refusals(rows)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return NO_DOMAIN if code == MISSING_LABEL else UNEVEN

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        """Each constraint that refuses the node, with the pods that it counts."""
        spread = state.read(_PRE_FILTERED, HardSpread)
        known = state.get(_EXPLAINED, SpreadObstacles)
        if known is None or known.spread is not spread:
            known = SpreadObstacles(pod, self.handle.nodes, spread, self._excluded_nodes)
            state.write(_EXPLAINED, known)
        return list(known.on(node))

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Status | None:
        """Count the pods of each domain; skip pods without soft constraints.

        Raises AttemptFailed if a constraint's selector is not valid.
        """
        own = pod.spec.topology_spread_constraints
        try:
            constraints = self._soft(pod)
        except ValueError as error:
            raise fw.AttemptFailed(f"calculating preScoreState: {error}") from error
        if not constraints:
            return fw.SKIP
        # The system's defaults spread over nodes also where nodes have no zones.
        all_keys = bool(own) or self.defaulting_type != SYSTEM
        state.write(_PRE_SCORED, SoftSpread.of(constraints, pod, nodes, rows, self._excluded_nodes, all_keys=all_keys))
        return None

    def concerns_score(self, pod: fw.Pod) -> bool:
        return bool(pod.spec.topology_spread_constraints or (self._soft_defaults and self._selectors.exist))

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return for each of `rows` the weighted number of matching pods in its domains.

        Raises LookupError if `pre_score` was not run.
        """
        found = state.read(_PRE_SCORED, SoftSpread, 'error reading "{key}" from cycleState: not found')
        return found.scores(rows)

    def normalize_score(self, state: fw.CycleState, pod: fw.Pod, scores: fw.Int64Column) -> fw.Int64Column:
        """Turn numbers of pods into scores: the fewer the higher."""
        return normalized_spread(scores)

    def _hard(self, pod: fw.Pod) -> Sequence[SpreadConstraint]:
        return self._constraints(pod, DO_NOT_SCHEDULE, self._hard_defaults, "hard")

    def _soft(self, pod: fw.Pod) -> Sequence[SpreadConstraint]:
        return self._constraints(pod, SCHEDULE_ANYWAY, self._soft_defaults, "soft")

    def _constraints(
        self, pod: fw.Pod, action: str, defaults: tuple[SpreadConstraint, ...], kind: str
    ) -> Sequence[SpreadConstraint]:
        own = pod.spec.topology_spread_constraints
        if own:
            try:
                return parse_constraints(own, pod.labels, action)
            except ValueError as error:
                raise fw.AttemptFailed(f"obtaining pod's {kind} topology spread constraints: {error}") from error
        return with_selector(defaults, self._selectors.of(pod)) if defaults else ()

    def _key_of_defaults(self, pod: fw.Pod) -> Hashable:
        return (frozenset(pod.labels.items()), controller_of(pod)) if self._hard_defaults else ()
