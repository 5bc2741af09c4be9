"""Plugins that take too long are named: in the log, in metrics, and in an Event for the pod."""

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.node_name import NodeName
from scheduler import framework as fw
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.duration import Duration
from scheduler.framework.errors import PluginError
from scheduler.runtime import plugin_calls
from scheduler.runtime.guards.plugin_budgets import Budgets
from scheduler.runtime.guards.plugin_limits import NO_LIMITS, Limits, PluginLimits
from scheduler.testing import a_pod
from tests.fakes import Event, FakeClock, FakeWorld, Metrics, a_framework, plugin, sample

POD = a_pod()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """What calls are timed with."""
    clock = FakeClock(0.0)
    monkeypatch.setattr(plugin_calls, "time", SimpleNamespace(perf_counter=clock))
    return clock


def lagging(clock: FakeClock, seconds: float, answer: Any = None) -> Callable[..., Any]:
    def method(*_: Any) -> Any:
        clock.advance(seconds)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return method


def late(metrics: Metrics, name: str = "Slow", point: str = "PreFilter") -> float:
    return sample(metrics, "loadmaster_plugin_faults_total", plugin=name, extension_point=point, kind="late")


def limits(**given: Any) -> Limits:
    return Limits([PluginLimits("Slow", **given)])


def test_a_call_within_its_budget_is_nobodys_business(clock: FakeClock) -> None:
    metrics, world = Metrics(), FakeWorld()
    slow = plugin(fw.PreFilterPlugin, "Slow", pre_filter=lagging(clock, 0.4))

    a_framework(slow, metrics=metrics, events=world).run_pre_filter(CycleState(), POD, Diagnosis(1))

    assert (late(metrics), world.events) == (0, [])


@pytest.mark.parametrize("timed", [False, True])
def test_a_call_that_takes_longer_is_named(clock: FakeClock, timed: bool, caplog: pytest.LogCaptureFixture) -> None:
    metrics, world, state = Metrics(), FakeWorld(), CycleState()
    state.record_plugin_metrics = timed
    slow = plugin(fw.PreFilterPlugin, "Slow", pre_filter=lagging(clock, 0.75))

    a_framework(slow, metrics=metrics, events=world).run_pre_filter(state, POD, Diagnosis(1))

    assert late(metrics) == 1
    note = 'plugin "Slow" took 0.75 s, more than its 0.5 s at PreFilter'
    assert world.events == [Event("default/pod", "Warning", "SlowPlugin", "Scheduling", note)]
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert (record.message, vars(record)["seconds"]) == ("A plugin takes longer than its budget", 0.75)


def test_a_call_that_fails_late_is_named_too(clock: FakeClock) -> None:
    metrics = Metrics()
    slow = plugin(fw.PreFilterPlugin, "Slow", pre_filter=lagging(clock, 2, ValueError("x")))

    with pytest.raises(PluginError):
        a_framework(slow, metrics=metrics).run_pre_filter(CycleState(), POD, Diagnosis(1))

    assert late(metrics) == 1


@pytest.mark.parametrize(("budget", "count"), [("50ms", 1), ("2s", 0)])
def test_a_plugin_may_have_a_budget_of_its_own(clock: FakeClock, budget: str, count: int) -> None:
    metrics = Metrics()
    own = limits(call_budget=Duration.parse(budget))
    slow = plugin(fw.PreFilterPlugin, "Slow", pre_filter=lagging(clock, 0.75))
    other = plugin(fw.PreFilterPlugin, "Other", pre_filter=lagging(clock, 0.1))

    a_framework(slow, other, metrics=metrics, limits=own).run_pre_filter(CycleState(), POD, Diagnosis(1))

    assert (late(metrics), late(metrics, "Other")) == (count, 0)


@pytest.mark.parametrize(
    ("given", "timed", "count"),
    [
        pytest.param(NO_LIMITS, False, 0, id="not in every cycle"),
        pytest.param(NO_LIMITS, True, 1, id="in a sampled one"),
        pytest.param(Limits([PluginLimits("NodeName")]), False, 1, id="in every cycle, as it has limits"),
        pytest.param(Limits([PluginLimits("*")]), False, 1, id="in every cycle, as all have limits"),
    ],
)
def test_in_tree_plugins_are_looked_at_in_sampled_cycles_unless_they_have_limits(
    clock: FakeClock, given: Limits, timed: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics, state = Metrics(), CycleState()
    state.record_plugin_metrics = timed
    monkeypatch.setattr(NodeName, "filter_nodes", lagging(clock, 2))

    a_framework(NodeName(), metrics=metrics, limits=given).run_filter(state, POD)

    assert late(metrics, "NodeName", "Filter") == count


# --- what is awaited


class Stage:
    """Budgets by themselves."""

    def __init__(self, given: Limits, waits: dict[str, float] | None = None) -> None:
        self.metrics, self.world, self.clock = Metrics(), FakeWorld(), FakeClock()
        self.told: list[tuple[str, str, str]] = []
        self.budgets = Budgets(self.metrics, self.world, given, waits or {}, self.note, self.clock)

    def note(self, name: str, point: str, pod: fw.Pod) -> None:
        self.told.append((name, point, str(pod)))

    def look_after(self, seconds: float) -> list[str]:
        """The notes of the Events so far."""
        self.clock.advance(seconds)
        self.budgets.look_for_late()
        return [event.note for event in self.world.events]


def test_a_call_that_hangs_is_named_once_while_it_goes_on() -> None:
    stage = Stage(Limits())
    stage.budgets.begin("PreBind", "Slow", POD)

    assert stage.look_after(59) == []
    assert stage.look_after(1) == ['plugin "Slow" has not come back for 60 s at PreBind']
    assert len(stage.look_after(600)) == 1
    assert stage.told == [("Slow", "PreBind", "default/pod")]
    assert late(stage.metrics, point="PreBind") == 1


def test_a_call_that_came_back_is_not_named() -> None:
    stage = Stage(Limits())
    stage.budgets.end(stage.budgets.begin("PreBind", "Slow", POD))

    assert stage.look_after(3_600) == []


def test_a_plugin_that_says_how_long_it_waits_has_that_time() -> None:
    stage = Stage(Limits(), {"Slow": 660.0})
    stage.budgets.begin("PreBind", "Slow", POD)

    assert stage.look_after(659) == []
    assert stage.look_after(1) == ['plugin "Slow" has not come back for 660 s at PreBind']


def test_the_configuration_has_the_last_word_about_how_long_to_wait() -> None:
    stage = Stage(limits(wait_budget=Duration(5)), {"Slow": 660.0})
    stage.budgets.begin("PreBind", "Slow", POD)

    assert stage.look_after(5) == ['plugin "Slow" has not come back for 5 s at PreBind']
