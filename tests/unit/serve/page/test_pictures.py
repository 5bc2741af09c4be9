"""The queue, decisions, figures and costs as the page is told of them."""

from typing import Any

import pytest

from scheduler.cycle.cycle_events import AttemptFailed
from scheduler.framework.errors import SchedulerError
from scheduler.serve.page.decisions import MAX_SHOWN, DecisionPicture
from scheduler.serve.page.details import plugin_costs
from scheduler.serve.page.figures import Figures, quantile
from scheduler.serve.page.messages import cut, event
from scheduler.serve.page.queues import MAX_SHOWN as MAX_WAITING
from scheduler.serve.page.queues import PODS_AT_ONCE, QueuePicture
from scheduler.testing import a_node, a_pod
from tests.fakes import FakeClock, Metrics
from tests.unit.cycle.fakes import EngineUnderTest, an_engine
from tests.unit.groups.groups import Groups
from tests.unit.serve.page.sent_events import events, named


async def parts_of(picture: QueuePicture) -> dict[str, Any]:
    """What changed, by part."""
    return {data["part"]: data for _, data in events(*await picture.look())}


async def refused(*names: str) -> EngineUnderTest:
    scheduler = an_engine()
    scheduler.see(a_node("n", cpu="1"), *(a_pod(name, uid=name, requests={"cpu": 2}) for name in names))
    await scheduler.schedule()
    return scheduler


# --- the queue


