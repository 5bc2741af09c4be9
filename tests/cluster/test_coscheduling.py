"""Groups of scheduling.x-k8s.io and annotated ones on a real API server, with the resource of scheduler-plugins."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.conftest import MakeNodes
from tests.cluster.coscheduling import GROUPS, started
from tests.cluster.loadmaster import bound, define, granted, metric, node_of, undefine
from tests.controlplane import Client, Cluster, Component, a_node, a_pod, wait_until
from tests.controlplane.client import Object
from tests.controlplane.definitions import POD_GROUP
from tests.docs.pages import ROOT, blocks

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


def test_of_two_gangs_that_compete_one_runs_and_the_other_holds_nothing(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(2, cpu="2")
    for group in ("a", "b"):
        create_group(api, namespace, group, 4)
    pods = [pod for pair in zip(members("a", range(4)), members("b", range(4)), strict=True) for pod in pair]
    api.create_many(pods, namespace)
    wait_until(lambda: len(bound(api, namespace)) == 4, 30, "one of them runs")
    winner = bound(api, namespace)[0][0]
    loser = "b" if winner == "a" else "a"

    wait_until(lambda: status(api, namespace, winner).get("phase") == "Running", 30, "the status says so")
    wait_until(lambda: status(api, namespace, loser).get("phase") == "Scheduling", 30, "and that the other does not")

    assert bound(api, namespace, loser) == []
    assert metric(loadmaster.port, "scheduler_cache_size", type="assumed_pods") == 0
    for name in bound(api, namespace, winner):
        api.delete("Pod", name, namespace)
    wait_until(lambda: len(bound(api, namespace, loser)) == 4, 30, "then it runs")
    wait_until(lambda: status(api, namespace, winner).get("phase") == "Pending", 30, "a group without pods is pending")


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


def test_members_whose_node_is_lost_are_replaced(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="2")
    own = f"lost-{namespace}"
    api.create(a_node(own, cpu="2"))
    create_group(api, namespace, "gang", 4)
    api.create_many(members("gang", range(4)), namespace)
    wait_until(lambda: len(bound(api, namespace)) == 4, 30, "it runs")
    lost = [pod["metadata"]["name"] for pod in api.list("Pod", namespace) if node_of(pod) == own]

    api.delete("Node", own)
    for name in lost:
        api.delete("Pod", name, namespace)
    api.create_many(members("gang", range(4, 6)), namespace)
    wait_until(lambda: status(api, namespace, "gang").get("phase") == "Scheduling", 30, "it waits for a node")
    make_nodes(1, cpu="2")

    wait_until(lambda: bound(api, namespace)[-2:] == ["gang-4", "gang-5"], 60, "they are replaced")
    wait_until(lambda: status(api, namespace, "gang").get("phase") == "Running", 30, "and it runs again")


def test_the_annotated_group_of_the_documentation_runs(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="4")
    (text,) = [each.text for each in blocks(ROOT / "docs" / "groups.md") if "name: solver-0" in each.text]
    pod = yaml.safe_load(text)
    api.create(pod, namespace)

    api.create({**pod, "metadata": {**pod["metadata"], "name": "solver-1"}}, namespace)

    wait_until(lambda: bound(api, namespace) == ["solver-0", "solver-1"], 30, "both are bound")


def test_a_group_that_is_not_tried_says_so_once(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="4")
    create_group(api, namespace, "short", 3)
    api.create_many(
        [*members("short", range(2)), *members("nameless", range(2)), *annotated("odd", 0, range(2))], namespace
    )

    def refusals() -> list[Object]:
        found = api.list("events.k8s.io/v1/Event", namespace)
        return [event for event in found if event["reason"] == "FailedScheduling"]

    wait_until(lambda: len(refusals()) >= 3, 60, "each of the groups says it")
    said = {event["note"]: event["regarding"] for event in refusals()}
    assert len(refusals()) == len(said) == 3
    about = said["cannot find enough sibling pods, current pods number: 2, minMember of group: 3"]
    assert (about["kind"], about["name"]) == ("PodGroup", "short")
    assert said['waiting for the PodGroup "nameless" of the pod to appear']["kind"] == "Pod"
    assert bound(api, namespace) == []


def test_a_job_is_a_gang_by_one_line_of_its_template(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
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
