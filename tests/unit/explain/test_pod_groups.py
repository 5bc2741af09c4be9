"""Why a group of pods waits: in one sentence, for the group and for each of its pods."""

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from scheduler.api.objects import OwnerReference, PodSchedulingGate
from scheduler.cycle import loop as loop_module
from scheduler.explain.documents import Explanation, GroupReport
from scheduler.explain.explainer import Explainer
from scheduler.explain.screen import PLAIN, lines_of, lines_of_group
from scheduler.framework.events import POD_GROUP
from scheduler.testing import a_node
from tests.unit.cycle.fakes import newer
from tests.unit.groups.coscheduling import Coscheduled
from tests.unit.groups.groups import Grouping, Groups
from tests.unit.groups.reservations.stage import Stage
from tests.unit.groups.trees import Trees


def explainer(groups: Grouping, **options: Any) -> Explainer:
    return Explainer(groups.engine, groups.under_test.clock, **options)


async def about(groups: Grouping, name: str = "g", **options: Any) -> GroupReport:
    report = await explainer(groups, **options).about_group("default", name)
    as_sent: GroupReport = msgspec.json.decode(msgspec.json.encode(report), type=GroupReport)
    return as_sent


async def test_a_gang_that_does_not_fit_says_how_many_fit_and_on_what_the_others_fail() -> None:
    groups = Groups(nodes=1)
    groups.create()
    groups.pods(3)
    await groups.schedule()

    report = await about(groups)

    assert (report.state, report.needed, report.members, report.scheduled) == ("unschedulable", 3, 3, 0)
    assert report.text == "3 pods are needed at once: 2 of 3 fit; 1 does not: Insufficient cpu (on 1 node)"
    assert report.about[0] == "3 pods: 0 with a node, 3 without"
    assert report.about[1].startswith("tried once, last at 20")
    assert [(each.name, each.state) for each in report.waiting] == [(f"g-{n}", "unschedulable") for n in range(3)]


async def test_reasons_are_summed_up_over_the_pods() -> None:
    groups = Groups(nodes=1)
    groups.create(minimum=3)
    groups.pods(3)
    groups.pods(1, first=3, requests={"cpu": "1", "memory": "1Ti"})
    groups.pods(1, first=4, node_selector={"disk": "ssd"})
    await groups.schedule()

    report = await about(groups)

    assert report.text == (
        "3 pods are needed at once: 2 of 5 fit; 3 do not: Insufficient cpu (2 pods, on 1 node), "
        "Insufficient memory (1 pod, on 1 node), "
        "node(s) didn't match Pod's node affinity/selector (1 pod, on 1 node)"
    )


async def test_a_gang_with_too_few_pods_says_how_many_are_missing_and_what_wakes_it() -> None:
    groups = Groups()
    groups.create()
    groups.pods(2)

    report = await about(groups)

    assert (report.state, report.text) == ("incomplete", "3 pods are needed at once, and there are 2")
    assert report.about[-1] == "refused by GangScheduling; may be woken by a new Pod, a new or changed PodGroup"


async def test_pods_whose_group_does_not_exist_say_so() -> None:
    groups = Groups()
    groups.pods(2)

    report = await about(groups)

    assert (report.found, report.state) == (True, "missing")
    assert report.text == "2 pods wait for it, and it does not exist"


async def test_a_gang_that_was_placed_says_so_also_when_further_pods_do_not_fit() -> None:
    groups = Groups(nodes=2)
    groups.create()
    groups.pods(5)
    await groups.schedule()

    report = await about(groups)

    assert (report.state, report.scheduled) == ("partly placed", 4)
    assert report.text.startswith("3 pods are needed at once: 4 of 5 get a node; 1 does not: Insufficient cpu")


async def test_those_that_have_a_node_already_are_counted() -> None:
    groups = Groups(nodes=2)
    groups.create()
    groups.pods(3)
    await groups.schedule()
    groups.pods(2, first=3)
    await groups.schedule()

    report = await about(groups)

    assert (report.state, report.scheduled) == ("partly placed", 4)
    assert report.text.startswith("3 pods are needed at once, 3 of them have a node: 1 of 2 gets a node; 1 does not:")


