"""kube-scheduler's own benchmark, very small, against both schedulers on a real API server."""

from pathlib import Path

import pytest

from tests.bench.results import read
from tests.bench.run import main


def test_a_workload_of_scheduler_perf_is_measured_for_both_schedulers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results.jsonl"

    code = main(["^SchedulingBasic/500Nodes$", "--scale=0.05", "--rounds=1", f"--out={out}"])

    (results,) = read([out])
    measurements = results.measurements
    assert (code, results.failures) == (0, [])
    assert results.setting.kubernetes.startswith("v1.")
    assert {one.scheduler for one in measurements} == {"loadmaster", "kube-scheduler"}
    for one in measurements:
        assert (one.nodes, one.existing, one.pods) == (25, 25, 50)
        assert one.requests["POST pods/binding"] == 1
        assert one.overall > 0
        assert one.cpu_seconds > 0
    assert "| SchedulingBasic/500Nodes | 25 | 50 |" in capsys.readouterr().out
