"""What metrics tell of the process and its version."""

import os
import resource
import time
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from scheduler.process.process_metrics import BuildInfo, ProcessMetrics, StartTime
from tests.controlplane.build import KUBE_SCHEDULER


def value(collector: Collector, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry.get_sample_value(name, labels)


@pytest.mark.parametrize(
    "name",
    [
        "process_cpu_seconds_total",
        "process_max_fds",
        "process_network_receive_bytes_total",
        "process_network_transmit_bytes_total",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_virtual_memory_bytes",
        "process_virtual_memory_max_bytes",
    ],
)
def test_all_that_gos_client_tells_of_a_process_is_there(name: str) -> None:
    assert (value(ProcessMetrics(), name) or -1.0) >= 0.0


def test_without_a_limit_of_memory_it_is_the_largest_number_of_go() -> None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    expected = 2.0**64 - 1 if limit == resource.RLIM_INFINITY else float(limit)

    assert value(ProcessMetrics(), "process_virtual_memory_max_bytes") == expected


@pytest.mark.parametrize("netstat", [None, "", "IpExt: InOctets\n", "IpExt: InOctets OutOctets\nIpExt: many few\n"])
def test_network_bytes_that_cannot_be_read_are_left_out(netstat: str | None, tmp_path: Path) -> None:
    if netstat is not None:
        (tmp_path / "self" / "net").mkdir(parents=True)
        (tmp_path / "self" / "net" / "netstat").write_text(netstat)

    assert value(ProcessMetrics(tmp_path), "process_network_receive_bytes_total") is None


def test_the_start_of_the_process_is_told_by_itself() -> None:
    families = list(StartTime().collect())

    assert [family.name for family in families] == ["process_start_time_seconds"]
    assert time.time() - 3600 * 24 < families[0].samples[0].value <= time.time() + 1


def test_the_build_names_the_kube_scheduler_that_it_equals_and_itself() -> None:
    family, _ = BuildInfo().collect()
    (sample,) = family.samples

    assert sample.value == 1.0
    assert sample.labels["git_version"].startswith(f"{KUBE_SCHEDULER.version}+loadmaster.")
    assert sample.labels["platform"].startswith(f"{os.uname().sysname.lower()}/")
    assert list(sample.labels) == [
        "major",
        "minor",
        "git_version",
        "git_commit",
        "git_tree_state",
        "build_date",
        "go_version",
        "compiler",
        "platform",
    ]
