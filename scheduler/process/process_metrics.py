"""Metrics of the program itself: its process and its version. Complete on Linux only.

Names and meanings: Go's process collector (prometheus/client_golang), and metrics/prometheus/version in component-base.
"""

import platform
import resource
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from scheduler.files.reading import read

KUBERNETES: Final = ("1", "37", "2")
"""The version of kube-scheduler whose verdicts are ours."""

START_TIME: Final = "process_start_time_seconds"

_MAX_BYTES: Final = 1 << 20
"""Of one of Linux' files about the process."""


class ProcessMetrics(Collector):
    """`process_…`: prometheus_client's, and those that only Go's client has."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._process = ProcessCollector(proc=str(proc), registry=None)
        self._netstat = proc / "self" / "net" / "netstat"

    def collect(self) -> Iterable[Metric]:
        yield from self._process.collect()
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        # Go shows an unlimited one as the largest uint64.
        yield GaugeMetricFamily(
            "process_virtual_memory_max_bytes",
            "Maximum amount of virtual memory available in bytes.",
            float(2**64 - 1 if limit == resource.RLIM_INFINITY else limit),
        )
        octets = self._octets()
        for name, field, text in (
            ("receive", "InOctets", "Number of bytes received by the process over the network."),
            ("transmit", "OutOctets", "Number of bytes sent by the process over the network."),
        ):
            if field in octets:
                yield CounterMetricFamily(f"process_network_{name}_bytes", text, octets[field])

    def _octets(self) -> dict[str, float]:
        try:
            text = read(self._netstat, _MAX_BYTES).decode()
            lines = [line.split() for line in text.splitlines() if line.startswith("IpExt:")]
            names, values = lines
            return dict(zip(names[1:], map(float, values[1:]), strict=True))
        except (OSError, ValueError):
            return {}


class StartTime(Collector):
    """`process_start_time_seconds` by itself, for `/metrics/slis`."""

    def __init__(self) -> None:
        self._process = ProcessCollector(registry=None)

    def collect(self) -> Iterable[Metric]:
        return (family for family in self._process.collect() if family.name == START_TIME)


class BuildInfo(Collector):
    """`kubernetes_build_info`, `version_info`: which kube-scheduler this one equals, which Loadmaster on which Python.

    Ours is in the part of the version that says nothing about order, so that an alert about components of different
    versions, which looks at `v1.37`, sees the one that counts.
    """

    def collect(self) -> Iterable[Metric]:
        major, minor, patch = KUBERNETES
        labels = {
            "major": major,
            "minor": minor,
            "git_version": f"v{major}.{minor}.{patch}+loadmaster.{version('loadmaster')}",
            "git_commit": "",
            "git_tree_state": "",
            "build_date": "",
            "go_version": f"python{platform.python_version()}",
            "compiler": platform.python_implementation(),
            "platform": f"{platform.system().lower()}/{platform.machine()}",
        }
        family = GaugeMetricFamily(
            "kubernetes_build_info",
            "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, "
            "build date, Go version, and compiler from which Kubernetes was built, and platform on which it is "
            "running. Here Python takes the place of Go.",
            labels=tuple(labels),
        )
        family.add_metric(tuple(labels.values()), 1.0)
        yield family
        compatible = {
            "binary": f"{major}.{minor}",
            "component": "kube",
            "emulation": f"{major}.{minor}",
            "min_compat": f"{major}.{int(minor) - 1}",
        }
        family = GaugeMetricFamily(
            "version_info", "Provides the compatibility version info of the component.", labels=tuple(compatible)
        )
        family.add_metric(tuple(compatible.values()), 1.0)
        yield family
