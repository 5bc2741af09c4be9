"""What a pod asks for, as scheduling counts it."""

import time

import pytest

from scheduler.api.objects import ContainerPort, ContainerStatus, PodCondition, PodStatus, ResourceRequirements
from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.api.pods.requests import (
    DEFAULT_MEMORY,
    DEFAULT_MILLI_CPU,
    HostPort,
    allocatable_of,
    is_extended_resource,
    is_scalar_resource,
)
from scheduler.testing import a_container, a_pod


@pytest.mark.parametrize(
    ("pod", "requests"),
    [
        pytest.param(a_pod(), {}, id="nothing"),
        pytest.param(
            a_pod(containers=[a_container("a", requests={"cpu": "1"}), a_container("b", requests={"cpu": "500m"})]),
            {"cpu": 1500},
            id="containers add up",
        ),
        pytest.param(
            a_pod(requests={"cpu": "1"}, init_containers=[a_container("i", requests={"cpu": "3"})]),
            {"cpu": 3000},
            id="an init container runs alone",
        ),
        pytest.param(
            a_pod(
                requests={"cpu": "1"},
                init_containers=[
                    a_container("first", requests={"cpu": "3"}),
                    a_container("sidecar", requests={"cpu": "2"}, sidecar=True),
                    a_container("last", requests={"cpu": "2"}),
                ],
            ),
            {"cpu": 4000},
            id="sidecars run alongside those that come after them",
        ),
        pytest.param(a_pod(requests={"cpu": "1"}, overhead={"cpu": "100m"}), {"cpu": 1100}, id="overhead"),
        pytest.param(
            a_pod(requests={"cpu": "1", "memory": "1Ki"}, pod_requests={"cpu": "4"}, overhead={"cpu": "1"}),
            {"cpu": 5000, "memory": 1024},
            id="the pod as a whole",
        ),
        pytest.param(
            a_pod(requests={"example.com/gpu": "1", "hugepages-2Mi": "2Mi", "nonsense": "1"}),
            {"example.com/gpu": 1, "hugepages-2Mi": 2 * 1024 * 1024},
            id="what scheduling does not know is left out",
        ),
    ],
)
def test_requests_add_up(pod: Pod, requests: dict[str, int]) -> None:
    assert pod.requests == requests


@pytest.mark.parametrize(
    ("pending", "requests"),
    [
        pytest.param("Deferred", {"cpu": 4000}, id="a resize in progress counts with the most"),
        pytest.param("Infeasible", {"cpu": 3000}, id="an infeasible one without what was asked"),
    ],
)
def test_a_running_pod_counts_with_its_resize(pending: str, requests: dict[str, int]) -> None:
    status = PodStatus(
        conditions=(PodCondition(type="PodResizePending", reason=pending),),
        container_statuses=(
            ContainerStatus(
                name="main",
                resources=ResourceRequirements(requests={"cpu": "2"}),
                allocated_resources={"cpu": "3"},
            ),
        ),
    )

    assert a_pod(requests={"cpu": "4"}, status=status).requests == requests


def reported(name: str, actuated: str | None = None, allocated: str | None = None) -> ContainerStatus:
    return ContainerStatus(
        name=name,
        resources=None if actuated is None else ResourceRequirements(requests={"cpu": actuated}),
        allocated_resources=None if allocated is None else {"cpu": allocated},
    )


INFEASIBLE = (PodCondition(type="PodResizePending", reason="Infeasible"),)
TWO = [a_container("a", requests={"cpu": "4"}), a_container("b", requests={"cpu": "1"})]


