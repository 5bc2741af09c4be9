"""check_plugin finds each promise that a plugin breaks."""

from collections.abc import Hashable
from typing import Any

import msgspec
import numpy as np
import pytest

from scheduler import framework as fw
from scheduler.testing import Cluster, a_cluster, a_node, a_pod, check_plugin

REFUSED = fw.unschedulable("refused")
PODS = [a_pod("small", requests={"cpu": 1}), a_pod("large", requests={"cpu": 3}), a_pod("other", labels={"app": "web"})]


def nodes() -> Cluster:
    made = a_cluster(a_node("a", cpu=2), a_node("b", cpu=4), a_node("c", cpu=8), pods={"b": [a_pod("there")]})
    made.remove_node("c")
    return made


class Good(
    fw.PreFilterPlugin,
    fw.FilterNodesPlugin,
    fw.PreScorePlugin,
    fw.ScoreNodesPlugin,
    fw.NormalizeScorePlugin,
    fw.SignPlugin,
):
    """Refuses nodes with too little cpu, and prefers large ones."""

    name = "Good"
    aspects = fw.Aspect.ALLOCATABLE
    signs_spec = True

    def sign(self, pod: fw.Pod) -> Hashable | None:
        return pod.requests.get("cpu", 0)

    def concerns(self, pod: fw.Pod) -> bool:
        return "cpu" in pod.requests

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        return None if "cpu" in pod.requests else fw.SKIP

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        return (nodes.allocatable("cpu")[rows] < pod.requests.get("cpu", 0)).astype(np.int32)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return REFUSED

    def concerns_score(self, pod: fw.Pod) -> bool:
        return "cpu" in pod.requests

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Status | None:
        return None if "cpu" in pod.requests else fw.SKIP

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        amounts: fw.Int64Column = nodes.allocatable("cpu")[rows]
        return amounts

    def normalize_score(self, state: fw.CycleState, pod: fw.Pod, scores: fw.Int64Column) -> fw.Int64Column:
        final: fw.Int64Column = scores * 100 // max(1, int(scores.max()))
        return final


class PerNode(fw.FilterPlugin, fw.ScorePlugin):
    """The same for one node at a time."""

    name = "PerNode"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return REFUSED if node.allocatable["cpu"] < pod.requests.get("cpu", 0) else None

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> int:
        return 100 if node.name == "a" else 0


@pytest.mark.parametrize("plugin", [Good(), PerNode()])
def test_a_plugin_that_keeps_its_promises_passes(plugin: fw.Plugin) -> None:
    check_plugin(plugin, PODS, nodes())