async def test_a_refused_pod_is_told_with_who_refused_it_and_why() -> None:
    scheduler = await refused("web")

    parts = await parts_of(QueuePicture(scheduler.engine, 100.0))

    assert "groups" not in parts
    (pod,) = parts["unschedulable"]["pods"]
    assert (pod["namespace"], pod["name"], pod["attempts"]) == ("default", "web", 1)
    assert pod["plugins"] == ["NodeResourcesFit"]
    assert pod["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert pod["since"] == round(100.0 + scheduler.waiting("web").created, 1)


async def test_a_gated_pod_is_told_with_its_gate() -> None:
    scheduler = an_engine()
    scheduler.see(a_pod("web", gates=["example.com/quota"]))

    parts = await parts_of(QueuePicture(scheduler.engine, 0.0))

    assert parts["gated"]["pods"][0]["plugins"] == ["SchedulingGates"]


async def test_what_has_not_changed_is_not_told_again() -> None:
    scheduler = await refused("web")
    picture = QueuePicture(scheduler.engine, 0.0)
    await parts_of(picture)
    scheduler.clock.advance(0.5)

    assert await parts_of(picture) == {}
    scheduler.see(a_pod("other"))
    assert list(await parts_of(picture)) == ["active"]


async def test_of_many_pods_the_oldest_are_shown() -> None:
    scheduler = an_engine()
    for number in range(2 * PODS_AT_ONCE):
        scheduler.clock.advance(0.001)
        scheduler.see(a_pod(f"p{number}", uid=f"u{number}"))

    parts = await parts_of(QueuePicture(scheduler.engine, 0.0))

    assert parts["active"]["count"] == 2 * PODS_AT_ONCE
    assert [pod["name"] for pod in parts["active"]["pods"]] == [f"p{number}" for number in range(MAX_WAITING)]


# --- decisions


async def test_a_decision_is_told_once_it_is_made_and_again_once_it_is_bound() -> None:
    scheduler = an_engine()
    scheduler.world.hangs = True
    picture = DecisionPicture(scheduler.engine.records, scheduler.engine.stream, scheduler.engine.pods)
    scheduler.see(a_node("n"), a_pod("web", uid="u"))
    await scheduler.schedule()
    placed = picture.look()
    await scheduler.world.answer_binding("u")
    bound = picture.look()

    ((first,), (second,)) = (named("decisions", events(each.message))[0]["decisions"] for each in (placed, bound))
    assert (first["result"], first["name"], first["node"]) == ("placed", "web", "n")
    assert (second["result"], second["uid"]) == ("bound", "u")
    assert [(len(each.deciding), len(each.binding)) for each in (placed, bound)] == [(1, 0), (0, 1)]
    assert picture.look().message == b""


async def test_of_many_decisions_the_rest_is_a_number() -> None:
    scheduler = an_engine()
    picture = DecisionPicture(scheduler.engine.records, scheduler.engine.stream, scheduler.engine.pods)
    scheduler.see(a_node("n", cpu="1"), *(a_pod(f"p{i}", uid=f"u{i}", requests={"cpu": 2}) for i in range(90)))
    await scheduler.schedule()

    (data,) = named("decisions", events(picture.look().message))

    assert (len(data["decisions"]), data["more"]) == (MAX_SHOWN, 90 - MAX_SHOWN)


async def test_a_pod_that_is_gone_is_told_without_a_name() -> None:
    scheduler = await refused("web")
    picture = DecisionPicture(scheduler.engine.records, scheduler.engine.stream, {})
    failure = SchedulerError("x" * 100_000)
    scheduler.engine.stream.publish(AttemptFailed("p", scheduler.waiting("web"), failure, 0.0))

    (data,) = named("decisions", events(picture.look().message))

    assert "name" not in data["decisions"][0]
    assert len(data["decisions"][0]["message"]) == 300


# --- figures


def test_rates_are_by_the_second_and_latencies_of_what_was_new() -> None:
    metrics, clock = Metrics(), FakeClock(1000.0)
    figures = Figures(metrics, lambda: {"active": 3, "gated": 4}, clock)
    metrics.schedule_attempts.labels("scheduled", "p").inc(20)
    metrics.pod_scheduling_sli_duration.labels("1").observe(0.015)
    clock.advance(2.0)

    (data,) = named("figures", events(figures.sample([0.001, 0.002, 0.009], [])))

    assert (data["scheduled"], data["unschedulable"], data["pending"]) == ([10.0], [0.0], [7])
    assert (data["decision50"], data["decision99"], data["binding50"]) == ([0.002], [0.009], [None])
    assert 0.01 < data["waited50"][0] <= 0.02
    clock.advance(1.0)
    (later,) = named("figures", events(figures.sample([], [])))
    assert (later["scheduled"], later["waited99"]) == ([0.0], [None])
    assert named("figures", events(figures.history()))[0]["at"] == [1002.0, 1003.0]


@pytest.mark.parametrize(
    ("counts", "share", "value"),
    [
        ([0, 0, 0], 0.5, None),
        ([], 0.5, None),
        ([10, 0, 0], 0.5, 0.5),
        ([0, 10, 0], 0.5, 1.5),
        ([5, 5, 0], 1.0, 2.0),
        ([0, 0, 1], 0.99, 2.0),
    ],
)
def test_a_quantile_is_between_the_bounds_of_its_bucket(counts: list[float], share: float, value: float | None) -> None:
    assert quantile([1.0, 2.0, float("inf")][: len(counts)], counts, share) == value


def test_plugins_are_told_by_what_they_cost() -> None:
    metrics = Metrics()
    for plugin, seconds in (("Cheap", 0.001), ("Dear", 0.1), ("Dear", 0.3)):
        metrics.plugin_execution_duration.labels(plugin, "Filter", "Success").observe(seconds)

    first, second = plugin_costs(metrics)

    assert (first["plugin"], first["calls"], round(first["mean"], 3)) == ("Dear", 2, 0.2)
    assert (second["plugin"], second["isMore"]) == ("Cheap", False)

    # No mean is above a p99 that is not said to be more.
    metrics = Metrics()
    for seconds in (0.001, 0.05, 0.3):
        metrics.plugin_execution_duration.labels("Slow", "Bind", "Success").observe(seconds)

    (cost,) = plugin_costs(metrics)

    assert cost["mean"] > cost["slow"] > 0.02
    assert cost["isMore"] is True


@pytest.mark.parametrize("text", ["", "x" * 10, "x" * 11, "\ud800" * 20])
def test_long_texts_are_cut(text: str) -> None:
    assert len(cut(text, 10)) <= 10
    assert event("x", {"text": cut(text, 10)})


# --- groups of pods


async def test_groups_whose_pods_wait_are_a_part_of_their_own_with_the_sentence() -> None:
    groups = Groups(nodes=1)
    groups.create("large", minimum=3)
    groups.create("small", minimum=2)
    groups.pods(3, "large")
    await groups.schedule()
    groups.pods(1, "small")

    parts = await parts_of(QueuePicture(groups.engine, 0.0))

    told = [(each["name"], each["plugins"], each["message"]) for each in parts["groups"]["pods"]]
    assert parts["groups"]["count"] == 2
    assert sorted(told) == [
        ("large", ["unschedulable"], "3 pods are needed at once: 2 of 3 fit; 1 does not: Insufficient cpu (on 1 node)"),
        ("small", ["incomplete"], "2 pods are needed at once, and there is 1"),
    ]
