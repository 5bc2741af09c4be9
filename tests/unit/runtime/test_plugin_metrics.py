"""Which plugins and extension points are timed, and as what."""

import numpy as np
import pytest

from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
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
from scheduler.framework.status import unschedulable
from scheduler.state.node_table import NodeTable
from scheduler.testing import a_node, a_pod
from tests.fakes import Metrics, a_framework, everything, plugin, sample
from tests.unit.runtime.fakes import answer, later

POD = a_pod()


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
    done = {"pre_bind": later(None), "bind": later(None), "post_bind": later(None)}
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
        "PreBind": "Success",
        "Bind": "Success",
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