def of_all_rows(self: Any, state: Any, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> Any:
    scores = nodes.allocatable("cpu")[rows]
    return scores - scores.min() if len(rows) else scores


def none_at_once(self: Any, state: Any, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> Any:
    return None if len(rows) > 1 else np.ones(len(rows), np.int32)


class Counting:
    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, state: Any, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> Any:
        self.asked += 1
        return np.full(len(rows), self.asked)


def too_many(self: Any, state: Any, pod: fw.Pod, scores: fw.Int64Column) -> Any:
    return scores + 1000


def in_place(self: Any, state: Any, pod: fw.Pod, scores: fw.Int64Column) -> Any:
    scores //= 10**6
    return scores


def writes_to_the_node(self: Any, state: Any, pod: fw.Pod, nodes: fw.NodeColumns) -> Any:
    msgspec.structs.force_setattr(nodes.info(0).node.spec, "unschedulable", True)


BROKEN = [
    pytest.param({"score_nodes": of_all_rows}, "asked about the rows", id="depends on the other rows"),
    pytest.param({"filter_nodes": none_at_once}, "asked about the rows", id="None where some are refused"),
    pytest.param({"score_nodes": Counting()}, "asked twice", id="another answer each time"),
    pytest.param({"concerns": lambda self, pod: False}, "does not concern", id="skips what it answers"),
    pytest.param({"concerns_score": lambda self, pod: False}, "does not concern", id="skips what it scores"),
    pytest.param({"status_of": lambda *_: fw.unschedulable()}, "no refusal with reasons", id="no reason"),
    pytest.param({"status_of": lambda *_: fw.SKIP}, "no refusal with reasons", id="no refusal"),
    pytest.param({"normalize_score": too_many}, "outside of 0 to 100", id="scores out of range"),
    pytest.param({"normalize_score": in_place}, "changed its input", id="normalises in place"),
    pytest.param({"sign": lambda self, pod: id(pod)}, "different signatures", id="a signature for each object"),
    pytest.param({"sign": lambda self, pod: pod.name}, "more than the spec", id="signs the name"),
    pytest.param({"sign": lambda self, pod: pod.spec.scheduling_group}, "without its group", id="signs the group"),
    pytest.param({"sign": lambda self, pod: ()}, "the same signature", id="one signature for different answers"),
    pytest.param({"pre_filter": writes_to_the_node}, "changed a pod or a node", id="writes to a node"),
]


@pytest.mark.parametrize(("methods", "problem"), BROKEN)
def test_a_broken_promise_is_named(methods: dict[str, Any], problem: str) -> None:
    broken = type("Broken", (Good,), methods)()

    with pytest.raises(AssertionError, match=problem):
        check_plugin(broken, PODS[:2], nodes())


class CountsPods(fw.PreFilterPlugin, fw.PreFilterExtensions, fw.FilterNodesPlugin):
    """Lets one pod onto the cluster."""

    name = "CountsPods"

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        state.write(self.name, Count(int(nodes.pod_count.sum())))
        return None

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> None:
        state.read(self.name, Count).pods += 1

    def remove_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> None:
        state.read(self.name, Count).pods -= 1

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        return np.full(len(rows), state.read(self.name, Count).pods, np.int32)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return REFUSED


class Count:
    def __init__(self, pods: int) -> None:
        self.pods = pods

    def clone(self) -> "Count":
        return Count(self.pods)


class Forgetful(CountsPods):
    def remove_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> None:
        """Forget to take it back."""


def test_what_add_pod_counts_remove_pod_has_to_take_back() -> None:
    check_plugin(CountsPods(), PODS, nodes())

    with pytest.raises(AssertionError, match="does not take back"):
        check_plugin(Forgetful(), PODS, nodes())


def test_scores_may_be_out_of_range_where_the_author_says_so() -> None:
    check_plugin(type("Large", (Good,), {"normalize_score": too_many})(), PODS, nodes(), scores_in_range=False)


class Seats(fw.FilterPlugin, fw.ReservePlugin):
    """Two pods in all."""

    name = "Seats"

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return REFUSED if len(self.taken) > 1 else None

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        self.taken.add(pod.uid)
        return None

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.taken.discard(pod.uid)


def keeps(self: Any, state: Any, pod: fw.Pod, node_name: str) -> None:
    self.taken.add("another")


def fails_without_reserve(self: Any, state: Any, pod: fw.Pod, node_name: str) -> None:
    self.taken.remove(pod.uid)


def refuses(self: Any, state: Any, pod: fw.Pod, node_name: str) -> fw.Status:
    return REFUSED


def refuses_without_a_reason(self: Any, state: Any, pod: fw.Pod, node_name: str) -> fw.Status:
    return fw.unschedulable()


@pytest.mark.parametrize(
    ("methods", "problem"),
    [
        pytest.param({"unreserve": keeps}, "Unreserve does not take back", id="keeps what it reserved"),
        pytest.param({"unreserve": fails_without_reserve}, "Unreserve without Reserve", id="fails without Reserve"),
        pytest.param({"reserve": refuses_without_a_reason}, "no refusal with reasons", id="no reason"),
        pytest.param(
            {"reserve": refuses, "concerns_reserve": lambda self, pod: False}, "does not concern", id="skips a refusal"
        ),
    ],
)
def test_what_reserve_takes_unreserve_has_to_give_back(methods: dict[str, Any], problem: str) -> None:
    check_plugin(Seats(), PODS, nodes())

    with pytest.raises(AssertionError, match=problem):
        check_plugin(type("Broken", (Seats,), methods)(), PODS, nodes())


class ByName(fw.QueueSortPlugin):
    """In alphabetical order."""

    name = "ByName"

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return a.pod.name < b.pod.name

    def sort_key(self, queued: fw.QueuedPod) -> Any:
        return queued.pod.name


@pytest.mark.parametrize(
    ("methods", "problem"),
    [
        pytest.param({"less": lambda self, a, b: True}, "before itself", id="each before each"),
        pytest.param({"less": lambda self, a, b: a is not b}, "both come before each other", id="both ways"),
        pytest.param({"sort_key": lambda self, queued: -len(queued.pod.name)}, "sort_key", id="another order by key"),
    ],
)
def test_an_order_of_the_queue_has_to_be_one(methods: dict[str, Any], problem: str) -> None:
    check_plugin(ByName(), PODS, nodes())

    with pytest.raises(AssertionError, match=problem):
        check_plugin(type("Broken", (ByName,), methods)(), PODS, nodes())
