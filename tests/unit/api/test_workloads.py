"""How many pods of a workload start together."""

from typing import Any, get_args

import pytest

from scheduler.api.decoding import convert
from scheduler.api.groups.workloads import WORKLOADS, WatchedKind
from scheduler.api.unstructured import Unstructured
from scheduler.framework.nodes.resources import parse_resource

WORKERS = {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}
MPI = {"Launcher": {}, "Worker": {"replicas": 4}}


@pytest.mark.parametrize(
    ("kind", "spec", "minimum"),
    [
        ("MPIJob", {"mpiReplicaSpecs": MPI}, 5),
        ("MPIJob", {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {}}}, 1),
        ("MPIJob", {"mpiReplicaSpecs": MPI, "launcherCreationPolicy": "WaitForWorkersReady"}, 4),
        ("MPIJob", {"mpiReplicaSpecs": MPI, "runPolicy": {"schedulingPolicy": {"minAvailable": 3}}}, 3),
        ("PyTorchJob", {"pytorchReplicaSpecs": WORKERS}, 4),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {}}}, 1),
        ("PyTorchJob", {"pytorchReplicaSpecs": WORKERS, "elasticPolicy": {"minReplicas": 2}}, 3),
        ("TFJob", {"tfReplicaSpecs": {"PS": {"replicas": 2}, "Chief": {}, "Worker": {"replicas": 3}}}, 6),
        ("XGBoostJob", {"xgbReplicaSpecs": WORKERS}, 4),
        ("PaddleJob", {"paddleReplicaSpecs": WORKERS}, 4),
        ("JAXJob", {"jaxReplicaSpecs": {"Worker": {"replicas": 8}}}, 8),
        ("RayCluster", {}, 1),
        ("RayCluster", {"workerGroupSpecs": [{"replicas": 3}, {"replicas": 2, "numOfHosts": 4}]}, 12),
        ("RayCluster", {"workerGroupSpecs": [{"minReplicas": 2}, {"replicas": 9, "maxReplicas": 5}]}, 8),
        ("RayCluster", {"workerGroupSpecs": [{"replicas": 1, "minReplicas": 2}, {"replicas": 3, "suspend": True}]}, 3),
        (
            "RayCluster",
            {"enableInTreeAutoscaling": True, "workerGroupSpecs": [{"replicas": 9, "minReplicas": 1}]},
            2,
        ),
    ],
)
def test_the_numbers_of_a_workload_say_how_many_pods_start_together(
    kind: str, spec: dict[str, Any], minimum: int
) -> None:
    known = WORKLOADS[kind]
    found = Unstructured.from_dict({"metadata": {"name": "w"}, "spec": spec})
    found.keep_only(known.parts)

    assert known.size_of(convert(found.content, known.struct), "") == (minimum, "")


def test_what_may_be_named_is_what_is_known() -> None:
    assert set(get_args(WatchedKind)) == WORKLOADS.keys()


@pytest.mark.parametrize("kind", WORKLOADS)
def test_each_kind_has_the_resource_of_its_version(kind: str) -> None:
    assert parse_resource(WORKLOADS[kind].resource).group_version == WORKLOADS[kind].api_version
