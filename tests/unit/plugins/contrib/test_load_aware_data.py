"""What LoadAware reads: faults are told and counted, and never make a node look better or worse than it is."""

import json
import math
from datetime import datetime, timedelta
from typing import Any

import pytest

from plugins.contrib.load_aware.measurements import Collector, Measurements, Usage
from plugins.contrib.load_aware.metrics_api import MAX_VALUES, MetricsApi
from plugins.contrib.load_aware.prometheus import Prometheus
from scheduler import framework as fw
from tests.fakes import Metrics, sample
from tests.unit.plugins.contrib.metrics import NOW, FakeReader, metrics_list, node_metrics

NONE = timedelta(0)
FAULTS = "loadmaster_plugin_data_faults_total"


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


class Stage:
    """A collector of the nodes `a` and `b`, with what it reads."""

    def __init__(self, *answers: bytes | fw.ApiError, window: timedelta = NONE) -> None:
        self.reader = FakeReader(*answers)
        self.clock = Clock()
        self.metrics = Metrics()
        provider = MetricsApi(self.reader, 10, window)
        counter = self.metrics.plugin_data_faults
        self.collector = Collector(provider, timedelta(minutes=3), "LoadAware", counter, self.clock)

    async def refresh(self, later: float = 0) -> Measurements:
        self.clock.now += timedelta(seconds=later)
        await self.collector.refresh({"a", "b"})
        return self.collector.measured

    def faults(self, reason: str) -> float:
        return sample(self.metrics, FAULTS, plugin="LoadAware", reason=reason)


# --- metrics.k8s.io ---


async def test_amounts_are_thousandths_of_a_core_and_bytes() -> None:
    stage = Stage(metrics_list(node_metrics("a", "1500m", "2Gi"), node_metrics("b", "123456789n", "1000Ki")))

    measured = await stage.refresh()

    assert stage.reader.asked == ["/apis/metrics.k8s.io/v1beta1/nodes"]
    assert (measured["a"].cpu, measured["a"].memory) == (Usage(1500), Usage(2 * 2**30))
    assert (measured["b"].cpu, measured["b"].memory) == (Usage(123.456789), Usage(1_024_000))


async def test_names_that_are_no_nodes_are_forgotten_at_once() -> None:
    hostile = [node_metrics("x" * 10_000 + str(i)) for i in range(500)]
    stage = Stage(metrics_list(*hostile, node_metrics("a"), node_metrics("../etc/passwd"), node_metrics("")))

    assert (await stage.refresh()).keys() == {"a"}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (fw.ApiError(0, "timed out"), "no answer"),
        (fw.ApiError(404, "the server could not find the requested resource"), "HTTP 4xx"),
        (fw.ApiError(403, "nodes.metrics.k8s.io is forbidden"), "HTTP 4xx"),
        (fw.ApiError(500, "internal"), "HTTP 5xx"),
        (fw.ApiError(503, "the server is currently unable"), "HTTP 5xx"),
        (b"", "unreadable answer"),
        (b"<html>", "unreadable answer"),
        (b"\xff\xfe", "unreadable answer"),
        (b"[" * 100_000, "unreadable answer"),
        (b"[]", "unreadable answer"),
        (b'{"items":{}}', "unreadable answer"),
        (b'{"items":null}', "unreadable answer"),
        (metrics_list(node_metrics("a"))[:-20], "unreadable answer"),
    ],
)
async def test_without_a_good_answer_the_last_data_count_until_they_are_too_old(
    fault: bytes | fw.ApiError, reason: str
) -> None:
    stage = Stage(metrics_list(node_metrics("a")), fault)
    await stage.refresh()

    assert (await stage.refresh(later=170)).keys() == {"a"}
    assert (await stage.refresh(later=20)).keys() == set()
    assert stage.faults(reason) == 2


@pytest.mark.parametrize(
    "item",
    [
        7,
        None,
        {},
        {"metadata": {"name": "a"}},
        {**node_metrics("a"), "timestamp": "yesterday"},
        {**node_metrics("a"), "timestamp": "2026-01-02T03:04:05"},
        {**node_metrics("a"), "usage": {"cpu": 1}},
    ],
)
async def test_a_node_that_cannot_be_read_costs_no_other_one(item: Any) -> None:
    stage = Stage(metrics_list(item, node_metrics("b")))

    assert (await stage.refresh()).keys() == {"b"}
    assert stage.faults("unreadable node") == 1


