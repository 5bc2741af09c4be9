"""New workloads of operators in a simulation: their pods, as gangs."""

from typing import Any

import pytest

from scheduler.simulate.engine import simulate
from scheduler.simulate.other_objects import of_workload
from tests.fakes.config import config_with
from tests.unit.simulate.test_pod_groups import PLUGINS
from tests.unit.simulate.what_if.world import Json, a_node, a_spec, cluster_with, read

KINDS = {"gangs": {"kinds": ["RayCluster", "MPIJob", "PyTorchJob"]}}
CONFIG = config_with(PLUGINS, "Coscheduling", name="loadmaster", args={"Coscheduling": KINDS})

TEMPLATE: Json = {
    "metadata": {"annotations": {"loadmaster.dev/gang": "owner"}},
    "spec": a_spec(schedulerName="loadmaster"),
}
TO_END: Json = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}

WORKERS: Json = {"groupName": "w", "replicas": 2, "maxReplicas": 5, "template": TEMPLATE}
RAY: Json = {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [WORKERS]}


def of_kind(version: str, kind: str, **spec: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def a_job_set(*, replicas: Any = 2, **fields: Any) -> Json:
    job = {"spec": {"parallelism": 2, "completions": 2, "template": TO_END}}
    jobs = [{"name": "w", "replicas": replicas, "template": job}]
    return of_kind("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=jobs, **fields)


def a_leader_worker_set(replicas: int = 2) -> Json:
    inner = {"size": 2, "workerTemplate": TEMPLATE}
    version = "leaderworkerset.x-k8s.io/v1"
    return of_kind(version, "LeaderWorkerSet", replicas=replicas, leaderWorkerTemplate=inner)


def roles(field: str, version: str, kind: str, **replicas: int | None) -> Json:
    of_roles = {role: {"replicas": number, "template": TEMPLATE} for role, number in replicas.items()}
    return of_kind(f"kubeflow.org/{version}", kind, **{field: of_roles})


def simulated(*objects: Json) -> Json:
    cluster = cluster_with(*objects)
    return simulate(cluster.nodes, cluster.pods, CONFIG, PLUGINS, cluster.others)


@pytest.mark.parametrize(
    ("workload", "groups"),
    [
        (a_job_set(), {"jobset/x": 4}),
        (a_leader_worker_set(), {"leaderworkerset/x/0": 2, "leaderworkerset/x/1": 2}),
        (of_kind("ray.io/v1", "RayCluster", **RAY), {"raycluster/x": 3}),
        (of_kind("ray.io/v1", "RayJob", rayClusterSpec=RAY), {"raycluster/x-cluster": 3}),
        (of_kind("ray.io/v1", "RayService", rayClusterConfig=RAY), {"raycluster/x-cluster": 3}),
        (roles("pytorchReplicaSpecs", "v1", "PyTorchJob", Master=None, Worker=3), {"pytorchjob/x": 4}),
        (roles("mpiReplicaSpecs", "v2beta1", "MPIJob", Launcher=1, Worker=2), {"mpijob/x": 3}),
    ],
)
def test_the_pods_of_a_workload_are_tried_as_a_gang(workload: Json, groups: dict[str, int]) -> None:
    fits = simulated(a_node("n1", 8), workload)
    lacks = simulated(a_node("n1", 1), workload)

    assert {each["name"]: each["needed"] for each in fits["groups"]} == groups
    assert {each["name"]: each["scheduled"] for each in fits["groups"]} == groups
    assert all(pod["node"] is None for pod in lacks["pods"])


@pytest.mark.parametrize(
    "workload",
    [
        a_job_set(suspend=True),
        {**a_job_set(), "metadata": {"name": "x", "resourceVersion": "1"}},
        a_leader_worker_set(replicas=0),
    ],
)
def test_no_pods_are_made_of_a_workload_that_is_suspended_or_has_its_own_already(workload: Json) -> None:
    assert simulated(a_node("n1", 8), workload)["pods"] == []


@pytest.mark.parametrize(
    ("workload", "problem"),
    [
        (a_job_set(replicas="2"), "spec.replicatedJobs[0].replicas: Invalid value: must be a number of 0 or more"),
        (
            a_job_set(replicas=10**9),
            "spec.replicatedJobs[0].replicas: 1000000000 pods are more than a simulation makes, which is 100,000",
        ),
        (
            of_kind("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=["w"]),
            "spec.replicatedJobs: expected a list of objects",
        ),
        (of_kind("ray.io/v1", "RayCluster", headGroupSpec={}), "spec.template: Required value"),
        (
            of_kind("kubeflow.org/v1", "TFJob", tfReplicaSpecs={"PS": 1}),
            "spec.tfReplicaSpecs[PS]: expected an object, got int",
        ),
    ],
)
def test_what_cannot_be_read_is_said_with_its_path(workload: Json, problem: str) -> None:
    assert read(workload)[1] == [f"f:1: {problem}"]


def test_what_is_wrong_in_a_template_is_said_where_it_is_written() -> None:
    broken = {**TO_END, "spec": {**TO_END["spec"], "priority": "high"}}
    jobs = [{"name": "w", "template": {"spec": {"template": broken}}}]

    _, problems = read(of_kind("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=jobs))

    assert problems == [
        "f:1: spec.replicatedJobs[0].template.spec.template.spec.priority: expected int | null, got str"
    ]


def test_a_remedy_is_a_change_of_the_template_in_the_workload() -> None:
    cluster = cluster_with(a_job_set())

    assert cluster.creation is not None
    (source, *_) = cluster.creation.sources.values()
    written = of_workload(source)
    path = "/spec/replicatedJobs/0/template/spec/template"
    assert (written.kind, written.name, written.path, written.content) == ("JobSet", "x", path, TO_END)
