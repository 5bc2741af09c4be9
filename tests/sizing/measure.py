"""One size on one API server: start, idle hours, decisions, and a takeover. CPU is what the process itself has used.

start ─► /readyz ─► a waiting pod is bound ─► idle ─► pods of each kind ─► a standby starts ─► the leader is stopped
                                                                                    └─► it binds a waiting pod
"""

import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final

import orjson

from tests.bench import usage
from tests.bench.api import Api, must
from tests.bench.wire import Request
from tests.cluster.loadmaster import NAMESPACE, is_ready, serving
from tests.controlplane import wait_until
from tests.controlplane.processes import Component, ProcessError, Program
from tests.sizing.clusters import AnyCluster, add, api_of, cluster_of, waiting
from tests.sizing.objects import KINDS, Object, Size, apps_of, namespace, pod_of

START_SECONDS: Final = 900.0
POLL_SECONDS: Final = 0.2
BOUND_SECONDS: Final = 900.0
QUIET_SECONDS: Final = 60.0
QUIET: Final = 0.15
"""The share of a core below which it counts as quiet."""

WARM_PODS: Final = 50
"""Of each kind before it is measured: the first decision of a kind builds what the others use."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """What one size needs. Memory is in bytes, times in seconds, `cpu` in seconds of one core."""

    server: str
    """`real` or `simulated`."""
    nodes: int
    pods: int
    """That run at the beginning."""
    ready: float
    """From the start of the process until /readyz answers 200."""
    ready_cpu: float
    ready_peak: int
    """The most resident memory until then."""
    first_bound: float
    """From the start of the process until a pod that waited for it is bound: the new leader lists all a second time."""
    first_bound_cpu: float
    idle_cpu: float
    """Per second, with every node reporting each five minutes (on the simulated server)."""
    steady: int
    """Resident memory after the idle time."""
    decision_cpu: dict[str, float]
    """By the kind of pods, for each one: from the watch event to the binding and its Event, less the idle share."""
    bound_rate: dict[str, float]
    """Pods a second by the clock, with the API server on the same machine."""
    peak: int
    """The most resident memory of the leader, over all of it."""
    takeover: float
    """From SIGTERM to the leader until the standby has bound a pod that was waiting."""
    takeover_cpu: float
    takeover_peak: int
    """The most resident memory of the standby."""


def measure(kind: str, size: Size, pods_a_kind: int, idle_seconds: float, note: Callable[[str], None]) -> Sizing:
    """Measure one size; nothing is left when this returns or raises. `note` is called at each stage."""
    with cluster_of(kind, size) as cluster, api_of(cluster) as api:
        note("the API server has the objects")
        return _Run(cluster, api, size, note).carry_out(pods_a_kind, idle_seconds)


class _Run:
    """One cluster and the schedulers on it."""

    def __init__(self, cluster: AnyCluster, api: Api, size: Size, note: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._api = api
        self._size = size
        self._note = note
        self._made = 0

    def carry_out(self, pods_a_kind: int, idle_seconds: float) -> Sizing:
        self._release_lease()
        self._add([self._pod(0)])
        began = time.monotonic()
        leader = self._start("leader")
        ready, ready_cpu, ready_peak = (
            self._seconds(began),
            usage.cpu_seconds(leader.pid),
            usage.peak_memory(leader.pid),
        )
        self._note(f"ready after {ready:.1f} s, {ready_cpu:.1f} s of CPU, peak {ready_peak >> 20} MiB")
        self._wait_bound(leader)
        first_bound, first_bound_cpu = self._seconds(began), usage.cpu_seconds(leader.pid)
        self._note(f"first pod bound after {first_bound:.1f} s, {first_bound_cpu:.1f} s of CPU")
        self._wait_quiet(leader)
        idle_cpu = self._idle(leader, idle_seconds)
        steady = usage.resident_memory(leader.pid)
        self._note(f"idle: {1000 * idle_cpu:.1f} ms of CPU a second, {steady >> 20} MiB")
        decision_cpu, bound_rate = {}, {}
        for kind in KINDS:
            decision_cpu[kind], bound_rate[kind] = self._decide(leader, kind, pods_a_kind, idle_cpu)
            self._note(f"{kind}: {1000 * decision_cpu[kind]:.3f} ms of CPU a pod, {bound_rate[kind]:,.0f} pods/s")
        standby = self._start("standby")
        self._wait_quiet(standby)
        self._note("the standby is ready")
        peak, cpu = usage.peak_memory(leader.pid), usage.cpu_seconds(standby.pid)
        began = time.monotonic()
        leader.send_signal(signal.SIGTERM)
        self._add([self._pod(0)])
        self._wait_bound(standby)
        takeover, takeover_cpu = self._seconds(began), usage.cpu_seconds(standby.pid) - cpu
        takeover_peak = usage.peak_memory(standby.pid)
        self._note(f"takeover: {takeover:.1f} s, {takeover_cpu:.1f} s of CPU, peak {takeover_peak >> 20} MiB")
        standby.stop()
        return Sizing(
            server=self._cluster.server_kind,
            nodes=self._size.nodes,
            pods=self._size.pods,
            ready=ready,
            ready_cpu=ready_cpu,
            ready_peak=ready_peak,
            first_bound=first_bound,
            first_bound_cpu=first_bound_cpu,
            idle_cpu=idle_cpu,
            steady=steady,
            decision_cpu=decision_cpu,
            bound_rate=bound_rate,
            peak=peak,
            takeover=takeover,
            takeover_cpu=takeover_cpu,
            takeover_peak=takeover_peak,
        )

    def _start(self, name: str) -> Component:
        """Start a replica and return when it is ready."""
        kubeconfig = self._cluster.kubeconfig()

        def argv(port: int) -> list[str]:
            return [sys.executable, "-m", "scheduler", "run", f"--kubeconfig={kubeconfig}", *serving(port)]

        component = Component(self._cluster.supervisor, Program(name, argv, is_ready, start_timeout=START_SECONDS))
        component.start()
        return component

    def _release_lease(self) -> None:
        """Leave a Lease as the leader before would have: nobody waits until it expires."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "loadmaster", "namespace": NAMESPACE},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 1},
        }
        must(self._api, Request("POST", path, "leases", orjson.dumps(lease)))

    def _idle(self, scheduler: Component, seconds: float) -> float:
        """CPU per second with nothing to decide."""
        before, began = usage.cpu_seconds(scheduler.pid), time.monotonic()
        time.sleep(seconds)
        return (usage.cpu_seconds(scheduler.pid) - before) / (time.monotonic() - began)

    def _decide(self, scheduler: Component, kind: str, count: int, idle_cpu: float) -> tuple[float, float]:
        """CPU per pod of a kind, and pods bound in a second."""
        self._add(self._pods(kind, WARM_PODS))
        self._wait_bound(scheduler)
        self._wait_quiet(scheduler)
        pods = self._pods(kind, count)
        before, began = usage.cpu_seconds(scheduler.pid), time.monotonic()
        self._add(pods)
        self._wait_bound(scheduler)
        rate = count / (time.monotonic() - began)
        self._wait_quiet(scheduler)
        idle = idle_cpu * (time.monotonic() - began)
        return (usage.cpu_seconds(scheduler.pid) - before - idle) / count, rate

    def _pods(self, kind: str, count: int) -> list[tuple[str, Object]]:
        """New pods of ten apps of a kind in turn, each with its namespace."""
        apps = islice(cycle(apps_of(kind, self._size)), count)
        return [self._pod(app) for app in apps]

    def _pod(self, app: int) -> tuple[str, Object]:
        self._made += 1
        return namespace(app), pod_of(app, f"new-{self._made:05d}", "")

    def _add(self, pods: Iterable[tuple[str, Object]]) -> None:
        add(self._api, pods)

    def _wait_bound(self, scheduler: Component) -> None:
        def none_waits() -> bool:
            if not scheduler.running:
                raise ProcessError(f"{scheduler.name} has ended:\n{scheduler.log_tail()}")
            return waiting(self._api) == 0

        wait_until(none_waits, BOUND_SECONDS, "all pods bound", POLL_SECONDS)

    def _wait_quiet(self, scheduler: Component) -> None:
        """Return when it uses next to no CPU, Events sent and caches given back, or after a while."""
        deadline = time.monotonic() + QUIET_SECONDS
        while self._idle(scheduler, 1.0) > QUIET and time.monotonic() < deadline:
            continue

    @staticmethod
    def _seconds(began: float) -> float:
        return time.monotonic() - began
