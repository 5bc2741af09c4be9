"""The configuration as the scheduler uses it; the only place that knows its defaults.

Names, meanings and messages are those of kubescheduler.config.k8s.io/v1 in kube-scheduler 1.36.3
(pkg/scheduler/apis/config/types.go and validation/validation.go); `docs/configuration.md` explains each field.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any, Final

from scheduler.api.labels import label_key_problems
from scheduler.config.extenders import Extender
from scheduler.config.feature_gates import FeatureGates
from scheduler.framework.arguments import YAML, camel_case
from scheduler.framework.duration import Duration
from scheduler.framework.field_errors import duplicate, invalid, required
from scheduler.runtime.guards.plugin_limits import PluginLimits, repetitions
from scheduler.runtime.profile_spec import ProfileSpec

JITTER_FACTOR: Final = 1.2
"""How much of `retryPeriod` a replica waits longer at random, at most, before it tries again to take the Lease."""

MAX_PODS_AT_EXTENDERS: Final = 1_000
"""Each of them holds its pod as JSON, and a connection."""

MAX_TOPOLOGY_LEVELS: Final = 16

DEFAULT_GATES: Final = FeatureGates()

Problems = Iterator[tuple[str, str]]
"""Path of a field, message."""

_MODULE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*)?")


def _default_for_zero(section: "LeaderElection | ClientConnection") -> None:
    """Go does not distinguish a zero in the file from a missing field, so kube-scheduler takes both for the default."""
    for setting in fields(section):
        value = getattr(section, setting.name)
        if not value and value is not False:
            object.__setattr__(section, setting.name, setting.default)


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """The election of the active replica. A zero or an empty string means the default, as in kube-scheduler."""

    leader_elect: bool = True
    lease_duration: Duration = field(default=Duration(15))
    """How long after the last renewal another replica may take over. More than `renew_deadline`."""

    renew_deadline: Duration = field(default=Duration(10))
    """How long the leader tries to renew before it gives up."""

    retry_period: Duration = field(default=Duration(2))
    """How long between two attempts."""

    resource_lock: str = "leases"
    resource_name: str = "loadmaster"
    """Name of the Lease. Not kube-scheduler's own name: with a shared one, only one of the two schedulers would run."""

    resource_namespace: str = "kube-system"

    def __post_init__(self) -> None:
        _default_for_zero(self)

    def with_flags(self, flags: Mapping[str, Any]) -> "LeaderElection":
        """The same with the fields that were given on the command line, where a zero is a zero."""
        changed = replace(self)
        for setting in fields(self):
            key = camel_case(setting.name)
            if key in flags:
                object.__setattr__(changed, setting.name, flags[key])
        return changed

    def problems(self) -> Problems:
        if not self.leader_elect:
            return
        for key, value in (
            ("leaseDuration", self.lease_duration),
            ("renewDeadline", self.renew_deadline),
            ("retryPeriod", self.retry_period),
        ):
            if value <= 0:
                yield key, invalid(str(value), "must be greater than zero")
        if self.lease_duration <= self.renew_deadline:
            yield "leaseDuration", invalid(str(self.renew_deadline), "must be greater than `RenewDeadline`")
        if self.renew_deadline <= JITTER_FACTOR * self.retry_period:
            yield "renewDeadline", invalid(str(self.renew_deadline), "must be greater than retryPeriod*JitterFactor")
        for key, text in (
            ("resourceLock", self.resource_lock),
            ("resourceNamespace", self.resource_namespace),
            ("resourceName", self.resource_name),
        ):
            if not text:
                yield key, required()
        if self.resource_lock != "leases":
            yield "resourceLock", invalid(self.resource_lock, 'resourceLock value must be "leases"')


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """The connection to the API server. A zero or an empty string means the default, as in kube-scheduler."""

    kubeconfig: str = ""
    """Path of a kubeconfig file. Empty: the service account of the pod that this runs in."""

    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    """Requests a second; less than 0: no limit."""

    burst: int = 100
    """Requests at once on top of `qps`."""

    def __post_init__(self) -> None:
        _default_for_zero(self)

    def problems(self) -> Problems:
        if self.burst < 0:
            yield "burst", invalid(self.burst, "must be non-negative")


