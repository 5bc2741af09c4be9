"""The assumed state of the nodes' zones between two reports of their agents.

An agent reports every few seconds what is left in the zones of its node, so a pod that was just placed is not in it
yet. Its requests are taken off *all* zones of the node, since only the kubelet knows which one it will choose: too
much, so that a node may be refused in vain, but never given twice.

of the agent ──newest object──► kept back ──its fingerprint is that of the node's pods──► in use, nothing taken off
in use ──a pod is reserved──► less in all zones ──unreserved──► as before
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from plugins.contrib.node_resource_topology.fingerprint import pod_fingerprint
from plugins.contrib.node_resource_topology.requests import Amounts
from plugins.contrib.node_resource_topology.topology import NodeTopology, Zone

WITH_EXCLUSIVE: Final = "with-exclusive-resources"
"""Method of a fingerprint: of pods only that have resources of their own."""

PodNames = Callable[[str, str], Iterable[tuple[str, str]] | None]
"""(node, method) → namespace and name of the pods that count on it; None if their state is not settled yet."""


class OverReserve:
    """The object in use of each node, the newest one, and the reservations since."""

    def __init__(self) -> None:
        self._in_use: dict[str, NodeTopology] = {}
        self._newest: dict[str, NodeTopology] = {}
        self._reserved: dict[str, dict[str, Amounts]] = {}
        self._doubted: set[str] = set()
        """Nodes that were refused, or have pods that others placed: only these are looked at again."""
        self._foreign: set[str] = set()

    def heard(self, node: str, topology: NodeTopology | None) -> bool:
        """Take note of a node's newest object; return whether what counts has changed."""
        if topology is None:
            self._newest.pop(node, None)
            self._reserved.pop(node, None)
            self._doubted.discard(node)
            self._foreign.discard(node)
            return self._in_use.pop(node, None) is not None
        self._newest[node] = topology
        before = self._in_use.get(node)
        # Another policy or other zones count at once: they are no matter of pods.
        if before is None or _shape(before) != _shape(topology):
            self._in_use[node] = topology
            return True
        self._doubted.add(node)
        return False

    def reserve(self, node: str, uid: str, amounts: Amounts) -> None:
        self._reserved.setdefault(node, {})[uid] = amounts

    def unreserve(self, node: str, uid: str) -> bool:
        """Return whether it had been reserved."""
        of_node = self._reserved.get(node, {})
        known = of_node.pop(uid, None) is not None
        if not of_node:
            self._reserved.pop(node, None)
        return known

    def doubt(self, node: str, *, foreign: bool = False) -> None:
        """Check a node at the next resync: it was refused, or another scheduler has placed a pod on it."""
        if node in self._in_use:
            self._doubted.add(node)
            if foreign:
                self._foreign.add(node)

    def is_foreign(self, node: str) -> bool:
        return node in self._foreign

    def resync(self, pods: PodNames) -> list[str]:
        """Use the newest objects of the nodes in doubt whose pods are those that it knows of; return these nodes."""
        settled = []
        for node in sorted(self._doubted):
            newest = self._newest.get(node)
            if newest is None or not newest.fingerprint:
                continue
            names = pods(node, newest.fingerprint_method)
            if names is not None and pod_fingerprint(names) == newest.fingerprint:
                self._in_use[node] = newest
                self._reserved.pop(node, None)
                self._foreign.discard(node)
                settled.append(node)
        self._doubted.difference_update(settled)
        return settled

    def topology(self, node: str) -> NodeTopology | None:
        """The topology of a node, minus reservations."""
        topology, reserved = self._in_use.get(node), self._reserved.get(node)
        if topology is None or not reserved:
            return topology
        return topology._replace(zones=tuple(_less(zone, reserved) for zone in topology.zones))


def _less(zone: Zone, reserved: Mapping[str, Amounts]) -> Zone:
    available = dict(zone.available)
    for amounts in reserved.values():
        for name, amount in amounts:
            if name in available:
                available[name] = max(available[name] - amount, 0)
    return zone._replace(available=available)


def _shape(topology: NodeTopology) -> object:
    zones = tuple((zone.id, tuple(sorted(zone.available)), zone.costs) for zone in topology.zones)
    return topology.policy, topology.scope, topology.max_numa_nodes, zones
