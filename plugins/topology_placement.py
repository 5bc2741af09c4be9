"""Keep the pods of a group near each other: within one rack, zone or other domain that a label of nodes names."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scheduler import framework as fw


@dataclass
class TopologyPlacementGenerator(fw.PlacementGeneratePlugin):
    """Each domain of the group's topology key is a placement; where pods of the group run, only their domain is.

    Domains are tried in the order of their names, in kube-scheduler in any.
    Rule: pkg/scheduler/framework/plugins/topologyaware/topology_placement.go at v1.36.3, which reads one key only, too.
    """

    name: ClassVar[str] = "TopologyPlacementGenerator"

    def start(self, handle: fw.Handle) -> None:
        self._groups = handle.pod_groups
        self._nodes = handle.nodes

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """No pod waits for an event because of this plugin: members of groups are tried again after their backoff."""
        return ()

    def generate_placements(
        self, state: fw.CycleState, pod: fw.Pod, parent: fw.Placement
    ) -> Sequence[fw.Placement] | fw.Status:
        """Return the domains by name; `parent` if the group has no topology key."""
        tree = fw.decided(self._groups, state, pod)
        if tree is None:
            raise fw.AttemptFailed(f'podgroup.scheduling.k8s.io "{self._groups.name_of(pod)}" not found')
        if not tree.group.topology_keys:
            return (parent,)
        topology = self._nodes.topology(tree.group.topology_keys[0])
        found = _domains(topology, parent.rows)
        scheduled = tree.members.scheduled
        if scheduled:
            domain = self._domain_of(scheduled, topology)
            found = (each for each in found if each.name == domain)
        return sorted(found, key=lambda each: each.name)

    def _domain_of(self, scheduled: Collection[fw.Pod], topology: fw.Topology) -> str:
        """Return the domain of the pods that have a node. Raises AttemptFailed if there are several, or none."""
        domain = ""
        for pod in sorted(scheduled, key=lambda each: each.name):
            row = self._nodes.row_of(pod.node_name)
            if row is None:
                detail = f'getting node for pod {pod}: nodeinfo not found for node name "{pod.node_name}"'
            elif not (code := topology.code_at(row)):
                detail = f"no topology domain found for pod {pod}"
            elif domain not in ("", topology.values[code]):
                detail = f"more than 1 domain found for pod group: {domain}, {topology.values[code]}"
            else:
                domain = topology.values[code]
                continue
            raise fw.AttemptFailed(f"cannot determine domain for already scheduled pods: {detail}")
        return domain


def _domains(topology: fw.Topology, rows: fw.Rows) -> Iterator[fw.Placement]:
    """Yield each domain with those of `rows` that are in it, in their order."""
    codes = topology.codes[rows]
    order = np.argsort(codes, kind="stable")
    in_order = codes[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=0))  # without the rows that are in no domain
    for part in np.split(order, starts)[1:]:
        yield fw.Placement(topology.values[codes[part[0]]], rows[part])
