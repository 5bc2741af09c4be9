"""PodTopologySpread's obstacles: a node on which one more pod would be too many."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, HONOR, SCHEDULE_ANYWAY, SpreadConstraint
from plugins.pod_topology_spread.domains import HardSpread, SpreadDomains
from plugins.pod_topology_spread.nodes import ExcludedNodes
from plugins.shared.node_matching import selected_by_pod
from scheduler import framework as fw
from scheduler.api.objects import TopologySpreadConstraint
from scheduler.api.wording.text import counted

MAX_ROWS: Final = 1_000
"""Nodes that are looked at for the names of their domains."""


class _Change(NamedTuple):
    """A change of one constraint, and the nodes that the pod's constraints refuse after it."""

    remedy: fw.Remedy
    spread: HardSpread


class _Domain(NamedTuple):
    name: str
    others: int
    """How many domains are like it."""
    why: str
    """Why the pod cannot go there; empty if that is not a matter of taints and selectors."""


class _Own(NamedTuple):
    """A constraint of the pod itself."""

    path: str
    """A JSON pointer."""
    written: TopologySpreadConstraint


class SpreadObstacles:
    """Explains which nodes the hard constraints of one pod refuse."""

    def __init__(self, pod: fw.Pod, nodes: fw.NodeColumns, spread: HardSpread, excluded_nodes: ExcludedNodes) -> None:
        self.spread = spread
        self._pod = pod
        self._nodes = nodes
        self._excluded_nodes = excluded_nodes
        self._texts: dict[int, str] = {}

    def on(self, node: fw.NodeInfo) -> Iterator[fw.Obstacle]:
        """Yield each constraint that refuses the node."""
        for domains in self.spread.refused_by(node.row):
            constraint, count = domains.constraint, domains.count(node.row)
            key = constraint.topology_key
            if count is None:
                yield fw.Obstacle(f"spread over {key}: the node has no such label", tuple(self._softened(constraint)))
                continue
            pods = counted(count, "matching pod")
            fact = f"spread over {key}: {node.labels.get(key, '')} has {pods}, {self._fewest(domains)}"
            remedies = (*self._that_help(constraint, node.row), *self._softened(constraint))
            yield fw.Obstacle(fact, remedies)

    def _fewest(self, domains: SpreadDomains) -> str:
        """Say which domain has the fewest pods, and why the pod does not go there; the same for all nodes."""
        known = self._texts.get(id(domains))
        if known is None:
            known = self._texts[id(domains)] = self._found_fewest(domains)
        return known

    def _found_fewest(self, domains: SpreadDomains) -> str:
        constraint = domains.constraint
        if domains.size < constraint.min_domains:
            few = f"maxSkew is {constraint.max_skew}, and minDomains is {constraint.min_domains}: while only "
            few += (
                f"{counted(domains.size, 'domain')} {'counts' if domains.size == 1 else 'count'}, the fewest are taken "
            )
            few += "to be 0"
            left_out = self._domain_of(domains.rows_left_out(), constraint.topology_key)
            return f"{few}; {left_out.name} does not count, for {left_out.why}" if left_out is not None else few
        lowest, skew = f"the fewest, {domains.fewest()}", f"and maxSkew is {constraint.max_skew}"
        found = self._domain_of(domains.rows_with_fewest(), constraint.topology_key)
        if found is None:
            return f"{lowest} are anywhere, {skew}"
        have = f" and {found.others} more have" if found.others else " has"
        why = f"; {found.name} counts although {found.why}" if found.why else ""
        return f"{found.name}{have} {lowest}, {skew}{why}"

    def _domain_of(self, rows: fw.Rows, key: str) -> _Domain | None:
        """Return the first domain of these rows by name."""
        by_name: dict[str, list[int]] = {}
        for row in rows[:MAX_ROWS].tolist():
            by_name.setdefault(self._nodes.info(row).labels.get(key, ""), []).append(row)
        if not by_name:
            return None
        name = min(by_name)
        return _Domain(name, len(by_name) - 1, self._why_not(np.array(by_name[name])))

    def _why_not(self, rows: fw.Rows) -> str:
        nodes = "its node" if len(rows) == 1 else "its nodes"
        tainted = self._excluded_nodes.repelling(self._pod, self._nodes, rows)
        if not selected_by_pod(self._pod, self._nodes, rows).any():
            return f"the node selector or affinity leaves {nodes} out"
        if tainted is not None and tainted.all():
            return f"the pod does not tolerate the taints of {nodes}"
        return ""

    def _that_help(self, constraint: SpreadConstraint, row: int) -> Iterator[fw.Remedy]:
        """Yield the changes of the pod's own constraint after which it does not refuse the node."""
        for change in self._changes.get(constraint, ()):
            refusing = {each.constraint.topology_key for each in change.spread.refused_by(row)}
            if constraint.topology_key not in refusing:
                yield change.remedy

    @cached_property
    def _changes(self) -> dict[SpreadConstraint, Sequence[_Change]]:
        every = self.spread.domains
        return {each.constraint: [*self._changes_of(each, [other.constraint for other in every])] for each in every}

    def _changes_of(self, domains: SpreadDomains, every: Sequence[SpreadConstraint]) -> Iterator[_Change]:
        constraint = domains.constraint
        own = self._own(constraint)
        if own is None:
            return
        wanted: list[tuple[str, str | int, SpreadConstraint]] = []
        if not constraint.honors_taints:
            wanted.append(("nodeTaintsPolicy", HONOR, constraint._replace(honors_taints=True)))
        if not constraint.honors_affinity:
            wanted.append(("nodeAffinityPolicy", HONOR, constraint._replace(honors_affinity=True)))
        if 0 < domains.size < constraint.min_domains:
            wanted.append(("minDomains", domains.size, constraint._replace(min_domains=domains.size)))
        for field, value, changed in wanted:
            constraints = [changed if each is constraint else each for each in every]
            spread = HardSpread.of(constraints, self._pod, self._nodes, self._excluded_nodes)
            text = f"set {field}: {value} for spreading over {constraint.topology_key}"
            yield _Change(fw.Remedy(text, (fw.Change("replace", f"{own.path}/{field}", value),)), spread)

    def _softened(self, constraint: SpreadConstraint) -> Iterator[fw.Remedy]:
        """Make the pod's own constraint a preference."""
        own = self._own(constraint)
        if own is None:
            return
        changes = [fw.Change("replace", f"{own.path}/whenUnsatisfiable", SCHEDULE_ANYWAY)]
        if own.written.min_domains is not None:  # allowed only for constraints that must be satisfied
            changes.append(fw.Change("remove", f"{own.path}/minDomains"))
        text = f"set whenUnsatisfiable: {SCHEDULE_ANYWAY} for spreading over {constraint.topology_key}"
        yield fw.Remedy(text, tuple(changes))

    def _own(self, constraint: SpreadConstraint) -> _Own | None:
        """Return where the pod has it; one that the configuration gives it is not the pod's to change."""
        for place, each in enumerate(self._pod.spec.topology_spread_constraints or ()):
            if each.topology_key == constraint.topology_key and each.when_unsatisfiable == DO_NOT_SCHEDULE:
                return _Own(f"/spec/topologySpreadConstraints/{place}", each)
        return None
