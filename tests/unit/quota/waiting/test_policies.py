"""Shares whose policies let their pods evict others: declared ones, and Kueue's ClusterQueues."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from scheduler import framework as fw
from scheduler.api.groups import pod_groups
from scheduler.api.objects import ObjectMeta, PodStatus
from scheduler.config.feature_gates import FeatureGates
from scheduler.framework.events import COMPOSITE_POD_GROUP, POD_GROUP
from scheduler.framework.shares import DeclaredShare
from scheduler.quota.waiting.waker import MAX_RETRIED, MAX_TRIED
from scheduler.testing import a_node, a_pod
from tests.fakes import Eviction
from tests.unit.cycle.fakes import PROFILE
from tests.unit.groups.trees import GATES as GATES_FOR_TREES
from tests.unit.quota.kueue_objects import a_cohort, a_local_queue, a_queue
from tests.unit.quota.waiting.shares import START, Sharing
from tests.unit.quota.waiting.test_kueue_queues import Queues

BUDGET = "policy/PodDisruptionBudget"
GATES = FeatureGates(generic_workload=True)
COMPANY = DeclaredShare("company")


def a_team(name: str, cpu: str = "2", **fields: Any) -> DeclaredShare:
    """A share of the company for the namespace of its name."""
    return DeclaredShare(name, "company", minimum={"cpu": cpu}, namespaces=(name,), **fields)


def teams(*nodes: str, **policies: Any) -> Sharing:
    """Two teams of two cores each; `b` uses all four, spread over the nodes. `policies`: those of `a`."""
    stage = Sharing(COMPANY, a_team("a", **policies), a_team("b"))
    for name in nodes:
        stage.under_test.see(a_node(name, cpu="64", memory="64Gi"))
    stage.run("b", 4, nodes or ("n",))
    return stage


def created(stage: Sharing, name: str, minute: int, **fields: Any) -> None:
    """Let the watch show a pod that was created in this minute."""
    pod = a_pod(name, requests={"cpu": "1"}, namespace="a", scheduler_name=PROFILE, **fields)
    metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=f"2026-01-01T00:{minute:02}:00Z")
    stage.under_test.see(msgspec.structs.replace(pod, metadata=metadata))


async def test_the_evicted_pod_does_not_come_back_by_evicting_others() -> None:
    stage = Sharing(COMPANY, a_team("a", reclaim="Any"), a_team("b", reclaim="Any"))
    stage.run("b", 4)
    await stage.try_pod("mine")
    stage.delete(stage.leave("b-3"))

    await stage.try_pod("b-3-again", namespace="b", priority=1000)
    await stage.schedule()

    assert "mine" in stage.placed
    assert stage.evicted == ["b/b-3"]


async def test_two_that_wait_for_space_do_not_wait_for_each_other() -> None:
    """What two of equal priority have made others give is taken by a third; one of them starts with the rest."""
    stage = Sharing(DeclaredShare("company", maximum={"cpu": "2"}), a_team("a", within_share="LowerPriority"))
    stage.run("a", 2)
    for name in ("first", "second"):
        stage.pod(name, priority=1)
    await stage.schedule()
    assert sorted(set(stage.evicted)) == ["a/a-0", "a/a-1"]
    stage.pod("third", priority=2, node_name="n")

    for name in ("a-0", "a-1"):
        stage.delete(stage.leave(name))
    await stage.schedule()

    assert len(stage.placed) == 2
    assert "third" in stage.placed


async def test_a_pod_that_waits_is_tried_again_when_others_borrow_what_its_share_is_guaranteed() -> None:
    """Small ones take one by one what its own share leaves: it must not wait until there is space for it of itself."""
    stage = Sharing(COMPANY, a_team("a", "3", reclaim="Any"), a_team("b", "1"))
    stage.run("a", 3)
    stage.run("b", 1, priority=20)
    await stage.try_pod("wide", requests={"cpu": "3"})
    assert stage.evicted == []

    for number in range(3):
        stage.delete(stage.engine.pods[f"a/a-{number}"])
        await stage.try_pod(f"small-{number}", namespace="b", priority=10)

    assert stage.evicted == ["b/small-0", "b/small-1", "b/small-2"]


async def test_so_is_one_of_which_others_are_in_the_way_that_may_take_nothing_back() -> None:
    stage = Sharing(COMPANY, a_team("a", "3", reclaim="Any"), a_team("b", "1"))
    stage.run("a", 3)
    stage.run("b", 1, priority=20)
    for number in range(MAX_TRIED):
        await stage.try_pod(f"above-{number}", requests={"cpu": f"{4 + number}"})
    await stage.try_pod("wide", requests={"cpu": "3"})

    for number in range(3):
        stage.delete(stage.engine.pods[f"a/a-{number}"])
        await stage.try_pod(f"small-{number}", namespace="b", priority=10)
    stage.delete("b-0")
    await stage.try_pod("small-3", namespace="b", priority=10)

    assert len(stage.evicted) == 3


async def test_so_is_one_whose_share_has_come_to_others_meanwhile() -> None:
    three: dict[str, Any] = {"groups": [{"spot": {"cpu": ["3"]}}], "preemption": {"reclaimWithinCohort": "Any"}}
    queues = Queues(
        a_queue("a", "few", **three),
        a_queue("b", "all", [{"spot": {"cpu": ["1"]}}]),
        a_local_queue("ns", "of-b", "b"),
    )
    running = [queues.pod(f"a-{number}", node_name="spot-1") for number in range(3)]
    queues.pod("b-0", "of-b", node_name="spot-2", priority=20)
    queues.pod("wide", cpu="3")
    await queues.schedule()

    queues.put(a_queue("a", "all", **three))
    for number, pod in enumerate(running):
        queues.delete(pod)
        queues.pod(f"small-{number}", "of-b", priority=10)
        await queues.schedule()

    assert len(queues.evicted) == 3


SSD: dict[str, Any] = {"node_selector": {"disk": "ssd"}}


async def test_a_pod_that_found_nobody_to_evict_is_tried_again_when_a_node_comes_or_changes() -> None:
    stage = teams(reclaim="Any")
    await stage.try_pod("mine", **SSD)

    stage.under_test.see(a_node("m", cpu="1"))
    assert await stage.after_a_look() == 1
    assert await stage.after_a_look() == 0
    assert stage.evicted == []
    stage.under_test.see(a_node("m", cpu="1", labels={"disk": "ssd"}))
    await stage.after_a_look()

    assert stage.evicted == ["b/b-3"]


async def test_of_many_that_found_nobody_only_the_first_of_some_lines_are_tried_at_a_time() -> None:
    stage = teams(reclaim="Any")
    for number in range(2 * MAX_RETRIED + 1):
        for name in ("first", "second"):
            stage.pod(f"{name}-{number}", requests={"cpu": f"{1001 + number}m"}, **SSD)
    await stage.schedule()

    for _ in range(3):
        stage.under_test.see(a_node("m", cpu="1"))
        stage.under_test.see(a_node("m", cpu="2"))
    tries = [await stage.after_a_look() for _ in range(4)]

    assert tries == [MAX_RETRIED, MAX_RETRIED, 1, 0]


async def test_nobody_is_tried_again_whose_share_evicts_nobody() -> None:
    stage = teams()
    await stage.try_pod("mine", **SSD)

    stage.under_test.see(a_node("m", cpu="1", labels={"disk": "ssd"}))

    assert await stage.after_a_look() == 0


async def test_a_pod_that_found_nobody_to_evict_is_tried_again_after_five_minutes() -> None:
    """Nothing announces all that may help it: here a pod that has no share ends."""
    stage = teams(reclaim="Any")
    stage.under_test.see(a_node("m", cpu="1", labels={"disk": "ssd"}))
    free = stage.pod("free", namespace="free", node_name="m", priority=9)
    await stage.try_pod("mine", **SSD)
    stage.delete(free)
    assert await stage.after_a_look() == 0

    stage.clock.advance(300.0)
    await stage.after_a_look()

    assert stage.evicted == ["b/b-3"]


async def test_lower_priority_takes_back_from_lower_pods_only() -> None:
    stage = Sharing(COMPANY, a_team("a", reclaim="LowerPriority"), a_team("b"))
    stage.run("b", 4, priority=5)
    await stage.try_pod("equal", priority=5)
    assert stage.evicted == []

    await stage.try_pod("higher", priority=6)

    assert stage.evicted == ["b/b-3"]


async def test_only_who_borrows_gives_back() -> None:
    stage = Sharing(COMPANY, a_team("a", reclaim="Any"), a_team("b"), a_team("c", "0"))
    stage.run("b", 2)
    stage.run("c", 2, priority=100)

    await stage.try_pod("mine")

    assert stage.evicted == ["c/c-1"]


@pytest.mark.parametrize(
    ("policy", "victims"),
    [("Never", []), ("LowerPriority", ["a/a-1"]), ("LowerOrNewerEqualPriority", ["a/a-1"])],
)
async def test_within_a_share_a_pod_takes_the_place_of_a_lower_one(policy: Any, victims: list[str]) -> None:
    full = Sharing(DeclaredShare("company", maximum={"cpu": "2"}), a_team("a", within_share=policy))
    full.run("a", 2)

    full.pod("higher", priority=1)
    await full.schedule()

    assert full.evicted == victims


async def test_of_equal_priority_only_those_that_came_later_are_evicted_within_a_share() -> None:
    full = Sharing(
        DeclaredShare("company", maximum={"cpu": "2"}), a_team("a", within_share="LowerOrNewerEqualPriority")
    )
    for name, minute in (("old", 1), ("new", 3)):
        created(full, name, minute, node_name="n")

    created(full, "newest", 4)
    await full.schedule()
    assert full.evicted == []
    created(full, "between", 2)
    await full.schedule()

    assert full.evicted == ["a/new"]


async def test_the_victim_is_on_a_node_where_the_pod_fits_then() -> None:
    """The least important one is on a node that the pod may not use."""
    stage = Sharing(COMPANY, a_team("a", reclaim="Any"), a_team("b"), node=a_node("n", cpu="2", memory="64Gi"))
    stage.under_test.see(a_node("m", cpu="2", memory="64Gi", labels={"disk": "ssd"}))
    stage.run("b", 4, ("m", "n"))

    await stage.try_pod("mine", node_selector={"disk": "ssd"})

    assert stage.evicted == ["b/b-2"]


def two_queues(*also: type[fw.Plugin], **preemption: Any) -> Queues:
    """Two ClusterQueues of two cores each in a cohort; `b` uses all four. `preemption`: that of `a`."""
    queues = Queues(
        a_queue("b", "all", [{"spot": {"cpu": ["2"]}}]),
        a_cohort("all"),
        a_local_queue("ns", "of-b", "b"),
        groups=({"spot": {"cpu": ["2"]}},),
        also=also,
        cohort="all",
        preemption=preemption,
    )
    for number in range(4):
        status = PodStatus(start_time=START + timedelta(seconds=number))
        queues.pod(f"b-{number}", "of-b", node_name=f"spot-{1 + number % 2}", status=status, priority=number)
    return queues


@pytest.mark.parametrize(
    ("preemption", "priority", "victims"),
    [
        ({}, 10, []),
        ({"reclaimWithinCohort": "Any"}, 0, ["ns/b-0"]),
        ({"reclaimWithinCohort": "LowerPriority"}, 0, []),
        ({"reclaimWithinCohort": "LowerPriority"}, 1, ["ns/b-0"]),
        ({"reclaimWithinCohort": "OfSomeLaterVersion"}, 10, []),
    ],
)
async def test_a_cluster_queue_takes_back_as_its_policy_says(
    preemption: dict[str, str], priority: int, victims: list[str]
) -> None:
    queues = two_queues(**preemption)
    queues.pod("mine", priority=priority)

    await queues.schedule()

    assert queues.evicted == victims


@pytest.mark.parametrize(("threshold", "victims"), [(None, ["ns/b-2"]), (2, ["ns/b-2"]), (1, [])])
async def test_a_cluster_queue_evicts_while_it_borrows_up_to_its_threshold(
    threshold: int | None, victims: list[str]
) -> None:
    """`a` uses one core more than it is guaranteed then; `c` guarantees that core, and uses none of it."""
    borrow = {"policy": "LowerPriority", "maxPriorityThreshold": threshold}
    queues = two_queues(reclaimWithinCohort="LowerPriority", borrowWithinCohort=borrow)
    queues.put(a_queue("c", "all", [{"spot": {"cpu": ["1"]}}]))
    queues.delete(*(queues.engine.pods[f"ns/b-{number}"] for number in (0, 1)))
    queues.pod("b-4", "of-b", node_name="spot-1", priority=4)
    for number in range(2):
        queues.pod(f"own-{number}", node_name="spot-1", priority=20)
    queues.pod("mine", priority=10)

    await queues.schedule()

    assert queues.evicted == victims


def test_what_evicts_nobody_neither_writes_nor_watches_budgets() -> None:
    quiet = CapacityScheduling(elastic_quotas=False, shares=(a_team("a"),))
    evicting = CapacityScheduling(elastic_quotas=False, shares=(a_team("a"), a_team("b", reclaim="Any")))

    assert (BUDGET in quiet.reads, list(quiet.writes)) == (False, [])
    assert BUDGET in evicting.reads
    assert {(each.resource, each.verbs) for each in evicting.writes} == {(fw.POD, ("delete",)), (fw.POD, ("patch",))}


async def test_a_pod_that_fits_no_node_takes_the_cheapest_place() -> None:
    """Both nodes are full: the least important pod is on the first one, but alone it makes no room there."""
    stage = Sharing(COMPANY, a_team("a", "4", reclaim="Any"), a_team("b", "0"), node=a_node("n", cpu="2"))
    stage.under_test.see(a_node("m", cpu="2"))
    for name, node, priority, cpu in (("low", "n", 0, "1"), ("high", "n", 9, "1"), ("middle", "m", 5, "2")):
        stage.pod(f"{name}", namespace="b", node_name=node, priority=priority, requests={"cpu": cpu})

    await stage.try_pod("wide", requests={"cpu": "2"})

    assert stage.evicted == ["b/middle"]


async def test_of_many_pods_the_least_important_anywhere_goes() -> None:
    nodes = [f"n{number}" for number in range(30)]
    stage = Sharing(COMPANY, a_team("a", "10", reclaim="Any"), a_team("b", "50"))
    for name in nodes:
        stage.under_test.see(a_node(name, cpu="64", memory="64Gi"))
    stage.run("b", 60, nodes, priority=1)
    stage.pod("least", namespace="b", node_name="n29")
    stage.delete("b-59")

    await stage.try_pod("mine")

    assert stage.evicted == ["b/least"]


async def test_a_victim_is_of_a_flavor_whose_nodes_the_pod_goes_to() -> None:
    """There is room on the nodes of the other flavor, which the queue does not have."""
    queues = two_queues(reclaimWithinCohort="Any")
    mine = queues.pod("mine")

    await queues.schedule()

    assert queues.evicted == ["ns/b-0"]
    node = queues.engine.nominator.node_of(mine.uid)
    assert node is not None
    assert node.startswith("spot-")


def with_a_whole_group(count: int, others: int) -> Sharing:
    """Two teams of two cores; of `b` a group of pods runs that is evicted as a whole, and more important others."""
    stage = Sharing(COMPANY, a_team("a", reclaim="Any"), a_team("b"), gates=GATES)
    spec = pod_groups.PodGroupSpec(disruption_mode=pod_groups.TOGETHER)
    metadata = ObjectMeta(name="g", namespace="b", uid="g", resource_version="1")
    stage.engine.object_handlers.object_changed(POD_GROUP, pod_groups.PodGroup(metadata=metadata, spec=spec))
    for number in range(count):
        stage.pod(f"g-{number}", namespace="b", node_name="n", group="g")
    stage.run("b", others, priority=1)
    return stage


async def test_a_group_that_is_disrupted_as_a_whole_goes_as_one() -> None:
    stage = with_a_whole_group(2, others=2)

    await stage.try_pod("mine")

    assert stage.evicted == ["b/g-0", "b/g-1"]


async def test_a_tree_of_groups_that_is_disrupted_as_a_whole_goes_as_one() -> None:
    stage = Sharing(COMPANY, a_team("a", reclaim="Any"), a_team("b"), gates=GATES_FOR_TREES)
    root = pod_groups.PodGroupSpec(disruption_mode=pod_groups.TOGETHER)
    part = pod_groups.PodGroupSpec(parent_composite_pod_group_name="root")
    for kind, name, spec in ((COMPOSITE_POD_GROUP, "root", root), (POD_GROUP, "g", part), (POD_GROUP, "h", part)):
        metadata = ObjectMeta(name=name, namespace="b", uid=name, resource_version="1")
        stage.engine.object_handlers.object_changed(kind, pod_groups.PodGroup(metadata=metadata, spec=spec))
    for name in ("g", "h"):
        stage.pod(f"{name}-0", namespace="b", node_name="n", group=name)
    stage.run("b", 2, priority=1)

    await stage.try_pod("mine")

    assert stage.evicted == ["b/g-0", "b/h-0"]


async def test_a_group_stays_whole_if_one_pod_suffices_elsewhere() -> None:
    """It would take its share below its guarantee."""
    stage = with_a_whole_group(3, others=1)

    await stage.try_pod("mine")

    assert stage.evicted == ["b/b-0"]


def keeps_order(queues: Queues) -> bool:
    return queues.shares.usage.order is not None


async def test_the_order_of_eviction_is_kept_only_while_a_policy_evicts() -> None:
    queues = two_queues()
    await queues.schedule()
    assert keeps_order(queues) is False

    queues.put(a_queue("a", "all", [{"spot": {"cpu": ["2"]}}], preemption={"reclaimWithinCohort": "Any"}))
    await queues.schedule()
    assert queues.shares.refusal(queues.pod("mine")) is not None
    assert keeps_order(queues) is True
    queues.under_test.check()

    queues.put(a_queue("a", "all", [{"spot": {"cpu": ["2"]}}]))
    queues.shares.check_invariants()
    assert keeps_order(queues) is False


def fair_teams(order: str, **weights: float) -> Sharing:
    """Two teams of which neither is guaranteed anything of eight cores; `b` uses all."""
    company = DeclaredShare("company", minimum={"cpu": "8"})
    both = {"a": 1.0, "b": 1.0, **weights}.items()
    teams = [DeclaredShare(name, "company", namespaces=(name,), reclaim="Any", weight=each) for name, each in both]
    stage = Sharing(company, *teams, arguments={"order": order})
    stage.run("b", 8)
    return stage


async def settled(stage: Sharing) -> int:
    """Let pods be tried, and victims come again as new and important pods, until none is evicted; count victims."""
    gone = 0
    for _ in range(20):
        await stage.schedule()
        victims = [each.victim for each in stage.under_test.world.written(Eviction)[gone:]]
        if not victims:
            return gone
        for victim in victims:
            team, name = victim.split("/")
            stage.delete(stage.leave(name))
            stage.pod(f"{name}-again", namespace=team, priority=10)
        gone += len(victims)
    raise AssertionError("they evict each other in circles")


@pytest.mark.parametrize(
    ("order", "weights", "placed"),
    [
        ("Priority", {}, 0),
        ("DominantShare", {}, 4),
        ("DominantShare", {"a": 3.0}, 6),
        ("DominantShare", {"b": 7.0}, 1),
    ],
)
async def test_a_share_that_borrows_less_than_its_part_takes_it_from_one_that_borrows_more(
    order: str, weights: dict[str, float], placed: int
) -> None:
    stage = fair_teams(order, **weights)
    for number in range(8):
        stage.pod(f"a-{number}", namespace="a")

    victims = await settled(stage)

    assert sum(name.startswith("a-") for name in stage.placed) == victims == placed
