"""Groups of groups: CompositePodGroups, which are tried as a whole tree.

Cases: cpg_test.go in test/integration/scheduler/podgroup at v1.37.2.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

import pytest

from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from plugins.default_preemption.plugin import DefaultPreemption
from plugins.gang_scheduling import GangScheduling
from plugins.shared.eviction.eligibility import GROUP_WAITING
from scheduler import framework as fw
from scheduler.api.groups.pod_groups import DisruptionMode
from scheduler.api.objects import PodStatus
from scheduler.framework.events import COMPOSITE_POD_GROUP, COSCHEDULING_POD_GROUP
from scheduler.framework.groups.pod_groups import GroupKey
from scheduler.groups.rejector_events import RESERVATION_ENDED
from scheduler.groups.reservations.reservation import Reservation
from scheduler.testing import a_node, a_pod
from tests.fakes import a_plugin, settle
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.groups.trees import Trees
from tests.unit.plugins.pod_affinity import HOST, ZONE, pods_like, with_terms

GANG, BASIC = 3, None
NONE_LEFT: Final = "pod group preemption: No preemption victims found for incoming preemptor"
IN_ONE: Final = "pod group is unschedulable, 0/1 placements are available, first placement status:"

CASES: Final[Mapping[str, tuple[Mapping[str, Any], Mapping[str, int]]]] = {
    "readiness and feasibility of three levels": (
        {
            "root": (None, 2),
            "sub1": ("root", 2),
            "sub2": ("root", BASIC),
            "sub3": ("root", 2),
            "pg1": ("sub1", GANG, 3, "1"),
            "pg2": ("sub1", GANG, 3, "1"),
            "pg3": ("sub1", GANG, 3, "100"),
            "pg4": ("sub2", BASIC, 3, "1"),
            "pg5": ("sub2", GANG, 3, "1"),
            "pg6": ("sub3", GANG, 3, "1"),
            "pg7": ("sub3", GANG, 3, "100"),
        },
        {"pg1": 3, "pg2": 3, "pg4": 3, "pg5": 3},
    ),
    "two of three groups are enough": (
        {
            "root": (None, 2),
            "pg1": ("root", GANG, 3, "1"),
            "pg2": ("root", GANG, 3, "1"),
            "pg3": ("root", GANG, 3, "100"),
        },
        {"pg1": 3, "pg2": 3},
    ),
    "two of three groups are needed": (
        {
            "root": (None, 2),
            "pg1": ("root", GANG, 3, "1"),
            "pg2": ("root", GANG, 3, "100"),
            "pg3": ("root", GANG, 3, "100"),
        },
        {},
    ),
    "one gang is enough": (
        {"root": (None, BASIC), "pg1": ("root", GANG, 3, "1"), "pg2": ("root", GANG, 3, "100")},
        {"pg1": 3},
    ),
    "pods of a group that is no gang": (
        {"root": (None, BASIC), "pg1": ("root", BASIC, 2, "1"), "pg2": ("root", BASIC, 2, "1")},
        {"pg1": 2, "pg2": 2},
    ),
    "two of three groups that are no gangs": (
        {
            "root": (None, 2),
            "pg1": ("root", BASIC, 3, "1"),
            "pg2": ("root", BASIC, 3, "1"),
            "pg3": ("root", BASIC, 3, "30"),
        },
        {"pg1": 3, "pg2": 3},
    ),
    "no group fits": (
        {"root": (None, BASIC), "pg1": ("root", BASIC, 2, "50"), "pg2": ("root", BASIC, 2, "50")},
        {},
    ),
}
"""Group → its parent and minimum; of a group of pods also how many it has and what each asks for. Then who is bound."""


def planted(tree: Mapping[str, Any], cpu: str = "20") -> Trees:
    """Return the tree, with a node for its pods."""
    trees = Trees(nodes=0)
    trees.under_test.see(a_node("node1", cpu=cpu))
    for name, (parent, minimum, *pods) in tree.items():
        if pods:
            trees.leaf(name, minimum, parent)
        else:
            trees.composite(name, minimum, parent or "")
    for name, (_, _, *pods) in tree.items():
        if pods:
            trees.pods(pods[0], name, requests={"cpu": pods[1]})
    return trees


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_case_of_kube_scheduler(case: tuple[Mapping[str, Any], Mapping[str, int]]) -> None:
    tree, expected = case
    trees = planted(tree)

    await trees.schedule()

    assert trees.placed == expected


def test_the_whole_tree_is_one_entry_of_the_queue() -> None:
    trees = planted({"root": (None, 2), "pg1": ("root", 1, 2, "1"), "pg2": ("root", 1, 1, "1")})

    group = trees.under_test.pop_group()

    assert group.group_key == fw.GroupKey("default", COMPOSITE_POD_GROUP, "root")
    assert group.size == 3
    assert trees.engine.queue.pop_nowait() is None


async def test_parts_are_tried_by_creation_then_by_name() -> None:
    trees = Trees(nodes=1)
    trees.composite("root", 1)
    trees.leaf("a", 2, created="2026-01-01T00:00:02Z")
    trees.leaf("c", 2, created="2026-01-01T00:00:01Z")
    trees.leaf("b", 2, created="2026-01-01T00:00:01Z")
    for name in "abc":
        trees.pods(2, name)

    await trees.schedule()

    assert trees.placed == {"b": 2}


async def test_each_group_of_pods_says_what_became_of_it() -> None:
    trees = planted({"root": (None, 1), "pg1": ("root", 2, 2, "1"), "pg2": ("root", 2, 2, "100")})

    await trees.schedule()

    assert trees.condition("pg1") == ("True", "Scheduled", "")
    refused = f"{IN_ONE} minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
    assert trees.problem(name="pg2") == refused


async def test_a_group_that_fits_says_why_the_one_above_it_does_not() -> None:
    trees = planted({"root": (None, 2), "pg1": ("root", 2, 2, "1"), "pg2": ("root", 2, 2, "100")})

    await trees.schedule()

    refused = f"{IN_ONE} minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, {NONE_LEFT}"
    assert trees.problem(name="pg1") == refused
    assert trees.bound == {}


async def test_what_a_failed_part_held_is_free_for_the_next_one() -> None:
    trees = planted(
        {
            "root": (None, 1),
            "a": ("root", 2),
            "a1": ("a", 2, 2, "1"),
            "a2": ("a", 1, 1, "100"),
            "b": ("root", 2, 2, "1"),
        },
        cpu="2",
    )

    await trees.schedule()

    assert trees.placed == {"b": 2}


TEXTS: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "too few pods": (
        {"root": (None, 2), "pg1": ("root", 1, 1, "1"), "pg2": ("root", 2, 1, "1")},
        'waiting for composite pod group "root" tree to meet quorum',
    ),
    "no parent": (
        {"pg1": ("root", 1, 1, "1")},
        "failed to build hierarchy snapshot: composite pod group object not found in state for "
        "compositepodgroup/default/root",
    ),
    "a cycle": (
        {"a": ("b", 1), "b": ("a", 1), "pg1": ("a", 1, 1, "1")},
        "failed to build hierarchy snapshot: cycle detected in composite pod group hierarchy: "
        "compositepodgroup/default/b",
    ),
    "too deep a tree": (
        {"a": (None, 1), "b": ("a", 1), "c": ("b", 1), "d": ("c", 1), "pg1": ("d", 1, 1, "1")},
        "failed to build hierarchy snapshot: exceeded maximum hierarchy depth at podgroup/default/pg1",
    ),
}


@pytest.mark.parametrize(("tree", "text"), TEXTS.values(), ids=TEXTS)
def test_a_tree_that_is_not_tried_says_why(tree: Mapping[str, Any], text: str) -> None:
    trees = planted(tree)
    pod = trees.engine.pods["default/pg1-0"]

    refused = [each.pre_enqueue(pod) for each in trees.engine.frameworks[pod.spec.scheduler_name].pre_enqueue]

    assert [status.message for status in refused if status is not None] == [text]
    assert trees.engine.queue.pop_nowait() is None


def permit(trees: Trees, name: str) -> object:
    """Ask about a pod that has a node, unlike all others."""
    pod = trees.engine.pods[f"default/{name}"].bound_to("node1")
    plugin = trees.under_test.framework.plugins.by_name["GangScheduling"]
    assert isinstance(plugin, GangScheduling)
    return plugin.permit(fw.CycleState(), pod, "node1")


def test_a_pod_waits_at_permit_for_the_groups_of_its_tree() -> None:
    trees = planted({"root": (None, 2), "pg1": ("root", 1, 1, "1"), "pg2": ("root", 1, 1, "1")})

    assert permit(trees, "pg1-0") == fw.PermitWait(300, 'waiting for composite pod group "root" tree to meet quorum')


def test_a_pod_fails_at_permit_if_a_group_above_its_own_is_gone() -> None:
    trees = planted({"pg1": ("root", 1, 1, "1")})
    gone = "composite pod group object not found in state for compositepodgroup/default/root"

    with pytest.raises(fw.AttemptFailed, match=f"^failed to build hierarchy snapshot: {gone}$"):
        permit(trees, "pg1-0")


async def test_what_is_reserved_for_a_tree_that_does_not_fit_is_given_back_in_reverse() -> None:
    calls: list[str] = []
    reserve = a_plugin(
        "Noting",
        fw.ReservePlugin,
        reserve=lambda state, pod, node: calls.append(f"+{pod.name}"),
        unreserve=lambda state, pod, node: calls.append(f"-{pod.name}"),
    )

    trees = Trees(reserve, nodes=1)
    trees.composite("root", 3)
    for name in ("pg1", "pg2", "pg3"):
        trees.leaf(name, 1)
        trees.pods(1, name)

    await trees.schedule()

    assert calls[-2:] == ["-pg2-0", "-pg1-0"]
    assert calls.count("+pg1-0") == calls.count("-pg1-0")


async def test_pods_wait_for_the_groups_above_theirs() -> None:
    trees = planted({"pg1": ("sub", 1, 1, "1"), "sub": ("root", 1)})
    assert trees.where("pg1-0") == "incomplete"

    trees.composite("root")
    await trees.schedule()

    assert trees.placed == {"pg1": 1}


@pytest.mark.parametrize(("resource", "name"), [(COMPOSITE_POD_GROUP, "root"), (fw.POD_GROUP, "pg1")])
def test_pods_wait_again_once_a_group_above_theirs_is_gone(resource: str, name: str) -> None:
    trees = planted({"root": (None, BASIC), "pg1": ("root", 1, 1, "1"), "pg2": ("root", 1, 1, "1")})

    trees.remove(resource, name)

    assert trees.where("pg1-0") == "incomplete"
    assert trees.where("pg2-0") == ("incomplete" if name == "root" else "active")
    trees.engine.queue.check_invariants()


async def test_a_tree_is_tried_once_a_group_of_it_needs_fewer_pods() -> None:
    trees = planted({"root": (None, 2), "pg1": ("root", 1, 1, "1"), "pg2": ("root", 2, 1, "1")})
    assert trees.engine.queue.pop_nowait() is None

    trees.leaf("pg2", 1)
    await trees.schedule()

    assert trees.placed == {"pg1": 1, "pg2": 1}


async def test_groups_that_join_a_tree_are_placed_once_they_are_enough() -> None:
    trees = planted({"root": (None, BASIC), "pg1": ("root", BASIC, 2, "1")})
    await trees.schedule()
    trees.composite("sub", 2, "root")
    trees.leaf("sub1", BASIC, "sub")
    trees.pods(2, "sub1")
    await trees.schedule()
    assert trees.placed == {"pg1": 2}

    trees.leaf("sub2", BASIC, "sub")
    trees.pods(2, "sub2")
    trees.under_test.wait(5)
    await trees.schedule()

    assert trees.placed == {"pg1": 2, "sub1": 2, "sub2": 2}


async def test_a_tree_that_was_refused_as_a_whole_is_asked_by_the_first_pod_that_is_left() -> None:
    trees = planted({"root": (None, BASIC), "pg1": ("root", BASIC, 2, "1"), "sub": ("root", 2)})
    await trees.schedule()
    trees.leaf("sub1", BASIC, "sub")
    (small,) = trees.pods(1, "sub1")
    trees.pods(1, "sub1", first=1, requests={"cpu": "2"})
    await trees.schedule()

    trees.engine.queue.delete(small)

    assert trees.where("sub1-1") == "unschedulable"
    trees.engine.queue.check_invariants()


async def test_a_group_is_tried_again_once_those_of_its_tree_are_gone_that_tied_it_to_a_node() -> None:
    trees = Trees(nodes=0)
    trees.under_test.see(a_node("n0", cpu="2", labels={HOST: "n0"}))
    trees.composite("root", 1, topology=HOST)
    trees.leaf("pg1", 1)
    trees.leaf("pg2", 1)
    (tying,) = trees.pods(1, "pg1", requests={"cpu": "2"})
    trees.pods(1, "pg2")
    await trees.schedule()
    trees.under_test.see(a_node("n0", cpu="2", labels={HOST: "n0"}, unschedulable=True))
    trees.under_test.see(a_node("n1", cpu="2", labels={HOST: "n1"}))
    trees.under_test.wait(60)
    await trees.schedule()
    assert trees.placed == {"pg1": 1}

    trees.under_test.handlers.pod_deleted(tying.bound_to("n0"))
    trees.under_test.wait(60)
    await trees.schedule()

    assert trees.bound["pg2-0"] == "n1"


async def test_the_priority_of_the_root_counts() -> None:
    trees = Trees(nodes=1)
    trees.composite("low", 1, priority=5)
    trees.leaf("pg1", 1, "low", priority=50)
    trees.leaf("pg2", 2, "", priority=10)
    trees.pods(2, "pg1", priority=5)
    trees.pods(2, "pg2", priority=10)

    await trees.schedule()

    assert trees.placed == {"pg2": 2}


async def test_members_have_the_priority_of_the_root() -> None:
    trees = Trees()
    trees.composite("root", 1, priority=10)
    trees.leaf("pg1", 1)
    trees.pods(1, "pg1", priority=5)

    await trees.schedule()

    text = "all pods in a single pod group should have the same priority as the pod group's priority, got 5 and 10"
    assert trees.problem("SchedulerError", name="pg1") == text


async def that_evicts() -> Trees:
    """A tree of two pods that has the pods of two full nodes evicted."""
    trees = Trees(nodes=2)
    trees.under_test.see(
        *(a_pod(f"low-{number}", node_name=f"n{number}", requests={"cpu": "2"}) for number in range(2))
    )
    trees.composite("root", 2, priority=10)
    for name in ("pg1", "pg2"):
        trees.leaf(name, 1)
        trees.pods(1, name, priority=10, requests={"cpu": "2"})
    await trees.schedule()
    return trees


async def test_victims_are_chosen_for_the_whole_tree() -> None:
    trees = await that_evicts()

    assert sorted(trees.under_test.evicted) == ["default/low-0", "default/low-1"]
    note = "Preempted by compositepodgroup uid of root on node cluster"
    assert set(trees.under_test.world.notes("Preempted")) == {note}
    assert trees.problem(name="pg2").endswith(
        "pod group preemption: found a placement for podgroup, preempting 2 victims"
    )


@pytest.mark.parametrize(
    ("resource", "name", "kept"), [(COMPOSITE_POD_GROUP, "root", []), (fw.POD_GROUP, "pg1", ["pg2-0"])]
)
async def test_no_node_is_kept_for_pods_whose_group_is_gone(resource: str, name: str, kept: Sequence[str]) -> None:
    trees = await that_evicts()
    nominated = trees.engine.nominator.by_node
    assert sorted(pod.metadata.name for _, pods in nominated() for pod in pods) == ["pg1-0", "pg2-0"]

    trees.remove(resource, name)

    assert [pod.metadata.name for _, pods in nominated() for pod in pods] == kept


async def test_a_tree_is_tried_once_its_victims_are_gone_whatever_refused_it_meanwhile() -> None:
    trees = await that_evicts()
    victims = [a_pod(f"low-{number}", node_name=f"n{number}", requests={"cpu": "2"}) for number in range(2)]
    trees.under_test.see(*(newer(pod, deletion_timestamp="2026-01-01T00:00:00Z") for pod in victims))
    nominated = trees.engine.nominator.by_node
    for name, (pod,) in list(nominated()):
        trees.under_test.see(newer(pod, nominated_node_name=name))
    trees.under_test.see(*(a_node(f"n{number}", cpu="2", unschedulable=True) for number in range(2)))
    trees.under_test.wait(10)
    await trees.schedule()
    assert list(nominated())

    for pod in victims:
        trees.under_test.handlers.pod_deleted(pod)
    await trees.schedule()

    assert not list(nominated())


async def test_pods_that_yielded_to_those_of_a_tree_are_tried_once_it_is_gone() -> None:
    trees = await that_evicts()
    trees.under_test.see(a_pod("alone", requests={"cpu": "2"}, scheduler_name=PROFILE))
    await trees.schedule()
    assert trees.where("alone") == "unschedulable"

    trees.remove(COMPOSITE_POD_GROUP, "root")

    assert trees.where("alone") == "backoff"


async def test_nothing_is_kept_after_a_restart_for_pods_whose_group_is_not_there() -> None:
    trees = Trees(nodes=2)
    trees.leaf("pg1", 1)
    (pod,) = trees.pods(1, "pg1", status=PodStatus(nominated_node_name="n0"))
    nominated = trees.engine.nominator.by_node
    assert not list(nominated())

    trees.under_test.see(newer(pod))
    assert not list(nominated())

    trees.composite("root", 1)

    assert [(name, len(pods)) for name, pods in nominated()] == [("n0", 1)]


async def test_no_node_is_kept_for_a_tree_that_does_not_fit_and_for_which_nobody_leaves() -> None:
    trees = Trees(nodes=1)
    trees.composite("root", 1, priority=10)
    trees.leaf("pg1", 3)
    trees.pods(3, "pg1", priority=10, status=PodStatus(nominated_node_name="n0"))

    await trees.schedule()

    assert not trees.engine.nominator.nodes


async def test_further_pods_of_a_tree_are_tried_again_when_nodes_are_reserved_no_longer() -> None:
    trees = Trees(nodes=1)
    trees.composite("root", 1)
    trees.leaf("pg1", 1)
    trees.pods(1, "pg1", node_name="n0")
    reserved = trees.engine.group_parts.reserved
    other = GroupKey("default", COSCHEDULING_POD_GROUP, "other")
    reserved.reserve(Reservation(other, 0, ("n0",), {"cpu": (2000,)}, 0.0, True, "reserved"))
    await trees.try_pods(1, "pg1", first=1)
    assert trees.bound == {}

    reserved.reserve(None)
    trees.engine.queue.move_all(RESERVATION_ENDED, None, None)
    trees.under_test.wait(60)
    await trees.schedule()

    assert trees.bound == {"pg1-1": "n0"}


@pytest.mark.parametrize("kind", [DefaultPreemption, CapacityScheduling])
async def test_all_pods_of_a_tree_are_kept_back_while_it_evicts(
    kind: type[DefaultPreemption | CapacityScheduling],
) -> None:
    trees = Trees(CapacityScheduling)
    trees.composite("root", 2)
    for name in ("pg1", "pg2"):
        trees.leaf(name, 1)
    pods = [*trees.pods(1, "pg1"), *trees.pods(1, "pg2")]
    low = a_pod("low", node_name="n0")
    trees.under_test.see(low)
    root = trees.engine.group_parts.groups.tree_of(pods[0])
    plugin = trees.under_test.framework.plugins.by_name[kind.__name__]
    assert isinstance(plugin, kind)
    assert root is not None

    plugin.evict_for_pod_group(root.group, pods, fw.Victims([low], 0))
    meanwhile = [plugin.pre_enqueue(pod) for pod in pods]
    await settle()

    assert meanwhile == [GROUP_WAITING] * 2
    assert [plugin.pre_enqueue(pod) for pod in pods] == [None] * 2


async def test_nothing_is_evicted_for_groups_that_would_not_start() -> None:
    trees = Trees(nodes=2)
    trees.under_test.see(
        *(a_pod(f"low-{number}", node_name=f"n{number}", requests={"cpu": "2"}) for number in range(2))
    )
    trees.composite("root", 1, priority=10)
    trees.leaf("pg1", 1)
    trees.leaf("pg2", 2)
    trees.pods(1, "pg1", priority=10, requests={"cpu": "2"})
    trees.pods(2, "pg2", priority=10, requests={"cpu": "2"})

    await trees.schedule()

    assert len(trees.under_test.evicted) == 1


async def test_a_tree_that_is_disrupted_as_a_whole_leaves_as_a_whole() -> None:
    trees = Trees(nodes=2)
    trees.composite("root", 2, disruption_mode=DisruptionMode(all={}))
    for name in ("pg1", "pg2"):
        trees.leaf(name, 1)
        trees.pods(1, name, requests={"cpu": "2"})
    await trees.schedule()
    assert trees.placed == {"pg1": 1, "pg2": 1}

    urgent = a_pod("urgent", priority=100, requests={"cpu": "2"}, scheduler_name=PROFILE)
    trees.under_test.see(urgent)
    await trees.under_test.schedule()

    assert sorted(trees.under_test.evicted) == ["default/pg1-0", "default/pg2-0"]


async def test_the_pods_of_a_tree_on_other_nodes_do_not_keep_a_pod_away_either() -> None:
    trees = Trees(nodes=0)
    trees.under_test.see(*(a_node(name, cpu="2", labels={HOST: name, ZONE: "z"}) for name in ("n0", "n1")))
    trees.composite("root", 2, disruption_mode=DisruptionMode(all={}))
    for name in ("pg1", "pg2"):
        trees.leaf(name, 1)
        trees.pods(1, name, requests={"cpu": "2"}, labels={"app": name})
    await trees.schedule()

    urgent = with_terms(
        "urgent",
        apart=[pods_like(ZONE, app="pg2")],
        node_selector={HOST: trees.bound["pg1-0"]},
        priority=100,
        requests={"cpu": "2"},
        scheduler_name=PROFILE,
    )
    trees.under_test.see(urgent)
    await trees.under_test.schedule()

    assert sorted(trees.under_test.evicted) == ["default/pg1-0", "default/pg2-0"]


COMPOSITES, LEAVES = ("c0", "c1", "c2"), ("l0", "l1", "l2", "l3")


async def live(trees: Trees, random: Random) -> None:
    """Let one thing happen: groups come, change their place or go, pods come or go, or the scheduler tries a group."""
    pods = list(trees.engine.pods.values())
    known = [
        (resource, name)
        for resource, names in ((COMPOSITE_POD_GROUP, COMPOSITES), (fw.POD_GROUP, LEAVES))
        for name in names
        if trees.engine.objects.get(resource, name, "default") is not None
    ]
    what = random.choice(("composite", "leaf", "pods", "pods", "schedule", "schedule", "remove", "delete"))
    if what == "composite":
        parent = random.choice(("", "", *COMPOSITES))
        trees.composite(random.choice(COMPOSITES), random.choice((None, 1, 2)), parent)
    elif what == "leaf":
        trees.leaf(random.choice(LEAVES), random.choice((None, 1, 2)), random.choice(("", *COMPOSITES)))
    elif what == "pods":
        cpu = random.choice(("500m", "1", "2"))
        trees.pods(2, random.choice(LEAVES), random.randrange(1_000_000), requests={"cpu": cpu})
    elif what == "remove" and known:
        trees.remove(*random.choice(known))
    elif what == "delete" and pods:
        trees.engine.handlers.pod_deleted(random.choice(pods))
    elif what == "schedule":
        trees.under_test.wait(30)
        if any(trees.engine.queue.pending_pods()[part] for part in ("active", "backoff")):
            await trees.schedule()


@pytest.mark.parametrize("seed", range(20))
async def test_all_is_consistent_whatever_happens_to_trees(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    random, trees = Random(seed), Trees()
    for _ in range(60):
        await live(trees, random)
        trees.engine.queue.check_invariants()
        trees.under_test.check()

    assert caplog.records == []
