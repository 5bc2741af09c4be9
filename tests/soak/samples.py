"""What the scheduler has at one moment: memory, CPU, descriptors, and what its metrics say of queues and caches."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench import usage
from tests.cluster.loadmaster import http_get, sum_of
from tests.controlplane import Component


@dataclass(frozen=True, slots=True)
class Sample:
    """One look."""

    seconds: float
    """Since the first pod."""
    made: int
    """Pods so far."""
    attack: str
    """The one that goes on; empty if none does."""
    memory: int
    """Resident, in bytes."""
    cpu_seconds: float
    """So far."""
    descriptors: int
    threads: int
    bound: float
    """Pods so far."""
    pending: float
    """Pods in the queues."""
    cached_pods: float
    """Pods on nodes, as the scheduler counts them."""
    in_flight_events: float
    tasks: float
    cache_bytes: float
    """What is made for pods, as the scheduler reckons it."""


def sample(scheduler: Component, seconds: float, made: int, attack: str) -> Sample:
    """Look at the scheduler. Raises OSError or ValueError if it has ended, or does not answer."""
    text = metrics_of(scheduler)
    status = Path(f"/proc/{scheduler.pid}/status").read_text()
    return Sample(
        seconds=round(seconds, 1),
        made=made,
        attack=attack,
        memory=usage.resident_memory(scheduler.pid),
        cpu_seconds=usage.cpu_seconds(scheduler.pid),
        descriptors=len(os.listdir(f"/proc/{scheduler.pid}/fd")),
        threads=threads_of(status),
        bound=sum_of(text, "scheduler_schedule_attempts_total", result="scheduled"),
        pending=sum_of(text, "scheduler_pending_pods"),
        cached_pods=sum_of(text, "scheduler_cache_size", type="pods"),
        in_flight_events=sum_of(text, "scheduler_inflight_events"),
        tasks=sum_of(text, "scheduler_goroutines"),
        cache_bytes=sum_of(text, "loadmaster_cache_bytes"),
    )


def metrics_of(scheduler: Component) -> str:
    """What /metrics says. Raises OSError if it says nothing three times in a row."""
    for _ in range(3):
        status, text = http_get(scheduler.port, "/metrics")
        if status == 200:
            return text
    raise OSError(f"{scheduler.name} does not answer a scrape: its last status is {status}")


def threads_of(status: str) -> int:
    """The number of threads, from the text of /proc/PID/status."""
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads:"))


def write(samples: Sequence[Sample], path: Path) -> None:
    """One a line."""
    path.write_text("".join(json.dumps(asdict(each)) + "\n" for each in samples), encoding="utf-8")


def read(path: Path) -> list[Sample]:
    return [Sample(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
