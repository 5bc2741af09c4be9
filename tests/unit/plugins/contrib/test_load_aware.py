"""LoadAware scores by measured usage, by Trimaran's formulas, and is neutral where nothing is known."""

import asyncio
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from plugins.contrib.load_aware.measurements import Measurement, Usage
from plugins.contrib.load_aware.plugin import LoadAware
from scheduler import framework as fw
from scheduler.framework.arguments import parse_arguments
from scheduler.process.virtual_time import run_virtually
from scheduler.testing import a_cluster, a_handle, a_node, a_pod, check_plugin, schedule, started
from tests.fakes import a_framework
from tests.unit.plugins.contrib.metrics import (
    LONG_AGO,
    NOW,
    FakeReader,
    a_limited_pod,
    a_measurement,
    a_reading_handle,
    a_started_pod,
    measured,
    metrics_list,
    node_metrics,
    scores,
)

GIB = 2**30
IDLE = a_pod(requests={"cpu": "0"})  # predicted to use nothing


# --- TargetLoadPacking ---


@pytest.mark.parametrize(
    ("percent", "score"),
    [(0, 40), (20, 70), (30, 85), (40, 100), (41, 39), (70, 20), (100, 0), (101, 0), (500, 0)],
)
def test_nodes_are_filled_up_to_the_target_and_then_avoided(percent: int, score: int) -> None:
    nodes = a_cluster(a_node("n", cpu="10"))
    plugin = started(measured({"n": a_measurement(cpu=percent * 100)}), a_handle(nodes))

    assert scores(plugin, nodes, IDLE) == {"n": score}


@pytest.mark.parametrize(
    ("resources", "predicted"),
    [
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, 2000),
        ({"requests": {"cpu": "1"}}, 1500),
        ({"requests": {"memory": "1Gi"}}, 1000),
        ({}, 1000),
        ({"limits": {"cpu": "1e30"}}, 1e33),
    ],
)
def test_a_pod_is_predicted_to_use_its_limit_or_more_than_its_request(
    resources: dict[str, Any], predicted: float
) -> None:
    plugin = started(LoadAware(), a_handle(a_cluster()))

    assert plugin.sign(a_limited_pod(**resources)) == (predicted, 0.0)


def test_overhead_counts() -> None:
    plugin = started(LoadAware(), a_handle(a_cluster()))

    assert plugin.sign(a_pod(requests={"cpu": "1"}, overhead={"cpu": "250m"})) == (1750.0, 0.0)


def test_the_pod_itself_counts() -> None:
    nodes = a_cluster(a_node("n", cpu="10"))
    plugin = started(measured({"n": a_measurement(cpu=1000)}), a_handle(nodes))

    assert scores(plugin, nodes, a_limited_pod(limits={"cpu": "3"})) == {"n": 100}


def test_a_node_without_cpu_scores_as_an_idle_one() -> None:
    nodes = a_cluster(a_node("n", cpu="0"))
    plugin = started(measured({"n": a_measurement(cpu=1000)}), a_handle(nodes))

    assert scores(plugin, nodes, IDLE) == {"n": 40}


def test_the_busy_node_is_left_alone_although_less_is_requested_there() -> None:
    nodes = a_cluster(a_node("busy"), a_node("full"), pods={"full": [a_pod("big", requests={"cpu": "3"})]})
    plugin = measured({"busy": a_measurement(cpu=3900, at=NOW), "full": a_measurement(cpu=100, at=NOW)})
    nodes.replace_pod("full", next(iter(nodes["full"].pods)), a_started_pod("big", LONG_AGO, requests={"cpu": "3"}))

    assert schedule(plugin, IDLE, nodes).best == {"full"}


# --- LoadVariationRiskBalancing ---


@pytest.mark.parametrize(
    ("mean", "deviation", "arguments", "score"),
    [
        (0, 0, {}, 100),
        (4000, 0, {}, 50),
        (2000, 1000, {}, 63),  # 1 - (0.5 + 0.25) / 2, rounded
        (2000, 1000, {"safe_variance_margin": 2.0}, 50),
        (2000, 1000, {"safe_variance_sensitivity": 2.0}, 50),
        (2000, 1000, {"safe_variance_sensitivity": 0.0}, 75),
        (9000, 9000, {}, 0),
    ],
)
def test_mean_and_deviation_are_the_risk(mean: float, deviation: float, arguments: dict[str, Any], score: int) -> None:
    nodes = a_cluster(a_node("n", cpu="4", memory="16Gi"))
    measurement = Measurement(NOW, Usage(mean, deviation), Usage(0))
    plugin = measured({"n": measurement}, strategy="LoadVariationRiskBalancing", **arguments)

    assert scores(started(plugin, a_handle(nodes)), nodes) == {"n": score}


