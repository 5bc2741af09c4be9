"""The commands of each page are run in order, as a reader types them, and print what the page says."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.docs.needs import NEEDS, PLACEHOLDERS
from tests.docs.pages import ROOT, Block, Step, blocks, pages, steps
from tests.docs.stage import FILES, Need, staged
from tests.docs.terminal import Terminal, terminal

BEGIN_SECONDS: Final = 120.0
"""For a program that stays, to begin."""

SECONDS: Final = 300.0
"""For the commands of one block."""

BRING_FILES: Final = f'for each in {FILES}/*; do [ -e "$(basename "$each")" ] || cp "$each" .; done'
"""Files that the reader of a page has, wherever they are: a Deployment, a pod."""


def runnable(page: Path) -> list[Block]:
    return [each for each in blocks(page) if each.is_shell and each.marker != "not-run"]


PAGES: Final = [page for page in pages() if runnable(page)]


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_the_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path, unrun: list[str]) -> None:
    need = NEEDS.get(str(page.relative_to(ROOT)), Need())

    with staged(need, tmp_path) as stage, ExitStack() as others, terminal(stage.directory, stage.env) as first:
        first.run(f"{BRING_FILES}\n{need.before}")
        for block in blocks(page):
            if block.is_shell and block.marker == "stays":
                stay(block, others.enter_context(terminal(stage.directory, stage.env)))
            elif block.is_shell and block.marker != "not-run":
                first.run(BRING_FILES)
                play(block, first)
            elif is_manifest(block) and stage.cluster:
                stage.cluster.kubectl("apply", "-f", "-", stdin=block.text)
        if stage.unrun.exists():
            unrun += [f"{page.relative_to(ROOT)}: {line}" for line in stage.unrun.read_text().splitlines()]


def stay(block: Block, another: Terminal) -> None:
    """Begin what goes on in another terminal, and wait until it says what it says then."""
    (step,) = steps(block)
    another.begin(filled_in(step.commands))
    another.wait_for(block.about, BEGIN_SECONDS)
    compare(block, step, another.output)


def play(block: Block, shell: Terminal) -> None:
    """Run a block and compare what it prints."""
    for step in steps(block):
        commands = filled_in(step.commands)
        if block.marker == "fails":
            commands = f"set +e\n{commands}\n[ $? != 0 ] || exit\nset -e"
        compare(block, step, run(commands, shell))


def compare(block: Block, step: Step, output: str) -> None:
    missing = [line for line in step.expected if not is_in(line, output)]
    assert not missing, f"{block.place}: not printed:\n{chr(10).join(missing)}\n\nprinted:\n{output}"


def run(commands: str, shell: Terminal) -> str:
    """Run commands to their end. A part that goes on behind them has begun before the next one is typed."""
    output = ""
    for part in re.split(r"(?<= &)(?:\s+#[^\n]*)?\n", commands):
        if part.rstrip().endswith(" &"):
            before = len(shell.output)
            shell.begin(part)
            shell.wait_for("Forwarding from", BEGIN_SECONDS, before)
        elif part.strip():
            output += shell.run(part, SECONDS)
    return output


def filled_in(commands: str) -> str:
    """The commands with the reader's own names."""
    for name, value in PLACEHOLDERS.items():
        commands = commands.replace(name, value)
    return commands


def is_in(line: str, output: str) -> bool:
    """Whether a line is in the output, with any numbers, amounts of white space, and anything for `…`."""
    parts = [re.escape(loose(part)) for part in line.split("…")]
    return re.search(".*".join(parts), loose(output)) is not None


def loose(text: str) -> str:
    return re.sub(r"\d[\d,.:TZ-]*", "0", " ".join(text.split()))


def is_manifest(block: Block) -> bool:
    """Whether a block is a pod for `kubectl apply`, which the reader applies."""
    return block.language == "yaml" and not block.marker and block.text.startswith("apiVersion: v1\nkind: Pod\n")


@pytest.fixture(scope="module")
def unrun() -> Iterator[list[str]]:
    """The calls of programs that are not run here; they are listed at the end, with the blocks that are not."""
    calls: list[str] = []
    yield calls
    report = ROOT / "build" / "docs-test.txt"
    report.parent.mkdir(exist_ok=True)
    marked = [f"{b.place}: {b.about}" for page in pages() for b in blocks(page) if b.marker == "not-run"]
    report.write_text("\n".join(["Blocks that are not run:", *marked, "", "Programs that are not run:", *calls, ""]))
