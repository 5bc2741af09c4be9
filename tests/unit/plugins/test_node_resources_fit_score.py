"""NodeResourcesFit, Score: the three strategies, and wrong arguments."""

import math

import pytest

from plugins.node_resources.fit import NodeResourcesFit, RequestedToCapacityRatio, ScoringStrategy
from plugins.node_resources.scoring import ResourceSpec, with_defaults
from plugins.shared.shapes import UtilizationShapePoint
from scheduler import framework as fw
from scheduler.api.objects import ContainerStatus, PodStatus, ResourceRequirements
from scheduler.testing import a_container, a_node, a_pod
from tests.unit.plugins.cluster import a_cluster, every_row, scores

GPU = "example.com/gpu"
CPU_ONLY = (ResourceSpec("cpu"),)


def fit(kind: str, *resources: ResourceSpec, shape: tuple[tuple[int, int], ...] | None = None) -> NodeResourcesFit:
    ratio = None if shape is None else RequestedToCapacityRatio(tuple(UtilizationShapePoint(u, s) for u, s in shape))
    return NodeResourcesFit(scoring_strategy=ScoringStrategy(kind, resources, ratio))


def score(plugin: NodeResourcesFit, pod: fw.Pod, node: fw.Node, *running: fw.Pod) -> int:
    return scores(plugin, pod, a_cluster(node, pods={node.name: running}))[node.name]


@pytest.mark.parametrize(
    ("kind", "resources", "requests", "expected"),
    [
        pytest.param("LeastAllocated", CPU_ONLY, {"cpu": "9"}, 0, id="least: overfull is 0"),
        pytest.param(
            "LeastAllocated",
            (ResourceSpec("cpu", 3), ResourceSpec("memory", 1)),
            {"cpu": "1", "memory": "4Gi"},
            56,
            id="least: by weight",
        ),
        pytest.param(
            "LeastAllocated",
            (ResourceSpec("cpu"), ResourceSpec(GPU)),
            {"cpu": "1", GPU: "1"},
            62,
            id="least: a gpu asked for",
        ),
        pytest.param("LeastAllocated", (ResourceSpec("pods"),), {}, 0, id="least: the number of pods is no resource"),
        pytest.param("MostAllocated", (ResourceSpec("nonsense"),), {}, 0, id="most: nothing counts"),
        pytest.param("LeastAllocated", CPU_ONLY, {"cpu": "0"}, 75, id="least: unless it asks for 0"),
    ],
)
def test_a_node_scores_by_how_full_the_pod_makes_it(
    kind: str, resources: tuple[ResourceSpec, ...], requests: dict[str, str], expected: int
) -> None:
    node = a_node(cpu="4", memory="16Gi", allocatable={GPU: "4"})
    running = a_pod("other", requests={"cpu": "1", "memory": "0"})

    assert score(fit(kind, *resources), a_pod(requests=requests), node, running) == expected


RISING = ((0, 0), (100, 10))


@pytest.mark.parametrize(
    ("shape", "resources", "requests", "expected"),
    [
        pytest.param(
            ((0, 10), (100, 0)), CPU_ONLY, {"cpu": "2500m"}, 13, id="a falling line is truncated towards zero"
        ),
        pytest.param(RISING, CPU_ONLY, {"cpu": "8"}, 100, id="overfull counts as full"),
        pytest.param(
            ((0, 0), (40, 0), (50, 10)),
            (ResourceSpec("cpu", 1), ResourceSpec("memory", 9)),
            {"cpu": "1", "memory": "1Gi"},
            100,
            id="what scores 0 does not count",
        ),
    ],
)
def test_a_node_scores_by_the_shape(
    shape: tuple[tuple[int, int], ...], resources: tuple[ResourceSpec, ...], requests: dict[str, str], expected: int
) -> None:
    plugin = fit("RequestedToCapacityRatio", *resources, shape=shape)
    running = a_pod("other", requests={"cpu": "1", "memory": "0"})

    assert score(plugin, a_pod(requests=requests), a_node(cpu="4", memory="16Gi"), running) == expected


def test_containers_without_requests_count_with_defaults_on_the_node_too() -> None:
    others = [a_pod(f"p{i}", containers=[a_container(), a_container("second")]) for i in range(3)]

    assert score(fit("LeastAllocated", *CPU_ONLY), a_pod(), a_node(cpu="1"), *others) == 30


