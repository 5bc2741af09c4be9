"""What NodeResourceTopologyMatch adds to the decision on a Guaranteed pod: the first one of all, and later ones."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from plugins.contrib.node_resource_topology.plugin import NodeResourceTopologyMatch, ScoringStrategy
from plugins.contrib.node_resource_topology.topology import RESOURCE
from scheduler import framework as fw
from scheduler.testing import an_object
from tests.bench.cycle_costs import decisions, settled
from tests.bench.cycle_world import World, decoded_pod, node_name

NODES: Final = 5_000
WARM: Final = 20
"""Decisions before those that are measured."""


_LEAST: Final = ScoringStrategy("LeastNUMANodes")


@dataclass
class LeastNumaNodes(NodeResourceTopologyMatch):
    """Looks at combinations of NUMA nodes."""

    scoring_strategy: ScoringStrategy = _LEAST


STRATEGIES: Final[dict[str, type[fw.Plugin]]] = {
    "LeastAllocated": NodeResourceTopologyMatch,
    "LeastNUMANodes": LeastNumaNodes,
}


def times(nodes: int, count: int, plugin: type[fw.Plugin] | None) -> tuple[float, float]:
    """Seconds of the first decision, and the median of those once the answers are stored."""
    world = World(nodes, plugin)
    world.add_objects(_topologies(nodes))
    resources = {"cpu": "100m", "memory": "500Mi"}
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": resources, "limits": resources}}]}
    pods = [decoded_pod(f"pod-{number}", spec) for number in range(count + WARM)]
    with settled(None):
        found = [alone for alone, _ in decisions(world, pods)]
    return found[0], statistics.median(found[WARM:])


def print_numa(count: int, nodes: int = NODES) -> None:
    """Print what each kind of strategy adds."""
    first, later = times(nodes, count, None)
    print(f"NodeResourceTopologyMatch, {nodes:,} nodes with two NUMA nodes each, µs added to a decision\n")
    print(f"{'':<36}{'first':>12}{'later':>12}")
    for name, plugin in STRATEGIES.items():
        one, other = times(nodes, count, plugin)
        print(f"{name:<36}{(one - first) * 1e6:>12.0f}{(other - later) * 1e6:>12.1f}", flush=True)
    print()


def _topologies(nodes: int) -> Iterator[tuple[str, fw.Unstructured]]:
    """The nodes of a world as their agents see them: half of each in either NUMA node."""
    resources = [{"name": "cpu", "available": "16"}, {"name": "memory", "available": "128Gi"}]
    zones = [{"name": f"node-{zone}", "type": "Node", "resources": resources} for zone in range(2)]
    attributes = [{"name": "topologyManagerPolicy", "value": "single-numa-node"}]
    for number in range(nodes):
        yield RESOURCE, an_object(node_name(number), uid=f"topology-{number}", attributes=attributes, zones=zones)
