"""Loadmaster's verdict. The only place of the suite that knows how to ask for it."""

from collections.abc import Container
from typing import Any

import plugins
from scheduler.api.objects import node_from_dict
from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.config.feature_gates import FeatureGates, read_gates
from scheduler.config.load import config_from_dict
from scheduler.simulate.engine import simulate
from scheduler.simulate.other_objects import OtherObject, OtherObjects
from tests.conformance.claims_ours import add_claims

Json = dict[str, Any]

DEFAULT_CONFIG: Json = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler"}],
}


def judge(case: Json) -> Json:
    """The verdict on a case, in the oracle's form but without `best`."""
    gates = gates_of(case)
    config = config_from_dict(case.get("config") or DEFAULT_CONFIG, plugins.IN_TREE, gates=gates)
    nodes = [node_from_dict(obj) for obj in case["objects"] if obj["kind"] == "Node"]
    profiles = {profile.scheduler_name for profile in config.profiles}
    pods = [as_kube_scheduler_sees(obj, profiles) for obj in case["objects"] if obj["kind"] == "Pod"]
    verdict = simulate(nodes, pods, config, plugins.IN_TREE, others(case), each_alone=True, explain=True)
    for pod in verdict["pods"]:
        pod["nodes"] = dict(pod["nodes"])
    add_claims(verdict, pods, nodes, others(case), gates.switched_on())
    # kube-scheduler does not judge pods that are being deleted; they are still there.
    deleting = {str(pod) for pod in pods if pod.is_deleting}
    return {"pods": [pod for pod in verdict["pods"] if f"{pod['namespace']}/{pod['name']}" not in deleting]}


def gates_of(case: Json) -> FeatureGates:
    """The feature gates that are on."""
    return read_gates([f"{name}=true" for name in case.get("gates", ())])[0]


def as_kube_scheduler_sees(obj: Json, profiles: Container[str]) -> Pod:
    """A pod without a nomination that kube-scheduler does not look at: a deliberate difference, docs/differences.md."""
    if obj["spec"].get("schedulerName", "default-scheduler") not in profiles:
        obj = {**obj, "status": {**obj.get("status", {}), "nominatedNodeName": ""}}
    return pod_from_dict(obj)


def others(case: Json) -> OtherObjects:
    """The objects that are neither pods nor nodes."""
    rest = [obj for obj in case["objects"] if obj["kind"] not in {"Node", "Pod"}]
    return OtherObjects(OtherObject(f"objects of {case.get('name')}", obj["kind"], obj) for obj in rest)
