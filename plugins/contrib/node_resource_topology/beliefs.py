"""The assumed state of the zones, shared by all profiles and updated by the watch, by reservations and by the nodes."""

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from plugins.contrib.node_resource_topology.over_reserve import WITH_EXCLUSIVE, OverReserve
from plugins.contrib.node_resource_topology.requests import Amounts, Asked, asked, is_native
from plugins.contrib.node_resource_topology.topology import RESOURCE, NodeTopology, read_topology
from plugins.contrib.node_resource_topology.zones import ZoneRows, ZoneTable
from scheduler import framework as fw
from scheduler.api.pods.requests import CPU

PLUGIN: Final = "NodeResourceTopologyMatch"

_MILLI: Final = 1000
_NOBODYS: Final = "None"
_STRICTEST_FIRST: Final = ("All", "OnlyExclusiveResources", _NOBODYS)

_logger = logging.getLogger(__name__)


class User(NamedTuple):
    """A profile's settings for the assumed state."""

    profile: str
    over_reserves: bool
    discards: bool
    foreign_pods: str
    """`All`, `OnlyExclusiveResources` or `None`."""


class Beliefs:
    """The zones of all nodes, shared by all profiles (`handle.shared`): reservations of one count for each.

    Where profiles say different things, what is safer counts for all: over-reserving if one of them does, nodes
    discarded if one of them discards, and of those that over-reserve the one that considers most foreign pods.
    """

    def __init__(self, handle: fw.Handle) -> None:
        self._handle = handle
        self._over = OverReserve()
        self._newest: dict[str, NodeTopology] = {}
        self._unbound: dict[str, set[str]] = {}
        """Node → UIDs of pods that were reserved and are not bound yet."""
        self._foreign: dict[str, frozenset[str]] = {}
        """Node → UIDs of pods on it that no profile of ours has placed."""
        self._odd: set[str] = set()
        """Nodes of whose objects not all can be used."""
        self._table = ZoneTable()
        self._stale: set[str] = set()
        """Nodes of which something has changed since they were put into the table."""
        self._nodes_changed = handle.columns.changes((fw.Aspect.NAME,))
        self._pods_changed = handle.columns.changes((fw.Aspect.PODS,))
        self._knows_pods = False
        self._tried_pods: set[str] = set()
        """UIDs of pods that were tried since the last objects were taken over."""
        self._users: list[User] = []
        self.profiles: frozenset[str] = frozenset()
        self.over_reserves = False
        self.discards = False
        self.foreign_pods = _NOBODYS
        handle.objects.listen(RESOURCE, self._heard, self._forget)

    # --- who believes ---

    def join(self, user: User) -> None:
        """Believe as this profile wants, too. It may be there twice: a changed one joins before the old one leaves."""
        self._users.append(user)
        self._follow_users()

    def leave(self, user: User) -> None:
        self._users.remove(user)
        self._follow_users()

    def _follow_users(self) -> None:
        over_reserved, users = self.over_reserves, self._users
        self.profiles = frozenset(user.profile for user in users)
        self.over_reserves = any(user.over_reserves for user in users)
        self.discards = any(user.discards for user in users)
        wanted = {user.foreign_pods for user in users if user.over_reserves}
        self.foreign_pods = next((each for each in _STRICTEST_FIRST if each in wanted), _NOBODYS)
        if not self.discards:
            self._unbound.clear()
        if over_reserved and not self.over_reserves:
            # From now on objects count as they come. Nodes in doubt would not be read again.
            self._over = OverReserve()
            for name, topology in self._newest.items():
                self._over.heard(name, topology)
            self._tried_pods.clear()
            self._foreign.clear()
            self._knows_pods = False
        for name in self._newest:
            self._changed(name)

    # --- what comes ---

    def _forget(self) -> None:
        for name in self._newest:
            self._changed(name)
        self._newest.clear()
        self._odd.clear()
        self._over = OverReserve()

    def _heard(self, old: fw.Unstructured | None, new: fw.Unstructured | None) -> None:
        name = new.name if new is not None else old.name if old is not None else ""
        topology = None if new is None else read_topology(new)
        self._report(name, topology.odd if topology is not None else "")
        if topology is None:
            self._newest.pop(name, None)
        else:
            self._newest[name] = topology
        if self._over.heard(name, topology) or not self.over_reserves:
            self._changed(name)

    def _report(self, node: str, odd: str) -> None:
        """Log when the first object is odd, and when none is any more; count them all."""
        if odd:
            self._handle.metrics.plugin_data_faults.labels(PLUGIN, "odd object").inc()
            if not self._odd:
                fields = {"plugin": PLUGIN, "node": node, "err": odd}
                _logger.warning("Not all of a NodeResourceTopology can be used", extra=fields)
            self._odd.add(node)
        elif node in self._odd:
            self._odd.discard(node)
            if not self._odd:
                _logger.info("All NodeResourceTopologies can be used again", extra={"plugin": PLUGIN})

    def reserve(self, node: str, uid: str, amounts: Amounts) -> None:
        if self.over_reserves:
            self._over.reserve(node, uid, amounts)
        if self.discards:
            self._unbound.setdefault(node, set()).add(uid)
        self._changed(node)

    def unreserve(self, node: str, uid: str) -> None:
        self._over.unreserve(node, uid)
        self.bound(node, uid)

    def bound(self, node: str, uid: str) -> None:
        of_node = self._unbound.get(node, set())
        of_node.discard(uid)
        if not of_node:
            self._unbound.pop(node, None)
        self._changed(node)

    def is_tried(self, uid: str) -> None:
        """A pod is about to be filtered: what others have placed since is to be known before stored answers count."""
        if self.over_reserves:
            self._tried_pods.add(uid)
        self._look_for_foreign_pods()

    def refused(self, nodes: Iterable[str]) -> None:
        """Look at these nodes at the next resync: that they refuse a pod may be due to what was reserved."""
        if self.over_reserves:
            for node in nodes:
                self._over.doubt(node)

    def resync(self) -> None:
        """Use the newest objects of nodes in doubt, where they know of all pods; then try what was refused again.

        The event of the object itself came before it counted, so it has woken these pods in vain.
        """
        self._look_for_foreign_pods()
        settled = self._over.resync(self._pods_for)
        for node in settled:
            self._changed(node)
        pods = self._handle.pods
        self._tried_pods = {uid for uid in self._tried_pods if uid in pods and not pods[uid].node_name}
        if settled and self._tried_pods:
            self._handle.activator.activate(sorted(self._tried_pods))
            self._tried_pods = set()

    def _changed(self, node: str) -> None:
        """Mark a node's assumed state, and stored answers about it, as out of date."""
        self._stale.add(node)
        row = self._handle.nodes.row_of(node)
        if row is not None:
            self._handle.columns.mark((row,))

    # --- what counts ---

    def zones(self, rows: fw.Rows, wanted: Asked) -> ZoneRows:
        """Return the amounts that these rows have of a pod's resources."""
        self._catch_up()
        return self._table.of(rows, self._handle.nodes.size, wanted.resources)

    def topology(self, node: str) -> NodeTopology | None:
        return self._over.topology(node) if self.over_reserves else self._newest.get(node)

    def is_valid(self, node: str) -> bool:
        return not (self._over.is_foreign(node) or node in self._unbound)

    def _catch_up(self) -> None:
        self._look_for_foreign_pods()
        nodes = self._handle.nodes
        changed = self._nodes_changed.stale_rows()
        rows = set(range(nodes.size) if changed is None else changed)
        rows.update(row for row in map(nodes.row_of, self._stale) if row is not None)
        self._stale.clear()
        self._table.grow(nodes.size)
        names = nodes.names()
        for row in rows:
            self._table.set(row, self.topology(names[row]), valid=self.is_valid(names[row]))

    def _look_for_foreign_pods(self) -> None:
        """Doubt the nodes on which others have placed pods, or from which theirs have gone, since the last look."""
        if not self.over_reserves or self.foreign_pods == _NOBODYS:
            return
        nodes = self._handle.nodes
        changed, is_first = self._pods_changed.stale_rows(), not self._knows_pods
        self._knows_pods = True
        names = nodes.names()
        for row in range(nodes.size) if is_first or changed is None else changed:
            if not names[row]:
                continue
            name = names[row]
            foreign = frozenset(pod.uid for pod in nodes.info(row).pods if self._is_foreign(pod, name))
            if foreign == self._foreign.get(name, frozenset()):
                continue
            self._foreign[name] = foreign
            if not is_first:  # the objects of the start know of the pods of the start
                self._over.doubt(name, foreign=True)
                self._changed(name)

    def _is_foreign(self, pod: fw.Pod, node: str) -> bool:
        if pod.spec.scheduler_name in self.profiles:
            return False
        return self.foreign_pods == "All" or self._is_exclusive(pod, node)

    def _is_exclusive(self, pod: fw.Pod, node: str) -> bool:
        """Return whether a pod has resources for itself. Rule: resourcerequests/exclusive.go (AreExclusiveForPod)."""
        try:
            wanted = asked(pod)
        except ValueError:
            return True
        newest = self._newest.get(node)
        reported = {name for zone in newest.zones for name in zone.available} if newest is not None else set()
        for amounts in (*wanted.sidecars, *wanted.containers):
            for name, amount in amounts:
                if not is_native(name):
                    if name in reported:
                        return True
                elif wanted.guaranteed and (name != CPU or amount % _MILLI == 0) and name != "ephemeral-storage":
                    return True
        return False

    def _pods_for(self, node: str, method: str) -> Iterable[tuple[str, str]] | None:
        """The pods of which an agent's fingerprint is made: those that run. Rule: overreserve.go, podprovider.go."""
        row = self._handle.nodes.row_of(node)
        if row is None:
            return None
        return [
            (pod.namespace, pod.name)
            for pod in self._handle.nodes.info(row).pods
            if pod.status.phase == "Running" and (method != WITH_EXCLUSIVE or self._is_exclusive(pod, node))
        ]
