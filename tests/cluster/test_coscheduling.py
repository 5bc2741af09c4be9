"""Groups of scheduling.x-k8s.io and annotated ones on a real API server, with the resource of scheduler-plugins."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.coscheduling import GROUPS, started
from tests.cluster.loadmaster import bound, define, granted, node_of, undefine
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until
from tests.controlplane.client import Object
from tests.controlplane.definitions import POD_GROUP

API = "scheduling.x-k8s.io/v1alpha1"
KIND = f"{API}/PodGroup"
LABEL = "scheduling.x-k8s.io/pod-group"


@pytest.fixture(scope="module", autouse=True)
def permissions(cluster: Cluster) -> Iterator[None]:
    with granted(cluster, "Coscheduling", *GROUPS):
        yield
        undefine(cluster, POD_GROUP)


@pytest.fixture
def definition(cluster: Cluster) -> None:
    define(cluster, POD_GROUP)


@pytest.fixture
def loadmaster(cluster: Cluster, definition: None, tmp_path: Path) -> Iterator[Component]:
    with started(cluster, tmp_path) as component:
        yield component


def create_group(api: Client, namespace: str, name: str, minimum: int, **spec: object) -> None:
    spec = {"minMember": minimum, **spec}
    api.create({"apiVersion": API, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}, namespace)


def members(group: str, numbers: range, cpu: str = "1") -> list[Object]:
    return [a_pod(f"{group}-{number}", cpu=cpu, labels={LABEL: group}) for number in numbers]


def annotated(group: str, minimum: int, numbers: range) -> list[Object]:
    pods = [a_pod(f"{group}-{number}", cpu="1") for number in numbers]
    for pod in pods:
        pod["metadata"]["annotations"] = {
            "loadmaster.dev/pod-group": group,
            "loadmaster.dev/pod-group-min-available": str(minimum),
        }
    return pods


def status(api: Client, namespace: str, group: str) -> Object:
    found: Object = api.get(KIND, group, namespace).get("status", {})
    return found


def test_the_status_follows_a_group_to_its_end(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="4")
    create_group(api, namespace, "job", 2)
    wait_until(lambda: status(api, namespace, "job").get("phase") == "Pending", 30, "it is pending")
    api.create_many(members("job", range(2)), namespace)
    wait_until(lambda: status(api, namespace, "job").get("phase") == "Running", 30, "it runs")
    assert status(api, namespace, "job")["running"] == 2
    assert status(api, namespace, "job")["scheduleStartTime"]

    for number in range(2):
        patch = json.dumps({"status": {"phase": "Succeeded"}})
        cluster.kubectl("patch", "pod", f"job-{number}", "-n", namespace, "--subresource=status", "-p", patch)

    wait_until(lambda: status(api, namespace, "job").get("phase") == "Finished", 30, "it has ended")
    assert status(api, namespace, "job")["succeeded"] == 2


def test_a_definition_that_comes_later_is_noticed_and_annotated_groups_need_none(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, tmp_path: Path
) -> None:
    undefine(cluster, POD_GROUP)
    make_nodes(2, cpu="4")
    with started(cluster, tmp_path):
        api.create_many([*members("later", range(3)), *annotated("now", 3, range(2))], namespace)
        api.create(a_pod("alone"), namespace)
        wait_until(lambda: bound(api, namespace) == ["alone"], 30, "a pod by itself is scheduled")
        api.create_many(annotated("now", 3, range(2, 3)), namespace)
        wait_until(lambda: len(bound(api, namespace, "now")) == 3, 30, "the annotated group is complete")

        define(cluster, POD_GROUP)
        create_group(api, namespace, "later", 3)

        wait_until(lambda: len(bound(api, namespace, "later")) == 3, 90, "the other is scheduled once it is known")


def test_a_scheduler_killed_in_the_middle_of_a_gangs_bindings_completes_it(
    cluster: Cluster, definition: None, api: Client, namespace: str, make_nodes: MakeNodes, tmp_path: Path
) -> None:
    make_nodes(5)
    create_group(api, namespace, "gang", 500)
    with started(cluster, tmp_path) as first:
        api.create_many([*members("gang", range(500), cpu="10m")], namespace)
        # One pod is read within milliseconds; a list of all takes as long as all the bindings.
        wait_until(lambda: node_of(api.get("Pod", "gang-0", namespace)), 30, "bindings are under way", interval=0.001)
        first.kill()
        begun = len(bound(api, namespace))

    with started(cluster, tmp_path, name="loadmaster-again"):
        wait_until(lambda: len(bound(api, namespace)) == 500, 60, "the next one binds the rest")
        wait_until(lambda: status(api, namespace, "gang").get("phase") == "Running", 60, "and says so")

    assert 0 < begun < 500


def test_a_job_is_a_gang_by_one_line_of_its_template(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="2")
    pod = a_pod("unused", cpu="1")
    spec = {**pod["spec"], "restartPolicy": "Never"}
    template = {"metadata": {"annotations": {"loadmaster.dev/gang": "owner"}}, "spec": spec}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}}
    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    api.create({**job, "spec": {"parallelism": 3, "completions": 3, "template": template}}, namespace)

    wait_until(lambda: _said_of(api, namespace, "train"), 30, "the Job says why it waits")
    assert (len(api.list("Pod", namespace)), bound(api, namespace)) == (3, [])

    make_nodes(1, cpu="1")
    wait_until(lambda: len(bound(api, namespace)) == 3, 30, "it fits as a whole")
    api.delete_all("batch/v1/Job", namespace)


def _said_of(api: Client, namespace: str, job: str) -> list[str]:
    """Return what Events say of a Job that is not scheduled."""
    events = api.list("events.k8s.io/v1/Event", namespace)
    at_it = [each for each in events if (each["regarding"]["kind"], each["regarding"]["name"]) == ("Job", job)]
    return [each["note"] for each in at_it if each["reason"] == "FailedScheduling"]