def test_the_scarcer_resource_decides() -> None:
    nodes = a_cluster(a_node("n", cpu="4", memory="16Gi"))
    plugin = measured({"n": a_measurement(cpu=1000, memory=12 * GIB)}, strategy="LoadVariationRiskBalancing")

    assert scores(started(plugin, a_handle(nodes)), nodes) == {"n": 63}  # 1 - 0.75 / 2, rounded


@pytest.mark.parametrize(("cpu", "memory", "score"), [(1000, None, 88), (None, 12 * GIB, 63), (None, None, 7)])
def test_what_is_known_decides_alone(cpu: float | None, memory: float | None, score: int) -> None:
    nodes = a_cluster(a_node("n", cpu="4", memory="16Gi"))
    plugin = measured({"n": a_measurement(cpu, memory)}, strategy="LoadVariationRiskBalancing", score_without_data=7)

    assert scores(started(plugin, a_handle(nodes)), nodes) == {"n": score}


# --- what is not known ---


def test_without_any_data_it_makes_no_difference() -> None:
    nodes = a_cluster(a_node("a"), a_node("b"))

    assert scores(started(LoadAware(), a_handle(nodes)), nodes) == {"a": 0, "b": 0}
    assert scores(started(LoadAware(score_without_data=50), a_handle(nodes)), nodes) == {"a": 50, "b": 50}


def test_a_node_without_data_has_the_score_for_that() -> None:
    nodes = a_cluster(a_node("known"), a_node("unknown"))
    plugin = measured({"known": a_measurement()}, score_without_data=50)

    assert scores(started(plugin, a_handle(nodes)), nodes, IDLE) == {"known": 40, "unknown": 50}


# --- pods that were placed too late to be measured ---


def test_pods_that_were_started_after_the_measurement_are_estimated() -> None:
    old, new = NOW - timedelta(minutes=2), NOW - timedelta(seconds=30)
    wishes = {"limits": {"cpu": "1"}}
    nodes = a_cluster(
        *(a_node(name, cpu="10") for name in ("bound", "new", "old")),
        pods={
            "bound": [a_started_pod("a", None, **wishes)],
            "new": [a_started_pod("b", new, **wishes)],
            "old": [a_started_pod("c", old, **wishes)],
        },
    )
    plugin = started(measured({name: a_measurement() for name in ("bound", "new", "old")}), a_handle(nodes))

    assert scores(plugin, nodes, IDLE) == {"bound": 55, "new": 55, "old": 40}


def test_a_pod_counts_as_soon_as_it_is_placed_and_no_longer_than_it_is_there() -> None:
    nodes = a_cluster(a_node("n", cpu="10"))
    plugin = started(measured({"n": a_measurement()}), a_handle(nodes))
    pod = a_started_pod("web", None, limits={"cpu": "2"})

    before = scores(plugin, nodes, IDLE)
    nodes.add_pod("n", pod)
    placed = scores(plugin, nodes, IDLE)
    nodes.remove_pod("n", pod)

    assert (before, placed, scores(plugin, nodes, IDLE)) == ({"n": 40}, {"n": 70}, {"n": 40})


def test_a_node_that_takes_the_row_of_another_one_has_no_data_of_it() -> None:
    nodes = a_cluster(a_node("gone"))
    plugin = started(measured({"gone": a_measurement()}), a_handle(nodes))
    assert scores(plugin, nodes, IDLE) == {"gone": 40}

    nodes.remove_node("gone")
    nodes.set_node(a_node("new"))

    assert scores(plugin, nodes, IDLE) == {"new": 0}


async def test_nodes_that_change_while_new_data_are_taken_over_are_looked_at_again() -> None:
    nodes = a_cluster(*(a_node(f"n{i}", cpu="10") for i in range(200)))
    plugin = started(measured({}), a_handle(nodes))

    taking_over = asyncio.create_task(plugin.use({f"n{i}": a_measurement() for i in range(201)}))
    await asyncio.sleep(0)
    nodes.add_pod("n0", a_started_pod("late", None, limits={"cpu": "2"}))
    nodes.set_node(a_node("n200", cpu="10"))
    await taking_over

    found = scores(plugin, nodes, IDLE)
    assert (found["n0"], found["n1"], found["n200"]) == (70, 40, 40)


