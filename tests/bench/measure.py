"""One measurement: a new control plane, one scheduler on it, and one workload."""

import sys
import time
from dataclasses import dataclass, field
from typing import Final

from tests.bench import observer, usage
from tests.bench.api import Api
from tests.bench.background import Threads
from tests.bench.board import Board
from tests.bench.contenders import Contender
from tests.bench.executor import Executor, WorkloadFailed, measured
from tests.bench.gates import set_by
from tests.bench.objects import POD_GROUPS
from tests.bench.progress import Progress
from tests.bench.rates import percentile, throughput, timeline
from tests.bench.results import Measurement
from tests.bench.verify import problems
from tests.bench.wire import Server
from tests.bench.workloads import Workload
from tests.controlplane import Component, ControlPlane, Settings
from tests.controlplane.flags import NEEDS_CONTROLLER_MANAGER

SETTLE_SECONDS: Final = 20.0
"""So long at most is waited, when all is bound, until a scheduler has told everything and is quiet."""

PLAIN: Final = Settings(disable_admission=("Priority",))
"""Pods come with a priority and without a class, which this admission plugin refuses; so in scheduler_perf."""

WITH_CLAIMS: Final = Settings(
    controller_manager=True,
    controller_manager_flags=("--controllers=resourceclaim-controller,serviceaccount-controller",),
    # Some templates are of older versions than the one that is served by default.
    apiserver_flags=(
        "--runtime-config=resource.k8s.io/v1beta2=true,resource.k8s.io/v1beta1=true,resource.k8s.io/v1alpha3=true",
    ),
    disable_admission=("Priority", *NEEDS_CONTROLLER_MANAGER),
)
"""For the workloads of dynamic resource allocation: their claims are made from templates by a controller."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds until a run is given up."""

    total: float = 900.0
    stall: float = 60.0
    """Without any progress."""


def measure(
    workload: Workload, contender: Contender, round_number: int, patience: Patience, progress: Progress
) -> Measurement:
    """Measure one scheduler; nothing is left when this returns or raises.

    Raises WorkloadFailed, or what the control plane and the API raise.
    """
    settings = WITH_CLAIMS if workload.directory.split("/")[0] == "dra" else PLAIN
    if gates := set_by(workload.gates):
        settings = settings.with_feature_gates(gates, POD_GROUPS)
    with ControlPlane(settings) as controlplane:
        scheduler = contender.start(controlplane, workload)
        run = Run(controlplane, scheduler, start_observer(controlplane), patience, progress)
        with run.api:
            try:
                executor = run.carry_out(workload, contender.scheduler_name(workload))
            except WorkloadFailed as error:
                raise WorkloadFailed(f"{error}\n{scheduler.log_tail(5)}") from error
            finally:
                run.background.stop()
            return run.result(executor, contender.name, round_number)


class Run:
    """A control plane with a scheduler and an observer, and what they have used since the measurement began."""

    def __init__(
        self,
        controlplane: ControlPlane,
        scheduler: Component,
        watching: Component,
        patience: Patience,
        progress: Progress,
    ) -> None:
        self._controlplane = controlplane
        self._scheduler = scheduler
        self._watching = watching
        self._patience = patience
        self._progress = progress
        self._deadline = time.monotonic() + patience.total
        self._before = Spent()
        credentials = controlplane.credentials
        server = Server(controlplane.apiserver.port, credentials.ca, credentials.tokens["admin"])
        self.api = Api(server)
        self.background = Threads()

    def carry_out(self, workload: Workload, scheduler_name: str) -> Executor:
        """Run the workload to its end."""
        with self._watching.log.open() as log:
            executor = Executor(
                workload,
                scheduler_name,
                self.api,
                Board(log.read),
                background=self.background,
                progress=self._progress,
                check=self.check,
                begin=self.begin,
                stall_seconds=self._patience.stall,
            )
            executor.run()
        return executor

    def check(self) -> None:
        for component in (self._scheduler, self._watching):
            if not component.running:
                raise WorkloadFailed(f"{component.name} has ended with code {component.exit_code}")
        if self.background.error:
            raise WorkloadFailed(f"in the background: {self.background.error}")
        if time.monotonic() > self._deadline:
            raise WorkloadFailed(f"not at its end after {self._patience.total:.0f} s")

    def begin(self) -> None:
        """Count from here. There is no wait before: what the preparation has left to do, the scheduler pays for."""
        self._before = self._spent()

    def result(self, executor: Executor, scheduler: str, round_number: int) -> Measurement:
        """What it amounts to, when the scheduler has come to rest. Raises WorkloadFailed if the outcome is wrong."""
        collection = executor.collection
        assert collection is not None
        pods = measured(executor.board, collection)
        if not pods:
            raise WorkloadFailed("no pod was bound in the measured time")
        told, _ = usage.wait_answered(self._controlplane, timeout=SETTLE_SECONDS)
        usage.wait_quiet([self._scheduler], timeout=SETTLE_SECONDS)
        spent = self._spent().since(self._before)
        if wrong := problems(self.api):
            raise WorkloadFailed(f"the outcome is wrong: {'; '.join(wrong[:3])}")
        bound = [pod.bound for pod in pods if pod.bound is not None]
        latencies = [pod.bound - pod.created for pod in pods if pod.bound and pod.created]
        rate = throughput(collection.start, bound)
        return Measurement(
            workload=executor.workload.id,
            scheduler=scheduler,
            round=round_number,
            nodes=executor.workload.nodes,
            existing=max(0, executor.workload.pods - len(pods)),
            pods=len(pods),
            seconds=bound[-1] - collection.start,
            overall=rate.overall,
            average=rate.average,
            p50=rate.p50,
            p90=rate.p90,
            p95=rate.p95,
            p99=rate.p99,
            samples=rate.samples,
            latency_p50=percentile(latencies, 50),
            latency_p99=percentile(latencies, 99),
            cpu_seconds=spent.scheduler,
            told_seconds=max(0.0, told - bound[-1]),
            peak_memory=usage.peak_memory(self._scheduler.pid),
            requests=usage.per_pod(spent.requests, usage.Requests(), len(pods)),
            server_cpu_seconds=spent.servers,
            generator_cpu_seconds=spent.generator,
            other_load=max(0.0, spent.machine - spent.scheduler - spent.servers - spent.generator) / spent.seconds,
            timeline=timeline(collection.start, bound),
        )

    def _spent(self) -> "Spent":
        controlplane = self._controlplane
        own = usage.Requests(self.api.own)
        return Spent(
            seconds=time.monotonic(),
            scheduler=usage.cpu_seconds(self._scheduler.pid),
            servers=sum(usage.cpu_seconds(one.pid) for one in (controlplane.apiserver, controlplane.etcd)),
            generator=time.process_time() + usage.cpu_seconds(self._watching.pid),
            machine=usage.machine_cpu_seconds(),
            requests=usage.requests(controlplane) - own,
        )


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used up to a moment."""

    seconds: float = 0.0
    scheduler: float = 0.0
    servers: float = 0.0
    generator: float = 0.0
    machine: float = 0.0
    requests: usage.Requests = field(default_factory=usage.Requests)

    def since(self, earlier: "Spent") -> "Spent":
        return Spent(
            self.seconds - earlier.seconds,
            self.scheduler - earlier.scheduler,
            self.servers - earlier.servers,
            self.generator - earlier.generator,
            self.machine - earlier.machine,
            self.requests - earlier.requests,
        )


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
