"""Tries plugins out in a process of its own, before this one runs their code.

What a module does while it is imported cannot be undone: an endless loop, an exit, a crash in C. So a child imports
everything first. A scheduler that is running learns from it that a new file is bad, and nobody's binding waits for it.

    parent: sources ──JSON──► child: {"begun": "a.py"} … {"problems": […]}
            one that it does not survive is named, with the line, and the others are tried again without it
"""

import asyncio
import os
import re
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.processes import ending
from scheduler.framework.plugin import Plugin
from scheduler.loading.sources import Directory, PluginSources

SECONDS: Final = 20.0
"""For the import of one module. What takes longer belongs into a task of the plugin's."""

_BEGIN: Final = 60.0
"""Seconds for the child to begin, on a machine that is busy."""

_START: Final = str(Path(__file__).parents[1] / "loadmaster_start.py")

_BOOT: Final = (
    "import runpy, sys; sys.path[:] = sys.argv[2:]; runpy.run_path(sys.argv[1])['keep_our_names'](); "
    "from scheduler.loading.trial import child; child()"
)
"""With our own path, and nothing of the directory that this runs in or of the environment."""

_FRAME: Final = re.compile(r'^  File "(.*)", line (\d+) in ', re.MULTILINE)


class _Request(msgspec.Struct):
    seconds: float
    taken: list[str]
    sources: PluginSources


