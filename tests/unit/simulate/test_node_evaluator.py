"""What is said of each node when a plugin fails."""

from typing import Any

import plugins
from scheduler.api.objects import node_from_dict
from scheduler.api.pods.pod import pod_from_dict
from scheduler.config.load import config_from_dict
from scheduler.simulate.engine import simulate

NODE = {"metadata": {"name": "n1", "labels": {"zone": "a"}}, "status": {"allocatable": {"pods": "10", "cpu": "1"}}}


def explained(
    *pods: dict[str, Any], enabled: tuple[str, ...] = (), disabled: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Judge each pod alone on one node; `disabled` plugins have no PreFilter."""
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in enabled]},
            "preFilter": {"disabled": [{"name": name} for name in disabled]},
        },
    }
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = config_from_dict({**kind, "profiles": [profile]}, plugins.IN_TREE)
    decoded = [pod_from_dict(pod) for pod in pods]
    nodes = [node_from_dict(NODE)]
    return simulate(nodes, decoded, config, plugins.IN_TREE, each_alone=True, explain=True)["pods"]


def a_written_pod(name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}}
    spec = {"schedulerName": "default-scheduler", "containers": [{"name": "c"}], **fields}
    return {"metadata": metadata, "spec": spec, "status": {}}


def spread(selector: dict[str, Any]) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": selector}]}


MINIMAL = ("PrioritySort", "PodTopologySpread", "NodePorts", "DefaultBinder")


def test_where_pre_filter_fails_all_nodes_say_so() -> None:
    odd = {"matchExpressions": [{"key": "app", "operator": "Near"}]}

    (result,) = explained(a_written_pod("p", **spread(odd)), enabled=MINIMAL)

    why = (
        'running PreFilter plugin "PodTopologySpread": get constraints from pod: obtaining pod\'s hard topology spread '
        'constraints: "Near" is not a valid label selector operator'
    )
    assert result["message"] == why
    assert result["nodes"] == {"n1": {"code": "Error", "plugin": "PodTopologySpread", "reasons": [why]}}


def test_where_filter_fails_pods_that_are_nominated_there_still_come_first() -> None:
    nominated = a_written_pod("first")
    nominated["status"]["nominatedNodeName"] = "n1"
    waiting = a_written_pod("second", **spread({"matchLabels": {"app": "web"}}))

    first, second = explained(nominated, waiting, enabled=MINIMAL, disabled=("NodePorts",))

    assert first["nodes"]["n1"]["plugin"] == "NodePorts"
    assert second["nodes"]["n1"] == {
        "code": "Unschedulable",
        "plugin": "PodTopologySpread",
        "reasons": ["node(s) didn't match pod topology spread constraints"],
    }
