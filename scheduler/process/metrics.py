"""kube-scheduler's metrics, with its names, labels and buckets, and a few of our own.

Tables: pkg/scheduler/metrics/metrics.go at v1.37.2, and in component-base 0.37.2 metrics/prometheus (restclient, slis).
Ours start with `loadmaster_`. Everything sits in one object with registries of its own, so that two schedulers in one
process (tests, simulations) do not share counts. Metrics of the program rather than a scheduler are in
`process_metrics.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, repeat
from operator import mul
from typing import Final, NamedTuple, TypeAlias

from prometheus_client import Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from scheduler.process.instruments import Counter, Histogram, Registry

PLUGIN_METRICS_SAMPLE_PERCENT: Final = 10
"""Share of the scheduling cycles in which each plugin is timed."""


_Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily

Samples: TypeAlias = Iterable[tuple[Sequence[str], float]]
"""Label values, value."""


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bucket bounds as Prometheus' ExponentialBuckets gives them, to the last digit: they are labels."""
    return tuple(accumulate(repeat(factor, count - 1), mul, initial=start))


CALL_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
CALL_BYTES: Final = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
"""Buckets of client-go's metrics."""


class Metrics:
    """Every metric of one scheduler; `registry` is what `/metrics` shows, `slis` what `/metrics/slis` does."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.slis = Registry()
        counter, histogram = self._counter, self._histogram

        self.schedule_attempts = counter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be "
            "scheduled, while 'error' means an internal scheduler problem.",
            ("result", "profile"),
        )
        self.scheduling_attempt_duration = histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            ("result", "profile"),
            exponential(0.001, 2, 15),
        )
        self.scheduling_algorithm_duration = histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            (),
            exponential(0.001, 2, 15),
        )
        self.pod_scheduling_attempts = histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            (),
            exponential(1, 2, 5),
        )
        self.pod_scheduling_sli_duration = histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might "
            "involve multiple scheduling attempts.",
            ("attempts",),
            exponential(0.01, 2, 20),
        )
        self.framework_extension_point_duration = histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            ("extension_point", "status", "profile"),
            exponential(0.0001, 2, 12),
        )
        self.plugin_execution_duration = histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            ("plugin", "extension_point", "status"),
            exponential(0.00001, 1.5, 20),
        )
        self.plugin_evaluations = counter(
            "scheduler_plugin_evaluation",
            "Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, "
            "Filter, PreScore, and Score). At Filter and Score, the nodes that it was asked about.",
            ("plugin", "extension_point", "profile"),
        )
        self.batch_attempts = counter(
            "scheduler_batch_attempts",
            "Counts of results when we attempt to use batching: whether stored answers showed where a pod can run.",
            ("profile", "result"),
        )
        self.batch_cache_flushed = counter(
            "scheduler_batch_cache_flushed", "Counts of cache flushes by reason.", ("profile", "reason")
        )
        self.get_node_hint_duration = histogram(
            "scheduler_get_node_hint_duration_seconds",
            "Latency for getting a node hint: for bringing stored answers up to date, in a tenth of the cycles.",
            ("hinted", "profile"),
            exponential(0.00001, 2, 12),
        )
        self.store_schedule_results_duration = histogram(
            "scheduler_store_schedule_results_duration_seconds",
            "Latency for putting together the stored answers for the pods of a class.",
            ("profile",),
            exponential(0.00001, 2, 12),
        )
        self.plugin_faults = counter(
            "loadmaster_plugin_faults",
            "How often plugins failed (`error`) or took longer than their budget (`late`).",
            ("plugin", "extension_point", "kind"),
        )
        self.permit_wait_duration = histogram(
            "scheduler_permit_wait_duration_seconds",
            "Duration of waiting on permit.",
            ("result",),
            exponential(0.001, 2, 15),
        )
        self.preemption_attempts = counter(
            "scheduler_preemption_attempts", "Total preemption attempts in the cluster till now"
        )
        self.preemption_victims = histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims for preemption initiated by a single pod",
            (),
            exponential(1, 2, 7),
        )
        self.preemption_goroutines_duration = histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "Duration in seconds for running goroutines for the preemption.",
            ("result",),
            exponential(0.01, 2, 20),
        )
        self.preemption_goroutines_execution = counter(
            "scheduler_preemption_goroutines_execution", "Number of preemption goroutines executed.", ("result",)
        )
        self.preemption = PreemptionMetrics.new()
        self.volume_binder_cache_requests = counter(
            "scheduler_volume_binder_cache_requests",
            "Total number for request volume binding cache. Nothing is counted: there is no such cache any more.",
            ("operation",),
        )
        self.volume_stage_errors = counter(
            "scheduler_volume_scheduling_stage_error", "Volume scheduling stage error count", ("operation",)
        )
        self.queue_incoming_pods = counter(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
        )
        self.queueing_hint_execution_duration = histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Duration for running a queueing hint function of a plugin, for a tenth of the events.",
            ("plugin", "event", "hint"),
            exponential(0.00001, 1.5, 20),
        )
        self.event_handling_duration = histogram(
            "scheduler_event_handling_duration_seconds",
            "Event handling latency in seconds.",
            ("event",),
            exponential(0.0001, 2, 12),
        )
        self.pod_scheduled_after_flush = counter(
            "scheduler_pod_scheduled_after_flush",
            "Number of pods that were scheduled after being flushed from unschedulablePods because of their age.",
        )
        self.resource_claim_creates = counter(
            "dynamic_resource_allocation_resourceclaim_creates",
            "Number of ResourceClaims creation requests, categorized by creation status, admin access, and owning API "
            "group and kind (either Pod or scheduling.k8s.io/PodGroup)",
            ("status", "admin_access", "owner_api_group", "owner_api_kind"),
        )
        self.dra_binding_conditions_allocations = counter(
            "scheduler_dra_bindingconditions_allocations",
            "Number of allocations using devices with BindingConditions, counted per driver per scheduling attempt",
            ("profile", "driver", "status"),
        )
        self.dra_binding_conditions_wait_duration = histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Time in seconds spent waiting for BindingConditions to be satisfied during PreBind.",
            ("profile", "driver", "status"),
            exponential(0.1, 2, 14),
        )
        self.task_failures = counter(
            "loadmaster_task_failures",
            "Tasks that failed, were cancelled or took too long though nobody expected it, by the work they do.",
            ("operation",),
        )
        self.plugin_data_faults = counter(
            "loadmaster_plugin_data_faults",
            "Faults in the data that plugins read in the background, such as metrics: answers and single values.",
            ("plugin", "reason"),
        )
        self.shadow_decisions = counter(
            "loadmaster_shadow_decisions",
            "What was decided about pods of another scheduler, compared with what that one did.",
            ("verdict",),
        )
        self.leader_election_slowpath = counter(
            "leader_election_slowpath",
            "Total number of slow path exercised in renewing leader leases: the Lease had to be read first.",
            ("name",),
        )
        self.rest_client_requests = counter(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "method", "host"),
        )
        self.rest_client_request_duration = histogram(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            ("verb", "host"),
            CALL_SECONDS,
        )
        self.rest_client_rate_limiter_duration = histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds. Broken down by verb, and host. Here: how long a call waited "
            "for its turn among those of its kind.",
            ("verb", "host"),
            CALL_SECONDS,
        )
        self.rest_client_request_size = histogram(
            "rest_client_request_size_bytes",
            "Request size in bytes. Broken down by verb and host.",
            ("verb", "host"),
            CALL_BYTES,
        )
        self.rest_client_response_size = histogram(
            "rest_client_response_size_bytes",
            "Response size in bytes. Broken down by verb and host.",
            ("verb", "host"),
            CALL_BYTES,
        )
        self.healthcheck = Gauge(
            "kubernetes_healthcheck",
            "This metric records the result of a single healthcheck.",
            ("name", "type"),
            registry=self.slis,
        )
        self.healthchecks = Counter(
            "kubernetes_healthchecks",
            "This metric records the results of all healthcheck.",
            ("name", "type", "status"),
            registry=self.slis,
        )
        self.api_calls = counter(
            "loadmaster_api_calls",
            "Calls to the API server by verb, resource and outcome: an HTTP status, 'timeout' or 'connection'.",
            ("verb", "resource", "code"),
        )
        self.api_call_duration = histogram(
            "loadmaster_api_call_duration_seconds",
            "Latency of one call to the API server, retries apart.",
            ("verb", "resource"),
            exponential(0.001, 2, 15),
        )
        self.bind_outcomes_settled = counter(
            "loadmaster_bind_outcomes_settled",
            "Bindings whose answer was lost and that a read settled, by what it found.",
            ("found",),
        )
        self.bindings_withdrawn = counter(
            "loadmaster_bindings_withdrawn",
            "Bindings that were not sent: others had changed the node since it was chosen, and the pod fits there no "
            "longer; or its gang had lost pods.",
        )
        self.extender_calls = counter(
            "loadmaster_extender_calls",
            "Calls of extenders by address, what was asked and the result: 'ok', 'status', 'timeout', 'connection', "
            "'answer' for one that cannot be read, 'cancelled'; 'error' counts answers that are an error as well.",
            ("extender", "verb", "result"),
        )
        self.extender_call_duration = histogram(
            "loadmaster_extender_call_duration_seconds",
            "Latency of one call of an extender.",
            ("extender", "verb"),
            exponential(0.001, 2, 15),
        )
        self.extender_answers_overtaken = counter(
            "loadmaster_extender_answers_overtaken",
            "Answers of extenders that were of no use any more, as the nodes had changed meanwhile.",
        )
        self.kubelet_rejections = counter(
            "loadmaster_kubelet_rejections",
            "Pods that we bound and the kubelet rejected, by its reason; resources beyond the common ones are one.",
            ("reason",),
        )
        self.events_dropped = counter(
            "loadmaster_events_dropped",
            "Events not sent because too many were waiting or sending failed.",
            ("reason",),
        )
        self.watch_events = counter(
            "loadmaster_watch_events", "Changes received from the API server.", ("resource", "type")
        )
        self.watch_errors = counter(
            "loadmaster_watch_errors",
            "Received objects that could not be used, by what was wrong.",
            ("resource", "reason"),
        )
        self.resync_repairs = counter(
            "loadmaster_resync_repairs",
            "Differences between our state and the API server that a comparison repaired: each is a lost change.",
            ("resource", "kind"),
        )
        self.resync_duration = histogram(
            "loadmaster_resync_duration_seconds",
            "Duration of one comparison with the API server.",
            (),
            exponential(0.01, 2, 12),
        )
        self.table_rebuilds = counter(
            "loadmaster_table_rebuilds",
            "How often the node table was made again from nodes and pods, because a change of it failed half way.",
        )
        self.assumed_pods_expired = counter(
            "loadmaster_assumed_pods_expired", "Assumed pods that the watch never confirmed in time."
        )
        self.cache_corrections = counter(
            "loadmaster_cache_corrections", "Facts from the watch that contradicted our state.", ("kind",)
        )

        self.config_reloads = counter(
            "loadmaster_config_reloads", "Configurations that were read because something had changed.", ("result",)
        )

        self.serving_requests = counter(
            "loadmaster_serving_requests",
            "Requests that were answered, by page and HTTP status. Without a page: there is none of that path.",
            ("page", "code"),
        )
        self.serving_connections_ended = counter(
            "loadmaster_serving_connections_ended",
            "Connections that we refused or ended, by why: the limit of their state, or to make room for others.",
            ("reason",),
        )
        self.spans = counter(
            "loadmaster_spans",
            "Spans of traces by their outcome: 'sent', 'failed', or 'dropped' for lack of space. None while off.",
            ("result",),
        )
        self.certificate_reloads = counter(
            "loadmaster_certificate_reloads",
            "Changes of the port's certificates, by certificate and result. After an error the former one stays.",
            ("certificate", "result"),
        )

    def watch_gauge(self, name: str, text: str, labels: Sequence[str], read: Callable[[], Samples]) -> None:
        """Add a gauge whose values are read at each scrape."""
        self.registry.register(_Read(GaugeMetricFamily, name, text, labels, read))

    def watch_counter(self, name: str, text: str, labels: Sequence[str], read: Callable[[], Samples]) -> None:
        """Add a counter whose values are read at each scrape."""
        self.registry.register(_Read(CounterMetricFamily, name, text, labels, read))

    def add_pod_groups(self) -> "PodGroupMetrics":
        """Add the metrics that kube-scheduler has with the feature gate GenericWorkload, and two of our own."""
        for each in self.preemption:
            self.registry.register(each)
        return PodGroupMetrics(
            self._counter(
                "scheduler_podgroup_schedule_attempts",
                "Number of attempts to schedule pod group, by the result. 'unschedulable' means a pod group could not "
                "be scheduled, while 'error' means an internal scheduler problem.",
                ("result", "profile"),
            ),
            self._histogram(
                "scheduler_podgroup_scheduling_attempt_duration_seconds",
                "Pod group scheduling attempt latency in seconds (scheduling algorithm + binding)",
                ("result", "profile"),
                exponential(0.001, 2, 15),
            ),
            self._histogram(
                "scheduler_podgroup_scheduling_algorithm_duration_seconds",
                "Pod group scheduling algorithm latency in seconds",
                (),
                exponential(0.001, 2, 15),
            ),
            self._counter(
                "scheduler_workload_preemption_attempts",
                "Total preemption attempts initiated by workload (including pod groups) in the cluster till now.",
                ("result",),
            ),
            self._histogram(
                "scheduler_workload_preemption_victims",
                "Number of pod preemption victims caused by workload preemption.",
                (),
                exponential(1, 2, 11),
            ),
            self._counter(
                "loadmaster_podgroup_reservations",
                "Reservations of nodes for pod groups that had waited for too long, by how they ended: 'placed', "
                "'replaced' by a group of higher priority, 'given up', 'gone' with the group, or 'turned off'.",
                ("outcome",),
            ),
            self._counter(
                "loadmaster_podgroups_given_up",
                "Pod groups that had lost pods, and of which the others were evicted for another such group.",
                (),
            ),
        )

    def add_placements(self) -> "PlacementMetrics":
        """Add the metrics that kube-scheduler has with the feature gate TopologyAwareWorkloadScheduling."""
        meaning = "'feasible' means the pod group fit into the placement, while 'infeasible' means it did not."
        return PlacementMetrics(
            self._counter(
                "scheduler_generated_placements",
                "Number of candidate placements generated when scheduling pod groups.",
                ("profile",),
            ),
            self._counter(
                "scheduler_placement_evaluations",
                f"Number of candidate placements evaluated when scheduling pod groups, by result. {meaning}",
                ("result", "profile"),
            ),
            self._histogram(
                "scheduler_placement_evaluation_duration_seconds",
                "Latency in seconds of evaluating a single candidate placement when scheduling pod groups, by result. "
                f"{meaning}",
                ("result", "profile"),
                exponential(0.001, 2, 15),
            ),
        )

    def watch_reserved_nodes(self, read: Callable[[], int]) -> None:
        """Add the gauge of the nodes that are reserved for a group of pods."""
        self.watch_gauge(
            "loadmaster_podgroup_reserved_nodes",
            "Nodes that are reserved for a pod group which has waited for too long; 0 without a reservation.",
            (),
            lambda: [((), read())],
        )

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)


class PreemptionMetrics(NamedTuple):
    """The metrics of preemptions, for pods and for groups, that kube-scheduler shows with those of groups."""

    workload_disruptions: Histogram
    evaluation_duration: Histogram
    execution_duration: Histogram
    pdb_violations: Counter

    @classmethod
    def new(cls) -> "PreemptionMetrics":
        """Make them, shown nowhere yet."""
        return cls(
            Histogram(
                "scheduler_preemption_workload_disruptions",
                "Number of workload preemption units being preempted. A single preemption unit can be all pods in a "
                "pod group (in case of DisruptionMode=all), or a single pod (in case of DisruptionMode=single).",
                ("preemptor",),
                buckets=exponential(1, 2, 11),
                registry=None,
            ),
            Histogram(
                "scheduler_preemption_evaluation_duration_seconds",
                "Duration in seconds for identifying the target preemption victims.",
                ("preemptor", "result"),
                buckets=exponential(0.001, 2, 16),
                registry=None,
            ),
            Histogram(
                "scheduler_preemption_execution_duration_seconds",
                "Duration in seconds for preempting the target preemption victims. With async preemption enabled, "
                "preemption execution does not block the scheduling of other pods.",
                ("preemptor", "result"),
                buckets=exponential(0.001, 2, 16),
                registry=None,
            ),
            Counter(
                "scheduler_preemption_pdb_violations",
                "Total number of pod disruption budget violations caused by preemption.",
                ("preemptor",),
                registry=None,
            ),
        )


class PodGroupMetrics(NamedTuple):
    """The metrics of groups of pods."""

    schedule_attempts: Counter
    scheduling_attempt_duration: Histogram
    scheduling_algorithm_duration: Histogram
    preemption_attempts: Counter
    preemption_victims: Histogram
    reservations: Counter
    given_up: Counter


class PlacementMetrics(NamedTuple):
    """The metrics of the placements in which groups of pods are tried."""

    generated: Counter
    evaluations: Counter
    evaluation_duration: Histogram

    def note(self, profile: str, seconds: float, *, is_feasible: bool) -> None:
        """Count a placement in which a group was tried."""
        labels = "feasible" if is_feasible else "infeasible", profile
        self.evaluations.labels(*labels).inc()
        self.evaluation_duration.labels(*labels).observe(seconds)


class _Read(Collector):
    def __init__(
        self, family: type[_Family], name: str, text: str, labels: Sequence[str], read: Callable[[], Samples]
    ) -> None:
        self._family, self._name, self._text, self._labels, self._read = family, name, text, labels, read

    def collect(self) -> Iterable[_Family]:
        family = self._family(self._name, self._text, labels=self._labels)
        for values, amount in self._read():
            family.add_metric(values, amount)
        yield family
