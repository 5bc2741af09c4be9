from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.profiles import Watched, find, report
from tests.bench.spy import Spy, SpyError
from tests.bench.workloads import Workload
from tests.unit.bench.test_report import OURS

BASIC = Workload("Basic", "5000Nodes", (), {}, {}, (), "misc", skip="not the default: Gate=false")
TWIN = replace(BASIC, name="5000Nodes_GateEnabled", skip="")
SMALL = replace(TWIN, name="500Nodes")


def test_a_workload_is_found_by_its_name() -> None:
    assert find([BASIC, TWIN, SMALL], "Basic/500Nodes") is SMALL


def test_for_a_workload_with_a_gate_that_is_not_the_default_its_twin_is_taken() -> None:
    assert find([BASIC, TWIN, SMALL], "Basic/5000Nodes") is TWIN


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ("Basic/500", "no workload 'Basic/500': did you mean Basic/5000Nodes_GateEnabled, Basic/500Nodes?"),
        ("Other", "no workload 'Other': `make bench BENCH=--list` has them all"),
        ("", "no workload '': `make bench BENCH=--list` has them all"),
    ],
)
def test_a_wrong_name_is_told_in_one_line(wanted: str, line: str) -> None:
    with pytest.raises(LookupError) as raised:
        find([BASIC, TWIN, SMALL], wanted)

    assert raised.value.args == (line,)


def test_a_workload_that_does_not_run_says_why() -> None:
    with pytest.raises(LookupError, match="Basic/5000Nodes cannot be run here: not the default: Gate=false"):
        find([BASIC], "Basic/5000Nodes")


def test_the_report_has_the_table_and_leaves_a_graph_and_the_stacks(tmp_path: Path) -> None:
    measured = replace(OURS, workload="Basic/a", cpu_seconds=2.0, pods=1_000)

    text = report(measured, "main;f (/x/scheduler/queue/q.py:1) 9\n", tmp_path)

    assert "queue" in text
    assert "2000" in text
    assert (tmp_path / "Basic-a.svg").read_text().startswith("<svg ")
    assert (tmp_path / "Basic-a.folded").read_text() == "main;f (scheduler/queue/q.py:1) 9\n"


def test_the_command_that_is_watched_ends_with_the_one_that_is_shipped() -> None:
    assert Watched().command[-2:] == ("-m", "scheduler")


def test_a_spy_that_never_began_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpyError, match="no measured part"):
        Spy(tmp_path).finish()
