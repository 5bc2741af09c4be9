"""Scenes for each alert: two healthy replicas of which one leads, with one thing wrong; and things that are all right.

`a` leads, `b` stands by. Each scene lasts for two hours at most; what is wrong begins at minute 0 unless it says so.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from tests.chart.promtool import Moment, Series

MINUTES: Final = 120

Scene = tuple[Series, Sequence[Moment]]


def of(instance: str, name: str, /, **labels: str) -> str:
    """A series of one replica, as PromQL writes it."""
    more = "".join(f',{key}="{value}"' for key, value in sorted(labels.items()))
    return f'{name}{{job="loadmaster",namespace="kube-system",instance="{instance}"{more}}}'


def always(value: float) -> str:
    return f"{value:g}x{MINUTES}"


def growing(by: float, start: float = 0.0) -> str:
    """A counter to which so much is added each minute."""
    return f"{start:g}+{by:g}x{MINUTES}"


STILL: Final = growing(0)


def replica(instance: str, *, leads: bool, per_minute: float) -> dict[str, str]:
    """What a healthy replica shows; `per_minute`: pods that it places if it leads."""
    placed = growing(per_minute if leads else 0)
    binding = {"resource": "pods/binding", "verb": "POST"}
    calls = growing(per_minute + 60)
    decision, call = (
        "scheduler_scheduling_algorithm_duration_seconds_bucket",
        "loadmaster_api_call_duration_seconds_bucket",
    )
    return {
        of(instance, "up", metrics_path="/metrics"): always(1),
        of(instance, "up", metrics_path="/metrics/slis"): always(1),
        of(instance, "leader_election_master_status", name="loadmaster"): always(leads),
        of(instance, "kubernetes_healthcheck", name="watches", type="livez"): always(1),
        of(instance, "kubernetes_healthcheck", name="watches", type="readyz"): always(1),
        of(instance, "kubernetes_healthcheck", name="sched-handler-sync", type="readyz"): always(1),
        of(instance, "process_start_time_seconds", metrics_path="/metrics"): always(1000),
        of(instance, "process_start_time_seconds", metrics_path="/metrics/slis"): always(1000),
        of(instance, "rest_client_requests_total", code="200", method="GET", host="api"): calls,
        of(instance, "loadmaster_api_calls_total", code="200", resource="leases", verb="PUT"): growing(30),
        of(instance, "loadmaster_api_calls_total", code="201", **binding): placed,
        of(instance, call, le="0.032", **binding): placed,
        of(instance, call, le="4.096", **binding): placed,
        of(instance, call, le="+Inf", **binding): placed,
        of(instance, decision, le="0.001"): placed,
        of(instance, decision, le="0.512"): placed,
        of(instance, decision, le="+Inf"): placed,
        of(instance, "scheduler_schedule_attempts_total", result="scheduled", profile="loadmaster"): placed,
        of(instance, "scheduler_pending_pods", queue="active"): always(0),
        of(instance, "scheduler_pending_pods", queue="unschedulable"): always(40),
        of(instance, "loadmaster_plugins_paused", plugin="P", profile="loadmaster", action="SwitchOff"): always(0),
        of(instance, "loadmaster_config_is_current"): always(1),
        of(instance, "loadmaster_certificate_expiration_timestamp_seconds", certificate="serving"): always(3e7),
        of(instance, "loadmaster_oldest_task_age_seconds", operation="event"): always(1),
        of(instance, "loadmaster_oldest_task_age_seconds", operation="binding"): always(3000 if leads else 0),
        of(instance, "loadmaster_cache_bytes", cache="answers"): always(8e7),
        of(instance, "loadmaster_cache_bytes", cache="counts"): always(6e7),
    }


def pair(per_minute: float = 60) -> dict[str, str]:
    """A leader and one that stands by."""
    return replica("a", leads=True, per_minute=per_minute) | replica("b", leads=False, per_minute=0)


def with_(changes: Mapping[str, str], *moments: Moment) -> Scene:
    return pair() | dict(changes), moments


def from_the_start(changes: Mapping[str, str], *names: str, after: int) -> Scene:
    """Something is wrong from minute 0 on: alerts fire after so many minutes, and not before."""
    return pair() | dict(changes), (Moment(after - 1, pending=names), Moment(after, names), Moment(after + 9, names))


def gone_after(minutes: int, series: Mapping[str, str]) -> dict[str, str]:
    """What a replica showed until it ended, for which no sample counts any more."""
    return {name: f"{values.partition('x')[0]}x{minutes - 1} stale" for name, values in series.items()}


def new_after(minutes: int, series: Mapping[str, str]) -> dict[str, str]:
    """What a replica shows from its start on."""
    return {name: f"_x{minutes} {values.partition('x')[0]}x{MINUTES - minutes}" for name, values in series.items()}


def a(name: str, /, **labels: str) -> str:
    return of("a", name, **labels)


def _rolling_update() -> Series:
    """`c` and `d` take the place of `a` and `b`: each is not ready for a minute; nobody leads for another one."""
    c = new_after(20, replica("c", leads=False, per_minute=0))
    c[of("c", "leader_election_master_status", name="loadmaster")] = "_x20 0x5 1x90"
    d = new_after(22, replica("d", leads=False, per_minute=0))
    for instance, new in (("c", c), ("d", d)):
        begin = 20 if instance == "c" else 22
        new[of(instance, "kubernetes_healthcheck", name="sched-handler-sync", type="readyz")] = f"_x{begin} 0x1 1x90"
        new[of(instance, "scheduler_pending_pods", queue="active")] = f"_x{begin} 40x2 0x90"
    old = gone_after(24, replica("a", leads=True, per_minute=60)) | gone_after(
        22, replica("b", leads=False, per_minute=0)
    )
    return old | c | d


def _handover() -> Series:
    """The leader is killed, and restarts; the other one takes over a Lease's time later, with pods that wait."""
    changes = {
        a("leader_election_master_status", name="loadmaster"): "1x30 _ 0x80",
        of("b", "leader_election_master_status", name="loadmaster"): "0x31 1x80",
        a("process_start_time_seconds", metrics_path="/metrics"): "1000x30 _ 2860x80",
        a("process_start_time_seconds", metrics_path="/metrics/slis"): "1000x30 _ 2860x80",
        a("scheduler_pending_pods", queue="active"): "0x28 50 200 _ 200x2 0x80",
        of("b", "scheduler_pending_pods", queue="active"): "0x28 50 200 300 300 100 0x80",
        a("up", metrics_path="/metrics"): "1x30 0 1x80",
        a("up", metrics_path="/metrics/slis"): "1x30 0 1x80",
        a("kubernetes_healthcheck", name="sched-handler-sync", type="readyz"): "1x30 _ 0 1x80",
    }
    return pair() | changes


