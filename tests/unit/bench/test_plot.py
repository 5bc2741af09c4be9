import re
from xml.etree import ElementTree

import pytest

from tests.bench.plot import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, Curve, axis, curves, decades, ticks


def test_a_plot_has_a_line_for_each_curve_and_a_legend_for_each_name() -> None:
    svg = curves("a < b", "x", "y", [Curve("one", [(0, 0), (1, 5)]), Curve("one", [(0, 0)]), Curve("two", [(0, 1)])])

    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert svg.count("<polyline") == 3
    assert svg.count(">one</text>") == svg.count(">two</text>") == 1
    assert "a &lt; b" in svg


@pytest.mark.parametrize(("largest", "last"), [(9400, 10_000), (0.3, 0.3), (1, 1), (0, 1), (12, 12.5)])
def test_an_axis_ends_at_or_above_the_largest_value(largest: float, last: float) -> None:
    assert ticks(largest)[-1] == pytest.approx(last)


def test_a_logarithmic_axis_has_powers_of_ten_and_equal_steps_between_them() -> None:
    x = axis("nodes", [100, 5_000, 100_000], log=True)

    assert list(x.ticks) == [100, 1_000, 10_000, 100_000]
    assert [round(x.x(value)) for value in (100, 100_000)] == [LEFT, WIDTH - RIGHT]
    assert x.share(10_000) - x.share(1_000) == pytest.approx(1 / 3)


def test_a_linear_axis_begins_at_0_and_points_up() -> None:
    y = Axis("ms", [0, 5, 10])

    assert [y.y(0), y.y(10)] == [HEIGHT - BOTTOM, TOP]


@pytest.mark.parametrize(
    ("least", "largest", "powers"), [(0.2, 7.5, [0.1, 1, 10]), (1, 1, [1, 10]), (150, 100_000, [100, 1e3, 1e4, 1e5])]
)
def test_decades_surround_the_values(least: float, largest: float, powers: list[float]) -> None:
    assert decades(least, largest) == pytest.approx(powers)


def test_what_has_no_logarithm_is_refused() -> None:
    with pytest.raises(ValueError, match="no place on a logarithmic axis"):
        decades(0, 10)


def test_every_point_is_shown_within_the_chart_and_figures_are_written_out() -> None:
    points = [(100, 0.11), (100_000, 7.5)]

    svg = curves("t", "nodes", "ms", [Curve("plain", points)], log_x=True, log_y=True, dots=True)

    found = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)]
    assert all(LEFT <= x <= WIDTH - RIGHT and TOP <= y <= HEIGHT - BOTTOM for x, y in found)
    assert len(found) == len(points)
    assert ">100,000</text>" in svg
    assert ">0.1</text>" in svg


def test_long_names_do_not_run_into_each_other_in_the_legend() -> None:
    names = ["plain pod", "required anti-affinity, hostname", "preferred affinity, hostname", "hard spread, zone"]

    svg = curves("t", "x", "y", [Curve(name, [(0, 1)]) for name in names])

    starts = [float(x) for x in re.findall(r'<text x="([\d.]+)" y="40.0" text-anchor="start"', svg)]
    widths = [6 * len(name) for name in names]
    assert all(x + width < following for x, width, following in zip(starts, widths, [*starts[1:], WIDTH], strict=True))
