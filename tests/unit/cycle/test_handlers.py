"""What each report of the watch does to the cache, the queue and the nominator."""

import msgspec
import pytest

from scheduler.api.objects import Node, ObjectMeta, PodStatus
from scheduler.api.pods.pod import Pod
from scheduler.testing import a_node, a_pod
from tests.fakes import Forgotten, nominated_node, run, settle
from tests.unit.cycle.harness import Scheduler, failed


def version(pod: Pod, number: int, *, nominated: str = "", phase: str = "Pending", deleted: bool = False) -> Pod:
    """A later version of a pod."""
    metadata = msgspec.structs.replace(
        pod.metadata, resource_version=str(number), deletion_timestamp="2026-01-01" if deleted else None
    )
    status = PodStatus(nominated_node_name=nominated, phase=phase)
    return msgspec.structs.replace(pod, metadata=metadata, status=status)


def a_refused(scheduler: Scheduler, name: str = "refused", priority: int = 0) -> Pod:
    """Let a pod be tried while node `a` is taken."""
    there = a_pod("there", node_name="a")
    scheduler.cache.confirm(there)
    pod = a_pod(name, priority=priority)
    run(scheduler.schedule(pod))
    assert scheduler.where(pod) == "unschedulable"
    scheduler.cache.remove(there.uid)
    return pod


def test_a_new_pod_of_ours_is_queued_once_however_often_it_is_reported() -> None:
    scheduler, pod = Scheduler(), version(a_pod(), 1)
    for _ in range(3):
        scheduler.handlers.pod_changed(pod)

    assert scheduler.queue.pending_counts()["active"] == 1
    assert scheduler.handlers.known_pods() == {pod.uid: pod}


def test_a_pod_of_another_scheduler_is_not_queued_but_counted_once_it_is_bound() -> None:
    scheduler, pod = Scheduler(), a_pod(scheduler_name="other")
    scheduler.handlers.pod_changed(pod)
    assert scheduler.where(pod) == ""

    scheduler.handlers.pod_changed(pod.bound_to("a"))
    assert scheduler.where(pod) == "bound"


def test_a_waiting_pod_that_gets_bound_leaves_the_queue_and_its_nomination() -> None:
    scheduler, pod = Scheduler(), a_pod()
    scheduler.handlers.pod_changed(pod)
    scheduler.nominator.add(pod, "a")
    scheduler.handlers.pod_changed(pod.bound_to("a"))

    assert scheduler.where(pod) == "bound"
    assert nominated_node(scheduler.nominator, pod.uid) == ""
    assert Forgotten("default/pod") in scheduler.world.writes


def test_a_pod_may_be_bound_to_a_node_that_is_not_known_yet() -> None:
    scheduler, pod = Scheduler(nodes=()), a_pod(node_name="late")
    scheduler.handlers.pod_changed(pod)
    scheduler.handlers.node_changed(a_node("late"))

    assert scheduler.cache.table.pod_count.tolist() == [1]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_holds_nothing_and_wakes_others(phase: str) -> None:
    scheduler = Scheduler()
    refused, pod = a_refused(scheduler), a_pod(node_name="a")
    scheduler.handlers.pod_changed(pod)
    ended = version(pod, 2, phase=phase)
    for _ in range(2):
        scheduler.handlers.pod_changed(ended)

    assert scheduler.where(pod) == ""
    assert scheduler.where(refused) == "backoff"
    assert pod.uid not in scheduler.handlers.known_pods()


@pytest.mark.parametrize("times", [1, 2])
def test_a_deleted_pod_is_gone_wherever_it_was(times: int) -> None:
    scheduler = Scheduler()
    waiting, bound = a_pod("waiting"), a_pod("bound", node_name="a")
    scheduler.handlers.pod_changed(waiting)
    scheduler.handlers.pod_changed(bound)
    for _ in range(times):
        scheduler.handlers.pod_deleted(waiting)
        scheduler.handlers.pod_deleted(bound)

    assert (scheduler.where(waiting), scheduler.where(bound)) == ("", "")
    assert scheduler.handlers.known_pods() == {}


def test_a_deletion_of_a_pod_that_was_never_seen_does_nothing() -> None:
    scheduler = Scheduler()
    refused = a_refused(scheduler)
    scheduler.handlers.pod_deleted(a_pod("never"))

    assert scheduler.where(refused) == "unschedulable"


async def test_an_assumed_pods_updates_leave_it_alone() -> None:
    scheduler, pod = Scheduler(), version(a_pod(), 1)
    await scheduler.schedule(pod)
    scheduler.handlers.pod_changed(version(pod, 2, nominated="a"))
    await settle()

    assert scheduler.where(pod) == "assumed"
    assert nominated_node(scheduler.nominator, pod.uid) == ""


@pytest.mark.parametrize("gone", [True, False], ids=["deleted", "deletion requested"])
async def test_an_assumed_pod_that_is_deleted_frees_its_room(gone: bool) -> None:
    scheduler, pod, other = Scheduler(), version(a_pod(), 1), a_pod("other")
    await scheduler.schedule(pod)
    await scheduler.schedule(other)
    if gone:
        scheduler.handlers.pod_deleted(pod)
    else:
        scheduler.handlers.pod_changed(version(pod, 2, deleted=True))

    assert scheduler.where(pod) == ""
    assert scheduler.where(other) == "backoff"


