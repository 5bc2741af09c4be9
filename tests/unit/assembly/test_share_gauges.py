"""The gauges of shares: as many series as are bounded, of what pods use and wait for; none without shares."""

import re

import pytest

from scheduler.assembly import share_gauges
from scheduler.assembly.gauges import show_state
from scheduler.assembly.share_gauges import ShareGauges, in_cores
from scheduler.framework.events import CLUSTER_QUEUE, ELASTIC_QUOTA
from scheduler.framework.shares import DeclaredShare
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from tests.unit.cycle.fakes import an_engine
from tests.unit.quota.waiting.shares import Sharing

COMPANY = DeclaredShare("company", minimum={"cpu": "1"}, namespaces=("c",))
A = DeclaredShare("team-a", "company", minimum={"cpu": "2"}, weight=2.0, namespaces=("a",))
B = DeclaredShare("team-b", "company", minimum={"cpu": "2"}, namespaces=("b",))


def shown(metrics: Metrics, name: str) -> dict[str, float]:
    """Share → value; of the resource cpu, if the metric has resources."""
    families = (family for family in metrics.registry.collect() if family.name == f"loadmaster_share_{name}")
    samples = [sample for family in families for sample in family.samples]
    return {each.labels["share"]: each.value for each in samples if each.labels.get("resource", "cpu") == "cpu"}


@pytest.mark.parametrize(
    ("source", "resource", "amount"),
    [
        ("shares", "cpu", 1.5),
        ("shares", "memory", 1500),
        (CLUSTER_QUEUE, "spot/cpu", 1.5),
        (CLUSTER_QUEUE, "spot/example.com/cpu", 1500),
        (ELASTIC_QUOTA, "example.com/cpu", 1500),
    ],
)
def test_cpu_alone_is_in_cores_as_in_the_metrics_of_kubernetes(source: str, resource: str, amount: float) -> None:
    assert in_cores(source, resource, 1500) == amount


def test_no_metric_is_in_other_units_than_kubernetes_has() -> None:
    engine, metrics = an_engine().engine, Metrics()
    show_state(engine, Tasks(metrics), metrics)
    ShareGauges(engine, metrics)

    helps = [family.documentation for family in metrics.registry.collect()]
    assert [each for each in helps if re.search("thousandth|millicore|milliseconds", each)] == []


class EndOfTestError(Exception):
    """Ends what goes on for ever."""


async def looked(stage: Sharing) -> Metrics:
    metrics = Metrics()
    await ShareGauges(stage.engine, metrics).look()
    return metrics


async def test_they_show_who_borrows_who_lends_and_who_waits() -> None:
    stage = Sharing(COMPANY, A, B)
    stage.pods(7, "a")
    stage.pods(1, "c")
    await stage.schedule()

    metrics = await looked(stage)

    assert shown(metrics, "guaranteed") == {"company": 5, "team-a": 2, "team-b": 2}
    assert shown(metrics, "used") == {"company": 5, "team-a": 5, "team-b": 0}
    assert shown(metrics, "borrowed") == {"company": 0, "team-a": 3, "team-b": 0}
    assert shown(metrics, "lent")["team-b"] == 2
    assert shown(metrics, "pending_pods") == {"company": 3, "team-a": 2, "team-b": 0}
    assert shown(metrics, "pending") == {"company": 1, "team-a": 2, "team-b": 0}, "what waits below is not its own"
    assert shown(metrics, "weight") == {"company": 1.0, "team-a": 2.0, "team-b": 1.0}


async def test_the_number_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_gauges, "MAX_SHARES", 2)
    stage = Sharing(COMPANY, A, B)

    metrics = await looked(stage)

    assert list(shown(metrics, "guaranteed")) == ["company", "team-a"]


async def test_looks_that_take_long_are_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    gauges = ShareGauges(Sharing(COMPANY, A, B).engine, Metrics())
    times, slept = iter((0.0, 0.1, 1.0, 2.0)), list[float]()
    monkeypatch.setattr("scheduler.assembly.share_gauges.time.process_time", lambda: next(times))

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            raise EndOfTestError

    with pytest.raises(EndOfTestError):
        await gauges.run(sleep)

    assert slept == [30.0, 200.0]


async def test_without_shares_there_are_no_series() -> None:
    metrics, engine = Metrics(), an_engine().engine

    await ShareGauges(engine, metrics).look()

    assert shown(metrics, "guaranteed") == shown(metrics, "pending") == shown(metrics, "pending_pods") == {}
