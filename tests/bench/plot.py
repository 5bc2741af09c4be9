"""Line charts as SVG, without a library: readable on light and dark pages. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 320
LEFT: Final = 70
RIGHT: Final = 20
TOP: Final = 40
BOTTOM: Final = 45
COLOURS: Final = ("#d9541e", "#2f6fdb", "#3a9a4b", "#8a5cc2")
"""Good to tell apart for colour-blind readers; the legend names each line as well."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points in the order of their x. Curves of one name share colour and legend."""

    name: str
    points: Sequence[tuple[float, float]]


def curves(title: str, x_label: str, y_label: str, lines: Sequence[Curve]) -> str:
    """A chart of all lines, from 0 on both axes."""
    x_ticks = ticks(max((x for line in lines for x, _ in line.points), default=1.0))
    y_ticks = ticks(max((y for line in lines for _, y in line.points), default=1.0))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(WIDTH / 2, 18, title, "middle", 14),
        *axes(x_ticks, y_ticks),
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_label, "middle"),
        f'<text x="16" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" fill="#333333" '
        f'transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2})">{escape(y_label)}</text>',
        *drawn(lines, x_ticks[-1], y_ticks[-1]),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def axes(x_ticks: Sequence[float], y_ticks: Sequence[float]) -> Iterator[str]:
    """The grid, with a figure at each line."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in y_ticks:
        y = place_y(value, y_ticks[-1])
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#dddddd"/>'
        yield text(LEFT - 6, y + 4, f"{value:,g}", "end")
    for value in x_ticks:
        x = place_x(value, x_ticks[-1])
        yield f'<line x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 4}" stroke="#888888"/>'
        yield text(x, bottom + 17, f"{value:,g}", "middle")


def drawn(lines: Sequence[Curve], x_end: float, y_end: float) -> Iterator[str]:
    """The lines and their legend."""
    names = list(dict.fromkeys(line.name for line in lines))
    for line in lines:
        points = " ".join(f"{place_x(x, x_end):.1f},{place_y(y, y_end):.1f}" for x, y in line.points)
        colour = COLOURS[names.index(line.name) % len(COLOURS)]
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
    for number, name in enumerate(names):
        x, colour = LEFT + 10 + 150 * number, COLOURS[number % len(COLOURS)]
        yield f'<line x1="{x}" y1="{TOP - 10}" x2="{x + 20}" y2="{TOP - 10}" stroke="{colour}" stroke-width="3"/>'
        yield text(x + 26, TOP - 6, name, "start")


def text(x: float, y: float, content: str, anchor: str, size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#333333">'
        f"{escape(content)}</text>"
    )


def place_x(value: float, end: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / end


def place_y(value: float, end: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / end


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
