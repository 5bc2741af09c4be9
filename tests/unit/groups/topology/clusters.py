"""Clusters with levels of a topology, and members of groups as data."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from scheduler.api.pods.requests import PODS
from scheduler.framework.nodes.columns import BoolColumn
from scheduler.groups.topology.capacity import Capacity, Shape
from scheduler.groups.topology.domains import Domains, domains_of
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_cluster, a_node, a_pod

BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
LEVELS = (BLOCK, RACK, HOST)
GPU = "nvidia.com/gpu"
A_CORE = {"cpu": 1000}


def racks(sizes: Mapping[str, int], used: Mapping[str, int] | None = None, **fields: Any) -> NodeTable:
    """Make a cluster of racks, `block/rack` → number of nodes, of 4 cores each; `used`: node → cores that are taken."""
    nodes = [
        a_node(
            f"{path.rpartition('/')[2]}-{number}",
            labels={BLOCK: path.partition("/")[0], RACK: path.rpartition("/")[2], HOST: f"{path}-{number}"},
            **fields,
        )
        for path, size in sizes.items()
        for number in range(size)
    ]
    pods = {
        name: [a_pod(f"on-{name}", node_name=name, requests={"cpu": str(cores)})]
        for name, cores in (used or {}).items()
    }
    return a_cluster(*nodes, pods=pods)


def members(
    nodes: NodeTable,
    count: int,
    demand: Mapping[str, int] = MappingProxyType(A_CORE),
    refused: BoolColumn | None = None,
) -> Shape:
    """Make members, and rows that refuse them."""
    possible = nodes.in_use.copy() if refused is None else nodes.in_use & ~refused
    return Shape(count, {**demand, PODS: 1}, possible, possible)


def capacity(nodes: NodeTable, count: int) -> Capacity:
    return Capacity(nodes, [members(nodes, count)])


def by_name(domains: Domains, values: Any) -> dict[str, int]:
    return dict(zip(domains.names, np.asarray(values).tolist(), strict=True))


def level(nodes: NodeTable, label: str = RACK) -> Domains:
    return domains_of(nodes, LEVELS[: LEVELS.index(label) + 1])[-1]