@pytest.mark.parametrize("value", ["NaN", "-1", "Infinity", "", "much", "-5m", "1" * 500])
async def test_a_value_that_cannot_be_counts_as_not_measured(value: str) -> None:
    stage = Stage(metrics_list(node_metrics("a", cpu=value), node_metrics("b")))

    measured = await stage.refresh()

    usage = measured["a"].cpu
    assert usage is None or math.isfinite(usage.mean)
    assert measured["b"].cpu == Usage(1000)
    assert stage.faults("unusable value") == (1 if usage is None else 0)


async def test_a_node_whose_clock_is_ahead_does_not_stay_fresh_for_ever() -> None:
    ahead, far_ahead = NOW + timedelta(seconds=30), NOW + timedelta(days=300)
    stage = Stage(metrics_list(node_metrics("a", at=ahead), node_metrics("b", at=far_ahead)), fw.ApiError(0, "gone"))

    measured = await stage.refresh()

    assert {name: each.at for name, each in measured.items()} == {"a": NOW}
    assert stage.faults("from the future") == 1
    assert (await stage.refresh(later=181)) == {}


async def test_data_that_are_too_old_count_for_nothing() -> None:
    stage = Stage(metrics_list(node_metrics("a", at=NOW - timedelta(seconds=181)), node_metrics("b")))

    assert (await stage.refresh()).keys() == {"b"}


async def test_an_older_answer_does_not_take_the_place_of_a_newer_one() -> None:
    older = metrics_list(node_metrics("a", "9", at=NOW - timedelta(seconds=60)))
    stage = Stage(metrics_list(node_metrics("a", "1")), older)
    await stage.refresh()

    assert (await stage.refresh())["a"].cpu == Usage(1000)


async def test_a_fault_is_logged_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "plugins")
    good, bad = metrics_list(node_metrics("a")), fw.ApiError(500, "no")
    stage = Stage(good, bad, bad, bad, fw.ApiError(0, "timed out"), good, good)

    for _ in range(7):
        await stage.refresh()

    cannot, can = "The nodes' usage cannot be read as it should be", "The nodes' usage can be read again"
    assert [record.message for record in caplog.records] == [cannot, cannot, can]


async def test_mean_and_deviation_are_those_of_the_values_within_the_window() -> None:
    def at(seconds: int, cpu: str) -> bytes:
        return metrics_list(node_metrics("a", cpu, "0", at=NOW + timedelta(seconds=seconds)))

    stage = Stage(at(0, "9"), at(30, "1"), at(30, "1"), at(60, "3"), window=timedelta(seconds=60))
    await stage.refresh()
    for _ in range(3):
        measured = await stage.refresh(later=30)

    assert measured["a"].cpu == Usage(2000, 1000)


async def test_several_values_of_one_node_in_one_answer_are_its_history() -> None:
    times = [NOW - timedelta(seconds=60), NOW]
    items = [node_metrics("a", cpu, at=at) for cpu, at in zip(("1", "3"), times, strict=True)]

    measured = await Stage(metrics_list(*items), window=timedelta(minutes=15)).refresh()

    assert (measured["a"].at, measured["a"].cpu) == (NOW, Usage(2000, 1000))


async def test_a_value_from_the_future_does_not_become_history() -> None:
    ahead = metrics_list(node_metrics("a", "9", at=NOW + timedelta(days=1)))
    then = metrics_list(node_metrics("a", "2", at=NOW + timedelta(seconds=30)))
    stage = Stage(ahead, then, window=timedelta(minutes=15))
    await stage.refresh()

    assert (await stage.refresh(later=30))["a"].cpu == Usage(2000)


@pytest.mark.parametrize(
    ("at", "known"),
    [
        ("0001-01-01T00:00:00+14:00", False),
        ("9999-12-31T23:59:59.999999-14:00", False),
        ("2026-01-02T04:04:05+01:00", True),
        ("2026-01-02T03:04:05.123456789Z", True),
    ],
)
async def test_times_at_the_ends_of_the_calendar_are_times(at: str, known: bool) -> None:
    stage = Stage(metrics_list({**node_metrics("a"), "timestamp": at}), window=timedelta(minutes=15))

    assert ("a" in await stage.refresh()) == known


