"""A group of pods in one domain of a topology: the nodes with the same value of a label."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from scheduler import framework as fw

CANNOT_DETERMINE: Final = "cannot determine domain for already scheduled pods"


@dataclass
class TopologyPlacementGenerator(fw.PlacementGeneratePlugin):
    """Rule: pkg/scheduler/framework/plugins/topologyaware/topology_placement.go at v1.36.3.

    Domains are tried in the order of their names, in kube-scheduler in any.
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
        """Return a placement for each domain of the group's first topology key; raise AttemptFailed for no group."""
        group = self._groups.of(pod)
        if group is None:
            name = self._groups.name_of(pod)
            raise fw.AttemptFailed(f'podgroup.scheduling.k8s.io "{name}" not found')
        if not group.topology_keys:
            return (parent,)
        topology = self._nodes.topology(group.topology_keys[0])
        required = self._domain_of_members(pod, group.topology_keys[0])
        codes = topology.codes[parent.rows]
        domains = {topology.values[code]: code for code in np.unique(codes[codes != 0]).tolist()}
        return tuple(
            fw.Placement(name, parent.rows[codes == domains[name]])
            for name in sorted(domains)
            if required is None or name == required
        )

    def _domain_of_members(self, pod: fw.Pod, key: str) -> str | None:
        """Return the only domain that members with a node are in; None without any. Raises AttemptFailed."""
        found: str | None = None
        for member in self._groups.members(pod).scheduled:
            row = self._nodes.row_of(member.node_name)
            if row is None:
                missing = f'nodeinfo not found for node name "{member.node_name}"'
                raise fw.AttemptFailed(f"{CANNOT_DETERMINE}: getting node for pod {member}: {missing}")
            domain = self._nodes.info(row).labels.get(key)
            if domain is None:
                raise fw.AttemptFailed(f"{CANNOT_DETERMINE}: no topology domain found for pod {member}")
            if found and found != domain:
                raise fw.AttemptFailed(f"{CANNOT_DETERMINE}: more than 1 domain found for pod group: {found}, {domain}")
            found = domain
        return found
