"""Groups that operators make for Volcano, and the gangs of JobSets, with the permissions of the chart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.coscheduling import GROUPS, started
from tests.cluster.loadmaster import defined, granted, node_of
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until
from tests.controlplane.client import Object
from tests.controlplane.definitions import FOREIGN_GROUPS, JOB_SET, VOLCANO


@pytest.fixture(scope="module")
def loadmaster(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Component]:
    directory: Path = tmp_path_factory.mktemp("foreign-groups")
    with (
        defined(cluster, *FOREIGN_GROUPS),
        granted(cluster, "Coscheduling", *GROUPS),
        started(cluster, directory, "foreign-groups") as component,
    ):
        yield component


def annotated(pod: Object, **annotations: str) -> Object:
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


def bound(api: Client, namespace: str) -> int:
    return sum(bool(node_of(pod)) for pod in api.list("Pod", namespace))


def test_a_group_of_volcano_starts_whole_and_its_status_says_so(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="1")
    group = {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": "train"}, "spec": {"minMember": 2}}
    api.create(group, namespace)
    member = {"scheduling.k8s.io/group-name": "train"}
    api.create_many([annotated(a_pod(f"train-{each}", cpu="1"), **member) for each in range(2)], namespace)

    def status() -> Object:
        found: Object = api.get(f"{VOLCANO}/PodGroup", "train", namespace).get("status", {})
        return {"phase": found.get("phase"), **{each["type"]: each["status"] for each in found.get("conditions", ())}}

    wait_until(lambda: status() == {"phase": "Inqueue", "Unschedulable": "True"}, 30, "it waits as a whole")
    assert bound(api, namespace) == 0

    make_nodes(1, cpu="1")
    wait_until(lambda: bound(api, namespace) == 2, 30, "it fits as a whole")
    running = {"phase": "Running", "Unschedulable": "False", "Scheduled": "True"}
    wait_until(lambda: status() == running, 30, "and the status says so")


def test_a_job_set_is_a_gang_and_says_why_it_waits(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    """Its Jobs are made here; `make workloads-test` has JobSet's own controller."""
    if not cluster.has_controllers:
        pytest.skip("needs controllers")
    make_nodes(1, cpu="1")
    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    job_set: Object = {"apiVersion": JOB_SET, "kind": "JobSet", "metadata": {"name": "train"}}

    def of(replicas: int) -> Object:
        jobs = [{"name": "workers", "replicas": replicas, "template": {"spec": {"parallelism": 1, "completions": 1}}}]
        return {**job_set, "spec": {"replicatedJobs": jobs}}

    api.create(of(2), namespace)
    spec = {**a_pod("unused", cpu="1")["spec"], "restartPolicy": "Never"}
    its = {"annotations": {"loadmaster.dev/gang": "owner"}, "labels": {"jobset.sigs.k8s.io/jobset-name": "train"}}
    for each in range(2):
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"train-workers-{each}"}}
        api.create({**job, "spec": {"template": {"metadata": its, "spec": spec}}}, namespace)

    def said() -> set[str]:
        events = api.list("events.k8s.io/v1/Event", namespace)
        return {each["reason"] for each in events if each["regarding"]["kind"] == "JobSet"}

    wait_until(lambda: "FailedScheduling" in said(), 30, "the JobSet says why it waits")
    assert bound(api, namespace) == 0

    api.apply({**of(1), "metadata": {"name": "train", "namespace": namespace}})
    wait_until(lambda: bound(api, namespace) == 1, 30, "scaled down, it needs one pod")
    api.delete_all("batch/v1/Job", namespace)
