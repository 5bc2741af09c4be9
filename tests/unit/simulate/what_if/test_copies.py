"""How many copies of a pod or workload fit, where, and why no more do."""

from typing import Any

import pytest

from scheduler.framework.errors import ConfigError
from tests.unit.simulate.what_if.world import (
    Json,
    a_bound_volume,
    a_claim_spec,
    a_class,
    a_node,
    a_pod,
    a_spec,
    a_volume,
    a_workload,
    an_object,
    asked,
    on,
    placed,
)


def copies(*objects: Json, **questions: Any) -> Json:
    told: Json = asked(*objects, **questions)["whatIf"]["copies"]
    return told


def test_as_many_are_counted_as_fit_and_the_next_one_says_why_it_does_not() -> None:
    told = copies(
        a_node("n1"),
        a_node("n2", 2),
        a_node("n3", taints=[{"key": "k", "effect": "NoSchedule"}]),
        a_pod("p"),
        fill=True,
    )

    assert (told["asked"], told["placed"], told["nodes"]) == (None, 6, {"n1": 4, "n2": 2})
    following = told["next"]
    assert following["message"].startswith(
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
    )
    groups = [(each.names, each.obstacles[0].fact) for each in following["explanation"].groups]
    assert groups == [(["n3"], "taint k:NoSchedule"), (["n1", "n2"], "1 cpu short of 1")]


@pytest.mark.parametrize(("count", "fitting"), [(1, 1), (4, 4), (5, 4)])
def test_a_number_of_copies_is_placed_or_as_many_of_it_as_fit(count: int, fitting: int) -> None:
    told = copies(a_node("n1"), a_pod("p"), count=count)

    assert (told["asked"], told["placed"], "next" in told) == (count, fitting, fitting < count)


def test_what_waits_is_placed_before_and_the_new_pod_itself_is_the_first_copy() -> None:
    waiting = on("", "waiting", cpu=3)

    document = asked(a_node("n1"), waiting, a_pod("p"), fill=True)

    assert placed(document) == {"default/waiting": "n1"}
    assert document["whatIf"]["copies"]["placed"] == 1


CRON: Json = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": a_spec()}}}}


WORKLOADS = [
    (a_workload("Deployment", "w", a_spec(), replicas=9), "deployment/default/w"),
    (a_workload("ReplicaSet", "w", a_spec()), "replicaset/default/w"),
    (a_workload("ReplicationController", "w", a_spec(), "v1"), "replicationcontroller/default/w"),
    (a_workload("StatefulSet", "w", a_spec(), replicas=2), "statefulset/default/w"),
    (a_workload("Job", "w", a_spec(), "batch/v1", parallelism=2), "job/default/w"),
    (a_workload("Job", "w", a_spec(), "batch/v1", suspend=True), "job/default/w"),
    (a_workload("Job", "w", a_spec(), "batch/v1", completions=2, completionMode="Indexed"), "job/default/w"),
    (an_object("CronJob", "batch/v1", "w", spec=CRON), "cronjob/default/w"),
]


@pytest.mark.parametrize(("workload", "name"), WORKLOADS)
def test_of_a_new_workload_pods_are_made_as_its_controller_would_whatever_its_replicas(
    workload: Json, name: str
) -> None:
    document = asked(a_node("n1"), workload, fill=True)

    told = document["whatIf"]["copies"]
    assert (told["of"], told["placed"], document["pods"]) == (name, 4, [])


def test_of_a_deployment_that_runs_more_are_made_like_those_of_its_newest_replica_set() -> None:
    def a_set(name: str, revision: str, cpu: int) -> Json:
        made = a_workload("ReplicaSet", name, a_spec(cpu), stored=True, replicas=0)
        owner = {"kind": "Deployment", "name": "w", "controller": True, "uid": "u", "apiVersion": "apps/v1"}
        made["metadata"] |= {
            "ownerReferences": [owner],
            "annotations": {"deployment.kubernetes.io/revision": revision},
        }
        return made

    deployment = a_workload("Deployment", "w", a_spec(1), stored=True)

    told = copies(a_node("n1", 8), deployment, a_set("w-2", "2", 1), a_set("w-10", "10", 4), fill=True, of="deploy/w")

    assert told["placed"] == 2
    assert told["next"]["name"].startswith("default/w-10-")


def test_a_file_with_another_version_of_what_runs_counts_for_itself() -> None:
    runs = a_workload("ReplicaSet", "w-1", a_spec(4), stored=True, replicas=0)
    owner = {"kind": "Deployment", "name": "w", "controller": True, "uid": "u", "apiVersion": "apps/v1"}
    runs["metadata"]["ownerReferences"] = [owner]
    stored, new = a_workload("Deployment", "w", a_spec(4), stored=True), a_workload("Deployment", "w", a_spec(1))

    assert copies(a_node("n1"), stored, runs, new, fill=True)["placed"] == 4


