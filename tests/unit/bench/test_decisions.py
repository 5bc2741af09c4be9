from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.cycle import main
from tests.bench.decisions import Decision, Series, read_decisions, section
from tests.bench.report import DECISIONS, marks
from tests.bench.report import main as report
from tests.bench.results import write
from tests.unit.bench.test_report import PEER, SETTING

SETTING_WITH_NUMPY = replace(SETTING, packages={"numpy": "2"})
SHAPE = Decision(Series.SHAPE, "plain pod", 5_000, 0, 100e-6, 200e-6, 110e-6)
CASE = Decision(Series.CASE, "hard spread", 5_000, 20_000, 2e-4, 3e-4, 2.1e-4, in_turn=2.2e-4, first=5e-3, aim=0.3)
GROWN = [Decision(series, "plain pod", 100 * i, 400 * i, i * 1e-4, 1e-3, 1e-3) for series in Series for i in (1, 10)]


def a_file(directory: Path, *lines: object) -> Path:
    file = directory / "cycle.jsonl"
    with file.open("w") as stream:
        for line in lines:
            write(stream, line)
    return file


def test_decisions_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = a_file(tmp_path, SETTING, SHAPE, CASE)

    assert read_decisions(file) == (SETTING, [SHAPE, CASE])


@pytest.mark.parametrize(
    ("lines", "problem"),
    [((SETTING, PEER), "not of make bench-cycle: Measurement"), ((SETTING,), "not the whole of a make bench-cycle")],
)
def test_other_files_are_refused(tmp_path: Path, lines: tuple[object, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_decisions(a_file(tmp_path, *lines))


def test_the_section_has_a_table_for_each_series_and_a_plot_of_each_growth(tmp_path: Path) -> None:
    text = section(SETTING_WITH_NUMPY, [SHAPE, CASE, *GROWN], tmp_path / "benchmarks")

    assert "| 5,000 | on | 100.0 | 200.0 | 110.0 |" in text
    assert "| hard spread | 0.3 | 0.200 | 0.300 | 0.210 | 0.220 | 5.000 |" in text
    assert "| median, ms | 100 nodes | 1,000 nodes |\n| --- | ---: | ---: |\n| plain pod | 0.100 | 1.000 |" in text
    assert "| median, ms | 400 pods | 4,000 pods |" in text
    assert "![One decision over the pods](benchmarks/decision-over-pods.svg)" in text
    assert (tmp_path / "benchmarks" / "decision-over-nodes.svg").read_text().count("<circle") == 2


def test_a_benchmark_of_the_cycle_can_be_put_into_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "out" / "cycle.jsonl", tmp_path / "page.md"
    page.write_text("\n".join(marks(DECISIONS)))
    sizes = ["--case", "plain", "--nodes", "3", "--pods", "4", "--clusters", "10:40", "--growing-nodes", "5:20", "9:36"]

    main([*sizes, "--growing-pods", "9:20", "9:36", "--decisions", "2", "--plugins", "0", "--out", str(file)])
    assert report(["--decisions", str(file), "--page", str(page)]) == 0

    assert "A decision over the nodes, ms" in capsys.readouterr().out
    assert "5 nodes | 9 nodes" in page.read_text()
    assert sorted(each.name for each in (tmp_path / "page").iterdir()) == [
        "decision-over-nodes.svg",
        "decision-over-pods.svg",
    ]
