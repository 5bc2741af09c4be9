from pathlib import Path

from tests.demo import report
from tests.demo.model import Burst
from tests.unit.demo.play import MESSAGE, a_model, let_huge_be_bound


def test_a_scene_comes_to_pods_in_zones_and_to_what_waits() -> None:
    assert report.outcome(a_model(), Burst()) == [
        "2 pods bound in 0.50 s (4 pods/s): zone-a 1, zone-b 1",
        f"huge waits: {MESSAGE}",
    ]


def test_a_scene_in_which_nothing_was_bound_has_no_rate() -> None:
    model = a_model()

    assert report.outcome(model, model.total()) == [f"huge waits: {MESSAGE}"]


def test_a_pod_that_waited_is_told_from_the_others() -> None:
    model = a_model()
    before = model.total()

    let_huge_be_bound(model)

    assert report.outcome(model, before) == ["huge waited 7.0 s and was bound to b-2 40 ms after that node joined."]


def test_the_summary_has_figures_and_reasons_and_fits_the_terminal() -> None:
    model = a_model()
    let_huge_be_bound(model)

    lines = report.summary(model, 60)

    assert max(map(len, lines)) < 60
    text = " ".join(line.strip() for line in lines)
    assert "3 pods bound in 0.5 s of work: 6 pods/s, at best 2 within a second." in text
    assert "p50 100 ms, p99 300 ms" in text
    assert text.endswith(f"Why it waited: {MESSAGE}")


def test_the_table_is_ascii_and_has_a_line_for_each_node() -> None:
    lines = report.placement_table(a_model())

    assert lines == [
        "zone-a a-1  #####...............  2.0/8  web 1",
        "       a-2  ....................  0.0/16 (GPUs)",
        "       a-10 ....................  0.0/8  (cordoned)",
        "zone-b b-1  #####...............  2.0/8  web 1",
    ]
    assert "".join(lines).isascii()


def test_another_terminal_finds_the_cluster_and_kubectl() -> None:
    first, *_ = report.try_it(Path("/tmp/a b"))

    assert first == "export KUBECONFIG='/tmp/a b'/kubeconfig PATH='/tmp/a b':$PATH"


def test_there_are_three_commands_to_try() -> None:
    assert [line.split("   ")[0].strip() for line in report.next_commands()] == [command for command, _ in report.NEXT]
    assert len(report.NEXT) == 3