@pytest.mark.parametrize(
    ("pod", "milli_cpu"),
    [
        pytest.param(
            a_pod(
                containers=TWO, status=PodStatus(container_statuses=(reported("a", "2", "2"), reported("b", "2", "2")))
            ),
            5000,
            id="what was asked, allocated and actuated is summed for itself",
        ),
        pytest.param(
            a_pod(
                containers=TWO, status=PodStatus(container_statuses=(reported("a", "2", "6"), reported("b", "3", "1")))
            ),
            7000,
            id="the largest sum counts",
        ),
        pytest.param(
            a_pod(
                containers=TWO, status=PodStatus(conditions=INFEASIBLE, container_statuses=(reported("a", "2", "2"),))
            ),
            2000,
            id="of an infeasible resize only what is reported counts",
        ),
        pytest.param(
            a_pod(containers=TWO, status=PodStatus(conditions=INFEASIBLE)),
            None,
            id="of an infeasible resize nothing counts if nothing is reported",
        ),
        pytest.param(
            a_pod(containers=TWO, status=PodStatus(container_statuses=(reported("a", None, "7"),))),
            8000,
            id="what is allocated is actuated if nothing else is said",
        ),
        pytest.param(
            a_pod(
                requests={"cpu": "1"},
                init_containers=[a_container("init", requests={"cpu": "2"})],
                status=PodStatus(init_container_statuses=(reported("init", "3", "3"),)),
            ),
            3000,
            id="an init container counts as it is reported",
        ),
        pytest.param(
            a_pod(
                containers=TWO,
                status=PodStatus(
                    container_statuses=(reported("a", "20", "20"),),
                    resources=ResourceRequirements(requests={"cpu": "6"}),
                    allocated_resources={"cpu": "5"},
                ),
            ),
            6000,
            id="what is reported of the pod stands for its containers",
        ),
        pytest.param(
            a_pod(
                pod_requests={"memory": "1"},
                containers=TWO,
                status=PodStatus(resources=ResourceRequirements(requests={"cpu": "9", "memory": "1"})),
            ),
            9000,
            id="of a pod with requests as a whole, any resource that is reported counts",
        ),
        pytest.param(
            a_pod(
                pod_requests={"cpu": "8"},
                containers=TWO,
                status=PodStatus(
                    conditions=INFEASIBLE,
                    container_statuses=(reported("a", "2", "2"),),
                    resources=ResourceRequirements(requests={"memory": "1"}),
                ),
            ),
            2000,
            id="of an infeasible resize of the whole the containers' sum counts",
        ),
    ],
)
def test_a_resize_counts_with_the_largest_of_three_sums(pod: Pod, milli_cpu: int | None) -> None:
    assert pod.requests.get("cpu") == milli_cpu


def test_scoring_assumes_something_for_containers_of_an_infeasible_resize() -> None:
    pod = a_pod(requests={"cpu": "4", "memory": "1"}, status=PodStatus(conditions=INFEASIBLE))

    assert (pod.resources.non_zero_cpu, pod.resources.non_zero_memory) == (DEFAULT_MILLI_CPU, DEFAULT_MEMORY)


def test_scoring_assumes_something_for_containers_that_ask_for_nothing() -> None:
    resources = a_pod(containers=[a_container("a"), a_container("b", requests={"cpu": "1", "memory": "0"})]).resources

    assert resources.requests == {"cpu": 1000, "memory": 0}
    assert resources.non_zero_cpu == 1000 + DEFAULT_MILLI_CPU
    assert resources.non_zero_memory == DEFAULT_MEMORY


def test_a_quantity_that_cannot_be_read_is_reported() -> None:
    with pytest.raises(ValueError, match="not a quantity: 'much'"):
        _ = a_pod(requests={"cpu": "much"}).requests


def test_host_ports_are_those_of_sidecars_then_of_containers() -> None:
    ports = [ContainerPort(host_port=80, host_ip="10.0.0.1"), ContainerPort(host_port=53, protocol="UDP")]
    pod = a_pod(
        ports=[*ports, ContainerPort(container_port=1)],
        init_containers=[
            a_container("init", ports=[ContainerPort(host_port=1)]),
            a_container("sidecar", ports=[ContainerPort(host_port=9)], sidecar=True),
        ],
    )

    assert pod.host_ports == (HostPort("", "TCP", 9), HostPort("10.0.0.1", "TCP", 80), HostPort("", "UDP", 53))


def test_a_nodes_amounts_include_its_pods() -> None:
    assert allocatable_of({"cpu": "2", "pods": "110", "example.com/gpu": 1}) == {
        "cpu": 2000,
        "pods": 110,
        "example.com/gpu": 1,
    }
    assert allocatable_of(None) == {}


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("example.com/gpu", True, True),
        ("cpu", False, False),
        ("hugepages-2Mi", False, True),
        ("kubernetes.io/thing", False, True),
        ("requests.example.com/gpu", False, False),
        ("gpu", False, False),
        ("example.com/", False, False),
        ("Example.com/gpu", False, False),
    ],
)
def test_extended_and_scalar_resources_are_known_by_their_name(name: str, extended: bool, scalar: bool) -> None:
    assert is_extended_resource(name) == extended
    assert is_scalar_resource(name) == scalar


def test_many_sidecars_cost_no_more_than_as_many_containers() -> None:
    sidecars = [
        {"name": f"s{i}", "restartPolicy": "Always", "resources": {"requests": {f"example.com/r{i}": "1"}}}
        for i in range(10_000)
    ]
    pod = pod_from_dict({"metadata": {"uid": "a"}, "spec": {"initContainers": [*sidecars, {"name": "init"}]}})

    started = time.process_time()

    assert len(pod.requests) == 10_000
    assert time.process_time() - started < 1.0
