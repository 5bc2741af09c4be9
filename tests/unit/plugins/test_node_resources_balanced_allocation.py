"""NodeResourcesBalancedAllocation: pods that even a node out."""

import pytest

from plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from plugins.node_resources.scoring import ResourceSpec
from scheduler import framework as fw
from scheduler.testing import a_container, a_node, a_pod
from tests.unit.plugins.cluster import a_cluster, every_row, scores

GPU = "example.com/gpu"


def balanced(*names: str) -> NodeResourcesBalancedAllocation:
    return NodeResourcesBalancedAllocation(tuple(map(ResourceSpec, names)))


def score(plugin: NodeResourcesBalancedAllocation, pod: fw.Pod, node: fw.Node, *running: fw.Pod) -> int:
    return scores(plugin, pod, a_cluster(node, pods={node.name: running}))[node.name]


def test_containers_without_requests_count_with_nothing() -> None:
    node = a_node(cpu="1", memory="1Gi")

    assert score(NodeResourcesBalancedAllocation(), a_pod(requests={"cpu": "500m"}), node, a_pod("other")) == 62


@pytest.mark.parametrize(
    ("plugin", "pod", "answer"),
    [
        pytest.param(balanced("cpu", "memory"), a_pod(), fw.SKIP, id="a pod that asks for nothing"),
        pytest.param(balanced("cpu", "memory"), a_pod(requests={GPU: "1"}), fw.SKIP, id="nothing of what counts"),
        pytest.param(balanced("cpu", "memory"), a_pod(requests={"cpu": "1m"}), None, id="anything of it"),
        pytest.param(balanced("cpu", GPU), a_pod(requests={GPU: "1"}), None, id="an extended resource"),
    ],
)
def test_pods_that_ask_for_none_of_the_resources_are_skipped(
    plugin: NodeResourcesBalancedAllocation, pod: fw.Pod, answer: fw.Status | None
) -> None:
    cluster = a_cluster(a_node())

    assert plugin.pre_score(fw.CycleState(), pod, cluster, every_row(cluster)) == answer


def test_where_pre_score_is_switched_off_such_pods_score_0() -> None:
    cluster = a_cluster(a_node())

    assert balanced("cpu").score_nodes(fw.CycleState(), a_pod(), cluster, every_row(cluster)) is None


def test_a_sum_that_overflows_counts_as_the_smallest_number_as_in_go() -> None:
    huge = ("9223372036854775807", "5000000000000000k")
    pod = a_pod(containers=[a_container(f"c{i}", requests={GPU: amount}) for i, amount in enumerate(huge)])
    nodes = [a_node(name, cpu="10", allocatable={GPU: "4"}) for name in ("a", "b")]
    plugin = balanced("cpu", GPU)
    smallest = -(2**63)
    without_pod, half = 100, 50
    expected = half + (half - without_pod + smallest) % 2**64 // 2

    alone, together = scores(plugin, pod, a_cluster(nodes[0])), scores(plugin, pod, a_cluster(*nodes))

    assert alone == {"a": together["a"]}
    assert together == dict.fromkeys("ab", expected)


def test_wrong_arguments_are_all_reported() -> None:
    plugin = NodeResourcesBalancedAllocation(
        (ResourceSpec("cpu", 2), ResourceSpec("memory", 1), ResourceSpec("cpu", 0))
    )

    assert plugin.problems() == [
        ("resources[0].weight", "Invalid value: 2: must be 1"),
        ("resources[2].name", 'Duplicate value: "cpu"'),
    ]


def test_left_out_arguments_have_kube_schedulers_defaults() -> None:
    assert NodeResourcesBalancedAllocation() == balanced("cpu", "memory")
    assert NodeResourcesBalancedAllocation(()) == balanced("cpu", "memory")
    assert NodeResourcesBalancedAllocation().problems() == []
