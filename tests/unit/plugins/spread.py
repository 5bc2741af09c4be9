"""Pods with spread constraints, small clusters for them, and Services without an API server."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from plugins.pod_topology_spread.plugin import PodTopologySpread
from scheduler import framework as fw
from scheduler.api.objects import LabelSelector, OwnerReference, TopologySpreadConstraint
from scheduler.api.unstructured import Unstructured
from scheduler.framework.nodes.resources import KNOWN
from scheduler.runtime.handle import PluginColumns
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_node, a_pod, started
from tests.fakes import a_handle
from tests.unit.plugins.cluster import a_cluster

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB = {"app": "web"}
SELECTS_WEB = LabelSelector(match_labels=WEB)


def a_constraint(key: str = ZONE, *, soft: bool = False, max_skew: int = 1, **fields: Any) -> TopologySpreadConstraint:
    """Make a constraint over pods of the app `web`, unless `label_selector` says otherwise."""
    return TopologySpreadConstraint(
        topology_key=key,
        max_skew=max_skew,
        when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
        **{"label_selector": SELECTS_WEB, **fields},
    )


def a_spread_pod(
    *constraints: TopologySpreadConstraint,
    labels: Mapping[str, str] | None = WEB,
    owner: tuple[str, str, str] | None = None,
    deleting: bool = False,
    nominated: str = "",
    **fields: Any,
) -> fw.Pod:
    """Make a pod; `owner` is version, kind and name of what controls it."""
    pod = a_pod(labels=labels, **fields)
    references = None
    if owner is not None:
        version, kind, name = owner
        references = (
            OwnerReference(api_version=version, kind=kind, name="other"),
            OwnerReference(api_version=version, kind=kind, name=name, controller=True),
        )
    metadata = msgspec.structs.replace(
        pod.metadata,
        owner_references=references,
        deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
    )
    spec = msgspec.structs.replace(pod.spec, topology_spread_constraints=constraints or None)
    status = msgspec.structs.replace(pod.status, nominated_node_name=nominated)
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=status)


def web_pods(number: int, name: str = "web", **fields: Any) -> list[fw.Pod]:
    """Make running pods of the app `web`."""
    return [a_spread_pod(name=f"{name}-{i}", **fields) for i in range(number)]


def nodes_in_zones(zones: Mapping[str, Iterable[str]], pods: Mapping[str, int]) -> NodeTable:
    """Make nodes by zone, each with its hostname, and this many pods of the app `web` on each."""
    nodes = [
        a_node(name, labels={HOSTNAME: name, **({ZONE: zone} if zone else {})})
        for zone, names in zones.items()
        for name in names
    ]
    return a_cluster(*nodes, pods={name: web_pods(number, f"on-{name}") for name, number in pods.items()})


def nodes_in_two_zones(pods: Mapping[str, int]) -> NodeTable:
    """Make the nodes a and b in zone 1, x and y in zone 2."""
    return nodes_in_zones({"1": ("a", "b"), "2": ("x", "y")}, pods)


def a_spread(objects: "Objects | None" = None, table: NodeTable | None = None, **arguments: Any) -> PodTopologySpread:
    """Make the plugin, with these Services, controllers and nodes in the cluster."""
    plugin = started(PodTopologySpread(**arguments), (objects or Objects()).handle)
    return plugin if table is None else over(table, plugin)


def over(table: NodeTable, plugin: PodTopologySpread) -> PodTopologySpread:
    """Return the plugin in a scheduler of these nodes."""
    if plugin.handle.nodes is table:
        return plugin
    handle = dataclasses.replace(plugin.handle, nodes=table, columns=PluginColumns(table))
    return started(dataclasses.replace(plugin), handle)


def feasible(plugin: PodTopologySpread, pod: fw.Pod, table: NodeTable) -> list[str]:
    """Return the names of the nodes on which the pod may run."""
    state = fw.CycleState()
    rows = np.flatnonzero(table.in_use)
    names = [table.names()[row] for row in rows.tolist()]
    plugin = over(table, plugin)
    if plugin.pre_filter(state, pod, table) == fw.SKIP:
        return names
    codes = plugin.filter_nodes(state, pod, table, rows)
    assert codes is not None
    return [name for name, code in zip(names, codes.tolist(), strict=True) if not code]


def spread_scores(
    plugin: PodTopologySpread, pod: fw.Pod, table: NodeTable, candidates: Collection[str] = ()
) -> dict[str, int]:
    """Return the final scores of the candidates, of all nodes if none are named; empty if the plugin skips."""
    state = fw.CycleState()
    in_use = np.flatnonzero(table.in_use).tolist()
    wanted = [row for row in in_use if not candidates or table.names()[row] in candidates]
    rows = np.array(wanted, np.intp)
    plugin = over(table, plugin)
    if plugin.pre_score(state, pod, table, rows) == fw.SKIP:
        return {}
    raw = plugin.score_nodes(state, pod, table, rows)
    assert raw is not None
    final = plugin.normalize_score(state, pod, raw)
    return {table.names()[row]: int(score) for row, score in zip(wanted, final, strict=True)}


class Objects:
    """Services and controllers, as the handle has them."""

    def __init__(self) -> None:
        self.store = ObjectStore()
        self.store.watch(KNOWN)
        self.handle = dataclasses.replace(a_handle(), objects=self.store)

    def add(self, resource: str, name: str, selector: Any, namespace: str = "default") -> "Objects":
        metadata = {"name": name, "namespace": namespace, "uid": f"{resource}/{namespace}/{name}"}
        self.store.set(resource, Unstructured.from_dict({"metadata": metadata, "spec": {"selector": selector}}))
        return self

    def service(self, selector: Any, name: str = "service", namespace: str = "default") -> "Objects":
        return self.add(fw.SERVICE, name, selector, namespace)
