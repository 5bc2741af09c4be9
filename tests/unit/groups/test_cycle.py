"""The pod group cycle on a whole engine: what becomes of each member, of the group, and of the queue."""

import pytest

from scheduler import framework as fw
from scheduler.config.defaults import default_plugins
from scheduler.runtime.profile_spec import Plugins, PluginSet
from scheduler.testing import a_node, a_pod
from tests.fakes import Nomination, a_plugin, settle
from tests.unit.cycle.fakes import PROFILE, an_engine, newer, raising
from tests.unit.groups.groups import GATES, Groups


async def test_a_gang_that_fits_is_bound_in_one_cycle() -> None:
    groups = Groups()

    await groups.try_group(pods=3)

    assert sorted(groups.bound) == ["g-0", "g-1", "g-2"]
    assert groups.condition() == ("True", "Scheduled", "")
    count = groups.under_test.count
    assert count("scheduler_podgroup_schedule_attempts_total", result="scheduled", profile=PROFILE) == 1
    assert count("scheduler_podgroup_scheduling_algorithm_duration_seconds_count") == 1
    assert groups.under_test.world.written(Nomination) == [], "they wait for no others"


async def test_a_gang_that_does_not_fit_holds_nothing_and_says_why() -> None:
    groups = Groups(nodes=1)

    await groups.try_group(pods=3)

    assert groups.bound == {}
    assert list(groups.engine.cache.assumed_pods()) == []
    assert [groups.where(f"g-{number}") for number in range(3)] == ["unschedulable"] * 3
    no_victims = "pod group preemption: No preemption victims found for incoming preemptor"
    text = f"minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, {no_victims}"
    assert groups.problem() == text
    notes = {event.pod: event.note for event in groups.under_test.world.events}
    assert notes["default/g-0"] == notes["default/g-1"] == f"pod group is unschedulable, {text}"
    assert notes["default/g-2"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    count = groups.under_test.count
    assert count("scheduler_podgroup_schedule_attempts_total", result="unschedulable", profile=PROFILE) == 1


async def test_pods_beyond_the_minimum_are_bound_as_far_as_they_fit() -> None:
    groups = Groups(nodes=1)

    await groups.try_group(minimum=2, pods=3)

    assert sorted(groups.bound) == ["g-0", "g-1"]
    assert groups.where("g-2") == "active"
    assert groups.condition() == ("True", "Scheduled", "")


async def test_a_condition_that_was_true_stays_true() -> None:
    groups = Groups(nodes=1)
    pods = await groups.try_group(minimum=2, pods=3)
    groups.under_test.see(*(newer(pod, node_name="n0") for pod in pods[:2]))
    groups.under_test.wait(10)

    await groups.schedule()

    assert groups.condition() == ("True", "Scheduled", "")
    assert len(groups.patches) == 1


async def test_a_group_that_is_no_gang_binds_what_fits() -> None:
    groups = Groups(nodes=1)

    await groups.try_group(minimum=None, pods=3)

    assert sorted(groups.bound) == ["g-0", "g-1"]
    assert groups.condition() == ("True", "Scheduled", "")


async def test_the_members_that_came_first_are_tried_first() -> None:
    groups = Groups(nodes=1)
    groups.create(minimum=2)
    for name in ("late", "early"):
        groups.under_test.clock.advance(1)
        groups.under_test.see(a_pod(name, group="g", requests={"cpu": "1"}, scheduler_name=PROFILE))

    await groups.schedule()

    assert groups.under_test.world.asked == [("default/late", "n0"), ("default/early", "n0")]


def test_members_wait_until_there_are_enough_of_them_and_a_group() -> None:
    groups = Groups()
    groups.pods(2)
    assert groups.where("g-0") == "incomplete"
    groups.create()
    assert groups.where("g-0") == "gated"
    groups.pods(3)
    assert [groups.where(f"g-{number}") for number in range(3)] == ["active"] * 3

    groups.pods(3, "h")
    assert [groups.where(f"h-{number}") for number in range(3)] == ["incomplete"] * 3
    groups.create("h")
    assert [groups.where(f"h-{number}") for number in range(3)] == ["active"] * 3


async def test_without_the_gang_plugin_members_are_only_tried_together() -> None:
    enabled = default_plugins(GATES).multi_point.enabled
    without = tuple(each for each in enabled if each.name != "GangScheduling")
    groups = Groups(nodes=1, only=Plugins(multi_point=PluginSet(without)))

    await groups.try_group(pods=3)

    assert sorted(groups.bound) == ["g-0", "g-1"]


async def test_members_of_several_schedulers_all_fail() -> None:
    groups = Groups(profiles=(PROFILE, "other"))
    groups.create(minimum=2)
    for name, profile in (("p", PROFILE), ("q", "other")):
        groups.under_test.see(a_pod(name, group="g", scheduler_name=profile))

    await groups.schedule()

    note = f'all pods in a single pod group should have the same .spec.schedulerName set, got: "other" and "{PROFILE}"'
    assert groups.under_test.world.notes() == [note, note]
    assert [groups.where("p"), groups.where("q")] == ["backoff", "backoff"]


async def test_a_member_that_is_being_deleted_is_skipped() -> None:
    groups = Groups()
    pods = groups.create(minimum=2, pods=3)
    groups.under_test.see(newer(pods[0], deletion_timestamp="2026-01-01"))

    await groups.schedule()

    assert sorted(groups.bound) == ["g-1", "g-2"]
    assert groups.engine.queue.in_flight_pods() == ()


async def test_a_refusal_of_one_member_leaves_the_others_their_chance() -> None:
    def refuse(state: fw.CycleState, pod: fw.Pod, node: str) -> fw.Status | None:
        return fw.unschedulable("not this one") if pod.name == "g-1" else None

    reserve = a_plugin("Choosy", fw.ReservePlugin, reserve=refuse, unreserve=lambda *_: None)

    groups = Groups(reserve)

    await groups.try_group(minimum=2, pods=3)

    assert sorted(groups.bound) == ["g-0", "g-2"]
    assert groups.under_test.world.notes() == ["0/1 nodes are available: 1 not this one."]


async def test_an_error_of_one_member_fails_the_group_and_leaves_no_trace() -> None:
    def fail(state: fw.CycleState, pod: fw.Pod, node: str) -> None:
        if pod.name == "g-1":
            raise fw.AttemptFailed("broken")

    failing = a_plugin("Failing", fw.ReservePlugin, reserve=fail, unreserve=lambda *_: None)
    groups = Groups(failing)

    await groups.try_group(pods=3)

    of_pod = 'running Reserve plugin "Failing": broken'
    of_group = f"failed to schedule other pod from a pod group: {of_pod}"
    notes = {event.pod: event.note for event in groups.under_test.world.events}
    assert notes == {"default/g-0": of_group, "default/g-1": of_pod, "default/g-2": of_group}
    assert groups.bound == {}
    assert list(groups.engine.cache.assumed_pods()) == []
    assert groups.problem("SchedulerError") == of_group


async def test_what_is_reserved_for_a_group_that_does_not_fit_is_given_back_in_reverse() -> None:
    calls: list[str] = []
    reserve = a_plugin(
        "Noting",
        fw.ReservePlugin,
        reserve=lambda state, pod, node: calls.append(f"+{pod.name}"),
        unreserve=lambda state, pod, node: calls.append(f"-{pod.name}"),
    )

    groups = Groups(reserve, nodes=1)

    await groups.try_group(pods=3)

    assert calls == ["+g-0", "+g-1", "-g-1", "-g-0"]


async def test_a_fault_amid_a_cycle_loses_no_member(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = Groups()
    groups.create(pods=3)
    loop = groups.engine.loop
    monkeypatch.setattr(loop, "should_skip", raising(RuntimeError("a fault of ours")))

    with pytest.raises(RuntimeError):
        loop.schedule_one(groups.under_test.pop_group())

    assert [groups.where(f"g-{number}") for number in range(3)] == ["backoff"] * 3


async def test_a_fault_after_the_members_were_placed_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = Groups()
    groups.create(pods=3)
    loop = groups.engine.loop
    monkeypatch.setattr(groups.cycle, "_report", raising(RuntimeError("a fault of ours")))

    with pytest.raises(RuntimeError, match="a fault of ours"):
        loop.schedule_one(groups.under_test.pop_group())
    await settle()

    assert sorted(groups.bound) == ["g-0", "g-1", "g-2"]


async def test_members_keep_no_room_from_each_other_by_their_nominations() -> None:
    groups = Groups(nodes=1)
    first, second, third = groups.create(minimum=1, pods=3)
    groups.engine.nominator.add(third, "n0")

    await groups.schedule()

    assert groups.bound == {first.name: "n0", second.name: "n0"}


async def test_a_condition_becomes_true_whatever_is_said_while_it_is_sent() -> None:
    groups = Groups()
    groups.create()
    member = groups.pods(1)[0]
    cycle = groups.engine.group_parts.cycle
    assert cycle is not None
    group = cycle._groups.of(member)
    assert group is not None

    for is_scheduled, reason in ((False, "Unschedulable"), (True, "Scheduled"), (False, "Unschedulable")):
        cycle._conditions.set(group, is_scheduled=is_scheduled, reason=reason, message="")
    await settle()

    assert groups.condition() == ("True", "Scheduled", "")


async def test_without_the_gates_nothing_is_made_for_groups() -> None:
    plain = an_engine()
    plain.see(a_node("n"), a_pod("p", group="g", scheduler_name=PROFILE))

    await plain.schedule()

    assert (plain.engine.group_parts.cycle, plain.engine.pod_groups) == (None, None)
    assert plain.engine.group_parts not in tuple(plain.engine.core.listeners)
    assert plain.world.bound == {"default/p": "n"}
    assert "scheduling.k8s.io/PodGroup" not in plain.engine.watched


def test_groups_are_watched_and_their_status_may_be_written() -> None:
    resources = Groups().engine.profiles.resources

    assert {"scheduling.k8s.io/PodGroup", "podgroups.v1beta1.scheduling.k8s.io"} <= resources.watched.keys()
    assert sorted({each[1:] for each in resources.written if each[0].plural == "podgroups"}) == [
        ("", ("get",)),
        ("status", ("patch",)),
    ]


async def test_a_member_that_is_being_deleted_while_it_is_bound_stays_one_until_it_is_gone() -> None:
    groups = Groups()
    first, *_ = groups.create(pods=3)
    groups.under_test.world.hangs = True
    await groups.schedule()
    members = groups.engine.frameworks[PROFILE].handle.pod_groups.members(first)
    assert (members.count, members.scheduled_count) == (3, 3)

    groups.under_test.see(newer(first, deletion_timestamp="2026-01-31T12:00:00Z"))

    assert (members.count, members.scheduled_count) == (3, 2)
    groups.under_test.handlers.pod_deleted(first)
    assert (members.count, members.scheduled_count) == (2, 2)
    groups.under_test.world.answer_bindings()
    await settle()
