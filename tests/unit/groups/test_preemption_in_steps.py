"""The victims for a group are chosen in steps, and anything may happen between them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from plugins.default_preemption.plugin import DefaultPreemption
from scheduler.cycle import loop as loop_module
from scheduler.groups import counting, deciding, preemption
from scheduler.testing import a_node, a_pod
from tests.fakes import settle
from tests.unit.groups.test_preemption import Preempting

STEPS = range(0, 60, 4)
"""Those after which something happens; the choice takes about as many in the cluster of these tests."""


@pytest.fixture(autouse=True)
def _as_of_many_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption, "MAX_TRIED", 0)
    monkeypatch.setattr(deciding, "AT_ONCE", 1)


@pytest.fixture(params=[{}, {"memory": "1Mi"}], ids=["alike", "not alike"])
def groups(request: pytest.FixtureRequest) -> Preempting:
    """Three nodes with two pods of low priority each, and a gang of three."""
    groups = Preempting(nodes=3)
    for number in range(6):
        groups.run_pod(f"low-{number}", f"n{number % 3}", start=number + 1)
    groups.create(minimum=3, priority=10, pods=2)
    groups.pods(1, first=2, requests={"cpu": "1", **request.param})
    return groups


def is_chosen(groups: Preempting) -> bool:
    plugin = groups.under_test.framework.plugins.by_name["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    return plugin._executor.group_count > 0


async def played(groups: Preempting, step: int, meanwhile: Callable[[], object]) -> list[str]:
    """Schedule the group while something happens after so many steps, if no victim is chosen then; return these."""
    left = groups.engine.group_parts.steps(groups.under_test.pop_group(), groups.engine.loop)
    for number, _ in enumerate(left):
        if number == step and not is_chosen(groups):
            meanwhile()
    await settle()
    groups.check()
    return groups.victims


def places_without(groups: Preempting, victims: list[str]) -> int:
    """How many members the nodes hold once the victims are gone, each of a core."""
    table = groups.engine.cache.table
    places = 0
    for name in table.node_names():
        staying = [pod for pod in table.pods_on(name) if pod.name not in victims]
        places += max(0, 2 - sum(pod.requests["cpu"] // 1000 for pod in staying))
    return places


@pytest.fixture(autouse=True)
def _one_node_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "NODES_AT_ONCE", 1)


async def test_other_tasks_run_while_victims_are_chosen(groups: Preempting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "SLICE_SECONDS", 0.0)

    task, turns = asyncio.create_task(groups.engine.loop.run()), 0
    while not is_chosen(groups):
        turns += 1
        await asyncio.sleep(0)
    groups.engine.queue.close()
    await task
    await settle()

    assert turns > 10
    assert len(groups.victims) == 3


@pytest.mark.parametrize("step", STEPS)
async def test_whoever_takes_a_node_meanwhile_nobody_is_evicted_in_vain(groups: Preempting, step: int) -> None:
    def fill() -> None:
        groups.under_test.see(
            a_pod("stranger", node_name="n0", priority=100, requests={"cpu": "1"}, scheduler_name="other")
        )

    victims = await played(groups, step, fill)

    assert places_without(groups, victims) >= 3


@pytest.mark.parametrize("step", STEPS)
async def test_a_victim_that_leaves_meanwhile_is_not_evicted(groups: Preempting, step: int) -> None:
    gone: list[str] = []

    def leave() -> None:
        for number in range(6):
            gone.append(f"low-{number}")
            groups.under_test.handlers.pod_deleted(a_pod(f"low-{number}", node_name=f"n{number % 3}"))

    victims = await played(groups, step, leave)

    assert set(victims).isdisjoint(gone)


@pytest.mark.parametrize("step", STEPS)
async def test_nobody_is_evicted_for_a_gang_of_which_too_few_are_left(groups: Preempting, step: int) -> None:
    gone: list[str] = []

    def leave() -> None:
        gone.append("g-1")
        groups.under_test.handlers.pod_deleted(a_pod("g-1", group="g"))

    victims = await played(groups, step, leave)

    assert victims == [] if gone else len(victims) == 3


@pytest.mark.parametrize("step", STEPS)
async def test_a_node_that_goes_meanwhile_counts_no_more(groups: Preempting, step: int) -> None:
    def change() -> None:
        node = groups.engine.cache.table.node("n1")
        assert node is not None
        groups.under_test.handlers.node_deleted(node)
        groups.under_test.see(a_node("more", cpu="2"))

    victims = await played(groups, step, change)

    there = groups.engine.cache.table.node_names()
    evicted = [name for name in victims if f"n{int(name[-1]) % 3}" in there]
    assert places_without(groups, evicted) >= 3


@pytest.mark.parametrize("step", STEPS)
async def test_a_pod_that_is_nominated_meanwhile_is_reckoned_with(groups: Preempting, step: int) -> None:
    victims = await played(
        groups, step, lambda: groups.engine.nominator.add(a_pod("nominated", priority=20, requests={"cpu": "2"}), "n0")
    )

    assert places_without(groups, victims) >= 3
    assert {f"n{int(name[-1]) % 3}" for name in victims} >= ({"n1", "n2"} if is_nominated(groups) else set())


def is_nominated(groups: Preempting) -> bool:
    return bool(groups.engine.nominator.nodes)


async def test_a_group_whose_nodes_change_all_the_time_gets_its_victims_in_one_go(groups: Preempting) -> None:
    changes = 0

    for _ in groups.engine.group_parts.steps(groups.under_test.pop_group(), groups.engine.loop):
        if not is_chosen(groups):
            changes += 1
            groups.under_test.see(a_node(f"small-{changes}", cpu="0"))
    await settle()

    assert places_without(groups, groups.victims) >= 3
    assert changes >= 6


def test_a_scheduler_that_stops_amid_the_choice_evicts_nobody_and_reports_no_fault(
    groups: Preempting,
    caplog: pytest.LogCaptureFixture,
) -> None:
    left: Any = groups.engine.group_parts.steps(groups.under_test.pop_group(), groups.engine.loop)
    for _ in range(8):
        next(left)

    left.close()

    assert not is_chosen(groups)
    assert groups.victims == []
    assert caplog.records == []
