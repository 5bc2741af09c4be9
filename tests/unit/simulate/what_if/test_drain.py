"""A node is drained as kubectl does it, or vanishes: what becomes of its pods."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from scheduler.framework.errors import ConfigError
from scheduler.simulate.what_if.answers import is_short
from tests.unit.simulate.what_if.world import (
    A_DEVICE,
    DEVICES,
    Json,
    a_bound_volume,
    a_budget,
    a_class,
    a_node,
    a_pod,
    a_slice,
    a_workload,
    an_object,
    asked,
    on,
    placed,
)

MIRROR: Json = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}


def web(number: int, node: str = "n1", **fields: Any) -> Json:
    return on(node, f"web-{number}", "ReplicaSet", "web", **fields)


def drained(document: Json) -> Json:
    (told,) = document["whatIf"]["drained"]
    return dict(told)


def test_pods_of_controllers_come_again_elsewhere_and_others_are_lost() -> None:
    document = asked(a_node("n1"), a_node("n2", 2), web(1), web(2), web(3), on("n1", "bare"), drain=("n1",))

    told = drained(document)
    assert placed(document) == {"default/web-1": "n2", "default/web-2": "n2", "default/web-3": None}
    assert (told["evicted"], told["placed"], told["lost"]) == (4, 2, ["default/bare"])
    (refused,) = (pod for pod in document["pods"] if pod["node"] is None)
    assert refused["message"].startswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    ), refused
    assert refused["evictedFrom"] == "n1"


def test_daemons_and_static_pods_stay_and_kubectl_is_told_the_flags() -> None:
    data: Json = {"volumes": [{"name": "tmp", "emptyDir": {}}]}
    document = asked(
        a_node("n1"),
        a_node("n2"),
        on("n1", "agent", "DaemonSet", "agent", cpu=0),
        on("n1", "static", cpu=0, **MIRROR),
        on("n1", "of-node", "Node", "n1", cpu=0),
        on("n1", "bare", cpu=0, **data),
        drain=("n1",),
    )

    told = drained(document)
    assert told["stays"] == [
        {"pod": "default/agent", "why": "DaemonSet agent"},
        {"pod": "default/of-node", "why": "static pod"},
        {"pod": "default/static", "why": "static pod"},
    ]
    assert told["command"] == "kubectl drain n1 --ignore-daemonsets --delete-emptydir-data --force"
    assert (told["lost"], document["pods"]) == (["default/bare"], [])


def test_a_pod_of_another_scheduler_waits_for_that() -> None:
    (pod,) = asked(a_node("n1"), a_node("n2"), web(1, schedulerName="other"), drain=("n1",))["pods"]

    assert (pod["node"], pod["message"]) == (None, "waits for another scheduler, 'other'")


def test_a_pod_of_a_stateful_set_keeps_its_name_and_others_get_new_ones() -> None:
    pods = asked(a_node("n1"), a_node("n2"), on("n1", "db-0", "StatefulSet", "db"), web(1), drain=("n1",))["pods"]

    names = {pod["replaces"]: pod["name"] for pod in pods}
    assert names["default/db-0"] == "db-0"
    assert names["default/web-1"].startswith("web-")
    assert names["default/web-1"] != "web-1"


def status(allowed: int, healthy: int = 2, desired: int = 2, observed: int = 1) -> Json:
    return {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": 2,
        "observedGeneration": observed,
    }


NOT_READY: Json = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}


class Budgeted(NamedTuple):
    """Two pods on a node, budgets, and how many may go."""

    what: str
    budgets: list[Json]
    evicted: int
    why: str = ""
    """Why the others may not, if any."""

    room: int = 9
    """For how many there is another node."""

    fields: Mapping[str, Any] = MappingProxyType({})
    """Of the pods."""


def of_web(status: Json | None = None, **spec: Any) -> list[Json]:
    return [a_budget("b", "web", status, **spec)]


NONE = "the disruption budget default/b allows none"
PROCESSED = "the disruption budget default/b is still being processed by its controller"
SEVERAL = "2 disruption budgets select it, default/a and default/b, and an eviction takes one at most"
ALWAYS: Json = {"minAvailable": 2, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
TABLE = [
    Budgeted("none", [], 2),
    Budgeted("of others", [a_budget("b", "other", minAvailable=9)], 2),
    Budgeted("one after the other", of_web(maxUnavailable=1), 2),
    Budgeted("no other node", of_web(maxUnavailable=1), 1, f"{NONE}: it needs 1 ready pods and has 1", room=0),
    Budgeted("a share", of_web(maxUnavailable="50%"), 2),
    Budgeted("a share is rounded up", of_web(minAvailable="51%"), 0, f"{NONE}: it needs 2 ready pods and has 2"),
    Budgeted("its status counts", of_web(status(0), maxUnavailable=1), 0, f"{NONE}: it needs 2 ready pods and has 2"),
    Budgeted("its status alone", of_web(status(1, desired=1), maxUnavailable=0), 2),
    Budgeted("not processed", of_web(status(2, observed=0), maxUnavailable=1), 0, PROCESSED),
    Budgeted("two budgets", [a_budget(name, "web", maxUnavailable=2) for name in "ab"], 0, SEVERAL),
    Budgeted("not ready", of_web(status(0, 2, 2), minAvailable=2), 2, fields=NOT_READY),
    Budgeted(
        "not ready, and too few are",
        of_web(status(0, 1, 2), minAvailable=2),
        0,
        f"{NONE}: it needs 2 ready pods and has 1",
        room=0,
        fields=NOT_READY,
    ),
    Budgeted("not ready, which may always go", of_web(status(0, 1, 2), **ALWAYS), 2, room=0, fields=NOT_READY),
    Budgeted("pending", of_web(status(0), minAvailable=2), 2, fields={"status": {"phase": "Pending"}}),
    Budgeted("none allowed, though enough are ready", of_web(status(0, healthy=3), minAvailable=2), 0, NONE),
    Budgeted("no pods expected, as it does not say how many", of_web(), 0, NONE),
]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.what)
def test_budgets_decide_which_pods_may_go(case: Budgeted) -> None:
    nodes = a_node("n1"), a_node("n2", case.room)
    document = asked(*nodes, web(1, **case.fields), web(2, **case.fields), *case.budgets, drain=("n1",))

    told = drained(document)
    assert (told["evicted"], {each["why"] for each in told["refused"]}) == (case.evicted, {case.why} - {""})
    assert is_short(document) == bool(case.why)


def test_where_a_pod_that_was_not_ready_comes_again_no_ready_one_may_go_for_that() -> None:
    always = a_budget("b", "web", status(0, healthy=1), minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow")

    told = drained(asked(a_node("n1"), a_node("n2", 9), web(1), web(2, **NOT_READY), always, drain=("n1",)))

    assert (told["evicted"], [each["pod"] for each in told["refused"]]) == (1, ["default/web-1"])


@pytest.mark.parametrize(("cpu", "refused"), [(1, 0), (9, 1)])
def test_a_pod_that_waits_counts_as_ready_once_it_has_a_node(cpu: int, refused: int) -> None:
    waiting = web(2, "", status={"phase": "Pending"}, cpu=cpu)
    budget = a_budget("b", "web", status(0, healthy=1, desired=1), minAvailable=1)

    told = drained(asked(a_node("n1"), a_node("n2", 4), web(1), waiting, budget, drain=("n1",)))

    assert len(told["refused"]) == refused


@pytest.mark.parametrize(("room", "refused"), [(9, 0), (0, 1)])
def test_the_pods_of_a_node_that_vanishes_are_missed_until_they_come_again(room: int, refused: int) -> None:
    nodes = a_node("n1", 1), a_node("n2", 1), a_node("n3", room)
    budget = a_budget("b", "web", status(1, healthy=2, desired=1), minAvailable=1)

    told = drained(asked(*nodes, web(1), web(2, "n2"), budget, remove=("n1",), drain=("n2",)))

    assert len(told["refused"]) == refused


@pytest.mark.parametrize(("spec", "evicted"), [({"maxUnavailable": 1}, 0), ({"minAvailable": 1}, 1)])
def test_pods_without_controllers_count_only_where_a_number_has_to_be_available(spec: Json, evicted: int) -> None:
    bare = [on("n1", name, metadata={"labels": {"app": "bare"}}) for name in ("a", "b")]

    told = drained(asked(a_node("n1"), a_node("n2"), *bare, a_budget("b", "bare", **spec), drain=("n1",)))

    assert told["evicted"] == evicted


def test_a_pod_that_is_going_already_asks_no_budget_and_none_comes_for_it() -> None:
    going = web(1, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    document = asked(a_node("n1"), a_node("n2"), going, a_budget("b", "web", status(0)), drain=("n1",))

    assert (document["pods"], drained(document)["refused"]) == ([], [])


def test_several_nodes_are_cordoned_before_the_first_is_drained() -> None:
    document = asked(a_node("n1"), a_node("n2"), a_node("n3"), web(1), web(2, "n2"), drain=("n1", "n2"))

    assert placed(document) == {"default/web-1": "n3", "default/web-2": "n3"}


def test_what_waits_does_not_go_to_a_node_that_is_drained() -> None:
    assert placed(asked(a_node("n1"), a_pod("p"), drain=("n1",))) == {"default/p": None}


def test_each_of_many_pods_of_one_controller_is_replaced_by_one_with_a_name_of_its_own() -> None:
    pods = asked(a_node("n1"), a_node("n2", 9), *(web(number, cpu=0) for number in range(30)), drain=("n1",))["pods"]

    assert len({pod["name"] for pod in pods} | {f"web-{number}" for number in range(30)}) == 60


def test_a_node_that_vanishes_takes_daemons_along_and_asks_no_budget() -> None:
    document = asked(
        a_node("n1"),
        a_node("n2"),
        web(1),
        on("n1", "agent", "DaemonSet", "agent"),
        on("n1", "bare"),
        a_budget("b", "web", status(0)),
        remove=("n1",),
    )

    (told,) = document["whatIf"]["removed"]
    assert placed(document) == {"default/web-1": "n2"}
    assert (told["lost"], told["stays"], told["refused"]) == (["default/bare"], [], [])
    assert document["whatIf"]["utilisation"]["after"]["nodes"] == 1


def test_the_pods_that_a_new_daemon_set_would_have_there_do_not_come() -> None:
    daemons = a_workload("DaemonSet", "d", {"containers": [{"name": "c"}]})

    document = asked(a_node("n1"), a_node("n2"), daemons, remove=("n1",))

    assert [pod["node"] for pod in document["pods"]] == ["n2"]


def test_a_volume_on_the_node_keeps_its_pod_from_coming_again() -> None:
    claim: Json = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data-db-0"}}]}

    document = asked(
        a_node("n1"),
        a_node("n2"),
        a_class(),
        *a_bound_volume("pv", "data-db-0", "n1"),
        on("n1", "db-0", "StatefulSet", "db", **claim),
        drain=("n1",),
    )

    (pod,) = document["pods"]
    assert pod["node"] is None
    assert "1 node(s) didn't match PersistentVolume's node affinity" in pod["message"]


def test_a_claim_that_was_made_for_a_pod_alone_is_made_anew_for_the_next() -> None:
    own: Json = {"volumes": [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}
    late = a_class(mode="WaitForFirstConsumer")

    document = asked(
        a_node("n1"), a_node("n2"), late, *a_bound_volume("pv", "web-1-tmp", "n1"), web(1, **own), drain=("n1",)
    )

    assert placed(document) == {"default/web-1": "n2"}


def a_claim(name: str, user: str, owner: bool) -> Json:
    result = {"request": "r", "driver": "d.example.com", "pool": "n1", "device": "gpu"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    users = [{"resource": "pods", "name": user, "uid": f"uid of {user}"}]
    status = {"allocation": allocation, "reservedFor": users}
    claim = an_object("ResourceClaim", "resource.k8s.io/v1", name, spec=A_DEVICE, status=status)
    claim["metadata"] |= {"namespace": "default", "resourceVersion": "1", "uid": f"uid of claim {name}"}
    if owner:
        of = {"apiVersion": "v1", "kind": "Pod", "name": user, "uid": f"uid of {user}", "controller": True}
        claim["metadata"]["ownerReferences"] = [of]
    return claim


def test_devices_are_given_back_and_others_taken_elsewhere() -> None:
    shared: Json = {"resourceClaims": [{"name": "g", "resourceClaimName": "mine"}]}
    by_template: Json = {
        "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}],
        "status": {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "web-1-g"}]},
    }
    nodes = [a_node("n1"), a_node("n2"), a_slice("n1"), a_slice("n2"), DEVICES]

    of_its_own = asked(*nodes, a_claim("mine", "web-1", owner=False), web(1, **shared), drain=("n1",))
    made_for_it = asked(*nodes, a_claim("web-1-g", "web-1", owner=True), web(1, **by_template), drain=("n1",))

    assert placed(of_its_own) == placed(made_for_it) == {"default/web-1": "n2"}


def test_nodes_that_are_not_there_are_told_all_at_once_with_near_names() -> None:
    with pytest.raises(ConfigError) as caught:
        asked(a_node("node-1"), drain=("node-2",), remove=("nod-1",), add=1, like="other", fill=True)

    assert caught.value.problems == (
        "--drain node-2: there is no such node; did you mean node-1?",
        "--remove nod-1: there is no such node; did you mean node-1?",
        "--like other: there is no such node",
        "--count and --fill: no pod or workload is new; name one by --of [KIND/][NAMESPACE/]NAME",
    )


def test_a_budget_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        asked(
            a_node("n1"),
            a_budget("a", "web", maxUnavailable="many"),
            a_budget("b", "web", maxUnavailable=[1]),
            a_budget("c", "web", minAvailable="5"),
            a_budget("d", "web", minAvailable="9" * 5000 + "%"),
            drain=("n1",),
        )

    assert caught.value.problems == (
        'f:2: spec.maxUnavailable: Invalid value: "many": expected a number or a percentage',
        "f:3: spec.maxUnavailable: expected int | str | null, got array",
        'f:4: spec.minAvailable: Invalid value: "5": expected a number or a percentage',
        f'f:5: spec.minAvailable: Invalid value: "{"9" * 100}…": expected a number or a percentage',
    )
