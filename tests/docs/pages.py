"""The pages of the book as data: blocks of code with their markers, headings, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

SHELL: Final = ("sh", "bash", "console")
"""Blocks with commands. In `console` they begin with `$ `, and the rest is what they print."""

OTHERS: Final = ("yaml", "python", "json", "text", "dockerfile")
"""Blocks of other languages; `text` is for what is only read."""

PROGRAMS: Final = (
    "git",
    "make",
    "docker",
    "kind",
    "kubectl",
    "helm",
    "loadmaster",
    ".venv/bin/loadmaster",
    "pip",
    "python",
)
"""What a block of commands begins with, where its language is not said."""

MARKER: Final = re.compile(r"<!-- docs-test: (?P<kind>[a-z-]+)(?:: (?P<text>.+?))? -->")
"""The line before a block that says how it is to be tested: see `Block.marker`."""

KINDS: Final = ("not-run", "stays", "fails", "part")

_FENCE: Final = re.compile(r"^( *)(`{3,}|~{3,})(.*)$")
_LINK: Final = re.compile(r"(?<!\\)!?\[[^\]]*\]\(([^()\s]+)\)")
_CODE: Final = re.compile(r"(`+)(?:(?!\1).)+\1", re.S)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code."""

    page: Path
    line: int
    language: str
    text: str
    marker: str = ""
    """`not-run`: commands that cannot be run here, for the reason in `about`. `stays`: one that goes on; it has begun
    once the text in `about` is seen. `fails`: commands of which the last one fails. `part`: a piece of a document."""
    about: str = ""

    @property
    def place(self) -> str:
        """Where it is, as editors take it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_shell(self) -> bool:
        return self.language in SHELL


@dataclass(frozen=True, slots=True)
class Step:
    """Commands of a block, and the lines that they print."""

    commands: str
    expected: tuple[str, ...] = ()


def pages() -> list[Path]:
    """README.md, CONTRIBUTING.md and every page below docs."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page, in order. Raises ValueError for a marker that is none, or that no block follows."""
    lines = page.read_text().splitlines()
    marker: re.Match[str] | None = None
    at = 0
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line)
        if found := MARKER.fullmatch(line.strip()):
            if found["kind"] not in KINDS:
                raise ValueError(f"{page}:{at + 1}: unknown marker {found['kind']!r}")
            marker = found
        elif fence:
            indent, fence_text, language = fence.groups()
            end = next(n for n in range(at + 1, len(lines)) if lines[n].strip() == fence_text)
            text = "".join(f"{each[len(indent) :]}\n" for each in lines[at + 1 : end])
            kind, about = (marker["kind"], marker["text"] or "") if marker else ("", "")
            yield Block(page, at + 1, language.strip() or _guess(text), text, kind, about)
            marker, at = None, end
        elif line.strip() and marker:
            raise ValueError(f"{page}:{at + 1}: no block of code follows the marker")
        at += 1


def _guess(text: str) -> str:
    """The language of a block that does not say it."""
    if text.startswith("$ "):
        return "console"
    return "sh" if text.split(maxsplit=1)[0] in PROGRAMS else "text"


def steps(block: Block) -> list[Step]:
    """The commands of a block of shell, each with what it prints."""
    if block.language != "console":
        return [Step(block.text)]
    found: list[Step] = []
    more = False
    for line in block.text.splitlines():
        if line.startswith("$ ") or more:
            command = line if more else line.removeprefix("$ ")
            found = [*found[:-1], Step(f"{found[-1].commands}{command}\n")] if more else [*found, Step(f"{command}\n")]
            more = line.endswith("\\")
        elif line.strip():
            found[-1] = Step(found[-1].commands, (*found[-1].expected, line))
    return found


def prose(page: Path) -> str:
    """The text of a page without its code."""
    kept: list[str] = []
    fence = ""
    for line in page.read_text().splitlines():
        if fence:
            fence = "" if line.strip() == fence else fence
        elif found := _FENCE.match(line):
            fence = found[2]
        else:
            kept.append(line)
    return "\n".join(kept)


def links(page: Path) -> Iterator[str]:
    """Yield where the links and pictures of a page lead."""
    for found in _LINK.finditer(_CODE.sub("code", prose(page))):
        yield found[1]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, which GitHub and MkDocs make alike for the headings that we write."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+?)\s*$", prose(page), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = next(n for n in range(100) if (f"{slug}-{n}" if n else slug) not in found)
        found.add(f"{slug}-{number}" if number else slug)
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', page.read_text()))
