"""What was measured, as lines of JSON: a line about the machine, then one for each run of a scheduler."""

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO, TypeVar

import orjson

from tests.controlplane import versions
from tests.controlplane.build import KUBERNETES, in_version

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and with what a series of runs was made."""

    started: str
    """UTC."""
    commit: str
    """Of Loadmaster, with a plus sign if files differed from it."""
    loadmaster: str
    kubernetes: str
    python: str
    packages: dict[str, str]
    machine: str
    cores: int
    memory: int
    """Bytes."""
    kernel: str
    scale: float
    qps: float
    """Of kube-scheduler's client."""
    command: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one scheduler did in one run of a workload. Times are in seconds, CPU in seconds of one core."""

    workload: str
    scheduler: str
    round: int
    nodes: int
    existing: int
    """Pods of the workload that were not measured."""
    pods: int
    """That were measured."""
    seconds: float
    """From the creation of the first until the last was bound."""
    overall: float
    """Pods per second over that time."""
    average: float
    p50: float
    p90: float
    p95: float
    p99: float
    """Of the pods per second in each second, by scheduler_perf's rules; 0 if there was no full second."""
    samples: tuple[float, ...]
    latency_p50: float
    latency_p99: float
    """From the request that creates a pod until it was seen bound; in steps of 10 ms."""
    cpu_seconds: float
    """Of the scheduler, from the start of the measurement until it had nothing more to do."""
    told_seconds: float
    """From the last bind until the last request, give or take half a second: it may still send Events."""
    peak_memory: int
    """The most resident memory of the scheduler, in bytes."""
    requests: dict[str, float]
    """To the API server for each measured pod, by whomever but the load generator."""
    server_cpu_seconds: float
    """Of the API server and etcd, over the same time as `cpu_seconds`."""
    generator_cpu_seconds: float
    """Of the load generator and the observer, over the same time."""
    other_load: float
    """Cores that were busy with something else: none of the processes above."""
    timeline: list[tuple[float, int]]
    """Seconds since the start, and how many were bound until then."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that gave no figures."""

    workload: str
    scheduler: str
    round: int
    reason: str


@dataclass(frozen=True, slots=True)
class Results:
    """What was measured under one setting."""

    setting: Setting
    measurements: list[Measurement] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


def write(stream: TextIO, line: Any) -> None:
    """Append a line: a dataclass, such as those above."""
    stream.write(orjson.dumps({"kind": type(line).__name__, **asdict(line)}).decode() + "\n")
    stream.flush()


def read(files: Iterable[Path]) -> list[Results]:
    """All lines of all files, setting by setting. Fields that are not known, of another version, are left out.

    Raises ValueError for lines of no known kind, or before the first setting of their file.
    """
    results: list[Results] = []
    for file in files:
        begun = False
        for kind, raw in read_lines(file):
            if kind == "Setting":
                results.append(Results(build(Setting, raw)))
                begun = True
            elif not begun:
                raise ValueError(f"{file}: a line before the one that says where it was measured")
            elif kind == "Measurement":
                results[-1].measurements.append(build(Measurement, raw))
            elif kind == "Failure":
                results[-1].failures.append(build(Failure, raw))
            else:
                raise ValueError(f"{file}: no such kind of line: {kind}")
    return results


def read_lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The kind of each line, and what it says."""
    for text in file.read_text().splitlines():
        raw = orjson.loads(text)
        yield raw.pop("kind"), raw


def build(kind: type[T], raw: dict[str, Any]) -> T:
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in raw.items() if name in names})


def setting_of(scale: float, qps: float, command: str) -> Setting:
    """This machine and this working tree."""
    return Setting(
        started=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        commit=commit(),
        loadmaster=metadata.version("loadmaster"),
        kubernetes=in_version(KUBERNETES, versions.chosen(os.environ)).version,
        python=platform.python_version(),
        packages={name: metadata.version(name) for name in ("kopf", "aiohttp", "numpy", "msgspec")},
        machine=machine(Path("/proc/cpuinfo").read_text()),
        cores=os.cpu_count() or 1,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=platform.release(),
        scale=scale,
        qps=qps,
        command=command,
    )


def machine(cpuinfo: str) -> str:
    """The model of the processor."""
    found = re.search(r"^model name\s*: (.+)$", cpuinfo, re.MULTILINE)
    return found[1] if found else platform.machine()


def commit() -> str:
    """The commit of the working tree, `unknown` outside of one."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