def test_the_end_of_a_nomination_wakes_pods_that_had_to_yield() -> None:
    scheduler = Scheduler()
    low, high = a_refused(scheduler, "low", priority=1), a_refused(scheduler, "high", priority=9)
    promised = version(a_pod("promised", priority=5), 1, nominated="a")
    scheduler.handlers.pod_changed(promised)
    scheduler.handlers.pod_changed(version(promised, 2, nominated="b"))

    assert scheduler.where(low) == "backoff"
    assert scheduler.where(high) == "unschedulable", "it had not yielded"


@pytest.mark.parametrize(
    "profile",
    [
        pytest.param("default-scheduler", id="of ours"),
        pytest.param("other", id="of another scheduler"),
    ],
)
def test_a_deleted_nominated_pod_wakes_those_that_yielded(profile: str) -> None:
    scheduler = Scheduler()
    refused = a_refused(scheduler)
    promised = version(a_pod("promised", scheduler_name=profile), 1, nominated="a")
    scheduler.handlers.pod_changed(promised)
    scheduler.handlers.pod_deleted(promised)

    assert scheduler.where(refused) == "backoff"
    assert nominated_node(scheduler.nominator, promised.uid) == ""


async def test_the_same_version_reported_again_does_not_bring_back_what_left_the_queue() -> None:
    scheduler, pod = Scheduler(), version(a_pod(), 1, deleted=True)
    await scheduler.schedule(pod)
    scheduler.handlers.pod_changed(pod)

    assert scheduler.where(pod) == ""
    assert len(scheduler.world.events) == 1


async def test_a_pod_that_moves_to_another_node_than_believed_leaves_room_there() -> None:
    scheduler, pod, other = Scheduler(), a_pod(), a_pod("other")
    await scheduler.schedule(pod)
    await scheduler.schedule(other)
    scheduler.handlers.pod_changed(pod.bound_to("elsewhere"))

    assert scheduler.where(other) == "backoff"
    assert scheduler.cache.table.pod_count.tolist() == [0, 1]


async def test_an_expired_assumption_is_tried_again_unless_the_pod_is_gone_or_bound() -> None:
    scheduler, pod, other = Scheduler(ttl=30.0), a_pod(), a_pod("other")
    await scheduler.schedule(pod)
    await scheduler.schedule(other)
    scheduler.clock.advance(30)
    for late in scheduler.cache.expire():
        scheduler.handlers.assumption_expired(late)

    assert scheduler.where(pod) == "active"
    assert scheduler.where(other) == "active", "it waited for longer than its backoff"

    scheduler.handlers.pod_deleted(pod)
    scheduler.handlers.assumption_expired(pod.bound_to("a"))
    assert scheduler.where(pod) == ""


def test_a_pod_that_cannot_be_read_gets_an_event() -> None:
    scheduler = Scheduler()
    scheduler.handlers.pod_unreadable(ObjectMeta(name="odd", namespace="default", uid="u"), "spec: expected object")

    assert scheduler.world.events == [failed("the pod cannot be read: spec: expected object", pod="default/odd")]


# Nodes.


@pytest.mark.parametrize(
    ("node", "place"),
    [
        pytest.param(a_node("a"), "unschedulable", id="heartbeat"),
        pytest.param(a_node("a", cpu=64), "backoff", id="more room"),
        pytest.param(a_node("a", labels={"x": "y"}), "backoff", id="label"),
        pytest.param(a_node("new"), "backoff", id="new node"),
    ],
)
def test_what_happens_to_a_node_wakes_pods_if_it_may_help(node: Node, place: str) -> None:
    scheduler = Scheduler()
    refused = a_refused(scheduler)
    scheduler.handlers.node_changed(node)

    assert scheduler.where(refused) == place
    assert scheduler.handlers.known_nodes()[node.metadata.uid] is node


def test_a_deleted_node_is_gone_and_its_pods_are_kept() -> None:
    scheduler = Scheduler()
    scheduler.handlers.pod_changed(a_pod(node_name="a"))
    for _ in range(2):
        scheduler.handlers.node_deleted(a_node("a"))

    assert scheduler.cache.table.count == 0
    assert scheduler.handlers.known_nodes() == {}
    assert scheduler.cache.sizes()["pods"] == 1


def test_late_news_of_a_node_that_was_made_again_does_not_replace_the_new_one() -> None:
    scheduler = Scheduler(nodes=())
    old = with_metadata(a_node("a"), uid="first", resource_version="9")
    new = with_metadata(a_node("a"), uid="second", resource_version="10")
    scheduler.handlers.node_changed(new)
    scheduler.handlers.node_changed(old)
    scheduler.handlers.node_deleted(old)

    assert scheduler.cache.table.node("a") is new
    assert scheduler.handlers.known_nodes() == {"second": new}


def with_metadata(node: Node, **changes: str) -> Node:
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, **changes))


def test_an_unreadable_node_raises_and_changes_nothing() -> None:
    scheduler = Scheduler()
    before = scheduler.handlers.known_nodes()["a"]
    with pytest.raises(ValueError, match="much"):
        scheduler.handlers.node_changed(a_node("a", cpu="much"))

    assert scheduler.handlers.known_nodes()["a"] is before
    assert scheduler.cache.table.allocatable("cpu").tolist() == [4000]
