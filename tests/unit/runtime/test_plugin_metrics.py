"""Which plugins and extension points are timed, and as what."""

from typing import Any

import numpy as np
import pytest

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.errors import PluginError
from scheduler.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    NormalizeScorePlugin,
    PermitPlugin,
    PermitWait,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from scheduler.framework.status import SKIP, pending, unschedulable
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_cluster, a_node, a_pod
from tests.fakes import Metrics, Signed, a_framework, everything, plugin, sample
from tests.unit.runtime.fakes import answer, later

POD = a_pod()
PROFILE = "default-scheduler"


class All(
    PreFilterPlugin,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    NormalizeScorePlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    BindPlugin,
    PostBindPlugin,
):
    pass


@pytest.mark.parametrize("sampled", [True, False], ids=["sampled", "not sampled"])
async def test_plugins_are_timed_in_sampled_cycles_only_and_points_always(sampled: bool) -> None:
    metrics, table, state = Metrics(), NodeTable(2), CycleState()
    table.set_node(a_node())
    state.record_plugin_metrics = sampled
    done = {"pre_bind": later(pending("x")), "bind": later(pending("x")), "post_bind": later(None)}
    every = plugin(
        All,
        "All",
        score=answer(1),
        permit=answer(PermitWait(1)),
        normalize_score=lambda s, p, scores: scores,
        **done,
    )
    framework = a_framework(
        every,
        plugin(PostFilterPlugin, "Post", post_filter=answer((None, unschedulable("x")))),
        table=table,
        metrics=metrics,
    )
    framework.run_pre_filter(state, POD, Diagnosis(1))
    framework.run_filter(state, POD, everything(table))
    framework.run_post_filter(state, POD, Diagnosis(1))
    framework.run_score(state, POD, np.array([0]))
    framework.run_reserve(state, POD, "n")
    framework.run_permit(state, POD, "n")
    framework.run_pre_bind_pre_flight(state, POD, "n")
    await framework.run_pre_bind(state, POD, "n")
    await framework.run_bind(state, POD, "n")
    await framework.run_post_bind(state, POD, "n")
    framework.run_unreserve(state, POD, "n")

    statuses = {
        "PreFilter": "Success",
        "Filter": "Success",
        "PostFilter": "Unschedulable",
        "PreScore": "Success",
        "Score": "Success",
        "ScoreExtensionNormalize": "Success",
        "Reserve": "Success",
        "Permit": "Wait",
        "PreBindPreFlight": "Success",
        "PreBind": "Pending",
        "Bind": "Pending",
        "PostBind": "Success",
        "Unreserve": "Success",
    }
    for point, status in statuses.items():
        labels = {"extension_point": point, "status": status}
        who = "Post" if point == "PostFilter" else "All"
        timed = sample(metrics, "scheduler_plugin_execution_duration_seconds_count", plugin=who, **labels)
        whole = sample(
            metrics, "scheduler_framework_extension_point_duration_seconds_count", profile="default-scheduler", **labels
        )
        assert (point, timed) == (point, float(sampled))
        assert (point, whole) == (point, float(point != "ScoreExtensionNormalize"))


def test_only_plugins_that_can_refuse_a_pod_register_events() -> None:
    framework = a_framework(
        plugin(PreFilterPlugin, "P"), plugin(ScorePlugin, "S"), plugin(BindPlugin, "B"), plugin(PermitPlugin, "W")
    )

    assert set(framework.rejector_events()) == {"P", "W"}


def evaluations(metrics: Metrics, name: str, point: str) -> float:
    labels = {"plugin": name, "extension_point": point, "profile": "default-scheduler"}
    return sample(metrics, "scheduler_plugin_evaluation_total", **labels)


def batches(metrics: Metrics) -> dict[str, float]:
    """Result → attempts with it, without those that there are none of."""
    results = ("no_hint", "hint_used", "hint_not_used")
    counts = {
        result: sample(metrics, "scheduler_batch_attempts_total", profile="default-scheduler", result=result)
        for result in results
    }
    return {result: count for result, count in counts.items() if count}


def decide(framework: Framework, pod: Pod, *, timed: bool = False) -> None:
    """A decision as the algorithm takes it, over all nodes."""
    state = CycleState()
    state.record_plugin_metrics = timed
    framework.run_pre_filter(state, pod, Diagnosis(1))
    framework.run_best(state, pod, framework.run_filter(state, pod).feasible)


