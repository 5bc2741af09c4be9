"""Objects of the API as structs."""

import pytest

from scheduler.api.objects import node_from_dict
from scheduler.api.pods.pod import decode_pod, pod_from_dict

POD = b"""{"metadata": {"name": "web", "namespace": "shop", "uid": "1", "labels": {"a": "b"}},
 "spec": {"priority": 7, "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
   {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}}},
   "containers": [{"name": "c", "ports": [{"hostPort": 80, "hostIP": "10.0.0.1"}]}]},
 "status": {"phase": "Succeeded"}}"""


def test_a_pod_is_read_from_json() -> None:
    pod = decode_pod(POD)

    assert str(pod) == "shop/web"
    assert (pod.uid, pod.priority, pod.labels, pod.is_terminated) == ("1", 7, {"a": "b"}, True)
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    assert pod.spec.affinity.node_affinity.required is not None
    assert [port.ip for port in pod.host_ports] == ["10.0.0.1"]


def test_a_bound_pod_keeps_what_was_derived() -> None:
    pod = decode_pod(POD)
    resources = pod.resources

    bound = pod.bound_to("n")

    assert bound.node_name == "n"
    assert bound.resources is resources
    assert pod.node_name == ""


def test_a_node_is_read_from_a_dict() -> None:
    node = node_from_dict({"metadata": {"name": "n"}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})

    assert node.name == "n"
    assert [taint.key for taint in node.taints] == ["k"]
    assert node.labels == {}


def test_a_wrong_type_is_reported_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"\$\.spec\.priority"):
        pod_from_dict({"spec": {"priority": "high"}})
