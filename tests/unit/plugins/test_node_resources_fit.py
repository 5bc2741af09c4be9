"""NodeResourcesFit, Filter: what is left on a node."""

import pytest

from plugins.node_resources.fit import NodeResourcesFit
from scheduler import framework as fw
from scheduler.api.devices import DeviceClass
from scheduler.api.objects import ContainerStatus, ObjectMeta, PodStatus, ResourceRequirements
from scheduler.testing import a_node, a_pod
from tests.unit.plugins.cluster import a_cluster, every_row, refusals

GPU = "example.com/gpu"


def verdict(pod: fw.Pod, node: fw.Node, *running: fw.Pod, plugin: NodeResourcesFit | None = None) -> fw.Status | None:
    found = refusals(plugin or NodeResourcesFit(), pod, a_cluster(node, pods={node.name: running}))
    return found.get(node.name)


@pytest.mark.parametrize(
    ("requests", "running", "answer"),
    [
        pytest.param(
            {"cpu": "2", "memory": "20Gi"},
            {"cpu": "3"},
            fw.unresolvable("Insufficient cpu", "Insufficient memory"),
            id="all that is missing, unresolvable if any of it is",
        ),
        pytest.param({"example.com/other": "0"}, {}, None, id="nothing of an unknown resource"),
        pytest.param({"cpu": "0"}, {"cpu": "5"}, None, id="a pod that asks for nothing fits on an overfull node"),
        pytest.param(
            {"memory": "9223372036854775807"},
            {},
            fw.unresolvable("Insufficient memory"),
            id="the largest amount there is",
        ),
    ],
)
def test_a_pod_fits_if_its_requests_are_left(
    requests: dict[str, str], running: dict[str, str], answer: fw.Status | None
) -> None:
    node = a_node(cpu="4", memory="16Gi", allocatable={GPU: "2"})

    assert verdict(a_pod(requests=requests), node, a_pod("other", requests=running)) == answer


def test_reasons_come_in_a_fixed_order() -> None:
    pod = a_pod(requests={"vendor.io/b": "1", GPU: "1", "ephemeral-storage": "1", "memory": "1Ti", "cpu": "9"})

    answer = verdict(pod, a_node(pods=0))

    assert answer is not None
    assert answer.reasons == (
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        f"Insufficient {GPU}",
        "Insufficient vendor.io/b",
    )


def test_huge_pages_of_the_pod_as_a_whole_count_and_what_it_does_not_name_is_its_containers() -> None:
    pod = a_pod(requests={"memory": "2Gi", "hugepages-2Mi": "2Mi"}, pod_requests={"hugepages-2Mi": "8Mi", "cpu": "1"})

    assert verdict(pod, a_node(cpu="1", memory="2Gi", allocatable={"hugepages-2Mi": "8Mi"})) is None
    assert verdict(pod, a_node(cpu="1", memory="1Gi", allocatable={"hugepages-2Mi": "6Mi"})) == fw.unresolvable(
        "Insufficient memory", "Insufficient hugepages-2Mi"
    )


def test_what_a_waiting_pods_status_says_does_not_count() -> None:
    status = PodStatus(
        container_statuses=(ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": "3"})),)
    )

    assert verdict(a_pod(requests={"cpu": "1"}, status=status), a_node(cpu="1")) is None


@pytest.mark.parametrize(
    ("plugin", "resource", "answer"),
    [
        pytest.param(NodeResourcesFit(ignored_resources=(GPU,)), GPU, None, id="an ignored resource"),
        pytest.param(NodeResourcesFit(ignored_resource_groups=("example.com",)), GPU, None, id="an ignored group"),
        pytest.param(
            NodeResourcesFit(ignored_resources=("example.com/x",), ignored_resource_groups=("example",)),
            GPU,
            fw.unresolvable(f"Insufficient {GPU}"),
            id="others are not ignored",
        ),
        pytest.param(
            NodeResourcesFit(ignored_resources=("hugepages-2Mi", "cpu")),
            "hugepages-2Mi",
            fw.unresolvable("Insufficient hugepages-2Mi"),
            id="only extended resources can be ignored",
        ),
    ],
)
def test_ignored_resources_are_not_looked_at(plugin: NodeResourcesFit, resource: str, answer: fw.Status | None) -> None:
    assert verdict(a_pod(requests={resource: "1"}), a_node(), plugin=plugin) == answer


def test_more_kinds_of_resources_than_bits_are_still_refused() -> None:
    names = [f"example.com/r{i:02}" for i in range(40)]
    node = a_node(allocatable=dict.fromkeys(names[:-1], "1"))

    answer = verdict(a_pod(requests=dict.fromkeys(names, "1")), node)

    assert answer is not None
    assert answer.code == fw.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert f"Insufficient {names[-1]}" in answer.reasons
    assert f"Insufficient {names[0]}" not in answer.reasons


def test_filter_without_pre_filter_fails_as_in_kube_scheduler() -> None:
    cluster = a_cluster(a_node())

    with pytest.raises(LookupError, match='error reading "PreFilterNodeResourcesFit" from cycleState: not found'):
        NodeResourcesFit().filter_nodes(fw.CycleState(), a_pod(), cluster, every_row(cluster))


def test_the_demand_of_a_pod_is_what_is_compared_and_the_pod_itself() -> None:
    pod = a_pod(requests={"cpu": "500m", "memory": "0", GPU: "2"})

    assert NodeResourcesFit().demand(pod) == {"cpu": 500, GPU: 2, "pods": 1}
    assert NodeResourcesFit(ignored_resources=(GPU,)).demand(pod) == {"cpu": 500, "pods": 1}


def test_what_devices_may_serve_instead_is_no_demand() -> None:
    plugin = NodeResourcesFit()
    plugin._extended.chosen[GPU] = DeviceClass(metadata=ObjectMeta(name="gpus"))

    assert plugin.demand(a_pod(requests={GPU: "2"})) == {"pods": 1}
