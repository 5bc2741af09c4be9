"""Preemptions over time: what is freed goes to the pod it was freed for, and none is begun again and again."""

from collections.abc import Mapping
from typing import Literal

import pytest

from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.framework.shares import DeclaredShare
from scheduler.testing import a_node, a_pod
from scheduler.testing.scheduler import PROFILE
from tests.unit.quota.in_time import GPU, ROOT, Life, a_team

HOUR = 3_600


def teams(spare: int = 0) -> tuple[DeclaredShare, ...]:
    """`a` may take back its 4 cores, `c` uses its own 4, `b` borrows these and what is `spare`."""
    return (DeclaredShare("root", minimum={"cpu": spare}), a_team("a", 4, reclaim="Any"), a_team("b"), a_team("c", 4))


def churning(life: Life, seconds: int, *, every: int = 20, borrowers: int = 10, priority: int = 0) -> None:
    """Let a job of `c` end and another come every few seconds, and evicted pods of `b` come again."""
    for second in range(0, seconds, every):
        life.advance(every)
        life.end(*life.with_node("c")[:1])
        life.pod(f"c-new{second}-{life.engine.cache.changes}", "c")
        for number in range(
            borrowers - sum(p.namespace == "b" and not p.is_deleting for p in life.engine.pods.values())
        ):
            life.pod(f"b-new{second}-{number}", "b", priority=priority)


