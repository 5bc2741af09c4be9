from collections.abc import Iterator

import pytest
from prometheus_client import Counter, Histogram, generate_latest

from scheduler.process.metrics import Metrics

COUNTERS = {
    "schedule_attempts": ("result", "profile"),
    "plugin_evaluation": ("plugin", "extension_point", "profile"),
    "batch_attempts": ("profile", "result"),
    "batch_cache_flushed": ("profile", "reason"),
    "queue_incoming_pods": ("queue", "event"),
    "pod_scheduled_after_flush": (),
    "volume_binder_cache_requests": ("operation",),
    "volume_scheduling_stage_error": ("operation",),
    "preemption_attempts": (),
    "preemption_goroutines_execution": ("result",),
    "dra_bindingconditions_allocations": ("profile", "driver", "status"),
}
"""kube-scheduler's counters that we have, without `_total`: their labels."""

HISTOGRAMS = {
    "scheduling_attempt_duration_seconds": (("result", "profile"), (0.001, 2, 15)),
    "scheduling_algorithm_duration_seconds": ((), (0.001, 2, 15)),
    "pod_scheduling_attempts": ((), (1, 2, 5)),
    "pod_scheduling_sli_duration_seconds": (("attempts",), (0.01, 2, 20)),
    "framework_extension_point_duration_seconds": (("extension_point", "status", "profile"), (0.0001, 2, 12)),
    "plugin_execution_duration_seconds": (("plugin", "extension_point", "status"), (0.00001, 1.5, 20)),
    "preemption_victims": ((), (1, 2, 7)),
    "preemption_goroutines_duration_seconds": (("result",), (0.01, 2, 20)),
    "dra_bindingconditions_wait_duration_seconds": (("profile", "driver", "status"), (0.1, 2, 14)),
    "get_node_hint_duration_seconds": (("hinted", "profile"), (0.00001, 2, 12)),
    "store_schedule_results_duration_seconds": (("profile",), (0.00001, 2, 12)),
    "permit_wait_duration_seconds": (("result",), (0.001, 2, 15)),
    "queueing_hint_execution_duration_seconds": (("plugin", "event", "hint"), (0.00001, 1.5, 20)),
    "event_handling_duration_seconds": (("event",), (0.0001, 2, 12)),
}
"""kube-scheduler's histograms that we have: their labels, and its arguments of ExponentialBuckets."""


def metrics_named(metrics: Metrics, prefix: str) -> Iterator[tuple[str, Counter | Histogram]]:
    for metric in vars(metrics).values():
        if isinstance(metric, Counter | Histogram) and metric._name.startswith(prefix):
            yield metric._name.removeprefix(prefix), metric


def test_names_labels_and_buckets_are_those_of_kube_scheduler() -> None:
    found = dict(metrics_named(Metrics(), "scheduler_"))
    counters = {name: each._labelnames for name, each in found.items() if isinstance(each, Counter)}
    histograms = {name: each for name, each in found.items() if isinstance(each, Histogram)}

    assert counters == COUNTERS
    assert {name: each._labelnames for name, each in histograms.items()} == {k: v[0] for k, v in HISTOGRAMS.items()}
    for name, (_, (start, factor, count)) in HISTOGRAMS.items():
        bounds = [*(start * factor**i for i in range(count)), float("inf")]
        assert histograms[name]._kwargs["buckets"] == pytest.approx(bounds[:-1]), name
    resource_claims = dict(metrics_named(Metrics(), "dynamic_resource_allocation_"))
    labels = ("status", "admin_access", "owner_api_group", "owner_api_kind")
    assert {name: each._labelnames for name, each in resource_claims.items()} == {"resourceclaim_creates": labels}


def test_what_is_shown_of_preemptions_with_groups_has_the_names_labels_and_buckets_of_kube_scheduler() -> None:
    metrics = Metrics()
    before = generate_latest(metrics.registry).decode()

    metrics.add_pod_groups()

    after = generate_latest(metrics.registry).decode()
    found = {each._name.removeprefix("scheduler_preemption_"): each._labelnames for each in metrics.preemption}
    assert found == {
        "workload_disruptions": ("preemptor",),
        "evaluation_duration_seconds": ("preemptor", "result"),
        "execution_duration_seconds": ("preemptor", "result"),
        "pdb_violations": ("preemptor",),
    }
    assert [name for name in found if f"scheduler_preemption_{name}" in before] == []
    assert [name for name in found if f"scheduler_preemption_{name}" not in after] == []
    assert metrics.preemption.workload_disruptions._upper_bounds == [*(2.0**i for i in range(11)), float("inf")]
    seconds = [*(0.001 * 2**i for i in range(16)), float("inf")]
    assert metrics.preemption.evaluation_duration._upper_bounds == pytest.approx(seconds)
    assert metrics.preemption.execution_duration._upper_bounds == pytest.approx(seconds)


def test_our_own_metrics_are_told_apart_by_their_prefix() -> None:
    metrics = Metrics()
    ours = dict(metrics_named(metrics, "loadmaster_"))
    prefixes = ("scheduler_", "dynamic_resource_allocation_", "leader_election_", "rest_client_", "kubernetes_")
    theirs = [each for prefix in prefixes for each in metrics_named(metrics, prefix)]

    assert len(ours) + len(theirs) == sum(isinstance(each, Counter | Histogram) for each in vars(metrics).values())


def test_two_schedulers_count_apart() -> None:
    one, other = Metrics(), Metrics()

    one.pod_scheduled_after_flush.inc()

    assert other.registry.get_sample_value("scheduler_pod_scheduled_after_flush_total") == 0


def test_a_sampled_gauge_is_read_when_somebody_looks() -> None:
    metrics = Metrics()
    pods = {"active": 1}
    metrics.watch_gauge(
        "scheduler_pending_pods", "Pending pods.", ("queue",), lambda: (((name,), n) for name, n in pods.items())
    )
    pods["active"], pods["backoff"] = 5, 2

    def shown(queue: str) -> float | None:
        return metrics.registry.get_sample_value("scheduler_pending_pods", {"queue": queue})

    assert (shown("active"), shown("backoff"), shown("gated")) == (5, 2, None)
