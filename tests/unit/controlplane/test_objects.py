import pytest

from tests.controlplane import a_node, a_pod, is_ready


def test_a_node_is_ready_and_kwok_may_have_it() -> None:
    node = a_node("n", cpu="4", zone="a", labels={"disk": "ssd"}, resources={"nvidia.com/gpu": "2"})

    assert is_ready(node)
    assert node["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"
    assert node["metadata"]["labels"]["disk"] == "ssd"
    expected = {"cpu": "4", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "2"}
    assert node["status"]["allocatable"] == node["status"]["capacity"] == expected


@pytest.mark.parametrize(
    ("change", "ready"),
    [
        pytest.param({"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}, True, id="a taint of one's own"),
        pytest.param(
            {"spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}},
            False,
            id="the taint of a new node",
        ),
        pytest.param({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, False, id="unknown"),
        pytest.param({"status": {}}, False, id="no conditions"),
    ],
)
def test_a_node_is_ready_when_pods_may_be_bound_to_it(change: dict[str, object], ready: bool) -> None:
    assert is_ready({**a_node("n"), **change}) is ready


def test_a_pod_is_for_loadmaster_and_takes_more_of_its_spec_by_the_apis_names() -> None:
    pod = a_pod("p", cpu="1", resources={"nvidia.com/gpu": "1"}, nodeName="n")

    assert pod["spec"]["schedulerName"] == "loadmaster"
    assert pod["spec"]["nodeName"] == "n"
    (container,) = pod["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "1", "memory": "500Mi", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    assert "namespace" not in pod["metadata"]
