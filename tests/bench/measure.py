"""One measurement: a new cluster, full of pending pods, and one scheduler that is started on it."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from tests.bench import observer, usage
from tests.bench.rates import Sighting, throughput
from tests.cluster import loadmaster
from tests.controlplane import Component, ControlPlane, a_node, a_pod

FIT: Final = 40
"""How many pods there is room for on a node, see `fill`."""

STALL_SECONDS: Final = 60.0
"""Without any new binding for so long, the measurement is given up."""

CLIENT_QPS: Final = 10_000
"""The rate of requests that kube-scheduler is allowed, and its burst: no limit in practice. Its default is 50."""


class MeasurementError(Exception):
    """A scheduler did not do what is measured. The text says what, with the tail of its log."""


@dataclass(frozen=True, slots=True)
class Load:
    nodes: int
    pods: int

    def __post_init__(self) -> None:
        if not 0 < self.pods <= self.nodes * FIT:
            raise ValueError(f"{self.nodes} nodes hold 1 to {self.nodes * FIT} pods, not {self.pods}")


class Contender(Protocol):
    """A scheduler that can be measured."""

    name: str
    scheduler_name: str

    def prepare(self, controlplane: ControlPlane) -> None:
        """What is done once, before the clock runs."""

    def start(self, controlplane: ControlPlane) -> Component:
        """Start the process and return when it is ready."""


class KubeScheduler:
    """As it comes, but for the limit on its client."""

    name = "kube-scheduler"
    scheduler_name = "default-scheduler"

    def prepare(self, controlplane: ControlPlane) -> None:
        """The API server brings its permissions."""

    def start(self, controlplane: ControlPlane) -> Component:
        return controlplane.start_kube_scheduler(qps=CLIENT_QPS, burst=CLIENT_QPS)


@dataclass
class Loadmaster:
    """As it is shipped: its manifest, its account, its defaults."""

    command: tuple[str, ...] = (sys.executable, "-m", "scheduler")
    """Another one starts it under a profiler."""

    name: str = "loadmaster"
    scheduler_name: str = "loadmaster"
    _kubeconfig: Path = field(default=Path(), init=False)

    def prepare(self, controlplane: ControlPlane) -> None:
        loadmaster.install_rbac(controlplane)
        self._kubeconfig = controlplane.service_account_kubeconfig(loadmaster.NAMESPACE, loadmaster.ACCOUNT)

    def start(self, controlplane: ControlPlane) -> Component:
        def argv(port: int) -> list[str]:
            serving = ["--bind-address=127.0.0.1", f"--port={port}"]
            return [*self.command, "run", f"--kubeconfig={self._kubeconfig}", *serving]

        return controlplane.spawn(self.name, argv, loadmaster.is_ready)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one scheduler did in one run. Times are in seconds, CPU in seconds of one core."""

    scheduler: str
    run: int
    ready_seconds: float
    """From the start of the process until /readyz said yes."""
    first_bind_seconds: float
    """From the start of the process until the first pod was seen bound."""
    all_bound_seconds: float
    """From the start of the process until the last pod was seen bound."""
    pods_per_second: float
    """From the first bind to the last."""
    average: float
    p50: float
    p99: float
    """Of the rates in each second, as scheduler_perf has them."""
    samples: tuple[float, ...]
    cpu_seconds: float
    """Of the scheduler, from its start until it had nothing more to do."""
    ready_cpu_seconds: float
    """The part of it until it was ready."""
    told_seconds: float
    """From the last bind until the scheduler's last request, give or take half a second: it may still send Events."""
    peak_memory: int
    """The most resident memory of the scheduler, in bytes."""
    server_cpu_seconds: float
    """Of the API server and etcd, over the same time as `cpu_seconds`."""
    requests: dict[str, float]
    """To the API server for each pod."""
    observer_cpu_seconds: float
    """Of the process that saw the pods being bound, until the last one was."""
    other_load: float
    """Cores that were busy with something else until the last pod was bound: none of the processes above."""


