"""Whether texts can be told from what is behind them, by the rule of WCAG 2.2 (1.4.3, level AA)."""

from typing import Any, Final

from playwright.sync_api import Page

LEAST: Final = 4.5

_TEXTS: Final = """
() => {
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const open = document.querySelector("dialog[open]");
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
    if (open && !open.contains(element)) continue;
    if (element.closest(".hidden, .skip, :disabled, noscript")) continue;
    const behind = [];
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") behind.push(colour);
      if (each === open) break;
    }
    const key = `${getComputedStyle(element).color} on ${behind[0]}`;
    if (!found.has(key)) found.set(key, [getComputedStyle(element).color, behind[0] ?? "rgb(255, 255, 255)",
      element.tagName + " " + walker.currentNode.textContent.trim().slice(0, 40)]);
  }
  return [...found.values()];
}
"""


def poor_contrasts(page: Page) -> list[tuple[Any, ...]]:
    """Each pair of colours that is too near, with a text in it."""
    told = page.evaluate(_TEXTS)
    assert len(told) > 3
    return [(*each, round(ratio, 2)) for each in told if (ratio := contrast(each[0], each[1])) < LEAST]


def contrast(one: str, other: str) -> float:
    """From 1, the same, to 21, black on white."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """Of `rgb(r, g, b)`."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgba(").removeprefix("rgb(").rstrip(")").split(",")[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