def _share(used: str, pending: str, **labels: str) -> Mapping[str, str]:
    """A resource of a share that is guaranteed 10 of it."""
    return {
        a("loadmaster_share_guaranteed", **labels): always(10),
        a("loadmaster_share_used", **labels): used,
        a("loadmaster_share_pending", **labels): pending,
    }


def _starved(of_b: str) -> Mapping[str, str]:
    """The leader has pods that wait and tries none; `b` shows them as well."""
    return {
        a("scheduler_schedule_attempts_total", result="scheduled", profile="loadmaster"): STILL,
        a("scheduler_pending_pods", queue="active"): always(7),
        of("b", "scheduler_pending_pods", queue="active"): of_b,
    }


NO_LEADER: Final = {a("leader_election_master_status", name="loadmaster"): always(0)}
NOT_READY: Final = a("kubernetes_healthcheck", name="sched-handler-sync", type="readyz")
NOT_LIVE: Final = a("kubernetes_healthcheck", name="watches", type="livez")
STARTED: Final = a("process_start_time_seconds", metrics_path="/metrics")
FORBIDDEN: Final = {"code": "403", "resource": "nodes"}
CERTIFICATE: Final = a("loadmaster_certificate_expiration_timestamp_seconds", certificate="serving")
FAILED_TASK: Final = a("loadmaster_task_failures_total", operation="binding")
BINDING: Final = {"resource": "pods/binding", "verb": "POST"}
CALL_SECONDS: Final = "loadmaster_api_call_duration_seconds_bucket"
DECISION_SECONDS: Final = "scheduler_scheduling_algorithm_duration_seconds_bucket"
ATTEMPTS: Final = "scheduler_schedule_attempts_total"
CORRECTED: Final = a("loadmaster_cache_corrections_total", kind="other_node")
STALLED: Final = a("loadmaster_watch_errors_total", resource="pods", reason="stalled")
HANDLER: Final = a("loadmaster_watch_errors_total", resource="pods", reason="handler")
FAULTY: Final = {"plugin": "P", "extension_point": "Filter"}
PAUSED: Final = a("loadmaster_plugins_paused", plugin="P", profile="loadmaster", action="SwitchOff")
SHARE: Final = {"source": "shares", "share": "team-a"}
CPUS: Final = {**SHARE, "resource": "cpu"}
GPUS: Final = {**SHARE, "resource": "nvidia.com/gpu"}
EXTENDER: Final = {"extender": "http://x", "verb": "filter"}

