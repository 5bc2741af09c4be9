import io

import pytest
from rich.console import Console, RenderableType

from tests.demo import view
from tests.demo.facts import Node, Pod
from tests.demo.model import Model
from tests.unit.demo.play import a_model, let_huge_be_bound


def text(renderable: RenderableType, columns: int = 100) -> str:
    console = Console(file=io.StringIO(), width=columns, record=True, highlight=False)
    console.print(renderable)
    return console.export_text()


def a_moment(columns: int = 100, rows: int = 40, footer: tuple[str, ...] = ()) -> view.Moment:
    return view.Moment(2.5, "Loadmaster", "huge waits.", columns, rows, footer)


def row(node: str, frame: str) -> str:
    return next(line for line in frame.splitlines() if f" {node} " in line)


def test_each_node_has_a_row_with_its_pods() -> None:
    frame = text(view.frame(a_model(), a_moment()))

    assert "zone-a" in row("a-1", frame)
    assert row("a-1", frame).count("█") == 8  # a quarter of 32
    assert row("a-1", frame).rstrip().endswith("8     1  web 1")
    assert "cordoned" in row("a-10", frame)
    assert "2 GPUs" in row("a-2", frame)


def test_the_message_of_the_pod_that_waits_is_wrapped_and_whole() -> None:
    frame = text(view.frame(a_model(), a_moment()))

    inside = " ".join(line.strip("│ ") for line in frame.splitlines() if line.startswith("│"))
    assert "huge waits: FailedScheduling" in frame
    assert inside == a_model().waiting()[0].refusal


def test_nothing_waits_when_everything_is_bound() -> None:
    model = a_model()
    let_huge_be_bound(model)

    assert "No pod waits for room." in text(view.frame(model, a_moment()))


@pytest.mark.parametrize("columns", [81, 100, 200])
@pytest.mark.parametrize("rows", [24, 30, 40, 60])
@pytest.mark.parametrize("footer", [(), ("export KUBECONFIG=/tmp/x", "kubectl get pods")], ids=["", "footer"])
def test_a_frame_fits_its_screen(columns: int, rows: int, footer: tuple[str, ...]) -> None:
    model = a_model()
    for number in range(1, 8):
        for zone in "abc":
            model.apply(0.0, Node(f"{zone}-{number}", f"zone-{zone}", 8000))

    lines = text(view.frame(model, a_moment(columns, rows, footer)), columns).splitlines()

    assert len(lines) <= rows
    assert max(map(len, lines)) <= columns
    assert all(any(line.strip() == text for line in lines) for text in footer)


def test_before_the_first_node_there_is_a_frame_too() -> None:
    assert "no pods yet" in text(view.frame(Model(), a_moment()))
    assert "no pods yet" in text(view.frame(Model(), a_moment(rows=24)))


def test_the_bar_has_the_deployments_side_by_side_and_ends_at_its_length() -> None:
    node = Node("n", "z", 1000)
    apps = {"api": [Pod("a", "api", 250)], "web": [Pod("w", "web", 500)]}

    bar = view.bar(node, apps, 8)

    assert bar.plain == "██████░░"
    assert [(span.start, span.end, span.style) for span in bar.spans] == [
        (0, 4, "cyan"),
        (4, 6, "green"),
        (6, 8, "bright_black"),
    ]
    assert view.bar(node, {"web": [Pod("w", "web", 5000)]}, 8).plain == "████████"


def test_the_smallest_value_of_a_sparkline_is_seen() -> None:
    assert view.sparkline([0, 1, 100]) == " ▁█"
    assert view.sparkline([]) == ""


def test_the_ending_tells_what_waited_and_what_to_try() -> None:
    model = a_model()
    let_huge_be_bound(model)

    ending = text(view.ending(model, 100))

    assert "3 pods bound in 0.5 s" in ending
    assert "KEEP=1 make demo" in ending
    assert "huge waited 7.0 s" in ending
