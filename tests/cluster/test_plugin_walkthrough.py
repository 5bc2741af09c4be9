"""docs/plugins.md, and what the demo then says to try: the commands are run as they stand there, in a clean clone."""

import re
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.proxied import own_address
from tests.demo.command import try_it
from tests.docs.terminal import terminal

ROOT = Path(__file__).parents[2]
SECTION = "## From nothing to a placed pod\n"
BLOCK = re.compile(
    r"(?:<!-- docs-test: stays: (?P<until>.+?) -->\n)?^```(?P<kind>sh|text)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

PATIENCE = 900.0
"""For what stays in a second terminal; if the control plane has to be built, that takes minutes."""


class Step(NamedTuple):
    """Commands of the page, and what their output has according to it."""

    commands: str
    expected: str
    until: str
    """What a command shows that stays in a terminal of its own; empty for all others."""


def steps() -> list[Step]:
    """Return the blocks of the section, each with the output that follows it."""
    section = (ROOT / "docs" / "plugins.md").read_text().partition(SECTION)[2].partition("\n## ")[0]
    found: list[Step] = []
    for block in BLOCK.finditer(section):
        if block["kind"] == "sh":
            found.append(Step(block["text"], "", block["until"] or ""))
        else:
            found[-1] = found[-1]._replace(expected=block["text"].strip())
    return found


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clean clone of what is committed."""
    if shutil.which("git") is None or shutil.which("make") is None:
        pytest.skip("needs git and make")
    command = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(tmp_path / "loadmaster")]
    subprocess.run(command, check=True, timeout=60)
    return tmp_path / "loadmaster"


def test_the_page_leads_from_nothing_to_a_placed_pod(clone: Path, pytestconfig: pytest.Config) -> None:
    times: list[tuple[float, str]] = []
    with ExitStack() as stack:
        first = stack.enter_context(terminal(clone))
        for step in steps():
            started = time.monotonic()
            if step.until:
                second = stack.enter_context(terminal(clone))
                second.begin(step.commands)
                second.wait_for(step.until, PATIENCE)
            else:
                output = first.run(step.commands)
                for line in step.expected.splitlines():
                    assert " ".join(line.split()) in " ".join(output.split()), output
            times.append((time.monotonic() - started, step.commands.splitlines()[0]))
        if own_address():  # else nothing leads to the scheduler
            port = int(re.findall(r"https://127.0.0.1:(\d+)/metrics", second.output)[-1])
            *tried, restart, page = try_it(clone / "build" / "demo", port)
            told = first.run("\n".join(tried))
            assert "tried " in told, "the scheduler itself has answered"
            assert "\n  uncordon c-7\n" in told
            assert 'scheduler_pending_pods{queue="active"}' in told
            first.run(restart)
            second.wait_for("The scheduler ended with code 0, and runs again.", 60)
            assert "\n0 problems, 0 warnings\n" in first.run("loadmaster doctor")
            first.begin(page)
            first.wait_for("Open it in a browser of this machine.", 30)
    _show(times, pytestconfig)


def _show(times: list[tuple[float, str]], pytestconfig: pytest.Config) -> None:
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        sys.stdout.write("\n\nFrom nothing to a placed pod\n")
        for seconds, command in times:
            sys.stdout.write(f"{seconds:7.1f} s  {command}\n")
        sys.stdout.write(f"{sum(seconds for seconds, _ in times):7.1f} s  in all\n")