@pytest.mark.parametrize("value", ["9" * 100_000, "1e999999999", "1e-999999999", "0." + "0" * 90_000 + "1", "-" * 9])
async def test_amounts_beyond_all_measure_cost_no_time_and_no_other_node(value: str) -> None:
    stage = Stage(metrics_list(*[node_metrics("a", value, value)] * 200, node_metrics("b")))

    measured = await stage.refresh()

    assert measured["b"].cpu == Usage(1000)
    assert measured["a"].cpu is None or math.isfinite(measured["a"].cpu.mean)


async def test_of_each_node_only_so_many_values_are_kept() -> None:
    provider = MetricsApi(FakeReader(b""), 10, timedelta(days=1000))
    for second in range(MAX_VALUES + 50):
        provider._reader = FakeReader(metrics_list(node_metrics("a", at=NOW + timedelta(seconds=second))))
        await provider.read({"a"}, NOW + timedelta(hours=1), Any)  # type: ignore[arg-type]

    assert len(provider._histories["a"].times) == MAX_VALUES


async def test_the_history_of_a_node_goes_with_it() -> None:
    stage = Stage(metrics_list(node_metrics("a")), metrics_list(node_metrics("b")), window=timedelta(minutes=15))
    provider = stage.collector._provider
    assert isinstance(provider, MetricsApi)

    await stage.refresh()
    await stage.refresh(later=30)

    assert provider._histories.keys() == {"b"}


# --- Prometheus ---


def series(node: str, value: Any, label: str = "node") -> Any:
    return {"metric": {label: node}, "value": [1767323045.123, value]}


def answer(*result: Any, status: str = "success", kind: str = "vector") -> bytes:
    return json.dumps({"status": status, "data": {"resultType": kind, "result": result}}).encode()


def from_prometheus(stage: Stage, window: timedelta = NONE) -> None:
    stage.collector._provider = Prometheus(
        stage.reader,
        10,
        window,
        address="http://prometheus:9090/",
        access=fw.Access(),
        queries=("cores", "bytes"),
        label="node",
    )


async def test_prometheus_is_asked_for_cores_and_bytes() -> None:
    stage = Stage(answer(series("a", "1.5"), series("other", "3")), answer(series("a", "2048"), series("b", "1")))
    from_prometheus(stage)

    measured = await stage.refresh()

    assert stage.reader.asked == [f"http://prometheus:9090/api/v1/query?query={each}" for each in ("cores", "bytes")]
    assert (measured["a"].cpu, measured["a"].memory) == (Usage(1500), Usage(2048))
    assert (measured["b"].cpu, measured["b"].memory) == (None, Usage(1))


async def test_prometheus_makes_mean_and_deviation_itself() -> None:
    answers = [answer(series("a", value)) for value in ("2", "0.5", "100", "NaN")]
    stage = Stage(*answers)
    from_prometheus(stage, timedelta(minutes=15))

    measured = await stage.refresh()

    assert stage.reader.asked[1].endswith("query=stddev_over_time%28%28cores%29%5B900s%3A30s%5D%29")
    assert (measured["a"].cpu, measured["a"].memory) == (Usage(2000, 500), Usage(100, 0))
    assert stage.faults("unusable value") == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (answer(status="error"), "unreadable answer"),
        (answer(kind="matrix"), "unreadable answer"),
        (b'{"status":"success","data":{"resultType":"vector","result":7}}', "unreadable answer"),
        (answer(7, series("a", 5), series("a", "x"), {"metric": {"node": "a"}, "value": []}), "unreadable node"),
        (answer(series("a", "-1"), series("b", "+Inf")), "unusable value"),
        (answer(series("a", "1"), series("a", "2"), series("a", "3")), "ambiguous node"),
    ],
)
async def test_faults_of_prometheus_are_counted_and_count_for_nothing(body: bytes, reason: str) -> None:
    stage = Stage(body)
    from_prometheus(stage)

    assert await stage.refresh() == {}
    assert stage.faults(reason) >= 1
