"""Prefer nodes by their measured usage instead of by the requests of their pods."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final, Literal

import numpy as np

from plugins.contrib.load_aware.measurements import Collector, Measurements, Provider
from plugins.contrib.load_aware.metrics_api import MetricsApi
from plugins.contrib.load_aware.prometheus import CPU_QUERY, MEMORY_QUERY, Prometheus
from plugins.contrib.load_aware.strategies import load_variation, rounded, target_load_packing
from plugins.contrib.load_aware.table import LoadTable
from scheduler import framework as fw
from scheduler.api.objects import ResourceList, ResourceRequirements
from scheduler.api.quantities.quantity import parse_quantity, to_milli
from scheduler.framework.field_errors import forbidden, invalid, required

_SLACK_SECONDS: Final = 30.0
"""The time that a refresh has for everything except waiting for answers."""


@dataclass(frozen=True, slots=True)
class MetricProvider:
    """The source of the nodes' usage. The first fields have Trimaran's names."""

    type: Literal["KubernetesMetricsServer", "Prometheus"] = "KubernetesMetricsServer"
    """The API metrics.k8s.io, or a Prometheus."""

    address: str = ""
    """Of Prometheus, such as `https://prometheus.monitoring.svc:9090`, or a path at the API server that leads there."""

    token_file: str = ""
    """A file with a bearer token for Prometheus."""

    ca_file: str = ""
    """A file with the certificates to trust, in PEM."""

    cpu_query: str = CPU_QUERY
    """Cores that each node uses."""

    memory_query: str = MEMORY_QUERY
    """Bytes that each node uses."""

    node_label: str = "node"
    """The label of the queries' series that names the node."""

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.type == "KubernetesMetricsServer":
            for field, value in (("address", self.address), ("tokenFile", self.token_file), ("caFile", self.ca_file)):
                if value:
                    yield field, forbidden("is for Prometheus; metrics.k8s.io is asked as the scheduler's account")
            return
        if not self.address:
            yield "address", required("where Prometheus is")
        elif not self.address.startswith(("http://", "https://", "/")):
            yield "address", invalid(self.address, "must begin with https://, http:// or /")
        for field, value in (("cpuQuery", self.cpu_query), ("memoryQuery", self.memory_query)):
            if not value.strip():
                yield field, required("a query")
        if not self.node_label:
            yield "nodeLabel", required("the name of a label")


@dataclass(frozen=True, slots=True)
class DefaultRequests:
    """The estimated usage of a container that has neither a request nor a limit."""

    cpu: str = "1000m"

    def problems(self) -> Iterator[tuple[str, str]]:
        try:
            amount = parse_quantity(self.cpu)
        except ValueError as error:
            yield "cpu", invalid(self.cpu, str(error))
            return
        if amount < 0:
            yield "cpu", invalid(self.cpu, "must not be negative")