def test_scoring_overlooks_requests_of_the_pod_as_a_whole_and_resizes() -> None:
    plugin = fit("LeastAllocated", *CPU_ONLY)
    status = PodStatus(
        container_statuses=(ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": "3"})),)
    )

    assert score(plugin, a_pod(requests={"cpu": "1"}, pod_requests={"cpu": "3"}), a_node(cpu="4")) == 75
    assert score(plugin, a_pod(requests={"cpu": "1"}, status=status), a_node(cpu="4")) == 75


def test_amounts_that_overflow_wrap_as_in_go() -> None:
    plugin = fit("LeastAllocated", ResourceSpec("memory"))
    pod = a_pod(requests={"memory": str(2**55)})

    assert score(plugin, pod, a_node(memory=str(2**57))) == _go_least(2**57, 2**55)
    assert score(plugin, pod, a_node(memory=str(2**62 + 1))) == _go_least(2**62 + 1, 2**55)


def _go_least(capacity: int, requested: int) -> int:
    free = (capacity - requested) * 100
    wrapped = (free + 2**63) % 2**64 - 2**63
    return int(math.copysign(abs(wrapped) // capacity, wrapped))


def test_score_does_without_pre_score() -> None:
    cluster = a_cluster(a_node(cpu="4"))

    found = fit("LeastAllocated", *CPU_ONLY).score_nodes(
        fw.CycleState(), a_pod(requests={"cpu": "1"}), cluster, every_row(cluster)
    )

    assert found is not None
    assert found.tolist() == [75]


def test_left_out_arguments_have_kube_schedulers_defaults() -> None:
    assert NodeResourcesFit().scoring_strategy == ScoringStrategy(
        "LeastAllocated", (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
    )
    most = NodeResourcesFit(scoring_strategy=ScoringStrategy("MostAllocated", ()))
    assert most.scoring_strategy.resources == (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
    assert with_defaults([ResourceSpec("cpu", 0)]) == (ResourceSpec("cpu", 1),)
    assert NodeResourcesFit().problems() == []


@pytest.mark.parametrize(
    ("plugin", "problems"),
    [
        pytest.param(
            NodeResourcesFit(ignored_resources=("example.com/gpu", "a/b/c"), ignored_resource_groups=("x/y", "")),
            ["ignoredResources[1]", "ignoredResourceGroups[0]", *["ignoredResourceGroups[1]"] * 2],
            id="ignored resources",
        ),
        pytest.param(
            NodeResourcesFit(scoring_strategy=ScoringStrategy(resources=(ResourceSpec("cpu", -1),))),
            ["scoringStrategy.type", "scoringStrategy.resources[0].weight"],
            id="a strategy without type, a negative weight",
        ),
        pytest.param(
            fit("LeastAllocated", ResourceSpec("cpu", 101), shape=RISING),
            ["scoringStrategy.resources[0].weight", "scoringStrategy.requestedToCapacityRatio"],
            id="a weight above 100, a shape for another strategy",
        ),
        pytest.param(
            fit("RequestedToCapacityRatio"), ["scoringStrategy.requestedToCapacityRatio"], id="a ratio without shape"
        ),
        pytest.param(
            fit("RequestedToCapacityRatio", shape=()),
            ["scoringStrategy.requestedToCapacityRatio.shape"],
            id="a shape without points",
        ),
        pytest.param(
            fit("RequestedToCapacityRatio", shape=((-1, 11), (5, -1), (5, 0), (101, 0), (7, 0))),
            [
                f"scoringStrategy.requestedToCapacityRatio.shape[{field}"
                for field in ("2].utilization", "0].utilization", "0].score", "1].score", "3].utilization")
            ],
            id="points out of range or order",
        ),
        pytest.param(fit("RequestedToCapacityRatio", shape=RISING), [], id="all is well"),
    ],
)
def test_wrong_arguments_are_all_reported(plugin: NodeResourcesFit, problems: list[str]) -> None:
    assert [path for path, _ in plugin.problems()] == problems


def test_problems_are_worded_like_kube_schedulers() -> None:
    plugin = NodeResourcesFit(scoring_strategy=ScoringStrategy("Fullest", (ResourceSpec("cpu", 101),)))

    assert plugin.problems() == [
        (
            "scoringStrategy.type",
            'Unsupported value: "Fullest": supported values: '
            '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"',
        ),
        (
            "scoringStrategy.resources[0].weight",
            "Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
        ),
    ]
