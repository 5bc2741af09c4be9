"""Plugins that fail or lag often are taken out of the way, where the configuration says so."""

from collections.abc import Callable
from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.duration import Duration
from scheduler.framework.errors import PluginError
from scheduler.runtime.guards.plugin_breaker import MAX_KNOWN, Breaker
from scheduler.runtime.guards.plugin_limits import NO_LIMITS, Action, Limits, PluginLimits
from scheduler.testing import a_pod
from tests.fakes import FakeClock, FakeWorld, plugin
from tests.unit.cycle.harness import Scheduler

TEAM = a_pod("web", namespace="team")


def limits(action: Action, faults: int = 3, name: str = "Odd") -> Limits:
    return Limits([PluginLimits(name, action=action, faults=faults, within=Duration(60), pause=Duration(300))])


def a_breaker(given: Limits) -> tuple[Breaker, FakeClock, FakeWorld]:
    clock, world = FakeClock(), FakeWorld()
    return Breaker(given, "mine", world, clock), clock, world


def fail_times(breaker: Breaker, count: int, pod: fw.Pod = TEAM) -> None:
    for _ in range(count):
        breaker.note("Odd", "Filter", pod)


def test_without_a_word_in_the_configuration_a_plugin_stays() -> None:
    breaker, _, world = a_breaker(NO_LIMITS)

    fail_times(breaker, 1_000)

    assert (dict(breaker.paused), world.events) == ({}, [])


def test_a_plugin_with_too_many_faults_is_out_of_the_way_for_a_while_and_its_pod_is_told() -> None:
    breaker, clock, world = a_breaker(limits(Action.SWITCH_OFF))

    fail_times(breaker, 2)
    assert breaker.off("team") == frozenset()
    fail_times(breaker, 1)

    assert breaker.off("team") == {"Odd"}
    assert dict(breaker.counts()) == {("Odd", "mine", "SwitchOff"): 1.0}
    (event,) = world.events
    assert event.note == (
        'plugin "Odd" is switched off for pods of this namespace for 5m0s: it failed or lagged too often'
    )
    clock.advance(300)
    assert breaker.off("team") == frozenset()
    assert (dict(breaker.paused), dict(breaker.counts())) == ({}, {})


def test_faults_that_are_far_apart_do_not_count_together() -> None:
    breaker, clock, _ = a_breaker(limits(Action.SWITCH_OFF))

    for _ in range(10):
        fail_times(breaker, 1)
        clock.advance(31)

    assert breaker.off("team") == frozenset()


def test_a_tenant_who_makes_a_plugin_fail_does_that_to_his_own_pods_alone() -> None:
    breaker, _, _ = a_breaker(limits(Action.FAIL_PODS))

    fail_times(breaker, 3)

    with pytest.raises(
        PluginError, match='running "Odd" filter plugin: it failed or lagged too often, and is asked again'
    ):
        breaker.in_its_place("Odd", "Filter", TEAM)
    assert breaker.in_its_place("Odd", "Filter", a_pod(namespace="others")) is None
    assert breaker.in_its_place("Another", "Filter", TEAM) is None


def test_many_namespaces_take_no_more_memory_than_a_thousand() -> None:
    breaker, _, _ = a_breaker(limits(Action.SWITCH_OFF, faults=1))
    slow, _, _ = a_breaker(limits(Action.SWITCH_OFF, faults=2))

    for number in range(2 * MAX_KNOWN):
        fail_times(breaker, 1, a_pod(namespace=f"n{number}"))
        fail_times(slow, 1, a_pod(namespace=f"n{number}"))

    assert len(breaker.paused) == len(slow._faults) == MAX_KNOWN
    assert breaker.off(f"n{2 * MAX_KNOWN - 1}") == {"Odd"}


def test_what_a_plugin_has_reserved_it_gives_back_though_it_is_out_of_the_way() -> None:
    breaker, _, _ = a_breaker(limits(Action.FAIL_PODS, faults=1))

    fail_times(breaker, 1)

    assert breaker.in_its_place("Odd", "Unreserve", TEAM) is None


# --- in a scheduler


def broken(*_: Any) -> Any:
    raise ValueError("broken")


async def broken_later(*_: Any) -> Any:
    raise ValueError("broken")


POINTS: dict[str, tuple[type[fw.Plugin], str, Callable[..., Any]]] = {
    "PreFilter": (fw.PreFilterPlugin, "pre_filter", broken),
    "Filter": (fw.FilterPlugin, "filter", broken),
    "PreScore": (fw.PreScorePlugin, "pre_score", broken),
    "Score": (fw.ScorePlugin, "score", broken),
    "Reserve": (fw.ReservePlugin, "reserve", broken),
    "Permit": (fw.PermitPlugin, "permit", broken),
    "PreBindPreFlight": (fw.PreBindPlugin, "pre_bind_pre_flight", broken),
    "PreBind": (fw.PreBindPlugin, "pre_bind", broken_later),
    "Bind": (fw.BindPlugin, "bind", broken_later),
    "PostBind": (fw.PostBindPlugin, "post_bind", broken_later),
}


@pytest.mark.parametrize("point", POINTS)
async def test_a_plugin_that_is_switched_off_is_as_if_it_were_not_enabled(point: str) -> None:
    base, method, does = POINTS[point]
    scheduler = Scheduler(
        plugin(base, "Odd", **{method: does}),
        plugin(fw.ScorePlugin, "Score", score=lambda *_: 1),
        nodes=[f"n{number}" for number in range(9)],
        limits=limits(Action.SWITCH_OFF, faults=2),
    )

    for number in range(4):
        await scheduler.schedule(a_pod(f"p{number}"))

    expected = {f"p{number}" for number in range(4)} if point == "PostBind" else {"p2", "p3"}
    assert {event.pod.partition("/")[2] for event in scheduler.world.events if event.reason == "Scheduled"} == expected


async def test_a_plugin_that_fails_its_pods_is_not_called() -> None:
    called: list[str] = []

    def counting(state: CycleState, pod: fw.Pod, node: fw.NodeInfo) -> None:
        called.append(pod.name)
        raise ValueError("broken")

    scheduler = Scheduler(plugin(fw.FilterPlugin, "Odd", filter=counting), limits=limits(Action.FAIL_PODS, faults=2))

    for number in range(4):
        await scheduler.schedule(a_pod(f"p{number}"))

    assert called == ["p0", "p1"]
    notes = [event.note for event in scheduler.world.events if event.reason == "FailedScheduling"]
    assert notes[2:] == 2 * ['running "Odd" filter plugin: it failed or lagged too often, and is asked again in 300 s']


@pytest.mark.parametrize("action", [Action.SWITCH_OFF, Action.FAIL_PODS])
def test_a_plugin_with_other_limits_begins_anew(action: Action) -> None:
    breaker, _, _ = a_breaker(limits(action))
    fail_times(breaker, 3)
    assert breaker.paused

    breaker.use(limits(action, faults=4))

    assert breaker.in_its_place("Odd", "Filter", TEAM) is None
    fail_times(breaker, 3)
    assert not breaker.paused
    fail_times(breaker, 1)
    assert breaker.paused


def test_a_plugin_with_the_limits_that_it_had_stays_out_of_the_way() -> None:
    breaker, _, _ = a_breaker(limits(Action.SWITCH_OFF))
    fail_times(breaker, 3)

    breaker.use(limits(Action.SWITCH_OFF))

    assert breaker.off("team") == {"Odd"}