@dataclass
class LoadAware(fw.ScoreNodesPlugin, fw.SignPlugin):
    """Score by measured usage; a node without a fresh measurement has `score_without_data`.

    Answers are stored as those of plugins that read nodes only, until new measurements say that they are to be asked
    for again. What is read off the clock is read when measurements are renewed, never in a decision.
    """

    name: ClassVar[str] = "LoadAware"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.ALLOCATABLE | fw.Aspect.STARTS | fw.Aspect.EXTERNAL
    signs_spec: ClassVar[bool] = True

    strategy: Literal["TargetLoadPacking", "LoadVariationRiskBalancing"] = "TargetLoadPacking"
    metric_provider: MetricProvider = MetricProvider()

    target_utilization: int = 40
    """TargetLoadPacking: percent of a node's cpu."""

    default_requests: DefaultRequests = DefaultRequests()
    """TargetLoadPacking."""

    default_requests_multiplier: float = 1.5
    """TargetLoadPacking: what a container without a limit is taken to use of its request."""

    safe_variance_margin: float = 1.0
    """LoadVariationRiskBalancing: how much the deviation counts."""

    safe_variance_sensitivity: float = 1.0
    """LoadVariationRiskBalancing: the root of the deviation that counts; above 1, small ones count more."""

    window: fw.Duration = fw.Duration(900)
    """LoadVariationRiskBalancing: the time over which mean and deviation are taken."""

    refresh_interval: fw.Duration = fw.Duration(30)
    timeout: fw.Duration = fw.Duration(10)
    """For each answer."""

    expiration: fw.Duration = fw.Duration(180)
    """How old a measurement may be."""

    reporting_interval: fw.Duration = fw.Duration(60)
    """How long before a measurement a pod must have been started to be in it; else its usage is estimated."""

    score_without_data: int = fw.MIN_NODE_SCORE

    def __post_init__(self) -> None:
        self._handle: fw.Handle | None = None
        self._table: LoadTable | None = None
        self._repetition: fw.Repetition | None = None
        self._default_cpu = 0.0

    def problems(self) -> Iterator[tuple[str, str]]:
        """Rule for what Trimaran has: apis/config/validation/validation_pluginargs.go of scheduler-plugins."""
        if not 0 < self.target_utilization <= 100:
            yield "targetUtilization", invalid(self.target_utilization, "not in valid range (0, 100]")
        for field, number in (
            ("defaultRequestsMultiplier", self.default_requests_multiplier),
            ("safeVarianceMargin", self.safe_variance_margin),
            ("safeVarianceSensitivity", self.safe_variance_sensitivity),
            ("reportingInterval", self.reporting_interval),
        ):
            if number < 0:
                yield field, invalid(number, "must not be negative")
        if self.window < 60:
            yield "window", invalid(str(self.window), "must be at least 1m")
        for field, seconds in (("refreshInterval", self.refresh_interval), ("timeout", self.timeout)):
            if seconds < 1:
                yield field, invalid(str(seconds), "must be at least 1s")
        if self.expiration < self.refresh_interval:
            yield "expiration", invalid(str(self.expiration), "must be at least refreshInterval")
        if not fw.MIN_NODE_SCORE <= self.score_without_data <= fw.MAX_NODE_SCORE:
            yield "scoreWithoutData", invalid(self.score_without_data, "not in valid range [0, 100]")

    def start(self, handle: fw.Handle) -> None:
        self._handle = handle
        self._default_cpu = float(to_milli(parse_quantity(self.default_requests.cpu)))
        collector = Collector(
            self._provider(handle.reader),
            timedelta(seconds=self.expiration),
            self.name,
            handle.metrics.plugin_data_faults,
            handle.reader.now,
        )

        async def refresh() -> None:
            nodes = handle.nodes.names()
            await collector.refresh({name for name in nodes if name})
            await self.use(collector.measured)

        seconds = 6 * self.timeout + _SLACK_SECONDS  # Prometheus is asked four times at most
        self._repetition = handle.tasks.repeat(self.name, seconds, self.refresh_interval, refresh)

    def stop(self) -> None:
        if self._repetition is not None:
            self._repetition.stop()

    async def use(self, measurements: Measurements) -> None:
        """Decide by these measurements from now on."""
        if self._handle is None:
            raise RuntimeError(f"{self.name} was not started")
        reporting = timedelta(seconds=self.reporting_interval)
        table = LoadTable(self._handle, measurements, reporting, self._predicted)
        await table.fill()
        self._table = table
        self._handle.columns.mark()

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """Return what Score adds to the nodes' usage."""
        return self._predicted(pod)

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return the score of each of `rows`, 0 to 100; None while nothing is known."""
        table, otherwise = self._table, self.score_without_data
        if table is None:
            return np.full(len(rows), otherwise, np.int64) if otherwise else None
        load = table.columns(rows)
        added_cpu, added_memory = self._predicted(pod)
        cores = nodes.allocatable("cpu")[rows].astype(np.float64)
        if self.strategy == "TargetLoadPacking":
            scores = target_load_packing(load.cpu, added_cpu, cores, self.target_utilization)
            return np.where(load.cpu.known, rounded(scores), otherwise)
        margin, sensitivity = self.safe_variance_margin, self.safe_variance_sensitivity
        bytes_ = nodes.allocatable("memory")[rows].astype(np.float64)
        cpu = load_variation(load.cpu, added_cpu, cores, margin, sensitivity)
        memory = load_variation(load.memory, added_memory, bytes_, margin, sensitivity)
        # Where one resource alone is known, it decides.
        cpu = np.where(load.cpu.known, cpu, memory)
        memory = np.where(load.memory.known, memory, cpu)
        return np.where(load.cpu.known | load.memory.known, rounded(np.minimum(cpu, memory)), otherwise)

    def _predicted(self, pod: fw.Pod) -> tuple[float, float]:
        """The estimated usage of a pod, in thousandths of a core and bytes; memory does not matter to
        TargetLoadPacking."""
        if self.strategy == "LoadVariationRiskBalancing":
            requests = pod.requests
            return float(requests.get("cpu", 0)), float(requests.get("memory", 0))
        containers = sum(self._predicted_of(container.resources) for container in pod.spec.containers or ())
        return containers + _milli(pod.spec.overhead), 0.0

    def _predicted_of(self, resources: ResourceRequirements | None) -> float:
        """Rule: targetloadpacking.go (PredictUtilisation)."""
        if resources is not None and "cpu" in (resources.limits or ()):
            return _milli(resources.limits)
        if resources is not None and "cpu" in (resources.requests or ()):
            return float(round(_milli(resources.requests) * self.default_requests_multiplier))
        return self._default_cpu

    def _provider(self, reader: fw.Reader) -> Provider:
        window = timedelta(seconds=self.window if self.strategy == "LoadVariationRiskBalancing" else 0)
        where = self.metric_provider
        if where.type == "KubernetesMetricsServer":
            return MetricsApi(reader, self.timeout, window)
        return Prometheus(
            reader,
            self.timeout,
            window,
            address=where.address,
            access=fw.Access(where.token_file, where.ca_file),
            queries=(where.cpu_query, where.memory_query),
            label=where.node_label,
        )


def _milli(amounts: ResourceList | None) -> float:
    """The cpu of a list in thousandths; 0 for what cannot be read: a pod on a node must not stop others."""
    try:
        return float(to_milli(parse_quantity(amounts.get("cpu", 0)))) if amounts else 0.0
    except ValueError:
        return 0.0
