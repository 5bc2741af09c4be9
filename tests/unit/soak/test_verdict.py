"""What a soak concludes from its samples."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.catalog import ATTACKS
from tests.soak.__main__ import HOSTILE, main
from tests.soak.pods import churned_pod
from tests.soak.samples import Sample, read, threads_of, write
from tests.soak.verdict import MEBIBYTE, memory_chart, problems, state_chart, summary, thirds


def a_sample(seconds: float, **values: Any) -> Sample:
    usual = {
        "made": int(100 * seconds),
        "attack": "",
        "memory": 150 * MEBIBYTE,
        "cpu_seconds": seconds / 4,
        "descriptors": 100,
        "threads": 3,
        "bound": 100 * seconds,
        "pending": 10.0,
        "cached_pods": 1500.0,
        "in_flight_events": 20.0,
        "tasks": 5.0,
        "cache_bytes": 10.0 * MEBIBYTE,
    }
    return Sample(seconds=seconds, **{**usual, **values})


def samples(**values: Callable[[float], float]) -> list[Sample]:
    """Half an hour, in which these values depend on the seconds."""
    moments = range(0, 1801, 5)
    return [a_sample(moment, **{name: value(moment) for name, value in values.items()}) for moment in moments]


def test_a_run_in_which_nothing_grows_is_well() -> None:
    assert problems(samples()) == []


def test_memory_may_grow_while_what_is_bounded_fills_up() -> None:
    filling = samples(memory=lambda seconds: int((100 + min(seconds, 600) / 10) * MEBIBYTE))

    assert problems(filling) == []


def test_memory_that_goes_on_growing_is_a_problem_with_its_figures() -> None:
    growing = samples(memory=lambda seconds: int((100 + seconds / 60) * MEBIBYTE))

    (problem,) = problems(growing)

    assert problem == "memory grew by 8.7%, from 115.0 to 125.0 MiB; 3% are allowed"


@pytest.mark.parametrize("name", ["descriptors", "threads", "in_flight_events", "tasks"])
def test_whatever_else_grows_is_a_problem(name: str) -> None:
    (problem,) = problems(samples(**{name: lambda seconds: seconds / 10}))

    assert problem.endswith("90 became 150")


def test_pods_that_are_not_bound_are_a_problem() -> None:
    assert problems(samples(bound=lambda seconds: 80 * seconds)) == ["144,000 of 180,000 pods were bound"]


def test_a_run_without_samples_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="too few"):
        problems([a_sample(0.0)])


def test_thirds_are_those_of_the_time_not_of_the_samples() -> None:
    uneven = [a_sample(seconds, memory=memory) for seconds, memory in ((1, 1), (2, 1), (31, 4), (61, 8), (90, 10))]

    assert (thirds(uneven, lambda each: each.memory).second, thirds(uneven, lambda each: each.memory).last) == (4, 9)


def test_the_charts_and_the_summary_show_the_run() -> None:
    run = samples()

    assert "resident memory" in memory_chart(run)
    assert "descriptors" in state_chart(run)
    assert "180,000 pods in 30.0 minutes, 100 a second; 180,000 bound" in summary(run)


def test_samples_can_be_written_and_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.jsonl"
    write(samples(), file)

    code = main(["--judge", str(file), "--out", str(tmp_path)])

    assert code == 0
    assert "nothing grew" in capsys.readouterr().out
    assert read(tmp_path / "samples.jsonl") == samples()
    assert {each.name for each in tmp_path.iterdir()} >= {"memory.svg", "state.svg"}


def test_a_run_that_is_not_well_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.jsonl"
    write(samples(descriptors=lambda seconds: int(seconds)), file)

    assert main(["--judge", str(file), "--out", str(tmp_path)]) == 1
    assert "NOT WELL: descriptors" in capsys.readouterr().out


def test_an_attack_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--attacks", "no-such-thing"]) == 2
    assert "no-such-thing" in capsys.readouterr().err


def test_the_attacks_of_a_soak_exist() -> None:
    assert set(HOSTILE) <= ATTACKS.keys()


def test_no_two_pods_have_a_selector_or_a_label_in_common() -> None:
    pods = [churned_pod(number) for number in range(400)]

    assert len({pod["metadata"]["labels"]["app"] for pod in pods}) == 400
    kinds = {key for pod in pods[::10] for key in pod["spec"]} - set(pods[1]["spec"])
    assert kinds == {"affinity", "topologySpreadConstraints", "nodeSelector", "tolerations"}


def test_threads_are_read_from_the_status_of_a_process() -> None:
    assert threads_of("Name:\tpython\nThreads:\t7\nSigQ:\t0/1\n") == 7
