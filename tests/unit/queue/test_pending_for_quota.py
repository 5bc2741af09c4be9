"""Pods and groups that are pending for quota: only quota, their own changes and activate reach them."""

from scheduler.api.pods.pod import Pod
from scheduler.queue.pending_for_quota import PendingForQuota
from tests.unit.queue.fakes import FIT, NODE_ADD, QUOTA, Cores, FakeQuota, Grouped, QueueUnderTest, a_waiting_pod
from tests.unit.queue.test_groups import a_member


def a_queue() -> tuple[QueueUnderTest, FakeQuota, PendingForQuota[Cores]]:
    quota = FakeQuota()
    queue = QueueUnderTest(groups=Grouped(), quota=quota)
    return queue, quota, queue.pending_for_quota


def large(uid: str = "a", cpu: str = "2", **fields: object) -> Pod:
    return a_waiting_pod(uid, cpu=cpu, **fields)  # type: ignore[arg-type]


def test_a_pod_that_its_quota_has_no_space_for_is_out_of_reach_of_events() -> None:
    queue, _, pending = a_queue()
    queue.refused(large(), QUOTA, FIT)

    queue.move_all(NODE_ADD, None, None)
    queue.clock.advance(1_000)
    queue.flush_unschedulable_leftover()

    assert "a" in pending
    assert queue.where("a") == "unschedulable"


def test_a_pod_whose_quota_has_space_waits_for_events_like_all_others() -> None:
    queue, _, pending = a_queue()
    queue.refused(large(cpu="1"), QUOTA, FIT)

    assert "a" not in pending
    queue.move_all(NODE_ADD, None, None)

    assert queue.where("a") == "backoff"


def test_it_is_woken_by_quota_after_its_backoff() -> None:
    queue, _, pending = a_queue()
    queue.refused(large(), QUOTA)

    assert queue.wake("a", "QuotaFreed")

    assert ("a" in pending, queue.where("a")) == (False, "backoff")


def test_what_is_reserved_for_it_has_it_tried_at_once_where_it_waits() -> None:
    queue, _, _ = a_queue()
    queue.refused(large("a"), QUOTA)
    queue.refused(large("b"), QUOTA)
    queue.wake("b", "Retry")

    assert all(queue.wake(each, "QuotaFreed", at_once=True) for each in "ab")

    assert [queue.where(each) for each in "ab"] == ["active", "active"]


def test_it_is_tried_at_once_when_it_is_activated() -> None:
    queue, _, _ = a_queue()
    queue.refused(large(), QUOTA)

    queue.activate(["a"])

    assert queue.where("a") == "active"


def test_a_pod_that_asks_for_less_is_tried_and_one_that_asks_for_more_is_of_another_kind() -> None:
    queue, _, pending = a_queue()
    queue.refused(large("less"), QUOTA)
    queue.refused(large("more"), QUOTA)

    queue.update(None, large("less", "1", version=2))
    queue.update(None, large("more", "3", version=2))

    assert (queue.where("less"), list(pending.kinds())) == ("backoff", [3])


def test_a_pod_that_is_gone_is_pending_no_more() -> None:
    queue, _, pending = a_queue()
    queue.refused(large(), QUOTA)

    queue.delete("a")

    assert ("a" in queue, len(pending)) == (False, 0)


def test_of_a_kind_the_more_important_goes_first_and_then_the_older_however_often_it_was_tried() -> None:
    queue, _, pending = a_queue()
    for uid, priority in (("old", 0), ("new", 0), ("high", 1)):
        queue.refused(large(uid, priority=priority), QUOTA)
        queue.clock.advance(1)
    queue.activate(["old"])
    queue.fail(queue.pop_one(), QUOTA)

    order = []
    while (first := pending.first(2)) is not None:
        order.append(first[0].pod.uid)
        queue.delete(first[0].pod)

    assert order == ["high", "old", "new"]


def test_a_group_is_one_entry_and_its_members_that_come_and_go_change_what_it_asks_for() -> None:
    queue, quota, pending = a_queue()
    quota.cores = 2
    for uid in "ab":
        queue.add(a_member(uid, cpu="2"))
    queue.end(queue.pop_group(), {"a": (QUOTA,), "b": (QUOTA,)})
    alone = list(pending.kinds())

    queue.add(a_member("c", cpu="2"))
    joined = queue.where("c")
    queue.clock.advance(20)
    queue.flush_backoff_completed()
    queue.end(queue.pop_group(), dict.fromkeys("abc", (QUOTA,)))
    together = list(pending.kinds())
    for uid in "ab":
        queue.delete(uid)

    assert (alone, joined, together, len(pending)) == ([4], "backoff", [6], 0)
    assert queue.where("c") in ("active", "backoff")


def test_what_says_how_much_a_pod_asks_for_is_known() -> None:
    queue, quota, pending = a_queue()
    quota.sources = {"a": ("claim",)}
    queue.refused(large(), QUOTA)
    queue.refused(large("b"), QUOTA)
    quota.cores = 2

    for key in pending.of_source("claim"):
        queue.ask_quota_again(key, "ClaimChanged")

    assert (queue.where("a"), list(pending)) == ("backoff", [pending.get("b")])
    assert not pending.of_source("claim")


def test_those_that_leave_to_be_tried_are_known_until_they_are() -> None:
    queue, _, pending = a_queue()
    for uid in ("gone", "tried", "waiting"):
        queue.refused(large(uid), QUOTA)
    for uid in ("gone", "tried"):
        queue.activate([uid])
    kind = pending.request("waiting").kind
    assert (list(pending.due), pending.is_due(kind)) == (["gone", "tried"], True)

    queue.delete("gone")
    assert list(pending.due) == ["tried"]
    queue.pop_one()

    assert (list(pending.due), pending.is_due(kind)) == ([], False)