@pytest.mark.parametrize("name", ["w", "default/w", "deploy/w", "Deployment/default/w", "deployments.apps/w"])
def test_of_two_versions_of_the_same_the_new_one_is_meant_by_any_name_that_kubectl_takes(name: str) -> None:
    stored, new = a_workload("Deployment", "w", a_spec(4), stored=True), a_workload("Deployment", "w", a_spec(1))

    assert copies(a_node("n1"), stored, new, fill=True, of=name)["placed"] == 4


def test_what_a_stateful_set_has_left_of_its_claims_is_used_again() -> None:
    templates = [{"metadata": {"name": "data"}, "spec": a_claim_spec()}]
    workload = a_workload("StatefulSet", "db", a_spec(), stored=True, replicas=0, volumeClaimTemplates=templates)

    told = copies(
        a_node("n1"), a_node("n2"), a_class(), *a_bound_volume("pv", "data-db-0", "n2"), workload, count=1, of="sts/db"
    )

    assert told["nodes"] == {"n2": 1}


def test_a_pod_that_runs_can_be_copied() -> None:
    told = copies(a_node("n1"), on("n1", "p", cpu=1), fill=True, of="default/p")

    assert (told["of"], told["placed"]) == ("pod/default/p", 3)


def test_copies_have_names_that_no_pod_has() -> None:
    taken = [on("n1", f"p-{number}", cpu=0) for number in (1, 2)]

    told = copies(a_node("n1", 1), a_pod("p"), *taken, fill=True)

    assert told["next"]["name"] == "default/p-4"


def test_the_copies_of_a_stateful_set_have_claims_of_their_own() -> None:
    templates = [{"metadata": {"name": "data"}, "spec": a_claim_spec()}]
    volumes = [a_volume(f"v{number}", f"n{number}") for number in (1, 2)]
    late = a_class(mode="WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner")
    workload = a_workload("StatefulSet", "db", a_spec(), volumeClaimTemplates=templates)

    told = copies(a_node("n1"), a_node("n2"), late, *volumes, workload, fill=True)

    assert told["nodes"] == {"n1": 1, "n2": 1}
    assert "didn't find available persistent volumes to bind" in told["next"]["message"]


def test_required_anti_affinity_between_copies_counts() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "w"}}, "topologyKey": "kubernetes.io/hostname"}
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [a_node(f"n{number}") for number in range(3)]

    told = copies(*nodes, a_workload("Deployment", "w", a_spec(affinity=away)), fill=True)

    assert told["nodes"] == {"n0": 1, "n1": 1, "n2": 1}


def test_a_copy_that_would_preempt_others_does_not_fit() -> None:
    high = an_object("PriorityClass", "scheduling.k8s.io/v1", "high", value=9)

    told = copies(a_node("n1", 1), on("n1", "low"), high, a_pod("p", priorityClassName="high"), fill=True)

    assert (told["placed"], told["next"]["victims"], told["next"]["nominatedNode"]) == (0, ["default/low"], "n1")


def test_gated_copies_say_who_holds_them_back() -> None:
    told = copies(a_node("n1"), a_pod("p", schedulingGates=[{"name": "g"}]), fill=True)

    assert (told["placed"], told["next"]["gated"]) == (0, "SchedulingGates")


def test_without_nodes_nothing_fits() -> None:
    told = copies(a_pod("p"), fill=True)

    assert (told["placed"], told["next"]["message"]) == (0, "no nodes available to schedule pods")


@pytest.mark.parametrize(
    ("objects", "questions", "problem"),
    [
        ([], {"fill": True}, "--count and --fill: no pod or workload is new; name one by --of [KIND/][NAMESPACE/]NAME"),
        (
            [a_pod("a"), a_pod("b")],
            {"count": 1},
            "--count and --fill: 2 pods and workloads are new: pod/default/a, pod/default/b; "
            "name one by --of [KIND/][NAMESPACE/]NAME",
        ),
        ([a_pod("web")], {"fill": True, "of": "wbe"}, "--of wbe: there is no such pod or workload; did you mean web?"),
        (
            [a_pod("w"), a_workload("Job", "w", a_spec(), "batch/v1")],
            {"fill": True, "of": "w"},
            "--of w: 2 pods and workloads are called so: job/default/w, pod/default/w",
        ),
        (
            [a_workload("DaemonSet", "w", a_spec())],
            {"fill": True, "of": "ds/w"},
            "daemonset/default/w: a DaemonSet has one pod for each node, which makes no copies",
        ),
        (
            [a_pod("p", schedulerName="default-shceduler")],
            {"fill": True},
            "default/p-1: spec.schedulerName is 'default-shceduler', another scheduler's: "
            "did you mean 'default-scheduler'?",
        ),
        (
            [a_pod("p", nodeName="n1")],
            {"count": 2},
            "default/p-1: spec.nodeName is n1, so no scheduler is asked where it goes",
        ),
        (
            [a_workload("CronJob", "w", {}, "batch/v1")],
            {"fill": True},
            "f:2: spec.template: Required value",
        ),
    ],
)
def test_what_cannot_be_copied_is_an_error(objects: list[Json], questions: Json, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        asked(a_node("n1"), *objects, **questions)

    assert caught.value.problems == (problem,)