@pytest.mark.parametrize("order", ["Priority", "DominantShare"])
def test_a_claimant_keeps_its_nomination_while_its_victims_end_though_default_preemption_is_asked_first(
    order: str,
) -> None:
    with Life(*teams(), grace=30, order=order, cpu=1000) as life:
        life.pods(4, "c")
        life.pods(10, "b", wait=5)
        claimant = life.pod("claimant", "a", cpu=4)
        churning(life, HOUR // 4)

        assert life.outcome(claimant).node == "n"
        assert len(life.victims) == 4


def evicting_within(grace: float = 25.0, *, default_preemption: bool = False) -> Life:
    """Three cores for two quotas; `a` uses them all, one of its pods is more important and gets them."""
    return Life(
        DeclaredShare("root", minimum={"cpu": 3}),
        a_team("a", within_share="LowerPriority"),
        a_team("b"),
        grace=grace,
        default_preemption=default_preemption,
    )


@pytest.mark.parametrize("default_preemption", [True, False])
def test_a_claimant_that_does_not_fit_when_its_victims_are_gone_does_not_block_the_others(
    default_preemption: bool,
) -> None:
    with evicting_within(25, default_preemption=default_preemption) as life:
        life.set_node(a_node("n", cpu=1000))
        life.pods(8, "a")
        big = life.pod("big", "a", cpu=3, priority=5, wait=5)
        assert len(life.victims) == 3
        life.pod("by-another-scheduler", "b", node_name="n")

        life.advance(30)

        assert life.outcome(big).nominated_node == ""
        assert life.running("a") == 2, "what is left of the quota is used at once"


def test_a_node_is_kept_for_a_claimant_whatever_the_priority_of_those_who_borrowed() -> None:
    """Nodes are short, not quota: pods that come in the victims' stead would take what these leave at once."""
    with Life(*teams(spare=10), grace=30, default_preemption=False, cpu=10) as life:
        life.pods(4, "c")
        life.pods(10, "b", priority=5, wait=5)
        claimant = life.pod("claimant", "a", cpu=4)
        churning(life, HOUR // 2, priority=5)

        assert life.outcome(claimant).node == "n"
        assert len(life.victims) == 4


def test_nobody_is_evicted_in_vain_for_a_pod_behind_an_older_one_of_another_share() -> None:
    with evicting_within(25) as life:
        life.set_node(a_node("n", cpu=1000))
        life.pods(3, "a", wait=1)
        more_important = life.pod("more-important", "b", cpu=3, priority=10, wait=60)
        big = life.pod("big", "a", cpu=3, priority=5)

        life.advance(120)

        assert len(life.victims) == 3
        assert life.outcome(big).node == "n"
        assert life.outcome(more_important).node == ""


def test_two_shares_do_not_evict_each_other_for_what_neither_of_them_borrows() -> None:
    """`b` borrows memory with one pod and uses its own cores with the others; `a` asks for both; nodes are short."""
    root = DeclaredShare("root", minimum={"cpu": 100, "memory": "100Gi"})
    shares = (root, a_team("a", reclaim="Any"), a_team("b", 4, reclaim="Any"))
    with Life(*shares, grace=10, default_preemption=False, order="DominantShare") as life:
        life.set_node(a_node("n", cpu=4, memory="100Gi"))
        life.create(a_pod("memory", namespace="b", scheduler_name=PROFILE, requests={"memory": "50Gi"}))
        life.pods(4, "b", wait=5)
        for name in ("a0", "a1"):
            life.create(a_pod(name, namespace="a", scheduler_name=PROFILE, requests={"cpu": 1, "memory": "1Gi"}))

        life.advance(HOUR // 4)

        assert life.victims == []


def replacing(life: Life, sizes: Mapping[str, tuple[int, int]], times: int) -> None:
    """Let a controller create evicted pods again; `sizes`: the beginning of a name → cores, gpus."""
    seen = 0
    for number in range(times):
        evicted, seen = life.victims[seen:], len(life.victims)
        for team, _, name in (each.partition("/") for each in evicted):
            size = name.partition(".")[0]
            life.pod(f"{size}.{number}", team, *sizes[size])
        life.advance(20)


def test_two_shares_whose_pods_ask_for_different_amounts_do_not_evict_each_other_in_turn() -> None:
    """`b` takes two cores back with a pod that needs one, and uses the other; then `a` borrows less than `b`."""
    shares = (
        DeclaredShare("root", minimum={"cpu": 4, GPU: 2}),
        DeclaredShare("a", "root", minimum={"cpu": 6, GPU: 1}, weight=3, reclaim="Any", namespaces=("a",)),
        DeclaredShare("b", "root", minimum={"cpu": 1, GPU: 3}, reclaim="Any", namespaces=("b",)),
    )
    sizes = {"small": (1, 0), "large": (2, 0), "b-gpus": (1, 2), "a-gpus": (2, 2)}
    with Life(*shares, grace=5, order="DominantShare") as life:
        life.set_node(a_node("n", cpu=1000, allocatable={GPU: 1000}))
        for team, size in zip("baaabbaa", ("small", *3 * ("large",), *2 * ("b-gpus",), "a-gpus", "large"), strict=True):
            life.pod(f"{size}.{len(life.engine.pods)}a", team, *sizes[size], wait=1)
        replacing(life, sizes, 50)

        assert len(life.victims) < 6


def test_a_pod_that_lacks_only_a_node_once_others_have_left_evicts_nobody_for_quota() -> None:
    """`b` borrows a core that it leaves for `first`; then `second` has its quota, and lacks the node that `c` uses."""
    with Life(grace=25, quotas={"a": 3, "b": 2, "c": 0}) as life:
        life.set_node(*(a_node(name, cpu=cpu, labels={"node": name}) for name, cpu in (("n0", 3), ("n1", 1))))
        life.pod("borrower", "b", cpu=3, node_selector={"node": "n0"})
        life.pod("other", "c", priority=5, node_selector={"node": "n1"}, wait=5)
        first = life.pod("first", "a", priority=5, node_selector={"node": "n0"}, wait=1)
        life.pod("second", "a", priority=5, node_selector={"node": "n1"}, wait=60)

        assert life.outcome(first).node == "n0"
        assert life.victims == ["b/borrower"]


def test_of_two_claimants_the_first_gets_what_is_freed_first() -> None:
    """Two quotas of one core each; `b` borrows both. The victims of `c` end later than those of `a`."""
    with Life(grace=25, default_preemption=False, quotas={"a": 1, "b": 0, "c": 1}, cpu=10) as life:
        life.pods(2, "b")
        first = life.pod("first", "a")
        life.pod("second", "a", wait=15)
        other = life.pod("other", "c")

        life.advance(12)
        assert life.outcome(first).node == "n"
        life.advance(20)
        assert life.outcome(other).node == "n"
        assert len(life.victims) == 2


def test_members_beyond_the_minimum_do_not_take_what_was_freed_for_another() -> None:
    shares = (ROOT, a_team("a", 3, reclaim="Any"), a_team("b"))
    with Life(*shares, grace=25, cpu=1000) as life:
        life.pods(3, "b")
        for number in range(3):
            life.pod(f"g-{number}", "a", labels={POD_GROUP_LABEL: "g"})
        life.group("g", 0, "a", minimum=2)
        later = life.pod("later", "a", wait=60)

        assert life.outcome(later).node == "n"
        assert (life.running("a"), len(life.victims)) == (3, 3)


def test_members_of_a_group_that_lacks_only_nodes_are_nominated_where_its_quota_evicts() -> None:
    with Life(*teams(spare=10), grace=20, longer=15, default_preemption=False, cpu=10) as life:
        life.pods(4, "c")
        life.pods(6, "b", priority=5, wait=5)
        life.group("gang", 2, "a")
        churning(life, HOUR // 4, borrowers=6, priority=5)

        assert life.with_node("a") == ["a/gang-0", "a/gang-1"]
        assert len(life.victims) == 2


def test_a_claimant_that_counts_on_the_victims_of_another_keeps_its_node_until_they_are_gone() -> None:
    """Its own victim ends first; DefaultPreemption is asked about it then, as only the node is full."""
    shares = (ROOT, a_team("a", 2, reclaim="Any"), a_team("b"), a_team("c", 2, reclaim="Any"))
    with Life(*shares, grace=20, cpu=4) as life:
        life.pods(6, "b", wait=1)
        life.pod("first", "a", cpu=2, wait=1)
        second = life.pod("second", "c", cpu=2, wait=1)
        life.end(*life.victims[2:], wait=60)

        assert life.outcome(second).node == "n"
        assert len(life.victims) == 4


@pytest.mark.parametrize("quota_first", [False, True])
def test_nodes_are_up_to_default_preemption_whichever_plugin_is_first(quota_first: bool) -> None:
    shares = (ROOT, a_team("a", 4, reclaim="Any"), a_team("b"), a_team("c", 4))
    with Life(*shares, grace=5, quota_first=quota_first, cpu=4) as life:
        life.pods(4, "b", wait=1)
        equal, important = life.pod("equal", "a", wait=10), life.pod("important", "a", priority=5, wait=10)

        assert life.outcome(important).node == "n"
        assert not life.outcome(equal).node
        assert len(life.victims) == 1


def test_what_default_preemption_nominates_stays_when_quota_is_asked_before_it() -> None:
    with Life(ROOT, a_team("a", 9, reclaim="Any"), grace=60, quota_first=True, cpu=3) as life:
        life.set_node(a_node("m", cpu=1))
        life.pods(4, "a", wait=1)
        waiting = [life.pod(name, "a", priority=3, wait=1) for name in ("first", "second", "third")]
        nominated = [life.outcome(each).nominated_node for each in waiting]
        life.end(*{f"a/a{number}" for number in range(4)} - set(life.victims), wait=10)

        assert [life.outcome(each).nominated_node for each in waiting] == nominated
        assert len(life.victims) == 3


def short_of_nodes(within_share: Literal["Never", "LowerPriority"] = "Never") -> Life:
    """Six cores of quota, which `c` is guaranteed and `b` borrows. All nodes are small."""
    return Life(
        ROOT,
        a_team("b", within_share=within_share),
        a_team("c", 6),
        grace=5,
    )


def test_a_pod_keeps_the_node_that_default_preemption_frees_while_another_is_tried_that_has_quota_first() -> None:
    with short_of_nodes() as life:
        life.set_node(a_node("n", cpu=2))
        life.set_node(a_node("m", cpu=2))
        life.pods(4, "b")
        life.pod("too-large", "c", cpu=4, wait=20)
        life.pod("lower", "free", cpu=2)
        important = life.pod("important", "b", cpu=2, priority=10, wait=20)

        assert life.outcome(important).node
        assert len(life.victims) == 2


def test_nobody_is_evicted_for_quota_that_is_only_reserved_for_a_pod_that_then_finds_no_node() -> None:
    with short_of_nodes("LowerPriority") as life:
        life.set_node(a_node("n", cpu=2))
        life.set_node(a_node("m", cpu=2))
        life.pods(4, "b")
        life.pod("too-large", "c", cpu=4, wait=20)
        important = life.pod("important", "b", cpu=2, priority=10, wait=20)

        assert life.outcome(important).node
        assert len(life.victims) == 2


def test_a_pod_keeps_the_node_that_default_preemption_frees_while_victims_of_another_end() -> None:
    """Quota counts them and what is kept for the other, until they are gone."""
    with Life(
        DeclaredShare("root", minimum={"cpu": 5}),
        a_team("a", 4, reclaim="Any"),
        a_team("b"),
        grace=30,
    ) as life:
        life.set_node(a_node("m", cpu=2))
        life.pod("free", "free", cpu=2, wait=1)
        life.set_node(a_node("n", cpu=7))
        life.pods(2, "b", cpu=3, priority=1, wait=1)
        important = life.pod("important", "b", cpu=2, priority=10, wait=15)
        taking_back = life.pod("taking-back", "a", cpu=4)
        life.pod("lower", "free", cpu=2, wait=60)

        assert life.outcome(important).node == "m"
        assert life.outcome(taking_back).node == "n"
        assert len(life.victims) == 2