class GroupBackfill(Enum):
    """The pods that may run on nodes that are reserved for a group, as they end before it starts."""

    PROMISED = "Promised"
    """By their activeDeadlineSeconds, or by the annotation with the time that they are expected to run."""

    ENFORCED = "Enforced"
    """By their activeDeadlineSeconds only, which the kubelet enforces."""

    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class LoadmasterSettings:
    """Settings for which kube-scheduler has no field."""

    seed: int = 0
    """Salt of the hash that chooses among nodes with equal scores: the same seed gives the same choices."""

    resync_seconds: float = 300.0
    """Seconds between two comparisons of our state with the API server's. 0: never."""

    assumed_pod_ttl_seconds: float = field(default=0.0, metadata={YAML: "assumedPodTTLSeconds"})
    """Seconds after its binding that a pod counts on its node without confirmation by the watch. 0: forever."""

    bind_timeout_seconds: float = 30.0
    """Seconds to wait for the answer to one binding. More than 0."""

    pod_max_in_unschedulable_pods_seconds: float = 300.0
    """Seconds after which a refused pod is tried again although nothing happened. More than 0."""

    plugin_directories: tuple[str, ...] = ()
    """Absolute paths of directories with plugins in Python files, in addition to those of `--plugin-dir`."""

    plugin_modules: tuple[str, ...] = ()
    """Installed modules with plugins: `package.module`, or `package.module:Class` for one plugin."""

    pods_at_extenders: int = 16
    """Pods about which the same extenders are asked at once. 1 is kube-scheduler's way: one after the other."""

    topology_levels: tuple[str, ...] = ()
    """Labels of nodes, the widest level first: where groups of pods are placed close together."""

    group_reservation_seconds: float = 600.0
    """Seconds that a group of our own rules waits before nodes are reserved for it. 0: never.

    Ten minutes: a cluster autoscaler has had its turn by then."""

    group_backfill: GroupBackfill = GroupBackfill.PROMISED
    """The pods that may run on the reserved nodes meanwhile."""

    damaged_group_seconds: float = 1800.0
    """Seconds after which a group of our own rules that has lost pods may lose the others to a group like it. 0: never.

    Half an hour, so that a node can be repaired before."""

    plugin_limits: tuple[PluginLimits, ...] = ()
    """Limits of plugins, and actions against those that fail or are late often; `*` is the name of all others."""

    def problems(self) -> Problems:
        for key, seconds in (
            ("resyncSeconds", self.resync_seconds),
            ("assumedPodTTLSeconds", self.assumed_pod_ttl_seconds),
            ("groupReservationSeconds", self.group_reservation_seconds),
            ("damagedGroupSeconds", self.damaged_group_seconds),
        ):
            if seconds < 0:
                yield key, invalid(seconds, "must be greater than or equal to 0")
        if not 0 < self.pods_at_extenders <= MAX_PODS_AT_EXTENDERS:
            message = f"must be from 1 to {MAX_PODS_AT_EXTENDERS}"
            yield "podsAtExtenders", invalid(self.pods_at_extenders, message)
        for key, seconds in (
            ("bindTimeoutSeconds", self.bind_timeout_seconds),
            ("podMaxInUnschedulablePodsSeconds", self.pod_max_in_unschedulable_pods_seconds),
        ):
            if seconds <= 0:
                yield key, invalid(seconds, "must be greater than 0")
        for index, path in enumerate(self.plugin_directories):
            if not path.startswith("/"):
                yield f"pluginDirectories[{index}]", invalid(path, "must be an absolute path")
        for index, module in enumerate(self.plugin_modules):
            if not _MODULE.fullmatch(module):
                yield f"pluginModules[{index}]", invalid(module, "must be package.module or package.module:Class")
        yield from self._problems_of_levels()
        yield from repetitions(self.plugin_limits)

    def _problems_of_levels(self) -> Problems:
        levels = self.topology_levels
        if len(levels) > MAX_TOPOLOGY_LEVELS:
            yield "topologyLevels", invalid(len(levels), f"must have at most {MAX_TOPOLOGY_LEVELS} levels")
        for index, level in enumerate(levels):
            if not level:
                yield f"topologyLevels[{index}]", required("a label of nodes")
            elif level in levels[:index]:
                yield f"topologyLevels[{index}]", duplicate(level)
            else:
                yield from ((f"topologyLevels[{index}]", invalid(level, each)) for each in label_key_problems(level))


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration, checked and with defaults filled in."""

    profiles: tuple[ProfileSpec, ...]
    """At least one. Their names differ; their queue sort plugin is the same."""

    parallelism: int = 16
    """Threads in kube-scheduler; without effect here, where one thread looks at all nodes at once."""

    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: int = 0
    """Percent of the nodes, 0 to 100, for profiles that set none. 0: all of them, as 100."""

    pod_initial_backoff_seconds: int = 1
    """Seconds before the second attempt. More than 0."""

    pod_max_backoff_seconds: int = 10
    """Seconds that no backoff exceeds. At least `pod_initial_backoff_seconds`."""

    delay_cache_until_active: bool = False
    extenders: tuple[Extender, ...] = ()
    loadmaster: LoadmasterSettings = LoadmasterSettings()
    gates: FeatureGates = DEFAULT_GATES
    """From the command line, not from the file."""

    def without_resizes(self) -> "Config":
        """Return the same for an engine that only decides about pods without a node, and not about deferred resizes."""
        return replace(self, gates=replace(self.gates, in_place_pod_vertical_scaling_scheduler_preemption=False))

    def problems(self) -> Problems:
        if self.parallelism <= 0:
            yield "parallelism", invalid(self.parallelism, "should be an integer value greater than zero")
        if (problem := percentage_problem(self.percentage_of_nodes_to_score)) is not None:
            yield "percentageOfNodesToScore", problem
        if self.pod_initial_backoff_seconds <= 0:
            yield "podInitialBackoffSeconds", invalid(self.pod_initial_backoff_seconds, "must be greater than 0")
        if self.pod_max_backoff_seconds < self.pod_initial_backoff_seconds:
            yield (
                "podMaxBackoffSeconds",
                invalid(self.pod_max_backoff_seconds, "must be greater than or equal to PodInitialBackoffSeconds"),
            )


def percentage_problem(percentage: int | None) -> str | None:
    """The problem with a `percentageOfNodesToScore`, if any."""
    if percentage is None or 0 <= percentage <= 100:
        return None
    return invalid(percentage, "not in valid range [0-100]")
