"""Keep pods off nodes where a host port that they need is in use."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from plugins.shared.column_math import held
from scheduler import framework as fw
from scheduler.api.pods.requests import HostPort

_PRE_FILTERED = "PreFilterNodePorts"

PORT_TAKEN: Final = fw.unschedulable("node(s) didn't have free ports for the requested pod ports")

ANY_ADDRESS: Final = "0.0.0.0"
"""A port in use on this address is in use on every address of the node."""

_EVERY_ADDRESS: Final = ("", ANY_ADDRESS)


@dataclass(frozen=True, slots=True)
class NodePorts(fw.PreFilterPlugin, fw.FilterNodesPlugin, fw.SignPlugin, fw.ExplainPlugin):
    """Filter: no pod on the node uses a host port of the pod, by protocol and address.

    Rule: nodeports/node_ports.go and kube-scheduler/framework/types.go (HostPortInfo) at v1.36.3.
    """

    name: ClassVar[str] = "NodePorts"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.PORTS
    signs_spec: ClassVar[bool] = True

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: node_ports.go (EventsToRegister), which has no hint for a new node."""
        return (
            fw.on(fw.ASSIGNED_POD, fw.Action.DELETE, _after_pod_deleted, _host_ports),
            fw.on(fw.NODE, fw.Action.ADD),
        )

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """The pod's host ports."""
        return pod.host_ports

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        """Skip pods without host ports."""
        if not pod.host_ports:
            return fw.SKIP
        state.write(_PRE_FILTERED, True)
        return None

    def concerns(self, pod: fw.Pod) -> bool:
        return bool(pod.host_ports)

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return 1 for each of `rows` on which a port is in use. Raises LookupError if `pre_filter` was not run."""
        state.read(_PRE_FILTERED, bool)
        taken = np.zeros(len(rows), np.bool_)
        for holders in _conflicts(pod, nodes):
            taken |= held(holders, rows, nodes.size)
        return taken.astype(np.int32) if taken.any() else None

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return PORT_TAKEN

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        """Each port that is in use, and who uses it."""
        return [
            fw.Obstacle(
                f"host port {wanted.port}/{wanted.protocol} is in use", _without(pod, wanted), example=f"by {other}"
            )
            for wanted in pod.host_ports
            for other in sorted(node.pods, key=str)
            if any(_overlap(wanted, held) for held in other.host_ports)
        ]


def _without(pod: fw.Pod, port: HostPort) -> tuple[fw.Remedy, ...]:
    """Do without a host port, unless all ports of the pod are the host's."""
    if pod.spec.host_network:
        return ()
    spec = pod.spec
    places = tuple(
        fw.Change("remove", f"/spec/{key}/{place}/ports/{i}/hostPort")
        for key, containers in (("containers", spec.containers), ("initContainers", spec.init_containers))
        for place, container in enumerate(containers or ())
        for i, each in enumerate(container.ports or ())
        if (each.host_port, each.protocol or "TCP", each.host_ip) == (port.port, port.protocol, port.ip)
    )
    return (fw.Remedy(f"drop host port {port.port}/{port.protocol}", places),) if places else ()


def _conflicts(pod: fw.Pod, nodes: fw.NodeColumns) -> Iterator[Mapping[int, int]]:
    """Yield the rows on which a port conflicts with one of the pod's. Rule: HostPortInfo.CheckConflict."""
    in_use = nodes.host_ports
    for ip, protocol, port in pod.host_ports:
        by_address = in_use.get((protocol, port), {})
        if ip in _EVERY_ADDRESS:
            yield from by_address.values()
        else:
            yield from (by_address[address] for address in (ANY_ADDRESS, ip) if address in by_address)


def _host_ports(pod: fw.Pod) -> Hashable:
    return pod.host_ports


def _after_pod_deleted(pod: fw.Pod, old: fw.Pod, new: None) -> fw.QueueingHint:
    """A pod helps that used one of the pod's ports, or was nominated with it. Rule: isSchedulableAfterPodDeleted."""
    freed = old.host_ports
    if not freed or not (old.node_name or old.nominated_node_name):
        return fw.QueueingHint.SKIP
    overlaps = any(_overlap(wanted, held) for wanted in pod.host_ports for held in freed)
    return fw.QueueingHint.QUEUE if overlaps else fw.QueueingHint.SKIP


def _overlap(one: HostPort, other: HostPort) -> bool:
    if one.port != other.port or one.protocol != other.protocol:
        return False
    return one.ip == other.ip or one.ip in _EVERY_ADDRESS or other.ip in _EVERY_ADDRESS