async def test_a_group_is_tried_here_if_nothing_else_tries_it() -> None:
    groups = Groups(nodes=1)
    groups.create()
    groups.pods(3)

    untried, tried = await about(groups), await about(groups, tries_groups=True)

    assert (untried.state, untried.text) == ("queued", "")
    assert (tried.state, tried.at) == ("unschedulable", "")
    assert tried.text.startswith("3 pods are needed at once: 2 of 3 fit;")


async def test_a_group_of_a_tree_is_tried_here_with_the_others() -> None:
    trees = Trees(nodes=1)
    trees.composite("root", 2)
    for name in ("g", "other"):
        trees.leaf(name, 1)
        trees.pods(1, name)

    report = await about(trees, tries_groups=True)

    assert (report.state, report.text) == ("queued", "it fits now: 1 pod is needed at once: 1 of 1 gets a node")


@pytest.mark.parametrize(
    ("minimum", "text"),
    [
        pytest.param(2, 'waiting for composite pod group "root" tree to meet quorum', id="too few pods in others"),
        pytest.param(
            None,
            "failed to build hierarchy snapshot: composite pod group object not found in state for "
            "compositepodgroup/default/root",
            id="no group above it",
        ),
    ],
)
async def test_a_group_of_a_tree_that_is_not_tried_says_why(minimum: int | None, text: str) -> None:
    trees = Trees(nodes=1)
    if minimum is not None:
        trees.composite("root", minimum, priority=7)
    trees.leaf("g", 1)
    trees.leaf("other", 1)
    trees.pods(1, "g")

    report = await about(trees, tries_groups=True)

    assert (report.state, report.text, report.priority) == ("incomplete", text, 0 if minimum is None else 7)


async def test_a_group_of_the_same_name_that_came_later_has_no_history() -> None:
    groups = Groups(nodes=1)
    groups.create()
    groups.pods(3)
    await groups.schedule()
    first = groups.object()
    groups.engine.object_handlers.object_deleted(POD_GROUP, first)
    groups.store(replace(first, metadata=replace(first.metadata, uid="another")))

    report = await about(groups)

    assert report.at == ""


async def test_a_group_that_no_pod_names_has_near_names_and_without_groups_there_is_none() -> None:
    groups = Groups()
    groups.create()
    groups.pods(1)

    report = await about(groups, "gg")
    groups.engine.group_parts.are_on = False

    assert (report.found, report.near) == (False, ["default/g"])
    assert not (await about(groups)).found


async def test_a_pod_is_explained_with_its_group() -> None:
    groups = Groups(nodes=1)
    groups.create()
    groups.pods(3)
    await groups.schedule()

    report = await explainer(groups).about("default", "g-0")

    lines = list(lines_of(report, PLAIN))
    assert "ITS GROUP, default/g: unschedulable" in lines
    assert "  3 pods are needed at once: 2 of 3 fit; 1 does not: Insufficient cpu (on 1 node)" in lines


async def test_the_pods_without_a_node_are_listed_by_where_they_are() -> None:
    groups = Groups()
    groups.under_test.see(a_node("n9", cpu="2"))
    groups.create(minimum=4)
    groups.pods(3)

    lines = list(lines_of_group(await about(groups), PLAIN))

    assert lines[0] == "default/g  incomplete"
    assert lines[-1] == "  gated: 3 (g-0, g-1, g-2)"


async def test_a_group_that_contradicts_itself_says_in_what() -> None:
    groups = Coscheduled()
    groups.annotated(1, 3)
    groups.annotated(1, 4, first=1)

    report = await about(groups, "a")

    assert report.state == "invalid"
    assert "loadmaster.dev/pod-group-min-available" in report.text


async def test_what_a_group_only_tries_out_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "SLICE_SECONDS", 0.0)
    groups = Groups(nodes=20)
    groups.create(minimum=41)
    groups.pods(41)
    what_ifs, loop = groups.engine.cache.what_ifs, groups.engine.loop
    scheduling = asyncio.create_task(loop.run())
    while len(what_ifs) < 20:  # noqa: ASYNC110
        await asyncio.sleep(0)

    report = await about(groups)

    assert not what_ifs
    assert report.text.startswith("41 pods are needed at once: 40 of 41 fit;")
    groups.engine.queue.close()
    await scheduling


async def test_a_group_that_has_lost_pods_is_not_placed() -> None:
    groups = Groups(nodes=2)
    groups.create()
    groups.pods(3)
    await groups.schedule()
    for number in range(2):
        groups.engine.handlers.pod_deleted(groups.engine.pods[f"default/g-{number}"])

    report = await about(groups)

    assert (report.state, report.text) == ("incomplete", "3 pods are needed at once, and there is 1")


