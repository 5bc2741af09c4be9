"""The nodes that a spread constraint does not count, as stored columns.

Rule: podtopologyspread/common.go (matchNodeInclusionPolicies) at v1.37.2. They depend on the pod's node selector,
affinity and tolerations and on the nodes' labels, names and taints, but on no pod that runs on them.
"""

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from plugins.pod_topology_spread.constraints import SpreadConstraint
from plugins.shared.column_math import pick
from plugins.shared.node_matching import selected_by_pod
from scheduler import framework as fw
from scheduler.api.pods.tolerations import COMPARISONS, untolerated

_READ_BY_SELECTORS: Final = (fw.Aspect.LABELS, fw.Aspect.NAME)
_READ_BY_TAINTS: Final = (fw.Aspect.TAINTS, fw.Aspect.NAME)


class ExcludedNodes:
    """Finds the rows that constraints exclude, stored per node selector, affinity and tolerations."""

    __slots__ = ("_by_number", "_handle")

    def __init__(self, handle: fw.Handle) -> None:
        self._handle = handle
        self._by_number = COMPARISONS in handle.feature_gates

    def of(self, constraint: SpreadConstraint, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.BoolColumn | None:
        """Return for each row whether `constraint` excludes it; None if it excludes none. To be read only."""
        excluded_nodes = self._unselected(pod, nodes) if constraint.honors_affinity else None
        tainted = self._tainted(pod, nodes) if constraint.honors_taints else None
        if excluded_nodes is None or tainted is None:
            return tainted if excluded_nodes is None else excluded_nodes
        return excluded_nodes | tainted

    def _unselected(self, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.BoolColumn | None:
        selector = pod.spec.node_selector
        affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
        required = None if affinity is None else affinity.required
        if not selector and required is None:
            return None
        key = ("selector", frozenset((selector or {}).items()), required)
        return self._stored(key, _READ_BY_SELECTORS, lambda rows: ~selected_by_pod(pod, nodes, rows))

    def _tainted(self, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.BoolColumn | None:
        key = ("tolerations", pod.spec.tolerations)
        return self._stored(key, _READ_BY_TAINTS, lambda rows: self.repelling(pod, nodes, rows))

    def repelling(self, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn | None:
        """Return which of `rows` have a taint that keeps the pod away; None if none of them has."""
        found: fw.BoolColumn | None = None
        taints = nodes.taints
        for taint in untolerated(taints, pod.spec.tolerations, by_number=self._by_number):
            tainted = pick(taints[taint], rows)
            found = tainted if found is None else found | tainted
        return found

    def _stored(
        self,
        key: tuple[Hashable, ...],
        aspects: tuple[fw.Aspect, ...],
        evaluate: Callable[[fw.Rows], fw.BoolColumn | None],
    ) -> fw.BoolColumn | None:
        return self._handle.columns.get(("PodTopologySpread", *key), aspects, np.bool_, evaluate)
