from typing import Any, ClassVar

import pytest

from scheduler import framework as fw
from scheduler.framework.errors import ConfigError
from scheduler.testing import a_cluster, a_node, a_pod, an_object, check_plugin, schedule

SMALL = fw.unschedulable("node(s) too small")
WRONG_TEAM = fw.unresolvable("no team")
TEAMS = "teams.v1.example.com"


class Sized(fw.PreFilterPlugin, fw.FilterPlugin, fw.ScorePlugin):
    """Takes nodes of four cores or more, the largest first, for the pods of a team that there is."""

    name = "Sized"
    reads = (TEAMS,)

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        return None if self.handle.objects.get(TEAMS, pod.labels.get("team", "")) else WRONG_TEAM

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        if node.name == "broken":
            raise RuntimeError("boom")
        return SMALL if node.allocatable["cpu"] < 4000 else None

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> int:
        return node.allocatable["cpu"] // 1000


NODES = (a_node("small", cpu=2), a_node("medium", cpu=4), a_node("large", cpu=8), a_node("other", cpu=8))
SHOP = {TEAMS: [an_object("shop")]}


def test_a_decision_has_the_refusals_the_scores_and_the_best_nodes() -> None:
    decision = schedule(Sized(), a_pod(labels={"team": "shop"}), a_cluster(*NODES), SHOP)

    assert decision.refusals == {"small": SMALL.by("Sized")}
    assert decision.scores == {"medium": 4, "large": 8, "other": 8}
    assert decision.best == {"large", "other"}


def test_a_pod_that_is_refused_as_a_whole_fits_nowhere() -> None:
    decision = schedule(Sized(), a_pod(labels={"team": "bank"}), a_cluster(*NODES), SHOP)

    assert decision.refusals == dict.fromkeys(("small", "medium", "large", "other"), WRONG_TEAM.by("Sized"))
    assert decision.scores == {}
    assert decision.best == frozenset()


def test_an_error_names_the_plugin() -> None:
    with pytest.raises(fw.PluginError, match='running "Sized" filter plugin: RuntimeError: boom'):
        schedule(Sized(), a_pod(labels={"team": "shop"}), a_cluster(a_node("broken")), SHOP)


def test_a_plugin_that_does_not_start_is_an_error() -> None:
    class Broken(Sized):
        def start(self, handle: fw.Handle) -> None:
            raise OSError("no such file")

    with pytest.raises(ConfigError, match="plugin 'Sized' did not start: OSError: no such file"):
        schedule(Broken(), a_pod(), a_cluster(*NODES), SHOP)


def test_a_node_of_a_cluster_is_found_by_its_name() -> None:
    nodes = a_cluster(a_node("a"), pods={"a": [a_pod("there")]})

    assert [pod.name for pod in nodes["a"].pods] == ["there"]
    with pytest.raises(KeyError):
        nodes["b"]


class Tier(fw.FilterPlugin):
    """Keeps the pods of a tier, which an annotation names, to nodes where no pod of another tier is."""

    name = "Tier"
    reads_raw_pods: ClassVar[bool] = True

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return fw.unschedulable("of another tier") if {self.of(pod)} < {self.of(each) for each in node.pods} else None

    def of(self, pod: fw.Pod) -> Any:
        return pod.annotations.get("example.com/tier", "")


class Undeclared(Tier):
    name = "Undeclared"
    reads_raw_pods = False


GOLD, PLAIN = a_pod("gold", annotations={"example.com/tier": "gold"}), a_pod("plain")


def test_a_plugin_that_reads_raw_pods_has_those_on_nodes_too() -> None:
    nodes = a_cluster(a_node("a"), a_node("b"), a_node("c"), pods={"a": [GOLD, a_pod("other")], "b": [PLAIN]})
    nodes.remove_node("c")

    decision = schedule(Tier(), PLAIN, nodes)
    check_plugin(Tier(), [GOLD, PLAIN], nodes)

    assert set(decision.refusals) == {"a"}


def test_raw_pods_are_not_there_in_a_test_of_a_plugin_that_does_not_say_that_it_reads_them() -> None:
    with pytest.raises(fw.PluginError, match="add `reads_raw_pods: ClassVar"):
        schedule(Undeclared(), GOLD, a_cluster(a_node("a"), pods={"a": [GOLD]}))
