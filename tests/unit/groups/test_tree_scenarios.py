"""kube-scheduler's integration tests of groups of groups with topologies, played on an engine."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from scheduler import framework as fw
from scheduler.api.objects import (
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
)
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.fakes import PROFILE
from tests.unit.groups.trees import Trees

ATTEMPTS: Final = 6
SECONDS: Final = 60.0
"""Between two attempts: longer than any backoff."""

TABLES: Final = yaml.safe_load(Path(__file__).with_name("tree_scenarios.yaml").read_text(encoding="utf-8"))
SCENARIOS: Final = [scenario for table in TABLES for scenario in table["scenarios"]]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["name"] for scenario in SCENARIOS])
async def test_a_scenario_of_kube_scheduler_ends_as_there(scenario: Mapping[str, Any]) -> None:
    stage = Stage()
    for number, step in enumerate(scenario["steps"]):
        ((what, given),) = step.items()
        await stage.play(what, given, f"step {number}, {what} {given}")
    stage.trees.check()


class Stage:
    """An engine on which a scenario is played."""

    def __init__(self) -> None:
        self.trees = Trees(nodes=0)
        self._labels: dict[str, Mapping[str, str]] = {}

    async def play(self, what: str, given: Any, name: str) -> None:
        """Do a step, or see whether its expectation has come true."""
        does: Mapping[str, Callable[[Any], None]] = {
            "nodes": self._nodes,
            "composite": lambda group: self._group(self.trees.composite, group, "minGroupCount"),
            "group": lambda group: self._group(self.trees.leaf, group, "minCount"),
            "pods": self._pods,
        }
        if what in does:
            does[what](given)
            return
        await self._settle()
        expects: Mapping[str, Callable[[Any], bool]] = {
            "scheduled": lambda names: all(name in self.trees.bound for name in names),
            "unschedulable": lambda names: not any(name in self.trees.bound for name in names),
            "failed": lambda names: not any(name in self.trees.bound for name in names),
            "removed": lambda names: not any(f"default/{name}" in self.trees.engine.pods for name in names),
            "onNodes": lambda on: {self.trees.bound[name] for name in on["pods"]} <= set(on["nodes"]),
            "inOneDomain": lambda one: len({self._domain(name, one["key"]) for name in one["pods"]}) == 1,
        }
        assert expects[what](given), (name, self.trees.bound, self.trees.under_test.world.notes())

    def _nodes(self, nodes: Sequence[Mapping[str, str]]) -> None:
        for each in nodes:
            labels = {key: value for key, value in each.items() if key not in ("name", "taint")}
            self._labels[each["name"]] = labels
            taints = [Taint(key=each["taint"], effect="NoSchedule")] if "taint" in each else []
            self.trees.under_test.see(a_node(each["name"], cpu="2", labels=labels, taints=taints))

    @staticmethod
    def _group(show: Callable[..., None], group: Mapping[str, Any], minimum: str) -> None:
        topology = group.get("topology")
        show(group["name"], group.get(minimum), group.get("parent", ""), topology=topology, priority=100)

    def _pods(self, pods: Sequence[Mapping[str, Any]]) -> None:
        self.trees.under_test.see(*map(_pod, pods))

    async def _settle(self) -> None:
        """Try what waits, and let victims end, until nothing more happens."""
        trees = self.trees
        for _ in range(ATTEMPTS):
            trees.under_test.wait(SECONDS)
            if any(len(trees.engine.queue.pending_pods()[part]) for part in ("active", "backoff")):
                await trees.schedule()
            for uid in trees.under_test.evicted:
                if uid in trees.engine.pods:
                    trees.engine.handlers.pod_deleted(trees.engine.pods[uid])

    def _domain(self, name: str, key: str) -> str:
        return self._labels[self.trees.bound[name]][key]


def _pod(pod: Mapping[str, Any]) -> fw.Pod:
    prefers = None
    if "prefers" in pod:
        named = NodeSelectorRequirement(key="metadata.name", operator="In", values=(pod["prefers"],))
        term = PreferredSchedulingTerm(weight=100, preference=NodeSelectorTerm(match_fields=(named,)))
        prefers = NodeAffinity(preferred=(term,))
    return a_pod(
        pod["name"],
        group=pod.get("group", ""),
        node_name=pod.get("node", ""),
        requests={"cpu": pod.get("cpu", "1")},
        priority=pod.get("priority", 100),
        scheduler_name=PROFILE,
        node_affinity=prefers,
        tolerations=[Toleration(key=pod["tolerates"])] if "tolerates" in pod else [],
    )
