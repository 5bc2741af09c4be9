"""Stored answers of NodeResourceTopologyMatch are those of a new look, whatever happens to zones, pods and nodes."""

import random
from typing import Any, Final

import numpy as np
import pytest

from plugins.contrib.node_resource_topology.fingerprint import pod_fingerprint
from plugins.contrib.node_resource_topology.plugin import NodeResourceTopologyMatch, ScoringStrategy
from plugins.contrib.node_resource_topology.topology import RESOURCE
from scheduler import framework as fw
from scheduler.framework.diagnosis import Diagnosis
from scheduler.testing import Objects, a_cluster, a_handle, a_node, a_pod, started
from tests.fakes import a_framework
from tests.unit.plugins.contrib.topologies import a_numa_pod, a_topology, a_zone

NODES: Final = ("a", "b", "c")
PODS: Final = (
    a_numa_pod({"cpu": "2", "memory": "2Gi"}),
    a_numa_pod({"cpu": "1", "memory": "1Gi"}, {"cpu": "3", "memory": "1Gi"}),
    a_numa_pod({"cpu": "2"}, guaranteed=False),
    a_pod(),
)


class Life:
    """A cluster whose agents, pods and nodes come and go, and the plugin in a profile."""

    def __init__(self, seed: int, arguments: dict[str, Any]) -> None:
        self.random = random.Random(seed)
        self.nodes = a_cluster(*(a_node(name, cpu="64", memory="256Gi") for name in NODES))
        self.topologies = {name: self.a_topology(name) for name in NODES}
        self.objects = Objects({RESOURCE: self.topologies.values()})
        self.plugin = started(NodeResourceTopologyMatch(**arguments), a_handle(self.nodes, self.objects))
        self.framework = a_framework(self.plugin, table=self.nodes)
        self.placed: list[tuple[str, fw.Pod]] = []
        self.reserved: list[tuple[str, fw.Pod]] = []
        self.count = 0

    def a_topology(self, node: str) -> fw.Unstructured:
        zones = [a_zone(number, cpu=self.random.randint(0, 6), memory="8Gi") for number in (0, 1)]
        known = [("default", pod.name) for name, pod in getattr(self, "placed", ()) if name == node]
        return a_topology(
            node,
            *zones,
            policy=self.random.choice(["single-numa-node"] * 5 + ["none"]),
            scope=self.random.choice(["container", "pod"]),
            attributes={"nodeTopologyPodsFingerprint": pod_fingerprint(known)},
        )

    async def step(self) -> None:
        node = self.random.choice(NODES)
        events = [self.tell, self.place, self.place, self.bind, self.bind, self.take_away, self.replace, self.resync]
        await self.random.choice(events)(node)

    async def tell(self, node: str) -> None:
        """The agent writes another object, or takes it away."""
        if node in self.topologies and self.random.random() < 0.2:
            del self.topologies[node]
        else:
            self.topologies[node] = self.a_topology(node)
        self.objects.put(RESOURCE, *self.topologies.values())

    async def place(self, node: str) -> None:
        """Somebody places a pod: ourselves, who may fail at it, or another scheduler."""
        self.count += 1
        ours = self.random.random() < 0.6
        pod = a_numa_pod(
            {"cpu": "1", "memory": "1Gi"}, name=f"pod-{self.count}", schedulerName="default-scheduler" if ours else "x"
        )
        state = fw.CycleState()
        if ours:
            self.plugin.reserve(state, pod, node)
            if self.random.random() < 0.3:
                self.plugin.unreserve(state, pod, node)
                return
            self.reserved.append((node, pod))
        if node in self.nodes.node_names():
            self.nodes.add_pod(node, pod)
            self.placed.append((node, pod))

    async def bind(self, node: str) -> None:
        if self.reserved:
            where, pod = self.reserved.pop(0)
            await self.plugin.post_bind(fw.CycleState(), pod, where)

    async def take_away(self, node: str) -> None:
        if self.placed:
            where, pod = self.placed.pop()
            self.nodes.remove_pod(where, pod)

    async def replace(self, node: str) -> None:
        """A node goes, and its row is another one's."""
        if node in self.nodes.node_names() and all(where != node for where, _ in self.placed):
            self.nodes.remove_node(node)
        else:
            self.nodes.set_node(a_node(node, cpu="64", memory="256Gi"))

    async def resync(self, node: str) -> None:
        await self.plugin._resync()

    def stored(self, pod: fw.Pod) -> tuple[list[bool], list[int]]:
        """Which rows a decision finds feasible, and their scores, as the profile gives them."""
        state = fw.CycleState()
        self.framework.run_pre_filter(state, pod, Diagnosis(self.nodes.size))
        feasible = self.framework.run_filter(state, pod).feasible
        total = self.framework.run_score(state, pod, np.flatnonzero(self.nodes.in_use)).total
        return [row in feasible for row in range(self.nodes.size)], total.tolist()

    def anew(self, pod: fw.Pod) -> tuple[list[bool], list[int]]:
        """The same, asked of the plugin itself."""
        rows, state = np.flatnonzero(self.nodes.in_use), fw.CycleState()
        refused = np.zeros(len(rows), np.int32)
        if self.plugin.pre_filter(state, pod, self.nodes) is None:
            answer = self.plugin.filter_nodes(state, pod, self.nodes, rows)
            refused = refused if answer is None else answer
        passing = dict(zip(rows.tolist(), (refused == 0).tolist(), strict=True))
        scores = self.plugin.score_nodes(state, pod, self.nodes, rows)
        assert scores is not None
        return [passing.get(row, False) for row in range(self.nodes.size)], scores.tolist()


@pytest.mark.parametrize("strategy", ["LeastAllocated", "LeastNUMANodes"])
@pytest.mark.parametrize(
    "arguments", [{}, {"cache_resync_period_seconds": 5}, {"discard_reserved_nodes": True}], ids=str
)
@pytest.mark.parametrize("seed", range(2))
async def test_stored_answers_are_those_of_a_new_look(seed: int, arguments: dict[str, Any], strategy: Any) -> None:
    life = Life(seed, {**arguments, "scoring_strategy": ScoringStrategy(strategy)})
    different: set[object] = set()
    for _ in range(80):
        await life.step()
        for pod in PODS:
            stored = life.stored(pod)
            assert stored == life.anew(pod)
            different.add(str(stored))
    assert len(different) > 5  # or nothing was tried