def measure(contender: Contender, load: Load, run: int, tell: Callable[[str], None]) -> Measurement:
    """Measure one scheduler; nothing is left when this returns or raises. Raises MeasurementError."""
    with ControlPlane() as controlplane:
        contender.prepare(controlplane)
        tell(f"creating {load.nodes:,} nodes and {load.pods:,} pods")
        fill(controlplane, load, contender.scheduler_name)
        servers = [controlplane.apiserver, controlplane.etcd]
        watching = start_observer(controlplane)
        before = usage.requests(controlplane)
        usage.wait_quiet(servers, timeout=60)

        tell("starting the scheduler")
        machine, served = usage.machine_cpu_seconds(), total_cpu(servers)
        started = time.monotonic()
        scheduler = contender.start(controlplane)
        ready = time.monotonic()
        ready_cpu = usage.cpu_seconds(scheduler.pid)
        tell(f"ready after {ready - started:.1f} s")
        seen = follow(watching, scheduler, load.pods, tell)
        machine = usage.machine_cpu_seconds() - machine
        looking = usage.cpu_seconds(watching.pid)
        ours = total_cpu([*servers, scheduler]) - served + looking
        elapsed = time.monotonic() - started
        told, after = usage.wait_answered(controlplane, timeout=120)
        usage.wait_quiet([scheduler], timeout=30)
        used, peak = usage.cpu_seconds(scheduler.pid), usage.peak_memory(scheduler.pid)
        served = total_cpu(servers) - served
        sent = usage.per_pod(after, before, load.pods)
        check(controlplane, load)
    rate = throughput(seen)
    return Measurement(
        scheduler=contender.name,
        run=run,
        ready_seconds=ready - started,
        first_bind_seconds=seen[0].time - started,
        all_bound_seconds=seen[-1].time - started,
        pods_per_second=rate.overall,
        average=rate.average,
        p50=rate.p50,
        p99=rate.p99,
        samples=rate.samples,
        cpu_seconds=used,
        ready_cpu_seconds=ready_cpu,
        told_seconds=max(0.0, told - seen[-1].time),
        peak_memory=peak,
        server_cpu_seconds=served,
        requests=sent,
        observer_cpu_seconds=looking,
        other_load=max(0.0, machine - ours) / elapsed,
    )


def fill(controlplane: ControlPlane, load: Load, scheduler_name: str) -> None:
    """Create the nodes, then the pods: those of scheduler_perf's node-default.yaml and pod-default.yaml."""
    with controlplane.client() as api:
        api.create_many(a_node(f"node-{i:05}", cpu="4", memory="32Gi", pods="110") for i in range(load.nodes))
        pods = (a_pod(f"pod-{i:05}", cpu="100m", memory="500Mi", scheduler=scheduler_name) for i in range(load.pods))
        api.create_many(pods, "default")


def start_observer(controlplane: ControlPlane) -> Component:
    """Start `tests.bench.observer` and return when its watch is open."""
    apiserver, credentials = controlplane.apiserver, controlplane.credentials
    log = controlplane.directory / "observer.log"
    arguments = ("127.0.0.1", str(apiserver.port), str(credentials.ca))
    return controlplane.spawn(
        "observer",
        lambda _: [sys.executable, "-I", "-S", observer.__file__, *arguments],
        lambda _: log.exists() and observer.OPEN in log.read_text(),
        env={"TOKEN": credentials.tokens["admin"]},
    )


def follow(watching: Component, scheduler: Component, pods: int, tell: Callable[[str], None]) -> list[Sighting]:
    """Return all sightings once every pod was seen bound. Raises MeasurementError if that stops to go on."""
    last, changed = 0, time.monotonic()
    told = changed
    while True:
        if not watching.running:
            raise MeasurementError(f"{watching.name} has ended:\n{watching.log_tail()}")
        seen = read_sightings(watching.log.read_text())
        count, now = seen[-1].count if seen else 0, time.monotonic()
        if count >= pods:
            return seen
        if count > last:
            last, changed = count, now
        if not scheduler.running:
            raise MeasurementError(f"{scheduler.name} has ended:\n{scheduler.log_tail()}")
        if now - changed > STALL_SECONDS:
            text = f"{count:,} of {pods:,} pods are bound, none in the last {STALL_SECONDS:.0f} s"
            raise MeasurementError(f"{scheduler.name}: {text}:\n{scheduler.log_tail()}")
        if now - told > 5:
            told = now
            tell(f"{count:,} of {pods:,} pods bound")
        time.sleep(0.5)


def read_sightings(log: str) -> list[Sighting]:
    """What the observer has written; a last line that is not complete is left out."""
    lines = log.splitlines(keepends=True)
    pairs = (line.split() for line in lines if line.endswith("\n") and line.strip() != observer.OPEN)
    return [Sighting(float(at), int(count)) for at, count in pairs]


def check(controlplane: ControlPlane, load: Load) -> None:
    """Raise MeasurementError unless every pod has a node and no node has more pods than it has room for."""
    with controlplane.client() as api:
        pods = api.list("Pod", "default")
    nodes = Counter(pod["spec"].get("nodeName", "") for pod in pods)
    unbound = nodes.pop("", 0)
    fullest = max(nodes.values(), default=0)
    if unbound or len(pods) != load.pods or fullest > FIT:
        raise MeasurementError(
            f"{len(pods)} of {load.pods} pods exist, {unbound} have no node, a node of {FIT} has {fullest}"
        )


def total_cpu(components: list[Component]) -> float:
    return sum(usage.cpu_seconds(component.pid) for component in components)
