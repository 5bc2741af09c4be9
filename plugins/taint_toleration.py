"""Keep pods off nodes whose taints they do not tolerate."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from shlex import quote
from typing import ClassVar, Final, NamedTuple

import numpy as np

from plugins.shared.column_math import normalized, pick
from plugins.shared.queueing import OncePerEvent, any_pod, queue_if_itself, tolerations_of
from plugins.shared.remedies import cordoned, spelled_taint, toleration_of, wall_of, without_taint
from scheduler import framework as fw
from scheduler.api.pods.tolerations import (
    COMPARISONS,
    KEEPS_PODS_AWAY,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    UNSCHEDULABLE_TAINT,
    first_untolerated,
    untolerated,
)

_PRE_SCORED = "PreScoreTaintToleration"

_OF_CONDITIONS: Final = "node.kubernetes.io/"
"""Taints that Kubernetes itself sets while something is wrong with a node."""

UNTOLERATED: Final = fw.unresolvable("node(s) had untolerated taint(s)")


@dataclass
class TaintToleration(
    fw.PreFilterPlugin,
    fw.FilterNodesPlugin,
    fw.PreScorePlugin,
    fw.ScoreNodesPlugin,
    fw.NormalizeScorePlugin,
    fw.SignPlugin,
    fw.ExplainPlugin,
):
    """Filter: the pod tolerates all taints with effect NoSchedule or NoExecute.

    Score: the number of PreferNoSchedule taints that it does not tolerate; the fewer, the better.
    Rule: tainttoleration/taint_toleration.go at v1.37.2.
    """

    name: ClassVar[str] = "TaintToleration"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.TAINTS
    signs_spec: ClassVar[bool] = True
    filters_all: ClassVar[bool] = True
    normalizes_by_range: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._by_number = False

    def start(self, handle: fw.Handle) -> None:
        self._by_number = COMPARISONS in handle.feature_gates

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: taint_toleration.go (EventsToRegister)."""
        return (
            fw.on(
                fw.NODE,
                fw.Action.ADD | fw.Action.UPDATE_NODE_TAINT,
                _TaintTolerationHint(by_number=self._by_number).after_node_event,
                tolerations_of,
            ),
            fw.on(fw.TARGET_POD, fw.Action.UPDATE_POD_TOLERATION, queue_if_itself, any_pod),
        )

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """The pod's tolerations."""
        return pod.spec.tolerations or ()

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> None:
        """Nothing to prepare: kube-scheduler has it for pods whose resize is deferred."""

    def concerns(self, pod: fw.Pod) -> bool:
        return False

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return 1 for each of `rows` with a taint that keeps the pod away."""
        refused: fw.BoolColumn | None = None
        taints = nodes.taints
        for taint in untolerated(taints, pod.spec.tolerations, by_number=self._by_number):
            tainted = pick(taints[taint], rows)
            refused = tainted if refused is None else refused | tainted
        return None if refused is None or not refused.any() else refused.astype(np.int32)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return UNTOLERATED

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        """Each taint that keeps the pod away; that of a cordoned node in NodeUnschedulable's words."""
        return [
            cordoned(node.name)
            if node.unschedulable and taint.key == UNSCHEDULABLE_TAINT.key and taint.effect == NO_SCHEDULE
            else _obstacle_of(taint, pod, node)
            for taint in untolerated(node.taints, pod.spec.tolerations, by_number=self._by_number)
        ]

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Status | None:
        """Never skip: a node without such taints is worth 100 to every pod."""
        state.write(_PRE_SCORED, True)
        return None

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return for each of `rows` how many of its PreferNoSchedule taints the pod does not tolerate.

        Raises LookupError if `pre_score` was not run.
        """
        state.read(_PRE_SCORED, bool, 'failed to read "{key}" from cycleState: not found')
        counts: fw.Int64Column | None = None
        taints = nodes.taints
        for taint in untolerated(taints, pod.spec.tolerations, (PREFER_NO_SCHEDULE,), by_number=self._by_number):
            if counts is None:
                counts = np.zeros(len(rows), np.int64)
            counts += pick(taints[taint], rows)
        return counts

    def normalize_score(self, state: fw.CycleState, pod: fw.Pod, scores: fw.Int64Column) -> fw.Int64Column:
        """Turn counts into scores: 100 for none, 0 for the most."""
        return normalized(scores, reverse=True)


def _obstacle_of(taint: fw.Taint, pod: fw.Pod, node: fw.NodeInfo) -> fw.Obstacle:
    text = spelled_taint(taint)
    if taint.key.startswith(_OF_CONDITIONS):
        return fw.Obstacle(f"taint {text}")  # the node is ill: tolerating that does not help
    wall = wall_of(taint, pod, node)
    why = f" ({wall})" if wall else ""
    tolerate = fw.Remedy(f"tolerate {text}{why}", (toleration_of(taint),), is_last_resort=bool(wall))
    removal = fw.Remedy(
        f"remove the taint {text} from {node.name}{why}",
        (),
        f"kubectl taint nodes {node.name} {quote(text + '-')}",
        partial(without_taint, taint=taint),
        is_last_resort=True,
    )
    return fw.Obstacle(f"taint {text}", (tolerate, removal))


class _Taints(NamedTuple):
    """The taints of a node that keep pods away, after an event."""

    gone: tuple[fw.Taint, ...] | None
    """Those that it no longer has; None for a new node."""

    left: tuple[fw.Taint, ...]


def _taints_after(old: fw.Node | None, new: fw.Node) -> _Taints:
    left = tuple(taint for taint in new.taints if taint.effect in KEEPS_PODS_AWAY)
    if old is None:
        return _Taints(None, left)
    return _Taints(tuple(taint for taint in old.taints if taint.effect in KEEPS_PODS_AWAY and taint not in left), left)


class _TaintTolerationHint:
    __slots__ = ("_first_untolerated", "_taints_after")

    def __init__(self, *, by_number: bool) -> None:
        self._first_untolerated = partial(first_untolerated, by_number=by_number)
        self._taints_after = OncePerEvent(_taints_after)

    def after_node_event(self, pod: fw.Pod, old: fw.Node | None, new: fw.Node) -> fw.QueueingHint:
        """A node helps that no longer repels the pod, or is new and does not. Rule: isSchedulableAfterNodeChange."""
        gone, left = self._taints_after(old, new)
        tolerations = pod.spec.tolerations
        # What kept the pod away before and does not now must be among the taints that are gone; often there are none.
        if gone is not None and (not gone or self._first_untolerated(gone, tolerations) is None):
            return fw.QueueingHint.SKIP
        return fw.QueueingHint.QUEUE if self._first_untolerated(left, tolerations) is None else fw.QueueingHint.SKIP