async def test_a_member_behind_a_scheduling_gate_is_named_and_one_for_another_scheduler_too() -> None:
    groups = Coscheduled(nodes=1)
    groups.annotated(3, 3)
    groups.annotated(1, 3, first=3, scheduler_name="other")
    groups.under_test.see(newer(groups.engine.pods["default/a-0"], scheduling_gates=(PodSchedulingGate("wait"),)))

    report = await about(groups, "a")

    expected = (
        "3 pods are needed at once, and there are 2; a-0 waits behind scheduling gates, a-3 is for the scheduler "
    )
    assert (report.state, report.text) == ("incomplete", f"{expected}'other'")


async def test_a_group_that_fits_is_queued_and_its_pods_are_not_gated() -> None:
    groups = Coscheduled(nodes=2)
    groups.annotated(3, 3)

    asked = explainer(groups, tries_groups=True)
    report = await asked.about_group("default", "a")
    of_pod = await asked.about("default", "a-0")

    assert (report.state, report.text) == ("queued", "it fits now: 3 pods are needed at once: 3 of 3 get a node")
    assert {each.state for each in report.waiting} == {"queued"}
    assert (of_pod.state, of_pod.about) == ("queued", [])


async def test_a_pod_says_that_it_waits_for_the_others_of_its_group() -> None:
    groups = Coscheduled(nodes=2)
    groups.annotated(3, 4)

    report = await explainer(groups).about("default", "a-0")

    assert (report.state, report.about) == ("gated", ["waits for the other pods of its group"])


async def test_what_all_nodes_lack_is_said_and_what_would_bring_it() -> None:
    groups = Coscheduled(nodes=1)
    groups.annotated(3, 3)

    report = await about(groups, "a", tries_groups=True)

    assert report.text == "3 pods are needed at once: 2 of 3 fit; 1 does not: Insufficient cpu (on 1 node)"
    assert report.about[1] == "all nodes together hold 2 of 3 and lack 1 node with 1 cpu free"
    assert report.about[2].startswith("refused by NodeResourcesFit; may be woken by a new or changed")


async def test_a_group_is_found_by_the_name_of_its_job() -> None:
    groups = Groups(nodes=1)
    groups.create()
    owner = OwnerReference(kind="Job", name="train", uid="train", controller=True)
    for pod in groups.pods(3):
        groups.under_test.see(newer(pod, owner_references=(owner,)))

    report = await about(groups, "train")
    as_pod = await explainer(groups).about_pod_or_group("default", "g")

    assert (report.found, report.name) == (True, "g")
    assert isinstance(as_pod, GroupReport)


async def a_reservation() -> Stage:
    """A node is reserved for the group `a` until a pod there has ended."""
    stage = Stage(nodes=2)
    stage.running("before", "n0", deadline=661)
    stage.running("service", "n1", cpu="2")
    stage.annotated(1, 1, requests={"cpu": "2"})
    await stage.wait_long()
    return stage


async def test_the_nodes_that_are_reserved_for_a_group_are_told_at_the_group_and_at_those_that_they_refuse() -> None:
    stage = await a_reservation()
    stage.small("small")
    await stage.schedule()
    asked = Explainer(stage.engine, stage.clock)

    group = await asked.about_group("default", "a")
    pod = await asked.about("default", "small")

    assert (
        "1 node reserved for it since 2023-11-14 22:31 UTC (n0); 0 of 1 pod would fit there now, all of them about "
        "2023-11-14 22:41 UTC"
    ) in group.about
    assert isinstance(pod.explanation, Explanation)
    facts = [obstacle.fact for each in pod.explanation.groups for obstacle in each.obstacles]
    assert 'node(s) reserved for the pod group "default/a" until about 2023-11-14 22:41 UTC' in facts
    assert "PodGroupReservation" in str(pod.about)


async def test_a_group_says_which_one_goes_first() -> None:
    stage = await a_reservation()
    stage.annotated(1, 1, "later", requests={"cpu": "2"})
    await stage.schedule()

    later = await Explainer(stage.engine, stage.clock).about_group("default", "later")

    assert "the group default/a goes first: 1 node reserved for it" in later.about