# --- as a plugin ---


@pytest.mark.parametrize("strategy", ["TargetLoadPacking", "LoadVariationRiskBalancing"])
def test_it_keeps_what_every_plugin_promises(strategy: str) -> None:
    nodes = a_cluster(
        *(a_node(name, cpu=cpu) for name, cpu in (("a", "4"), ("b", "8"), ("c", "0"), ("new", "4"))),
        pods={"a": [a_started_pod("x", NOW)], "b": [a_started_pod("y", LONG_AGO)]},
    )
    nodes.remove_node("c")
    pods = [IDLE, a_pod(requests={"cpu": "1"}), a_pod(requests={"memory": "1Gi"}), a_limited_pod(limits={"cpu": "9"})]
    measurements = {"a": a_measurement(1000, GIB), "b": a_measurement(7000, None)}

    check_plugin(measured(measurements, strategy=strategy), pods, nodes)


async def test_stored_scores_follow_new_data_and_new_pods() -> None:
    nodes = a_cluster(a_node("a", cpu="10"), a_node("b", cpu="10"))
    plugin = started(measured({}), a_handle(nodes))
    framework = a_framework(plugin, table=nodes)

    def stored() -> list[int]:
        return list(framework.run_score(fw.CycleState(), IDLE, np.arange(2)).total)

    assert [stored(), stored()] == [[0, 0]] * 2
    await plugin.use({"a": a_measurement(cpu=2000), "b": a_measurement()})
    assert stored() == [70, 40]
    nodes.add_pod("b", a_started_pod("late", None, limits={"cpu": "2"}))
    assert stored() == [70, 70]
    await plugin.use({})
    assert stored() == [0, 0]


def test_all_that_is_wrong_with_the_arguments_is_told_at_once() -> None:
    problems: list[str] = []
    arguments = {
        "strategy": "Packing",
        "targetUtilization": 0,
        "defaultRequests": {"cpu": "much"},
        "defaultRequestsMultiplier": -1,
        "safeVarianceMargin": float("inf"),
        "window": "5s",
        "refreshInterval": "10m",
        "scoreWithoutData": 101,
        "metricProvider": {"type": "Prometheus", "address": "prometheus:9090", "cpuQuery": " "},
    }

    assert parse_arguments(LoadAware, arguments, "args", problems) is None
    assert problems == [
        'args.strategy: Unsupported value: "Packing": supported values: '
        '"TargetLoadPacking", "LoadVariationRiskBalancing"',
        "args.defaultRequests.cpu: Invalid value: \"much\": not a quantity: 'much'",
        "args.safeVarianceMargin: expected a finite number, got inf",
        'args.metricProvider.address: Invalid value: "prometheus:9090": must begin with https://, http:// or /',
        "args.metricProvider.cpuQuery: Required value: a query",
        "args.targetUtilization: Invalid value: 0: not in valid range (0, 100]",
        "args.defaultRequestsMultiplier: Invalid value: -1: must not be negative",
        'args.window: Invalid value: "5s": must be at least 1m',
        'args.expiration: Invalid value: "3m0s": must be at least refreshInterval',
        "args.scoreWithoutData: Invalid value: 101: not in valid range [0, 100]",
    ]


def test_metrics_server_takes_no_address() -> None:
    problems: list[str] = []

    parse_arguments(LoadAware, {"metricProvider": {"address": "http://x"}}, "args", problems)

    assert problems == [
        "args.metricProvider.address: Forbidden: is for Prometheus; metrics.k8s.io is asked as the scheduler's account"
    ]


def test_data_are_read_again_and_again_until_it_is_stopped() -> None:
    reader = FakeReader(metrics_list(node_metrics("n", "3900m")))
    nodes = a_cluster(a_node("n"))

    async def live() -> tuple[int, int, int]:
        plugin = started(LoadAware(), a_reading_handle(nodes, reader))
        await asyncio.sleep(1)
        first = len(reader.asked)
        await asyncio.sleep(60)
        then = len(reader.asked)
        plugin.stop()
        await asyncio.sleep(600)
        return first, then, len(reader.asked)

    assert run_virtually(live()) == (1, 3, 3)
