"""A flame graph as SVG from folded stacks: widths are shares of the samples, a click zooms in. Pure."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from tests.bench.stacks import Stack

WIDTH: Final = 1200
ROW: Final = 17
TOP: Final = 46
LEAST: Final = 0.3
"""Pixels below which a frame and what it calls are left out."""
LETTER: Final = 6.6
"""Pixels of a letter, about."""


@dataclass(slots=True)
class Frame:
    """A function where it was called, with what it called."""

    name: str
    count: int = 0
    callees: dict[str, "Frame"] = field(default_factory=dict)


def tree(stacks: Sequence[tuple[Stack, int]]) -> Frame:
    """All stacks laid over each other."""
    root = Frame("all")
    for stack, count in stacks:
        at = root
        at.count += count
        for name in stack:
            at = at.callees.setdefault(name, Frame(name))
            at.count += count
    return root


def flame_graph(title: str, stacks: Sequence[tuple[Stack, int]]) -> str:
    """The graph, callers above what they call. Raises ValueError without a sample."""
    root = tree(stacks)
    if not root.count:
        raise ValueError("no samples: the process was idle")
    scale = WIDTH / root.count
    boxes = list(_boxes(root, 0.0, 0, scale))
    height = TOP + ROW * (1 + max(depth for _, _, depth in boxes)) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" '
        f'font-size="11">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{WIDTH / 2}" y="18" text-anchor="middle" font-size="14">{escape(title)}</text>',
        f'<text x="{WIDTH / 2}" y="36" text-anchor="middle" fill="#666666">{root.count:,} samples; a click on a frame '
        "zooms in, on the first one out</text>",
        *(_box(frame, x, depth, scale, root.count) for frame, x, depth in boxes),
        f"<script><![CDATA[{ZOOM}]]></script>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _boxes(frame: Frame, x: float, depth: int, scale: float) -> Iterator[tuple[Frame, float, int]]:
    yield frame, x, depth
    for callee in sorted(frame.callees.values(), key=lambda each: each.name):
        if callee.count * scale >= LEAST:
            yield from _boxes(callee, x, depth + 1, scale)
        x += callee.count * scale


def _box(frame: Frame, x: float, depth: int, scale: float, total: int) -> str:
    width, y = frame.count * scale, TOP + ROW * depth
    name = escape(frame.name)
    letters = int(width / LETTER)
    shown = escape(frame.name if len(frame.name) <= letters else frame.name[: letters - 1] + "…") if letters > 3 else ""
    return (
        f'<g data-x="{x:.2f}" data-w="{width:.2f}" data-y="{y}" data-n="{name}">'
        f"<title>{name}: {frame.count:,} samples, {100 * frame.count / total:.2f} %</title>"
        f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{ROW - 1}" fill="{_colour(frame.name)}"/>'
        f'<text x="{x + 3:.2f}" y="{y + 12}">{shown}</text></g>'
    )


def _colour(name: str) -> str:
    """Ours warm, others cool; the same function the same everywhere."""
    shade = zlib.crc32(name.encode()) % 40
    if "(scheduler/" in name or "(plugins/" in name:
        return f"hsl({18 + shade // 2}, 85%, {62 + shade // 4}%)"
    return f"hsl({200 + shade // 2}, 40%, {74 + shade // 4}%)"


ZOOM: Final = f"""
const boxes = [...document.querySelectorAll("g")];
function zoom(to) {{
  const left = +to.dataset.x, width = +to.dataset.w, depth = +to.dataset.y;
  for (const each of boxes) {{
    const x = +each.dataset.x, w = +each.dataset.w, above = +each.dataset.y < depth;
    const inside = x + w > left + 0.001 && x < left + width - 0.001;
    each.style.display = inside ? "" : "none";
    const from = above ? 0 : (x - left) * {WIDTH} / width, size = above ? {WIDTH} : w * {WIDTH} / width;
    const rect = each.querySelector("rect"), text = each.querySelector("text");
    rect.setAttribute("x", from); rect.setAttribute("width", size); text.setAttribute("x", from + 3);
    const name = each.dataset.n, letters = Math.floor(size / {LETTER});
    text.textContent = letters > 3 ? (name.length <= letters ? name : name.slice(0, letters - 1) + "…") : "";
  }}
}}
for (const each of boxes) each.addEventListener("click", () => zoom(each));
"""
