"""NodePorts: host ports that are taken."""

import pytest

from plugins.node_ports import PORT_TAKEN, NodePorts
from scheduler import framework as fw
from scheduler.api.objects import ContainerPort, PodStatus
from scheduler.testing import a_container, a_node, a_pod
from tests.unit.plugins.cluster import a_cluster, every_row, refusals
from tests.unit.plugins.hints import POD_DELETED, wakes


def port(number: int, ip: str = "", protocol: str = "TCP") -> ContainerPort:
    return ContainerPort(container_port=80, host_port=number, host_ip=ip, protocol=protocol)


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    sidecar = a_pod("s", init_containers=[a_container(ports=[port(8080)], sidecar=True)])
    init = a_pod("i", init_containers=[a_container(ports=[port(8080)])])
    cluster = a_cluster(
        a_node("with-sidecar"), a_node("with-init"), pods={"with-sidecar": [sidecar], "with-init": [init]}
    )

    assert refusals(NodePorts(), a_pod(ports=[port(8080)]), cluster) == {"with-sidecar": PORT_TAKEN}


def test_filter_without_pre_filter_fails_as_in_kube_scheduler() -> None:
    cluster = a_cluster(a_node())

    with pytest.raises(LookupError, match='reading "PreFilterNodePorts" from cycleState: not found'):
        NodePorts().filter_nodes(fw.CycleState(), a_pod(ports=[port(1)]), cluster, every_row(cluster))


def test_a_port_held_on_many_nodes_is_found_on_each() -> None:
    names = [f"n{i}" for i in range(20)]
    holders = {name: [a_pod(f"on-{name}", ports=[port(443)])] for name in names[::2]}
    cluster = a_cluster(*map(a_node, names), pods=holders)

    assert refusals(NodePorts(), a_pod(ports=[port(443)]), cluster) == dict.fromkeys(names[::2], PORT_TAKEN)


@pytest.mark.parametrize(
    ("wanted", "held", "node_name", "nominated", "expected"),
    [
        pytest.param([port(8080)], [port(8080)], "n1", "", True, id="a pod that held the port"),
        pytest.param([port(8080)], [port(8080)], "", "n1", True, id="a pod that was to hold it"),
        pytest.param([port(8080)], [port(8080)], "", "", False, id="a pod without a node"),
        pytest.param([port(8080)], [], "n1", "", False, id="a pod without host ports"),
        pytest.param([port(8080)], [port(8081)], "n1", "", False, id="another port"),
        pytest.param([port(8080)], [port(8080, protocol="UDP")], "n1", "", False, id="another protocol"),
        pytest.param([port(8080, "10.0.0.1")], [port(8080, "10.0.0.2")], "n1", "", False, id="another address"),
        pytest.param([port(8080, "10.0.0.1")], [port(8080)], "n1", "", True, id="wanted on one address, held on all"),
        pytest.param([port(8080)], [port(8080, "10.0.0.1")], "n1", "", True, id="wanted on all addresses, held on one"),
        pytest.param([port(8080, "0.0.0.0")], [port(8080, "::1")], "n1", "", True, id="0.0.0.0 is all addresses"),
        pytest.param([port(1), port(2)], [port(3), port(2)], "n1", "", True, id="one of several"),
    ],
)
def test_a_deleted_pod_helps_that_held_a_port(
    wanted: list[ContainerPort], held: list[ContainerPort], node_name: str, nominated: str, expected: bool
) -> None:
    deleted = a_pod("gone", ports=held, node_name=node_name, status=PodStatus(nominated_node_name=nominated))

    assert wakes(NodePorts(), a_pod(ports=wanted), POD_DELETED, deleted, None) == expected
