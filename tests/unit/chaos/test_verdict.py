"""The verdict finds what is wrong, and nothing where all is well."""

from typing import Any

from tests.chaos.judge import Judge
from tests.chaos.record import Post, Read, Record
from tests.chaos.verdict import (
    bound_once,
    disputes,
    known_overcommits,
    repeated_blindly,
    untrue_conditions,
    untrue_waits,
)
from tests.controlplane import a_node, a_pod
from tests.controlplane.client import Object

US, BEFORE = "loadmaster-0#2", "loadmaster-0#1"
SCHEDULED = {"type": "PodScheduled", "status": "True"}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def a_known_pod(uid: str, node: str = "", condition: Object | None = None, **wishes: Any) -> Object:
    bound: dict[str, Any] = {"nodeName": node} if node else {}
    pod = a_pod(uid, "chaos", **bound, **wishes)
    pod["metadata"]["uid"] = uid
    pod["status"] = {"conditions": [condition] if condition else []}
    return pod


def a_known_node(name: str, cpu: str = "1") -> Object:
    node = a_node(name, cpu=cpu)
    node["metadata"]["uid"] = f"uid-{name}"
    return node


def a_record(*posts: Post, bound: dict[str, float] | None = None, nodes: dict[str, float] | None = None) -> Record:
    record = Record()
    record.posts = list(posts)
    record.told[US].bound.update(bound or {})
    record.told[US].nodes.update({"uid-n1": 0.0} if nodes is None else nodes)
    return record


def posted(uid: str, node: str = "n1", at: float = 10.0, status: int = 201, by: str = US) -> Post:
    return Post(uid, f"chaos/{uid}", node, by, at, status)


# Bound once.


def test_a_pod_that_was_bound_once_where_we_said_is_well() -> None:
    record = a_record(posted("u1", status=0), posted("u1"), posted("u1", "n2", status=409))

    assert not [*bound_once(record, [a_known_pod("u1", "n1")], {"u1": {"n1"}})]


def test_two_bindings_of_a_pod_that_both_took_effect_are_found() -> None:
    (found,) = bound_once(a_record(posted("u1"), posted("u1", "n2")), [a_known_pod("u1", "n2")], {})

    assert "was bound 2 times: ['n1', 'n2']" in found


def test_a_pod_that_moved_is_found() -> None:
    (found,) = bound_once(a_record(), [], {"u1": {"n1", "n2"}})

    assert "moved: ['n1', 'n2']" in found


def test_a_pod_that_is_not_where_it_was_bound_is_found() -> None:
    (found,) = bound_once(a_record(posted("u1")), [a_known_pod("u1", "n2")], {})

    assert "was bound to ['n1'] and is on n2" in found


# Overcommitted nodes: 600m + 600m on a node of 1 core.


def overcommits(record: Record, cpu: str = "600m") -> list[str]:
    pods = [a_known_pod("u1", "n1", cpu=cpu), a_known_pod("other", "n1", cpu=cpu)]
    return [*known_overcommits(record, [a_known_node("n1")], pods)]


def test_a_node_with_enough_for_all_is_well() -> None:
    assert not overcommits(a_record(posted("other", at=1.0), posted("u1")), cpu="500m")


def test_two_of_our_own_are_too_much() -> None:
    (found,) = overcommits(a_record(posted("other", at=1.0), posted("u1")))

    assert found == "chaos/u1 (u1) was bound to n1 by loadmaster-0#2, which knew of other there"


def test_a_pod_of_another_of_which_we_were_told_in_time_is_too_much() -> None:
    assert overcommits(a_record(posted("u1", at=10.0), bound={"other": 8.0}))


def test_nobody_knows_what_he_is_told_too_late_or_never() -> None:
    assert not overcommits(a_record(posted("u1", at=10.0), bound={"other": 9.5}))
    assert not overcommits(a_record(posted("u1", at=10.0), posted("other", at=1.0, by=BEFORE)))


def test_a_node_that_was_made_again_smaller_is_nobodys_doing_until_we_are_told() -> None:
    record = a_record(posted("other", at=1.0), posted("u1"), nodes={"uid-n1": 11.0})

    assert not overcommits(record)


def test_a_binding_that_was_refused_counts_for_nothing() -> None:
    assert not overcommits(a_record(posted("other", at=1.0), posted("u1", status=409)))


# Waiting, and what pods are told.


def waits(pod: Object, *nodes: Object) -> list[str]:
    return [*untrue_waits(Judge(nodes, []), [pod])]


def test_a_pod_that_fits_nowhere_and_was_told_so_may_wait() -> None:
    assert not waits(a_known_pod("u1", condition=UNSCHEDULABLE, cpu="2"), a_known_node("n1"))


def test_a_pod_that_could_run_must_not_wait() -> None:
    (found,) = waits(a_known_pod("u1", condition=UNSCHEDULABLE), a_known_node("n1"))

    assert "waits, though it could be on n1" in found


def test_a_pod_that_waits_must_have_been_told() -> None:
    (found,) = waits(a_known_pod("u1", cpu="2"), a_known_node("n1"))

    assert "fits nowhere, and its condition is None" in found


def test_a_gated_pod_may_wait_though_it_could_run() -> None:
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    gate = [{"name": "example.com/gate"}]

    assert not waits(a_known_pod("u1", condition=gated, schedulingGates=gate), a_known_node("n1"))
    assert waits(a_known_pod("u1", condition=UNSCHEDULABLE, schedulingGates=gate), a_known_node("n1"))


def test_bound_pods_and_those_of_others_are_not_asked_why_they_wait() -> None:
    assert not waits(a_known_pod("u1", "n1"), a_known_node("n1"))
    assert not waits(a_known_pod("u1", scheduler="rival"), a_known_node("n1"))


def test_a_bound_pod_that_was_told_it_cannot_run_is_found() -> None:
    pods = [a_known_pod("u1", "n1", SCHEDULED), a_known_pod("u2", "n1", UNSCHEDULABLE)]

    (found,) = untrue_conditions(pods)

    assert "chaos/u2 (u2) is bound to n1, and its condition is" in found


def test_a_binding_of_one_who_has_been_succeeded_is_found() -> None:
    one_after_the_other = a_record(posted("u1", at=1.0, by=BEFORE), posted("u2", at=2.0))
    at_once = a_record(*one_after_the_other.posts, posted("u3", at=2.5, by=BEFORE))

    assert not [*disputes(one_after_the_other)]
    assert [*disputes(at_once)] == ["loadmaster-0#1 sent a binding 0.50 s after the first of loadmaster-0#2"]


def test_a_binding_that_is_repeated_without_a_look_after_it_took_effect_is_found() -> None:
    record = a_record(posted("u1", at=1.0), posted("u1", at=2.5, status=409))
    record.reads = [Read("chaos/u1", US, 0.5), Read("chaos/u1", BEFORE, 1.5), Read("chaos/u2", US, 1.5)]

    (found,) = repeated_blindly(record)

    assert found == "chaos/u1 (u1) was bound by loadmaster-0#2, which did not look and tried again 1.50 s later"


def test_who_looked_in_between_or_whose_binding_had_no_effect_may_try_again() -> None:
    looked = a_record(posted("u1", at=1.0), posted("u1", at=2.5, status=409))
    looked.reads = [Read("chaos/u1", US, 1.5)]
    refused = a_record(posted("u1", at=1.0, status=503), posted("u1", at=2.5))
    another = a_record(posted("u1", at=1.0, by=BEFORE), posted("u1", at=2.5, status=409))

    assert not [found for record in (looked, refused, another) for found in repeated_blindly(record)]