GROUP_AGE: Final = a("loadmaster_oldest_pending_pod_group_age_seconds")

FIRE: Final[dict[str, Scene]] = {
    "LoadmasterPodGroupWaits": with_(
        {GROUP_AGE: growing(60)},
        Moment(60),
        Moment(62, pending=["LoadmasterPodGroupWaits"]),
        Moment(67, ["LoadmasterPodGroupWaits"]),
    ),
    "LoadmasterShareBelowGuarantee": from_the_start(
        {**_share(always(4), always(8), **CPUS), **_share(always(10), always(0), **GPUS)},
        "LoadmasterShareBelowGuarantee",
        after=30,
    ),
    "LoadmasterDown": (
        gone_after(20, pair()) | {a("up", metrics_path="/metrics"): "1x19 0x99"},
        (
            Moment(24, pending=["LoadmasterDown", "LoadmasterReplicaDown"]),
            Moment(26, ["LoadmasterDown"], ["LoadmasterReplicaDown"]),
        ),
    ),
    "LoadmasterReplicaDown": with_(
        {of("b", "up", metrics_path=path): always(0) for path in ("/metrics", "/metrics/slis")},
        Moment(9, pending=["LoadmasterReplicaDown"]),
        Moment(10, ["LoadmasterReplicaDown"]),
    ),
    "LoadmasterNoLeader": from_the_start(NO_LEADER, "LoadmasterNoLeader", after=2),
    "LoadmasterSeveralLeaders": from_the_start(
        {of("b", "leader_election_master_status", name="loadmaster"): always(1)}, "LoadmasterSeveralLeaders", after=2
    ),
    "LoadmasterNotReady": from_the_start({NOT_READY: always(0)}, "LoadmasterNotReady", after=5),
    "LoadmasterNotReady over a restart": with_(
        {NOT_READY: "0x3 _ 0x80"}, Moment(4, pending=["LoadmasterNotReady"]), Moment(5, ["LoadmasterNotReady"])
    ),
    "LoadmasterNotLive": with_({NOT_LIVE: "1x30 0 1x80"}, Moment(30), Moment(31, ["LoadmasterNotLive"]), Moment(42)),
    "LoadmasterRestarting": with_(
        {STARTED: "1000x10 1600x3 1800x3 2000x90"}, Moment(17), Moment(19, ["LoadmasterRestarting"]), Moment(60)
    ),
    "LoadmasterCredentialsRejected": with_(
        {a("rest_client_requests_total", code="401", method="GET", host="api"): "0x9 1+5x90"},
        Moment(14, pending=["LoadmasterCredentialsRejected"]),
        Moment(17, ["LoadmasterCredentialsRejected"]),
    ),
    "LoadmasterRightsMissing": with_(
        {a("loadmaster_api_calls_total", verb="GET", **FORBIDDEN): growing(1)},
        Moment(10, pending=["LoadmasterRightsMissing"]),
        Moment(12, ["LoadmasterRightsMissing"]),
    ),
    "LoadmasterCertificateExpires": from_the_start(
        {CERTIFICATE: always(6 * 24 * 3600)}, "LoadmasterCertificateExpires", after=60
    ),
    "LoadmasterCertificateRefused": with_(
        {a("loadmaster_certificate_reloads_total", certificate="serving", result="error"): growing(6)},
        Moment(5, pending=["LoadmasterCertificateRefused"]),
        Moment(6, ["LoadmasterCertificateRefused"]),
    ),
    "LoadmasterConfigRefused": from_the_start(
        {a("loadmaster_config_is_current"): always(0)}, "LoadmasterConfigRefused", after=5
    ),
    "LoadmasterTaskFailed, the first of its kind": with_(
        {FAILED_TASK: "_x30 1x80"}, Moment(29), Moment(30, ["LoadmasterTaskFailed"]), Moment(46)
    ),
    "LoadmasterTaskFailed, once more": with_(
        {FAILED_TASK: "1x40 2x80"}, Moment(40), Moment(41, ["LoadmasterTaskFailed"]), Moment(57)
    ),
    "LoadmasterTaskHangs": from_the_start(
        {a("loadmaster_oldest_task_age_seconds", operation="event"): growing(60, 601)}, "LoadmasterTaskHangs", after=5
    ),
    "LoadmasterCachesFull": from_the_start(
        {a("loadmaster_cache_bytes", cache="answers"): always(3.1e8)}, "LoadmasterCachesFull", after=30
    ),
    "LoadmasterNothingScheduled": from_the_start(_starved(always(7)), "LoadmasterNothingScheduled", after=5),
    "LoadmasterNothingScheduled without an election": (
        {
            name: values
            for name, values in (replica("a", leads=True, per_minute=0) | dict(_starved("0x120"))).items()
            if "leader_election" not in name and 'instance="b"' not in name
        },
        (Moment(4, pending=["LoadmasterNothingScheduled"]), Moment(5, ["LoadmasterNothingScheduled"])),
    ),
    "LoadmasterQueueGrows": with_(
        {
            a("scheduler_pending_pods", queue="active"): growing(20, 200),
            of("b", "scheduler_pending_pods", queue="active"): growing(20, 200),
        },
        Moment(15, pending=["LoadmasterQueueGrows"]),
        Moment(17, ["LoadmasterQueueGrows"]),
    ),
    "LoadmasterSchedulingErrors": with_(
        {a(ATTEMPTS, result="error", profile="loadmaster"): growing(6)},
        Moment(10, pending=["LoadmasterSchedulingErrors"]),
        Moment(12, ["LoadmasterSchedulingErrors"]),
    ),
    "LoadmasterDecisionsSlow": with_(
        {a(DECISION_SECONDS, le="0.001"): growing(10)},
        Moment(15, pending=["LoadmasterDecisionsSlow"]),
        Moment(17, ["LoadmasterDecisionsSlow"]),
    ),
    "LoadmasterBindingsSlow": with_(
        {a(CALL_SECONDS, le="0.032", **BINDING): growing(10)},
        Moment(15, pending=["LoadmasterBindingsSlow"]),
        Moment(17, ["LoadmasterBindingsSlow"]),
    ),
    "LoadmasterBindingsFail": with_(
        {a("loadmaster_api_calls_total", code="422", **BINDING): growing(6)},
        Moment(10, pending=["LoadmasterBindingsFail"]),
        Moment(12, ["LoadmasterBindingsFail"]),
    ),
    "LoadmasterBindingsFail for want of answers": with_(
        {a("loadmaster_api_calls_total", code="connection", **BINDING): growing(6)},
        Moment(12, ["LoadmasterBindingsFail"]),
    ),
    "LoadmasterBindingsUnknown": with_(
        {a("loadmaster_bind_outcomes_settled_total", found="bound"): growing(1)},
        Moment(14, pending=["LoadmasterBindingsUnknown"]),
        Moment(18, ["LoadmasterBindingsUnknown"]),
    ),
    "LoadmasterPreemptionFails": with_(
        {a("scheduler_preemption_goroutines_execution_total", result="error"): growing(1)},
        Moment(15, pending=["LoadmasterPreemptionFails"]),
        Moment(17, ["LoadmasterPreemptionFails"]),
    ),
    "LoadmasterKubeletsReject": with_(
        {a("loadmaster_kubelet_rejections_total", reason="OutOfcpu"): growing(1)},
        Moment(14, pending=["LoadmasterKubeletsReject"]),
        Moment(18, ["LoadmasterKubeletsReject"]),
    ),
    "LoadmasterPodsBoundByOthers": with_(
        {CORRECTED: "_x30 1x80"}, Moment(29), Moment(30, ["LoadmasterPodsBoundByOthers"]), Moment(46)
    ),
    "LoadmasterEventsDropped": with_(
        {a("loadmaster_events_dropped_total", reason="full"): growing(1)},
        Moment(15, pending=["LoadmasterEventsDropped"]),
        Moment(17, ["LoadmasterEventsDropped"]),
    ),
    "LoadmasterWatchStale": with_({STALLED: "_x30 1x80"}, Moment(29), Moment(30, ["LoadmasterWatchStale"]), Moment(62)),
    "LoadmasterWatchStale until a restart": with_(
        {STALLED: "_x30 1 stale"}, Moment(32, ["LoadmasterWatchStale"]), Moment(62)
    ),
    "LoadmasterChangesMissed": with_(
        {a("loadmaster_resync_repairs_total", resource="pods", kind="missing"): growing(1)},
        Moment(10, pending=["LoadmasterChangesMissed"]),
        Moment(14, ["LoadmasterChangesMissed"]),
    ),
    "LoadmasterHandlersFail": with_(
        {HANDLER: "_x30 1x80"}, Moment(29), Moment(30, ["LoadmasterHandlersFail"]), Moment(46)
    ),
    "LoadmasterApiServerFails": with_(
        {a("loadmaster_api_calls_total", code="503", verb="GET", resource="pods"): growing(20)},
        Moment(10, pending=["LoadmasterApiServerFails"]),
        Moment(12, ["LoadmasterApiServerFails"]),
    ),
    "LoadmasterThrottled": with_(
        {a("loadmaster_api_calls_total", code="429", verb="POST", resource="events"): growing(12)},
        Moment(15, pending=["LoadmasterThrottled"]),
        Moment(23, ["LoadmasterThrottled"]),
    ),
    "LoadmasterPluginFails": with_(
        {a("loadmaster_plugin_faults_total", kind="error", **FAULTY): growing(1)},
        Moment(5, pending=["LoadmasterPluginFails"]),
        Moment(7, ["LoadmasterPluginFails"]),
    ),
    "LoadmasterPluginLate": with_(
        {a("loadmaster_plugin_faults_total", kind="late", **FAULTY): growing(1)},
        Moment(5, pending=["LoadmasterPluginLate"]),
        Moment(7, ["LoadmasterPluginLate"]),
    ),
    "LoadmasterPluginPaused": with_(
        {PAUSED: always(2)}, Moment(0, pending=["LoadmasterPluginPaused"]), Moment(1, ["LoadmasterPluginPaused"])
    ),
    "LoadmasterPluginDataStale": with_(
        {a("loadmaster_plugin_data_faults_total", plugin="LoadAware", reason="old"): growing(1)},
        Moment(15, pending=["LoadmasterPluginDataStale"]),
        Moment(17, ["LoadmasterPluginDataStale"]),
    ),
    "LoadmasterExtenderFails": with_(
        {
            a("loadmaster_extender_calls_total", result="ok", **EXTENDER): growing(60),
            a("loadmaster_extender_calls_total", result="timeout", **EXTENDER): growing(6),
        },
        Moment(10, pending=["LoadmasterExtenderFails"]),
        Moment(12, ["LoadmasterExtenderFails"]),
    ),
}
"""Each begins with the name of the alert that fires in it, and no other does."""

