"""A large group is decided about in steps, and anything may happen between them."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.config.types import LoadmasterSettings
from scheduler.cycle import loop as loop_module
from scheduler.cycle.steps import in_one_go
from scheduler.explain.explainer import Explainer
from scheduler.framework.errors import BindRejected
from scheduler.framework.nodes.nodes import Aspect
from scheduler.groups.apis.owners import ProfileGangs
from scheduler.replay.recorder import _StateAtStart
from scheduler.runtime.event_stream import EventStream
from scheduler.state.state_events import PodCounted, PodUncounted
from scheduler.testing import a_node, a_pod
from tests.fakes import a_plugin, settle
from tests.unit.cycle.fakes import newer
from tests.unit.groups.coscheduling import Coscheduled
from tests.unit.groups.groups import Grouping, Groups
from tests.unit.groups.test_placements import Racks


def begin(groups: Grouping, tried_out: int) -> Any:
    """Begin with the group at the head of the queue; return what is left once so many members are tried out."""
    left = groups.engine.group_parts.steps(groups.under_test.pop_group(), groups.engine.loop)
    while len(groups.engine.cache.what_ifs) < tried_out:
        next(left)
    return left


async def play_in_steps(groups: Groups, tried_out: int, meanwhile: Callable[[], object]) -> None:
    """Schedule the group at the head of the queue, while something happens once so many members are tried out."""
    left = begin(groups, tried_out)
    meanwhile()
    in_one_go(left)
    await settle()
    groups.check()


async def turns_until(condition: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not come to that")


def a_gang(*, nodes: int = 2, pods: int = 3, minimum: int = 3) -> Groups:
    groups = Groups(nodes=nodes)
    groups.create(minimum=minimum, pods=pods)
    return groups


def a_stranger(node: str, cpu: str = "2") -> fw.Pod:
    """A pod that another scheduler has bound."""
    return a_pod(f"stranger-{node}", node_name=node, requests={"cpu": cpu}, scheduler_name="other")


def chosen(groups: Groups) -> str:
    """A node on which a member is tried out."""
    return next(iter(groups.engine.cache.what_ifs.values())).node_name


def has_begun_to_place(groups: Groups) -> bool:
    """Whether members are assumed for good."""
    return groups.engine.cache.assumed_count > len(groups.engine.cache.what_ifs)


async def test_other_tasks_run_while_a_group_is_decided_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "SLICE_SECONDS", 0.0)

    groups = a_gang(nodes=20, pods=40, minimum=40)
    turns: list[int] = []
    task = asyncio.create_task(groups.engine.loop.run())
    while len(groups.bound) < 40:
        turns.append(len(groups.engine.cache.what_ifs))
        await asyncio.sleep(0)
    groups.engine.queue.close()
    await task

    assert max(turns) == 40
    assert len(set(turns)) > 20


async def test_nobody_hears_of_what_is_only_tried_out() -> None:
    stream, heard = EventStream(), list[object]()
    stream.subscribe({PodCounted: heard.append, PodUncounted: heard.append})
    groups = Groups(nodes=1, stream=stream)
    groups.create(minimum=3, pods=3)

    await play_in_steps(groups, 2, lambda: groups.under_test.see(a_stranger("n0", "0")))

    assert [str(event.pod) for event in heard if isinstance(event, PodCounted)] == ["default/stranger-n0"]
    assert [event for event in heard if isinstance(event, PodUncounted)] == []


async def test_a_member_that_is_deleted_meanwhile_is_left_out() -> None:
    groups = a_gang(minimum=2)

    await play_in_steps(groups, 2, lambda: groups.under_test.handlers.pod_deleted(a_pod("g-0", group="g")))

    assert sorted(groups.bound) == ["g-1", "g-2"]


@pytest.mark.parametrize(
    ("meanwhile", "bound"),
    [
        pytest.param(lambda engine: engine.handlers.pod_deleted(a_pod("g-1", group="g")), ["g-0", "g-2"], id="deleted"),
        pytest.param(lambda engine: engine.see(a_node("more")), ["g-0", "g-1", "g-2"], id="another node"),
        pytest.param(
            lambda engine: engine.see(newer(a_pod("g-1", group="g"))), ["g-0", "g-1", "g-2"], id="new version"
        ),
    ],
)
async def test_what_happens_once_the_first_member_is_placed_leaves_no_other_behind(
    meanwhile: Callable[[Any], object], bound: list[str]
) -> None:
    groups = a_gang(minimum=2)

    left = begin(groups, 2)
    while not has_begun_to_place(groups):
        next(left)
    meanwhile(groups.under_test)
    in_one_go(left)
    await settle()

    assert sorted(groups.bound) == bound
    assert not groups.engine.cache.what_ifs


async def test_members_that_are_not_placed_yet_have_no_node_if_all_are_looked_at_again() -> None:
    groups = a_gang(minimum=2)
    engine, parts = groups.engine, groups.engine.group_parts

    left = begin(groups, 2)
    while not has_begun_to_place(groups):
        next(left)
    parts.groups.use({"another profile": ProfileGangs()})
    parts.use(engine.frameworks, LoadmasterSettings())

    assert parts.groups.members(a_pod("g-0", group="g")).scheduled_count == 1
    in_one_go(left)
    await settle()

    assert len(groups.bound) == 3


async def test_members_that_are_to_be_bound_are_counted_once() -> None:
    groups = a_gang(nodes=3)
    log = groups.engine.cache.table.change_log(Aspect.REQUESTED)
    before = log.position

    await groups.schedule()

    assert len(groups.bound) == 3
    assert log.position - before == 3


@pytest.mark.parametrize(
    ("kind", "method", "times"), [(fw.ReservePlugin, "reserve", 2), (fw.PermitPlugin, "permit", 1)]
)
async def test_a_plugin_of_others_sees_at_a_members_turn_only_those_before_it(
    kind: type[fw.Plugin], method: str, times: int
) -> None:
    counts: list[int] = []
    methods = {"unreserve": lambda state, pod, node: None} if kind is fw.ReservePlugin else {}
    methods[method] = lambda state, pod, node: counts.append(int(groups.engine.cache.table.pod_count.sum()))
    groups = Groups(a_plugin("Looks", kind, **methods), nodes=3)
    groups.create(minimum=3, pods=3)

    await groups.schedule()

    assert len(groups.bound) == 3
    assert counts == [1, 2, 3] * times


async def test_a_member_that_others_bind_meanwhile_stays_where_it_is() -> None:
    groups = a_gang(nodes=3, minimum=2)

    def bind() -> None:
        first = groups.engine.cache.what_ifs["default/g-0"]
        node = next(name for name in ("n0", "n1", "n2") if name != first.node_name)
        groups.under_test.see(newer(first.bound_to(""), node_name=node))

    await play_in_steps(groups, 2, bind)

    assert sorted(groups.bound) == ["g-1", "g-2"]
    counted = groups.engine.cache.get("default/g-0")
    assert counted is not None
    assert not groups.engine.cache.is_assumed("default/g-0")
    assert groups.under_test.count("scheduler_cache_corrections_total", kind="other_node") == 0


async def test_a_node_that_others_fill_meanwhile_is_not_used() -> None:
    groups = a_gang(nodes=3)
    filled: list[str] = []

    def fill() -> None:
        filled.append(chosen(groups))
        groups.under_test.see(a_stranger(filled[0]))

    await play_in_steps(groups, 2, fill)

    assert len(groups.bound) == 3
    assert filled[0] not in groups.bound.values()


async def test_a_gang_that_does_not_fit_any_more_is_not_bound() -> None:
    groups = a_gang()

    await play_in_steps(groups, 2, lambda: groups.under_test.see(a_stranger("n0"), a_stranger("n1")))

    assert groups.bound == {}
    assert groups.problem("Unschedulable")


async def test_a_node_that_goes_meanwhile_is_not_used() -> None:
    groups = a_gang(nodes=3)
    gone: list[str] = []

    def remove() -> None:
        gone.append(chosen(groups))
        node = groups.engine.cache.table.node(gone[0])
        assert node is not None
        groups.under_test.handlers.node_deleted(node)

    await play_in_steps(groups, 2, remove)

    assert len(groups.bound) == 3
    assert gone[0] not in groups.bound.values()


async def test_a_group_whose_nodes_change_again_and_again_is_decided_about_in_one_go() -> None:
    groups = a_gang(nodes=2)

    left, strangers = begin(groups, 0), 0
    for _ in left:
        if groups.engine.cache.what_ifs and not has_begun_to_place(groups):
            strangers += 1
            node = a_node(chosen(groups), cpu="2", labels={"version": str(strangers)})
            groups.under_test.handlers.node_deleted(node)
            groups.under_test.see(node)
            groups.under_test.see(a_stranger(node.name), a_node(f"more-{strangers}", cpu="2"))
    await settle()

    assert len(groups.bound) == 3


@pytest.mark.parametrize("tried_out", [0, 1, 2])
async def test_nodes_that_come_while_placements_are_tried_are_looked_at(tried_out: int) -> None:
    groups = Racks(a=1, b=1)
    groups.create_in_racks(3)
    groups.pods(3)
    more = [a_node(f"a-{number}", cpu="2", labels={"rack": "a"}) for number in range(1, 40)]

    await play_in_steps(groups, tried_out, lambda: groups.under_test.see(*more))

    assert len(groups.bound) == 3
    assert groups.racks == {"a"}


async def test_who_asks_about_the_state_of_the_cluster_waits_until_the_group_is_decided_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_module, "SLICE_SECONDS", 0.0)

    groups = a_gang(nodes=20, pods=40, minimum=40)
    loop = groups.engine.loop
    task = asyncio.create_task(loop.run())
    await turns_until(lambda: len(groups.engine.cache.what_ifs) >= 20)

    await groups.engine.pauses.ready()

    assert not groups.engine.cache.what_ifs
    groups.engine.queue.close()
    await task


async def test_a_group_waits_while_the_state_of_the_cluster_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "SLICE_SECONDS", 0.0)

    groups = a_gang(nodes=20, pods=40, minimum=40)
    task = asyncio.create_task(groups.engine.loop.run())
    await turns_until(lambda: len(groups.engine.cache.what_ifs) >= 20)

    with groups.engine.pauses.hold():
        before = len(groups.engine.cache.what_ifs)
        await settle()
        assert len(groups.engine.cache.what_ifs) == before
    while len(groups.bound) < 40:
        await settle()
    groups.engine.queue.close()
    await task


def test_a_scheduler_that_stops_amid_a_group_gives_everything_back() -> None:
    calls: list[str] = []
    plugin = a_plugin(
        "Counts",
        fw.ReservePlugin,
        reserve=lambda state, pod, node: calls.append(f"+{pod.name}"),
        unreserve=lambda state, pod, node: calls.append(f"-{pod.name}"),
    )
    groups = Groups(plugin)
    groups.create(pods=3)
    left = begin(groups, 2)

    left.close()

    assert calls == ["+g-0", "+g-1", "-g-1", "-g-0"]
    assert list(groups.engine.cache.assumed_pods()) == []
    groups.under_test.cache.check_invariants()


def test_a_profile_in_whose_name_a_group_is_decided_about_is_in_use() -> None:
    groups = a_gang()
    left = begin(groups, 1)

    assert groups.engine.loop.is_used(groups.under_test.framework)

    left.close()
    assert not groups.engine.loop.is_used(groups.under_test.framework)


def test_a_recording_that_begins_amid_a_group_has_nothing_of_what_is_tried_out() -> None:
    groups = a_gang()
    left = begin(groups, 2)

    state = _StateAtStart(groups.engine)

    assert [pod for pods in state._counted for pod in pods] == []
    left.close()


@pytest.mark.parametrize("is_filled", [True, False])
async def test_a_node_that_others_take_while_members_are_bound_is_looked_at_before_the_binding(is_filled: bool) -> None:
    groups = a_gang(nodes=2, pods=4, minimum=1)

    left = begin(groups, 0)
    while not groups.engine.loop.bindings:
        next(left)
    first = next(iter(groups.engine.cache.assumed_pods())).node_name
    [other] = {"n0", "n1"} - {first}
    node = groups.engine.cache.table.node(other)
    assert node is not None
    if is_filled:
        groups.under_test.see(a_stranger(other))
    else:
        groups.under_test.handlers.node_deleted(node)
    in_one_go(left)
    await settle()
    assert set(groups.bound.values()) == {first}


async def test_a_member_that_is_placed_after_the_bindings_of_the_others_have_failed_does_not_wait_for_them() -> None:
    groups = Coscheduled(nodes=2)
    groups.create(minimum=3, pods=4)
    groups.under_test.world.refusal = BindRejected("the node is full")

    for _ in begin(groups, 0):
        if groups.engine.loop.bindings == 3:
            await settle()
    await settle()

    assert list(groups.engine.cache.assumed_pods()) == []
    assert groups.under_test.queue.pending_counts()["backoff"] == 4
    groups.check()


class Trouble:
    """What others do, by chance."""

    def __init__(self, groups: Groups, seed: int) -> None:
        self.groups = groups
        self.chance = random.Random(seed)
        self.gone: set[str] = set()

    def strike(self) -> None:
        kinds = (self.change_a_node, self.remove_a_node, self.delete_a_member, self.fill_a_node)
        self.chance.choice(kinds)(self.chance.randrange(5))

    def change_a_node(self, number: int) -> None:
        self.groups.under_test.see(a_node(f"n{number}", cpu="2", labels={"version": str(self.chance.random())}))

    def remove_a_node(self, number: int) -> None:
        self.groups.under_test.handlers.node_deleted(a_node(f"n{number}"))

    def delete_a_member(self, number: int) -> None:
        self.gone.add(f"g-{number}")
        self.groups.under_test.handlers.pod_deleted(a_pod(f"g-{number}", group="g"))

    def fill_a_node(self, number: int) -> None:
        """Take what no pod but those that are tried out has."""
        cache = self.groups.engine.cache
        name = f"n{number}"
        theirs = sum(pod.uid not in cache.what_ifs for pod in cache.table.pods_on(name))
        if cache.table.node(name) is not None and theirs < 2 and not self.groups.bound:
            self.groups.under_test.see(a_stranger(name, str(2 - theirs)))


@pytest.mark.parametrize("seed", range(60))
async def test_whatever_happens_a_gang_gets_enough_nodes_or_none_and_no_node_too_many_pods(seed: int) -> None:
    groups = a_gang(nodes=5, pods=6, minimum=4)
    trouble = Trouble(groups, seed)

    for _ in begin(groups, 0):
        if not has_begun_to_place(groups) and trouble.chance.random() < 0.2:
            trouble.strike()
    await settle()

    groups.check()
    assert not groups.engine.cache.what_ifs
    assert not groups.bound or len(groups.bound) + len(trouble.gone) >= 4
    table = groups.engine.cache.table
    assert (table.requested("cpu") <= table.allocatable("cpu"))[table.in_use].all()


async def test_an_explanation_waits_until_the_group_is_decided_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "SLICE_SECONDS", 0.0)

    groups = a_gang(nodes=20, pods=40, minimum=40)
    task = asyncio.create_task(groups.engine.loop.run())
    await turns_until(lambda: len(groups.engine.cache.what_ifs) >= 20)

    report = await Explainer(groups.engine, groups.under_test.clock).about("default", "g-0")

    assert report.found
    assert not groups.engine.cache.what_ifs
    groups.engine.queue.close()
    await task
