"""Pods that wait for quota, over virtual time: who starts, in which order, and what is left for others."""

from typing import Any

import pytest

from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.framework.shares import DeclaredShare
from scheduler.testing import a_node, a_pod
from scheduler.testing.scheduler import PROFILE
from tests.unit.cycle.fakes import newer
from tests.unit.quota.in_time import GPU, ROOT, Life, a_team

COMPANY = DeclaredShare("root", minimum={"cpu": 48})
TEAMS = (a_team("a"), a_team("b"))


EVICTING = [("Priority", {"within_share": "LowerPriority"}), ("DecayedUsage", {"reclaim": "Any"})]


@pytest.mark.parametrize(("order", "policies"), EVICTING)
def test_equal_pods_start_in_the_order_in_which_they_came_however_often_they_are_tried(
    order: str, policies: dict[str, Any]
) -> None:
    with Life(DeclaredShare("a", minimum={"cpu": 1}, namespaces=("a",), **policies), order=order, cpu=100) as life:
        for number in range(12):
            life.pod(f"a{number:02}", wait=10)
        started = []
        for _ in range(12):
            life.advance(1800)
            started += life.with_node()
            life.end(*life.with_node())

        assert started == [f"a/a{number:02}" for number in range(12)]


def test_a_group_that_has_started_keeps_no_quota_but_its_own() -> None:
    with Life(COMPANY, *TEAMS, cpu=1000) as life:
        life.pods(6, "b", cpu=8, wait=5)
        life.group("g", 4, wait=3600)
        life.end(*(f"b/b{number}" for number in range(5)), wait=30)

        life.pod("large", "b", cpu=36, wait=30)

        assert life.with_node() == ["a/g-0", "a/g-1", "a/g-2", "a/g-3", "b/b5", "b/large"]


@pytest.mark.parametrize("order", ["Priority", "DominantShare"])
def test_a_guarantee_is_got_back_on_nodes_where_no_share_lends_anything(order: str) -> None:
    shares = [
        DeclaredShare(name, "root", minimum={"cpu": 4}, lending_limit={"cpu": 0}, namespaces=(name,), reclaim="Any")
        for name in "ab"
    ]
    with Life(ROOT, *shares, order=order, default_preemption=False, cpu=8) as life:
        for number in range(8):
            life.create(a_pod(f"b{number}", namespace="b", requests={"cpu": 1}, node_name="n"))

        pod = life.pod("a0", cpu=4, wait=120)

        assert life.outcome(pod).node == "n"
        assert len(life.victims) == 4


def test_a_group_that_may_evict_is_tried_with_all_its_members_however_often_it_waited() -> None:
    with Life(order="DominantShare", grace=0) as life:
        life.quota("a", 2)
        life.quota("b", 4, gpus=3)
        life.set_node(a_node("n", cpu=100, allocatable={GPU: 100}))
        life.group("first", 3, gpus=1)
        life.pods(2, "b")
        life.group("g", 3, "b", priority=5, gpus=1)
        life.pod("large", "b", gpus=2)
        life.pod("small", "b", wait=405)
        life.end("b/small", wait=1)
        life.pod("late", "b", gpus=1)

        life.advance(1200)

        assert life.with_node() == ["b/b0", "b/b1", "b/g-0", "b/g-1", "b/g-2"]


def test_a_guaranteed_pod_that_lacks_only_a_node_is_tried_when_others_begin_to_borrow() -> None:
    with Life(ROOT, a_team("a", 4, reclaim="Any"), a_team("b", 2), default_preemption=False, grace=1) as life:
        life.set_node(a_node("x", cpu=4))
        life.pod("first", "b", cpu=2, wait=5)
        pod = life.pod("a0", cpu=4, wait=60)
        assert life.victims == []

        life.set_node(a_node("y", cpu=2, labels={"zone": "y"}))
        life.advance(30)
        life.pod("second", "b", cpu=2, node_selector={"zone": "y"}, wait=30)

        assert life.victims == ["b/first"]
        assert life.outcome(pod).node == "x"


def test_no_pod_is_evicted_where_one_that_its_user_deleted_leaves_enough() -> None:
    with Life(ROOT, a_team("a", 2, reclaim="Any"), a_team("b", 2), cpu=100) as life:
        borrowing = life.pods(3, "b", wait=5)
        life.update(newer(life.engine.pods[borrowing[2].uid], deletion_timestamp="2026-01-01T00:00:00Z"))
        pod = life.pod("a0", cpu=2, wait=20)
        assert life.victims == []

        life.end("b/b2", wait=20)

        assert life.outcome(pod).node == "n"


@pytest.mark.parametrize("group", [False, True])
def test_a_pod_that_its_user_deleted_leaves_its_quota_though_its_node_is_gone(group: bool) -> None:
    with Life(ROOT, a_team("a", 2, reclaim="Any"), a_team("b", 2)) as life:
        life.set_node(a_node("old", cpu=1))
        leaving = life.pod("leaving", "b", wait=5)
        life.set_node(a_node("n", cpu=100))
        life.pods(2, "b", wait=5)
        life.update(newer(life.engine.pods[leaving.uid], deletion_timestamp="2026-01-01T00:00:00Z"))
        life.remove_node(a_node("old", cpu=1))

        life.group("g", 2) if group else life.pod("a0", cpu=2, wait=20)
        assert life.victims == []

        life.end("b/leaving", wait=20)

        assert life.running("a") == (2 if group else 1)