WELL: Final[dict[str, Scene]] = {
    "two replicas at work": (pair(), (Moment(20), Moment(45))),
    "two replicas that have nothing to do": (pair(0), (Moment(20), Moment(45))),
    "one replica, without an election": (
        {k: v for k, v in replica("a", leads=True, per_minute=60).items() if "leader_election" not in k},
        (Moment(20), Moment(45)),
    ),
    "a rolling update": (
        _rolling_update(),
        (Moment(21, pending=["LoadmasterNotReady"]), Moment(26), Moment(30), Moment(40)),
    ),
    "a leader that is killed": (_handover(), (Moment(36), Moment(45))),
    "one of two replicas, away for minutes": with_(
        {of("b", "up", metrics_path=path): "1x20 0x5 1x90" for path in ("/metrics", "/metrics/slis")},
        Moment(24, pending=["LoadmasterReplicaDown"]),
        Moment(30),
    ),
    "LoadmasterNoLeader, LoadmasterSeveralLeaders: the Lease changes hands within a minute": with_(
        {
            a("leader_election_master_status", name="loadmaster"): "1x32 0x80",
            of("b", "leader_election_master_status", name="loadmaster"): "0x34 1x80",
        },
        Moment(34, pending=["LoadmasterNoLeader"]),
        Moment(36),
    ),
    "a replica that stands by while pods come": with_(
        {of("b", "scheduler_pending_pods", queue="active"): growing(20, 200)}, Moment(40)
    ),
}
"""No alert fires in any of them."""

