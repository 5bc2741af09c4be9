"""NodeResourcesFit, Filter: what is left on a node."""

import pytest

from plugins.node_resources.fit import NodeResourcesFit
from scheduler import framework as fw
from scheduler.api.devices import DeviceClass
from scheduler.api.objects import ContainerStatus, ObjectMeta, PodStatus, ResourceRequirements
from scheduler.testing import a_container, a_node, a_pod
from tests.unit.plugins.cluster import a_cluster, every_row, refusals

GPU = "example.com/gpu"


def verdict(pod: fw.Pod, node: fw.Node, *running: fw.Pod, plugin: NodeResourcesFit | None = None) -> fw.Status | None:
    found = refusals(plugin or NodeResourcesFit(), pod, a_cluster(node, pods={node.name: running}))
    return found.get(node.name)


@pytest.mark.parametrize(
    ("requests", "running", "answer"),
    [
        pytest.param({"cpu": "1", "memory": "1Gi"}, {"cpu": "1"}, None, id="there is enough"),
        pytest.param({"cpu": "3", "memory": "16Gi"}, {"cpu": "1"}, None, id="exactly what is left fits"),
        pytest.param({"cpu": "3001m"}, {"cpu": "1"}, fw.unschedulable("Insufficient cpu"), id="a thousandth too much"),
        pytest.param(
            {"memory": "1"}, {"memory": "16Gi"}, fw.unschedulable("Insufficient memory"), id="a byte too much"
        ),
        pytest.param(
            {"cpu": "5"}, {"cpu": "1"}, fw.unresolvable("Insufficient cpu"), id="more than the node has: no preemption"
        ),
        pytest.param(
            {"cpu": "2", "memory": "20Gi"},
            {"cpu": "3"},
            fw.unresolvable("Insufficient cpu", "Insufficient memory"),
            id="all that is missing, unresolvable if any of it is",
        ),
        pytest.param(
            {"ephemeral-storage": "1Gi"}, {}, fw.unresolvable("Insufficient ephemeral-storage"), id="no storage at all"
        ),
        pytest.param({GPU: "2"}, {GPU: "1"}, fw.unschedulable(f"Insufficient {GPU}"), id="an extended resource"),
        pytest.param({GPU: "1"}, {GPU: "1"}, None, id="the last device"),
        pytest.param(
            {"example.com/other": "1"}, {}, fw.unresolvable("Insufficient example.com/other"), id="an unknown resource"
        ),
        pytest.param({"example.com/other": "0"}, {}, None, id="nothing of an unknown resource"),
        pytest.param(
            {"hugepages-2Mi": "4Mi"},
            {},
            fw.unresolvable("Insufficient hugepages-2Mi"),
            id="huge pages that are not there",
        ),
        pytest.param({"cpu": "0"}, {"cpu": "5"}, None, id="a pod that asks for nothing fits on an overfull node"),
        pytest.param({"cpu": "1m"}, {"cpu": "5"}, fw.unschedulable("Insufficient cpu"), id="less than nothing is left"),
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


def test_the_number_of_pods_counts() -> None:
    others = [a_pod(f"p{i}") for i in range(2)]

    assert verdict(a_pod(), a_node(pods=3), *others) is None
    assert verdict(a_pod(), a_node(pods=2), *others) == fw.unschedulable("Too many pods")
    assert verdict(a_pod(), a_node(pods=0)) == fw.unschedulable("Too many pods")


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


def test_init_containers_run_one_after_another_and_beside_sidecars() -> None:
    pod = a_pod(
        requests={"cpu": "1"},
        init_containers=[
            a_container("sidecar", requests={"cpu": "1"}, sidecar=True),
            a_container("init", requests={"cpu": "2500m"}),
        ],
    )

    assert verdict(pod, a_node(cpu="3500m")) is None
    assert verdict(pod, a_node(cpu="3499m")) == fw.unresolvable("Insufficient cpu")


@pytest.mark.parametrize("resource", [GPU, "hugepages-2Mi", "ephemeral-storage", "kubernetes.io/something"])
def test_other_resources_are_counted_as_cpu_and_memory_are(resource: str) -> None:
    node = a_node(allocatable={resource: "4"})
    two = a_pod(containers=[a_container("a", requests={resource: "1"}), a_container("b", requests={resource: "1"})])
    one_after_another = a_pod(
        init_containers=[a_container("a", requests={resource: "2"}), a_container("b", requests={resource: "2"})]
    )

    assert verdict(two, node, a_pod("other", requests={resource: "2"})) is None
    assert verdict(one_after_another, node, a_pod("other", requests={resource: "2"})) is None
    for pod in (two, one_after_another):
        refusal = verdict(pod, node, a_pod("other", requests={resource: "3"}))
        assert refusal == fw.unschedulable(f"Insufficient {resource}")


def test_overhead_counts() -> None:
    pod = a_pod(requests={"cpu": "1"}, overhead={"cpu": "500m"})

    assert verdict(pod, a_node(cpu="1500m")) is None
    assert verdict(pod, a_node(cpu="1499m")) == fw.unresolvable("Insufficient cpu")


def test_requests_of_the_pod_as_a_whole_replace_those_of_its_containers() -> None:
    pod = a_pod(requests={"cpu": "1"}, pod_requests={"cpu": "3"})

    assert verdict(pod, a_node(cpu="3")) is None
    assert verdict(pod, a_node(cpu="2")) == fw.unresolvable("Insufficient cpu")


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
