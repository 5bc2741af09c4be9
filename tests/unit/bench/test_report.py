from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from tests.bench.plot import COLOURS
from tests.bench.progress import Progress
from tests.bench.report import WORKLOADS, groups_of, insert, main, marks, plots, spread, tables
from tests.bench.results import Failure, Measurement, Results, Setting, machine, read, write

BEGIN, END = marks(WORKLOADS)
SETTING = Setting(
    started="2026-01-02 03:04",
    commit="abc+",
    loadmaster="0.1.0",
    kubernetes="v1.36.3",
    python="3.11",
    packages={"kopf": "1.45"},
    machine="EPYC",
    cores=2,
    memory=2**34,
    kernel="6",
    scale=0.1,
    qps=10_000,
    command="python -m tests.bench.run",
)
PEER = Measurement(
    workload="SchedulingBasic/a",
    scheduler="kube-scheduler",
    round=1,
    nodes=500,
    existing=100,
    pods=1000,
    seconds=2.0,
    overall=500.0,
    average=400.0,
    p50=400.0,
    p90=400.0,
    p95=400.0,
    p99=400.0,
    samples=(400.0,),
    latency_p50=0.5,
    latency_p99=1.0,
    cpu_seconds=2.0,
    told_seconds=0.0,
    peak_memory=100 * 2**20,
    requests={"POST pods/binding": 1.0, "POST events": 1.0},
    server_cpu_seconds=2.0,
    generator_cpu_seconds=0.1,
    other_load=0.0,
    timeline=[(0.0, 0), (2.0, 1000)],
)
OURS = replace(PEER, scheduler="loadmaster", average=600.0, cpu_seconds=1.0)


def test_a_row_has_both_medians_and_the_ratio_taken_round_by_round() -> None:
    second = [replace(OURS, round=2, average=500.0), replace(PEER, round=2, average=250.0)]

    lines = tables([Results(SETTING, [OURS, PEER, *second])]).splitlines()

    assert lines[0].startswith(
        "- 2026-01-02 03:04 UTC, commit abc+: EPYC, 2 cores, 16 GiB, Linux 6; Kubernetes v1.36.3"
    )
    assert "| SchedulingBasic/a | 500 | 1,000 | **1.75** (1.50 to 2.00): 550 / 325 (≥ 1.8) |" in "\n".join(lines)
    assert "| SchedulingBasic/a | 500 | 1,000 | **0.50** (0.50 to 0.50): 1.00 / 2.00 |" in "\n".join(lines)


def test_a_round_that_one_of_them_did_not_finish_gives_no_ratio() -> None:
    text = tables([Results(SETTING, [OURS, PEER, replace(PEER, round=2, average=1.0)])])

    assert "**1.50**: 600 / 200 (≥ 1.8) |" in text


def test_what_took_less_than_a_second_is_judged_by_all_of_the_time() -> None:
    text = tables([Results(SETTING, [replace(OURS, average=0.0, overall=2000.0), PEER])])

    assert "| - / 400 | **4.00**: 2,000 / 500 (≥ 1.8) |" in text


def test_a_scheduler_that_failed_has_its_row_and_its_reason() -> None:
    failure = Failure("SchedulingBasic/a", "loadmaster", 1, "no pod was bound\nand the log")

    text = tables([Results(SETTING, [PEER], [failure])])

    assert "| SchedulingBasic/a | 500 | 1,000 | failed / 400 (≥ 1.8) |" in text
    assert text.endswith("- SchedulingBasic/a, loadmaster, round 1: no pod was bound")


def test_results_of_another_scale_or_with_default_limits_have_tables_of_their_own() -> None:
    settings = [SETTING, replace(SETTING, scale=1.0), replace(SETTING, scale=1.0, qps=50.0)]

    text = tables([Results(setting, [OURS, PEER]) for setting in settings])

    assert [line for line in text.splitlines() if line.startswith("####")] == [
        "#### kube-scheduler's client limits lifted, full size",
        "#### kube-scheduler's client limits lifted, nodes and pods times 0.1",
        "#### Both with their default settings, full size",
    ]
    assert "600 / 400 (≥ 10) |" in text.rpartition("####")[2]


