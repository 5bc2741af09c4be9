"""Line charts as SVG, without a library: readable on light and dark pages. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 320
LEFT: Final = 70
RIGHT: Final = 34
TOP: Final = 48
BOTTOM: Final = 45
LETTER: Final = 5.8
"""Width of a letter of the legend, about."""
COLOURS: Final = ("#d9541e", "#2f6fdb", "#3a9a4b", "#8a5cc2")
"""Good to tell apart for colour-blind readers; the legend names each line as well."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points in the order of their x. Curves of one name share colour and legend."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """A direction of the chart: what is written at it, and where a value lies between its ends."""

    label: str
    ticks: Sequence[float]
    log: bool = False

    def share(self, value: float) -> float:
        """0 at the beginning, 1 at the end."""
        first, last = self.ticks[0], self.ticks[-1]
        if self.log:
            return math.log(value / first) / math.log(last / first)
        return (value - first) / (last - first)

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * self.share(value)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.share(value)


def axis(label: str, values: Sequence[float], *, log: bool = False) -> Axis:
    """An axis that has room for all values: from 0, or if it is logarithmic between powers of ten."""
    if log:
        return Axis(label, decades(min(values, default=1.0), max(values, default=10.0)), log=True)
    return Axis(label, ticks(max(values, default=1.0)))


def curves(
    title: str,
    x_label: str,
    y_label: str,
    lines: Sequence[Curve],
    *,
    log_x: bool = False,
    log_y: bool = False,
    dots: bool = False,
) -> str:
    """A chart of all lines, with their points shown if asked for. Logarithmic axes want values above 0."""
    x_axis = axis(x_label, [x for line in lines for x, _ in line.points], log=log_x)
    y_axis = axis(y_label, [y for line in lines for _, y in line.points], log=log_y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(WIDTH / 2, 18, title, "middle", 14),
        *grid(x_axis, y_axis),
        *drawn(lines, x_axis, y_axis, dots=dots),
        *legend(list(dict.fromkeys(line.name for line in lines))),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def grid(x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    """Lines with a figure at each, and what the axes show."""
    bottom, right, middle = HEIGHT - BOTTOM, WIDTH - RIGHT, (TOP + HEIGHT - BOTTOM) / 2
    for value in y_axis.ticks:
        y = y_axis.y(value)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#dddddd"/>'
        yield text(LEFT - 6, y + 4, figure(value), "end")
    for value in x_axis.ticks:
        x = x_axis.x(value)
        yield f'<line x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 4}" stroke="#888888"/>'
        yield text(x, bottom + 17, figure(value), "middle")
    yield text((LEFT + right) / 2, HEIGHT - 8, x_axis.label, "middle")
    yield (
        f'<text x="16" y="{middle}" text-anchor="middle" fill="#333333" transform="rotate(-90 16 {middle})">'
        f"{escape(y_axis.label)}</text>"
    )


def drawn(lines: Sequence[Curve], x_axis: Axis, y_axis: Axis, *, dots: bool) -> Iterator[str]:
    """The lines, those of one name in one colour."""
    names = list(dict.fromkeys(line.name for line in lines))
    for line in lines:
        places = [(x_axis.x(x), y_axis.y(y)) for x, y in line.points]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        colour = COLOURS[names.index(line.name) % len(COLOURS)]
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
        if dots:
            yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places)


def legend(names: Sequence[str]) -> Iterator[str]:
    """Each name beside its colour, above the chart."""
    x = float(LEFT)
    for number, name in enumerate(names):
        colour = COLOURS[number % len(COLOURS)]
        yield f'<line x1="{x}" y1="{TOP - 12}" x2="{x + 16}" y2="{TOP - 12}" stroke="{colour}" stroke-width="3"/>'
        yield text(x + 20, TOP - 8, name, "start", 11)
        x += 34 + LETTER * len(name)


def text(x: float, y: float, content: str, anchor: str, size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#333333">'
        f"{escape(content)}</text>"
    )


def figure(value: float) -> str:
    return f"{value:,.10g}"


def decades(least: float, largest: float) -> list[float]:
    """Powers of ten from at most `least` to at least `largest`, at least two. Raises ValueError unless above 0.

    >>> decades(200, 90_000)
    [100.0, 1000.0, 10000.0, 100000.0]
    """
    if least <= 0:
        raise ValueError(f"{least} has no place on a logarithmic axis")
    first = math.floor(math.log10(least) + 1e-9)
    last = max(first + 1, math.ceil(math.log10(largest) - 1e-9))
    return [10.0**power for power in range(first, last + 1)]


def ticks(largest: float, about: int = 5) -> list[float]:
    """Round values from 0 to at least `largest`.

    >>> ticks(9400)
    [0, 2000, 4000, 6000, 8000, 10000]
    """
    if largest <= 0:
        return [0, 1]
    power = 10 ** math.floor(math.log10(largest / about))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power * about >= largest)
    return [number * step for number in range(math.ceil(largest / step - 1e-9) + 1)]