class _Answer(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A line of the child's."""

    begun: str = ""
    problems: list[str] | None = None


_requests: Decoder[_Request] = Decoder(_Request)
_answers: Decoder[_Answer] = Decoder(_Answer)


def try_out(sources: PluginSources, taken: Iterable[str] = (), seconds: float = SECONDS) -> list[str]:
    """Return what is wrong with plugins, a line each; nothing of theirs runs in this process. It blocks.

    `taken`: names that other plugins have; `seconds`: for the import of each.
    """
    trial = _Trial(sources, list(taken), seconds)
    while trial.sources:
        try:
            done = subprocess.run(_argv(), input=trial.request, capture_output=True, timeout=trial.limit, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            trial.fail(error)
        else:
            trial.take(done.stdout, done.stderr, done.returncode)
    return trial.problems


async def try_out_meanwhile(sources: PluginSources, taken: Iterable[str] = (), seconds: float = SECONDS) -> list[str]:
    """The same, while others go on."""
    trial = _Trial(sources, list(taken), seconds)
    while trial.sources:
        try:
            process = await asyncio.create_subprocess_exec(*_argv(), stdin=PIPE, stdout=PIPE, stderr=PIPE)
        except OSError as error:
            trial.fail(error)
            continue
        try:
            async with asyncio.timeout(trial.limit):
                stdout, stderr = await process.communicate(trial.request)
        except TimeoutError as error:
            trial.fail(error)
        else:
            trial.take(stdout, stderr, process.returncode or 0)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return trial.problems


def _argv() -> list[str]:
    return [sys.executable, "-I", "-B", "-c", _BOOT, _START, *sys.path]


class _Trial:
    """What is still to be tried, and what is known to be wrong."""

    def __init__(self, sources: PluginSources, taken: list[str], seconds: float) -> None:
        self.sources = sources
        self.problems: list[str] = []
        self._taken = taken
        self._seconds = seconds

    @property
    def request(self) -> bytes:
        """What the child reads."""
        return msgspec.json.encode(_Request(self._seconds, self._taken, self.sources))

    @property
    def limit(self) -> float:
        """Seconds for the child, which ends by itself before."""
        files = sum(len(directory.files) for directory in self.sources.directories)
        return _BEGIN + (files + len(self.sources.modules) + len(self.sources.entry_points)) * self._seconds

    def fail(self, error: object) -> None:
        """Give up: there is no child, or it does not end."""
        self.problems.append(f"plugins cannot be tried out: {error or 'the child does not end'}")
        self.sources = PluginSources()

    def take(self, stdout: bytes, stderr: bytes, code: int) -> None:
        """Take over what a child found. If one of the sources ended it, the others are to be tried again."""
        begun, stack = "", []
        for line in stdout.decode(errors="replace").splitlines():
            answer = _answer(line)
            if answer is None:
                stack.append(line)
            elif answer.problems is not None:
                self.problems = list(dict.fromkeys((*self.problems, *answer.problems)))
                self.sources = PluginSources()
                return
            else:
                begun = answer.begun
        if not begun:
            said = stderr.decode(errors="replace").strip().splitlines()
            self.fail(said[-1] if said else f"the child ended {ending(code)}")
            return
        self.problems.append(f"{_place(begun, stack)}: {_end(stack, code, self._seconds)}")
        self.sources = _without(begun, self.sources)


def _answer(line: str) -> _Answer | None:
    """What the child said; None for a line of a stack."""
    try:
        return _answers.decode(line.encode())
    except Unreadable:
        return None


def _end(stack: Sequence[str], code: int, seconds: float) -> str:
    if stack and stack[0].startswith("Timeout"):
        return f"it is still being imported after {seconds:g} s: an endless loop? What takes long belongs into a task"
    if stack and stack[0].startswith("Fatal"):
        return f"it crashed Python while it was imported: {stack[0].partition(': ')[2]}"
    return f"it ended Python while it was imported, {ending(code)}"


def _place(begun: str, stack: Sequence[str]) -> str:
    """The innermost line of the file, or where a module was when it hung."""
    frames: list[tuple[str, str]] = _FRAME.findall("\n".join(stack))
    own = [line for file, line in frames if file == begun]
    if own:
        return f"{begun}:{own[0]}"
    return f"module {begun}, {frames[0][0]}:{frames[0][1]}" if frames else begun


def _without(name: str, sources: PluginSources) -> PluginSources:
    return replace(
        sources,
        directories=tuple(
            Directory(each.path, tuple(file for file in each.files if file.path != name))
            for each in sources.directories
        ),
        modules=tuple(each for each in sources.modules if each != name),
        entry_points=tuple(each for each in sources.entry_points if each.value != name),
    )


def child() -> None:
    """The child's part: import everything, say what is wrong, and end."""
    import faulthandler

    from scheduler.framework.errors import ConfigError
    from scheduler.framework.tracebacks import described_with_place
    from scheduler.loading.accidents import Imports
    from scheduler.loading.load import load

    given = _requests.decode(sys.stdin.buffer.read())
    end = os._exit
    encode, cancel = msgspec.json.encode, faulthandler.cancel_dump_traceback_later  # whatever a plugin does to them
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # whatever a plugin prints or reads
        os.dup2(nowhere, descriptor)
    faulthandler.enable(file=answers)

    def refuse(code: object = 0) -> None:
        raise SystemExit(code)

    def begun(name: str) -> None:
        cancel()
        imports.begin(name)
        answers.write(encode(_Answer(begun=name)).decode() + "\n")
        faulthandler.dump_traceback_later(given.seconds, exit=True, file=answers)

    os._exit = refuse  # type: ignore[assignment]  # as an exception it names the line
    imports = Imports()
    problems: list[str] = []
    try:
        load(given.sources, {name: _placeholder(name) for name in given.taken}, {}, begun)
    except ConfigError as error:
        problems = list(error.problems)
    except BaseException as error:  # noqa: BLE001  a metaclass of a plugin's
        problems = [f"{imports.place}: its class cannot be looked at: {described_with_place(error)}"]
    imports.end()
    cancel()
    answers.write(encode(_Answer(problems=[*problems, *imports.problems])).decode() + "\n")
    answers.flush()
    end(0)  # without waiting for threads that a plugin may have started


def _placeholder(name: str) -> type[Plugin]:
    """A plugin that is known already, of which only the name matters here."""
    return type(name, (Plugin,), {"name": name})