def test_figures_that_nobody_knows_where_they_come_from_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    with file.open("w") as stream:
        write(stream, PEER)

    with pytest.raises(ValueError, match="before the one that says where"):
        read([file])


def test_a_single_ratio_has_no_range_and_none_is_empty() -> None:
    assert [spread([1.5]), spread([])] == ["**1.50**", ""]


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    failure = Failure("Basic/b", "loadmaster", 1, "slow")
    with file.open("w") as stream:
        for line in (SETTING, PEER, failure):
            write(stream, line)

    (results,) = read([file])
    measurements = results.measurements

    assert (results.setting, results.failures) == (SETTING, [failure])
    assert measurements[0].requests == PEER.requests
    assert [tuple(point) for point in measurements[0].timeline] == PEER.timeline


def test_the_generated_part_of_a_page_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    file, page = tmp_path / "r.jsonl", tmp_path / "page.md"
    with file.open("w") as stream:
        write(stream, SETTING)
        write(stream, PEER)
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")

    assert main([str(file), "--page", str(page), "--plot", "SchedulingBasic/a"]) == 0

    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert "![SchedulingBasic/a: pods bound over time](page/SchedulingBasic-a.svg)" in text
    assert (tmp_path / "page" / "SchedulingBasic-a.svg").read_text().startswith("<svg ")


def test_parts_that_are_not_given_stay_as_they_are_and_all_workloads_can_be_plotted(tmp_path: Path) -> None:
    file, page = tmp_path / "r.jsonl", tmp_path / "page.md"
    with file.open("w") as stream:
        for line in (SETTING, PEER, replace(PEER, workload="Other/b", scheduler="loadmaster")):
            write(stream, line)
    others = "\n".join(marks("decisions"))
    page.write_text(f"{BEGIN}\n{END}\n{others}\n")

    assert main([str(file), "--page", str(page), "--plot", "all"]) == 0

    assert page.read_text().endswith(f"{others}\n")
    assert sorted(each.name for each in (tmp_path / "page").iterdir()) == ["Other-b.svg", "SchedulingBasic-a.svg"]


def test_a_scheduler_that_failed_is_named_in_the_plot_and_the_colours_stay(tmp_path: Path) -> None:
    failure = Failure("SchedulingBasic/a", "loadmaster", 1, "slow")
    plots(groups_of([Results(SETTING, [PEER], [failure])]), ["SchedulingBasic/a"], tmp_path)
    failed = (tmp_path / "SchedulingBasic-a.svg").read_text()
    plots(groups_of([Results(SETTING, [PEER, OURS])]), ["SchedulingBasic/a"], tmp_path)
    both = (tmp_path / "SchedulingBasic-a.svg").read_text()

    assert ">loadmaster: failed</text>" in failed
    assert ">kube-scheduler</text>" in failed
    assert [COLOURS[1] in svg and svg.count(COLOURS[0]) for svg in (failed, both)] == [2, 2]


def test_a_report_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    assert main(["--plot", "SchedulingBasic/a"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "nothing to report: give results of tests.bench.run, or --decisions",
        "plots of workloads need their results",
    ]


def test_a_page_without_a_place_and_a_plot_without_figures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs the lines"):
        insert("a page", WORKLOADS, "text")
    with pytest.raises(ValueError, match="nothing was measured of Other/x"):
        plots(groups_of([Results(SETTING, [PEER])]), ["Other/x"], tmp_path)


def test_the_processor_is_named() -> None:
    assert machine("processor : 0\nmodel name\t: EPYC 7\n") == "EPYC 7"


def test_progress_is_a_line_for_each_phase_where_there_is_no_terminal() -> None:
    stream = StringIO()
    progress = Progress("1/2 loadmaster Basic/a", stream)

    progress.doing("createPods", 10)
    progress.done(10)
    progress.collecting(True)
    progress.doing("createPods: wait", 10)
    progress.done(4)
    progress.finish("failed")

    lines = [line.partition("s  ")[2] for line in stream.getvalue().splitlines()]
    assert [line.rstrip() for line in lines] == [
        "1/2 loadmaster Basic/a: createPods 10/10",
        "1/2 loadmaster Basic/a: * createPods: wait 4/10",
        "1/2 loadmaster Basic/a: failed",
    ]