def test_what_a_quota_borrows_is_counted_without_a_pod_that_leaves_a_cordoned_node() -> None:
    shares = DeclaredShare("root", minimum={"cpu": 1}), a_team("a", 2, reclaim="Any"), a_team("b", 3)
    with Life(*shares, default_preemption=False) as life:
        life.set_node(a_node("old", cpu=3))
        leaving = life.pod("leaving", "b", cpu=3, wait=5)
        life.set_node(a_node("n", cpu=2))
        life.pod("b1", "b", wait=5)
        life.set_node(a_node("old", cpu=3, unschedulable=True))
        life.update(newer(life.engine.pods[leaving.uid], deletion_timestamp="2026-01-01T00:00:00Z"))

        life.pod("a0", cpu=2, wait=20)

        assert life.victims == []


def test_members_that_are_nominated_beyond_the_minimum_of_their_group_cost_their_quota_no_running_pod() -> None:
    shares = [a_team("a", 4, reclaim="Any"), a_team("b", 2), a_team("c", 2, reclaim="Any")]
    with Life(ROOT, *shares, grace=60, cpu=100) as life:
        life.pods(2, "a")
        life.pods(6, "b", wait=5)
        life.group("g", 4, minimum=2, wait=5)

        life.pods(2, "c", wait=200)

        assert all(each.startswith("b/") for each in life.victims)
        assert life.running("c") == 2


def test_a_group_gets_what_went_for_it_before_a_pod_that_evicted_later() -> None:
    with Life(
        order="DominantShare", default_preemption=False, grace=5, quotas={"a": 1, "b": 1, "c": 3}, cpu=100
    ) as life:
        life.pod("c1", "c")
        life.pods(3, "b", wait=1)
        life.group("g", 2, "c", wait=3)
        life.pod("a6", "a", wait=2.5)

        assert life.with_node("c") == ["c/c1", "c/g-0", "c/g-1"]
        life.advance(5)
        assert life.with_node("a") == ["a/a6"]
        assert len(life.victims) == 2


def test_a_group_that_takes_what_it_is_guaranteed_has_what_was_freed_before_a_pod_that_borrows() -> None:
    with Life(default_preemption=False, quotas={"a": 3, "b": 1, "c": 1}, cpu=100) as life:
        life.group("g", 2)
        life.pod("b0", "b")
        life.pods(2, "c")
        life.pod("g-2", labels={POD_GROUP_LABEL: "g"})
        life.pod("b1", "b", wait=60)

        life.end("a/g-0", wait=60)

        assert life.with_node() == ["a/g-1", "a/g-2", "b/b0", "c/c0", "c/c1"]
        assert life.victims == []


def test_a_group_that_loses_a_member_has_its_space_before_a_newer_pod_and_evicts_nobody() -> None:
    with Life(grace=0, quotas={"a": 3, "b": 1, "c": 4}, cpu=100) as life:
        life.pod("c0", "c")
        life.pods(5, "a")
        life.group("g", 3, "c", minimum=2, wait=10)
        newest = a_pod("newer", namespace="c", scheduler_name=PROFILE, requests={"cpu": 1})
        life.create(newer(newest, preemption_policy="Never"))
        life.advance(60)
        (first, second) = [each for each in life.with_node("c") if each.startswith("c/g")]

        life.end(first, wait=60)

        assert len(life.with_node("c")) == 3
        assert (first in life.with_node("c"), second in life.with_node("c")) == (False, True)
        assert "c/newer" not in life.with_node("c")
        assert life.victims == []


def test_a_guaranteed_pod_goes_before_a_borrower_that_is_more_important_than_one_just_woken() -> None:
    with Life(default_preemption=False, quotas={"a": 1, "b": 6}, cpu=100) as life:
        life.pods(3, "a")
        life.pods(2, "b", cpu=2, wait=1)
        for team, cpu, priority in (("b", 2, 0), ("a", 1, 0), ("a", 2, 5)):
            pod = a_pod(f"late-{cpu}", namespace=team, scheduler_name=PROFILE, requests={"cpu": cpu}, priority=priority)
            life.create(newer(pod, preemption_policy="Never"))
        life.advance(20)

        life.end("a/a0", "a/a1", wait=1)

        assert life.with_node("b") == ["b/b0", "b/b1", "b/late-2"]


def test_an_equal_pod_does_not_evict_before_an_older_one_that_waits_for_its_backoff() -> None:
    shares = (ROOT, a_team("a", 4, reclaim="LowerPriority"), a_team("b"))
    with Life(*shares, default_preemption=False, grace=1, cpu=100) as life:
        life.pods(4, "b", priority=10, wait=1)
        older = life.pod("older", "a", cpu=2, priority=5)
        for number in range(4):  # each time it is tried, and waits longer
            life.advance(20)
            life.set_node(a_node(f"m{number}", cpu=0))
        later = life.pod("later", "a", cpu=2, priority=5)
        life.pod("low0", "b")
        life.pod("low1", "b", wait=2)

        life.end("b/b0", "b/b1", wait=20)

        assert (bool(life.outcome(older).node), bool(life.outcome(later).node)) == (True, False)


def test_a_small_pod_does_not_wait_for_the_backoffs_of_groups_that_have_space_and_lack_nodes() -> None:
    shares = (DeclaredShare("root", minimum={"cpu": 4}), *(a_team(name, reclaim="Any") for name in "abcd"))
    with Life(*shares, default_preemption=False) as life:
        life.set_node(a_node("n", cpu=4))
        life.pod("free", "free")
        life.pods(3, "d", wait=1)
        for team in "abc":
            life.group("g", 2, team)
        for number in range(8):  # each time all are tried, and wait longer
            life.advance(20)
            life.set_node(a_node(f"m{number}", cpu=0))
        small = life.pod("small", "d", wait=2)
        life.end("d/d0", wait=5)

        assert life.outcome(small).node == "n"