ROWS = a_cluster(a_node("n1"), a_node("n2")).size


@pytest.mark.parametrize(
    ("methods", "counts"),
    [
        pytest.param({"score": answer(1)}, [1, ROWS, 1, 2], id="by pods before Filter and Score, by nodes at them"),
        pytest.param({"pre_filter": answer(SKIP), "pre_score": answer(SKIP)}, [0, 0, 0, 0], id="not what is skipped"),
        pytest.param(
            {"concerns": answer(False), "filters_all": True, "score": answer(1), "pre_score": answer(SKIP)},
            [1, ROWS, 0, 0],
            id="a pod that PreFilter would let pass comes to Filter",
        ),
        pytest.param(
            {"concerns_score": answer(False), "scores_all": True, "pre_score": answer(None), "score": answer(0)},
            [1, ROWS, 1, 0],
            id="and one for which PreScore would let all nodes have 0, to no Score",
        ),
    ],
)
def test_evaluations_are_counted(methods: dict[str, Any], counts: list[int]) -> None:
    metrics, table = Metrics(), a_cluster(a_node("n1"), a_node("n2"))
    every = plugin(All, "All", normalize_score=lambda s, p, scores: scores, **methods)

    decide(a_framework(every, table=table, metrics=metrics), POD)

    found = [evaluations(metrics, "All", point) for point in ("PreFilter", "Filter", "PreScore", "Score")]
    assert found == counts


def test_stored_answers_are_no_evaluations() -> None:
    metrics, table = Metrics(), a_cluster(a_node("n1"), a_node("n2"))
    framework = a_framework(Signed(), table=table, metrics=metrics)

    for _ in range(5):
        decide(framework, a_pod(labels={"app": "web"}))

    assert evaluations(metrics, "Signed", "Filter") == table.size


def test_batches_tell_whether_stored_answers_said_where_a_pod_can_run() -> None:
    metrics = Metrics()
    framework = a_framework(Signed(), metrics=metrics)

    decide(framework, a_pod(labels={"app": "web"}))  # the first of its class: it may be the only one
    decide(framework, a_pod(labels={"app": "web"}))
    decide(framework, a_pod())  # no class

    assert batches(metrics) == {"no_hint": 2, "hint_used": 1}


def test_a_batch_is_not_enough_where_another_plugin_cannot_sign() -> None:
    metrics = Metrics()
    framework = a_framework(Signed(), plugin(FilterPlugin, "Plain"), metrics=metrics)

    for _ in range(3):
        decide(framework, a_pod(labels={"app": "web"}))

    assert batches(metrics) == {"no_hint": 1, "hint_not_used": 2}


def test_hints_are_timed_in_sampled_cycles_and_the_making_of_what_is_stored_always() -> None:
    metrics = Metrics()
    framework = a_framework(Signed(), metrics=metrics)

    for timed in (False, True, False, True):
        decide(framework, a_pod(labels={"app": "web"}), timed=timed)

    hints = {
        hinted: sample(metrics, "scheduler_get_node_hint_duration_seconds_count", hinted=hinted, profile=PROFILE)
        for hinted in ("hint", "no_hint")
    }
    assert hints == {"hint": 2, "no_hint": 0}
    assert sample(metrics, "scheduler_store_schedule_results_duration_seconds_count", profile=PROFILE) == 1


@pytest.mark.parametrize("reason", ["expired", "pod_failed"])
def test_what_is_given_up_is_counted_by_its_reason(reason: str) -> None:
    metrics, signed, table = Metrics(), Signed(), a_cluster(a_node("n1"))
    framework = a_framework(signed, table=table, metrics=metrics)
    for _ in range(2):
        decide(framework, a_pod(labels={"app": "web"}))

    if reason == "expired":
        for _ in range(2):
            list(framework.forget_idle())
    else:
        table.add_pod("n1", a_pod())
        signed.fault = ValueError("broken")
        with pytest.raises(PluginError):
            decide(framework, a_pod(labels={"app": "web"}))

    assert sample(metrics, "scheduler_batch_cache_flushed_total", profile=PROFILE, reason=reason) == 1