HARMLESS: Final[dict[str, Mapping[str, str]]] = {
    "LoadmasterPodGroupWaits: on a replica that stands by": {
        of("b", "loadmaster_oldest_pending_pod_group_age_seconds"): always(9000)
    },
    "LoadmasterReplicaDown: a scrape that fails now and then": {
        of("b", "up", metrics_path=path): "1x4 0x2 1x4 0x2 1x4 0x2 1x99" for path in ("/metrics", "/metrics/slis")
    },
    "LoadmasterDown: one of two": {
        of("b", "up", metrics_path=path): "1x20 0x5 1x90" for path in ("/metrics", "/metrics/slis")
    },
    "LoadmasterNotReady: a start that takes three minutes": {NOT_READY: "1x16 0x3 1x90"},
    "LoadmasterNotLive: a check of /readyz fails": {NOT_READY: "1x30 0 1x80"},
    "LoadmasterRestarting: two restarts": {STARTED: "1000x10 1600x10 2200x90"},
    "LoadmasterCredentialsRejected: a token that was replaced": {
        a("rest_client_requests_total", code="401", method="GET", host="api"): "0x31 1x80"
    },
    "LoadmasterRightsMissing: an Event in a namespace that is being deleted": {
        a("loadmaster_api_calls_total", verb="POST", code="403", resource="events"): growing(5)
    },
    "LoadmasterCertificateExpires: in two weeks": {CERTIFICATE: always(14 * 24 * 3600)},
    "LoadmasterCertificateRefused: files that were half replaced at one look": {
        a("loadmaster_certificate_reloads_total", certificate="serving", result="error"): "0x31 1x80"
    },
    "LoadmasterConfigRefused: put right within two minutes": {a("loadmaster_config_is_current"): "1x31 0x2 1x80"},
    "LoadmasterTaskFailed: long ago": {a("loadmaster_task_failures_total", operation="callback"): "3x120"},
    "LoadmasterTaskHangs: a binding that waits for a volume": {
        a("loadmaster_oldest_task_age_seconds", operation="binding"): growing(60)
    },
    "LoadmasterCachesFull: for a moment": {a("loadmaster_cache_bytes", cache="answers"): "8e7x31 3.1e8x3 8e7x80"},
    "LoadmasterNothingScheduled: a replica that stands by": {
        of("b", "scheduler_pending_pods", queue="active"): always(7)
    },
    "LoadmasterQueueGrows: a burst of pods": {
        a("scheduler_pending_pods", queue="active"): "0x30 5000 4000 3000 2000 1000 0x80"
    },
    "LoadmasterSchedulingErrors: one of a hundred": {a(ATTEMPTS, result="error", profile="loadmaster"): growing(0.6)},
    "LoadmasterDecisionsSlow: one of a thousand": {a(DECISION_SECONDS, le="0.001"): growing(59.94)},
    "LoadmasterBindingsSlow: Events take long": {
        a(CALL_SECONDS, resource="events", verb="POST", le="4.096"): growing(0),
        a(CALL_SECONDS, resource="events", verb="POST", le="+Inf"): growing(60),
    },
    "LoadmasterBindingsFail: pods that are deleted meanwhile": {
        a("loadmaster_api_calls_total", code="404", **BINDING): growing(30)
    },
    "LoadmasterBindingsUnknown: a few": {a("loadmaster_bind_outcomes_settled_total", found="bound"): "0x31 3x80"},
    "LoadmasterPreemptionFails: evictions that succeed": {
        a("scheduler_preemption_goroutines_execution_total", result="success"): growing(10)
    },
    "LoadmasterKubeletsReject: one now and then": {
        a("loadmaster_kubelet_rejections_total", reason="OutOfcpu"): "0x20 1x20 2x40"
    },
    "LoadmasterPodsBoundByOthers: long ago": {CORRECTED: "3x120"},
    "LoadmasterEventsDropped: when a burst came": {a("loadmaster_events_dropped_total", reason="full"): "0x31 300x80"},
    "LoadmasterWatchStale, LoadmasterHandlersFail: objects that cannot be read": {
        a("loadmaster_watch_errors_total", resource="pods", reason="unreadable"): growing(1)
    },
    "LoadmasterChangesMissed: a few after an outage": {
        a("loadmaster_resync_repairs_total", resource="pods", kind="missing"): "0x31 2x80"
    },
    "LoadmasterApiServerFails: one of fifty": {
        a("loadmaster_api_calls_total", code="503", verb="GET", resource="pods"): growing(1)
    },
    "LoadmasterThrottled: for a moment": {
        a("loadmaster_api_calls_total", code="429", verb="POST", resource="events"): "0x31 50x80"
    },
    "LoadmasterPluginFails, LoadmasterPluginLate: once": {
        a("loadmaster_plugin_faults_total", kind="error", **FAULTY): "0x31 1x80",
        a("loadmaster_plugin_faults_total", kind="late", **FAULTY): "0x31 1x80",
    },
    "LoadmasterShareBelowGuarantee: another resource that they ask for is at its guarantee": {
        **_share(always(4), always(8), **CPUS),
        **_share(always(10), always(8), **GPUS),
    },
    "LoadmasterShareBelowGuarantee: nobody waits": _share(always(4), always(0), **{**CPUS, "share": "team-b"}),
    "LoadmasterPluginPaused: no longer": {PAUSED: "2x0 0x100"},
    "LoadmasterPluginDataStale: one answer": {
        a("loadmaster_plugin_data_faults_total", plugin="LoadAware", reason="old"): "0x31 1x80"
    },
    "LoadmasterExtenderFails: pods that were deleted meanwhile": {
        a("loadmaster_extender_calls_total", result="ok", **EXTENDER): growing(60),
        a("loadmaster_extender_calls_total", result="cancelled", **EXTENDER): growing(30),
    },
}
"""What looks like trouble and is none: the alerts that must not fire, why, and how series change for it."""


def harmless_scenes() -> dict[str, Scene]:
    """As few scenes as can have all that is harmless in them: a run of the rules takes its time."""
    together: list[dict[str, str]] = []
    for changes in HARMLESS.values():
        fits = next((each for each in together if not each.keys() & changes.keys()), None)
        if fits is None:
            together.append(dict(changes))
        else:
            fits |= changes
    moments = tuple(Moment(minute, pending=None) for minute in (15, 20, 33, 48))
    return {f"harmless things {number}": (pair() | each, moments) for number, each in enumerate(together, 1)}
