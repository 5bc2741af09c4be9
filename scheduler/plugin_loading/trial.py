"""Tries plugins out in a process of its own, before this one runs their code.

What a module does while it is imported cannot be undone: an endless loop, an exit, a crash in C. So a child imports
everything first, and makes, starts and stops the plugins as the configuration says. A scheduler that is running learns
from it that a new file is bad, and no binding waits for it.

    parent: sources, configuration ──JSON──► child: {"begun": "a.py"} … {"starts": true} {"problems": […]}
            a source that it does not survive is named, with the line, and the others are tried again without it

Exceptions of plugins in construction and start are not reported: they are raised in this process again, with all
problems at once.
"""

import asyncio
import os
import re
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.processes import ending
from scheduler.framework.plugin import Plugin
from scheduler.plugin_loading.sources import Directory, PluginSources
from scheduler.runtime.guards import plugin_exits
from scheduler.runtime.registry import Registry

SECONDS: Final = 20.0
"""For the import of one module. What takes longer belongs in a task of the plugin's."""

START_SECONDS = plugin_exits.START_SECONDS
"""For all plugins of a configuration to be made, started and stopped."""

RELOAD_SECONDS = 4.0
"""The same for a scheduler at work, which stands still meanwhile: less than what the watchdog takes for a hang."""

_BEGIN: Final = 60.0
"""Seconds for the child to begin, on a machine that is busy."""

_START: Final = str(Path(__file__).parents[1] / "commands" / "loadmaster_start.py")

_BOOT: Final = (
    "import runpy, sys; sys.path[:] = sys.argv[2:]; runpy.run_path(sys.argv[1])['keep_our_names'](); "
    "from scheduler.commands.plugin_trial import main; main()"
)
"""With our own path, and nothing of the directory that this runs in or of the environment."""

_FRAME: Final = re.compile(r'^  File "(.*)", line (\d+) in ', re.MULTILINE)


class _Request(msgspec.Struct):
    seconds: float
    taken: list[str]
    sources: PluginSources
    config: Any
    start_seconds: float


class _Answer(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    begun: str = ""
    starts: bool = False
    problems: list[str] | None = None


_requests: Decoder[_Request] = Decoder(_Request)
_answers: Decoder[_Answer] = Decoder(_Answer)


Start = Callable[[Any, Registry], None]
"""Makes, starts and stops plugins as a configuration says, given as parsed."""


def try_out(
    sources: PluginSources, taken: Iterable[str] = (), seconds: float = SECONDS, config: object = None
) -> list[str]:
    """Return the problems of plugins, a line each; nothing of theirs runs in this process. It blocks.

    `taken`: names that other plugins have; `seconds`: for the import of each; `config`: the configuration, as parsed.
    """
    trial = _Trial(sources, list(taken), seconds, config, START_SECONDS)
    while trial.sources:
        try:
            done = subprocess.run(_argv(), input=trial.request, capture_output=True, timeout=trial.limit, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            trial.fail(error)
        else:
            trial.take(done.stdout, done.stderr, done.returncode)
    return trial.problems


async def try_out_meanwhile(
    sources: PluginSources, taken: Iterable[str] = (), seconds: float = SECONDS, config: object = None
) -> list[str]:
    """The same for a scheduler at work, which goes on meanwhile; plugins have less time to start."""
    trial = _Trial(sources, list(taken), seconds, config, RELOAD_SECONDS)
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
    """The plugins still to be tried, and the problems so far."""

    def __init__(
        self, sources: PluginSources, taken: list[str], seconds: float, config: object, start_seconds: float
    ) -> None:
        self.sources = sources
        self.problems: list[str] = []
        self._taken = taken
        self._seconds = seconds
        self._config = config
        self._start_seconds = start_seconds

    @property
    def request(self) -> bytes:
        return msgspec.json.encode(
            _Request(self._seconds, self._taken, self.sources, _plain(self._config), self._start_seconds)
        )

    @property
    def limit(self) -> float:
        """Seconds for the child, which ends by itself before."""
        files = sum(len(directory.files) for directory in self.sources.directories)
        return (
            _BEGIN
            + self._start_seconds
            + (files + len(self.sources.modules) + len(self.sources.entry_points)) * self._seconds
        )

    def fail(self, error: object) -> None:
        """Give up: there is no child, or it does not end."""
        self.problems.append(f"plugins cannot be tried out: {error or 'the child does not end'}")
        self.sources = PluginSources()

    def take(self, stdout: bytes, stderr: bytes, code: int) -> None:
        """Take over what a child found. If one of the sources ended it, the others are to be tried again."""
        begun, starts, stack = "", False, []
        for line in stdout.decode(errors="replace").splitlines():
            answer = _answer(line)
            if answer is None:
                stack.append(line)
            elif answer.problems is not None:
                self.problems = list(dict.fromkeys((*self.problems, *answer.problems)))
                self.sources = PluginSources()
                return
            else:
                begun, starts = answer.begun, answer.starts
        if starts:
            late = f"has not come back for {self._start_seconds:g} s while it was made, started or stopped"
            end = _end(stack, code, "a plugin", "made or started", late)
            self.problems.append(f"{_place_of_start(self.sources, stack)}: {end}")
            self.sources = PluginSources()
            return
        if not begun:
            said = stderr.decode(errors="replace").strip().splitlines()
            self.fail(said[-1] if said else f"the child ended {ending(code)}")
            return
        end = _end(stack, code, "it", "imported", f"is still being imported after {self._seconds:g} s")
        self.problems.append(f"{_place(begun, stack)}: {end}")
        self.sources = _without(begun, self.sources)


def _answer(line: str) -> _Answer | None:
    """A message of the child process; None for a line of a stack."""
    try:
        return _answers.decode(line.encode())
    except Unreadable:
        return None


def _end(stack: Sequence[str], code: int, it: str, how: str, late: str) -> str:
    """Say how the child ended. `it`: what was at work; `how`: what was done to it; `late`: what is said of a hang."""
    if stack and stack[0].startswith("Timeout"):
        return f"{it} {late}: an endless loop? What takes long belongs in a task"
    if stack and stack[0].startswith("Fatal"):
        return f"{it} crashed Python while it was {how}: {stack[0].partition(': ')[2]}"
    return f"{it} ended Python while it was {how}, {ending(code)}"


def _place_of_start(sources: PluginSources, stack: Sequence[str]) -> str:
    """The innermost line of a plugin's file, or where the main thread was."""
    files = {file.path for directory in sources.directories for file in directory.files}
    frames: list[tuple[str, str]] = _FRAME.findall("\n".join(stack))
    own = [f"{file}:{line}" for file, line in frames if file in files]
    return own[0] if own else ":".join(frames[0]) if frames else "plugins"


def _plain(config: object) -> Any:
    """A configuration as it can be sent: a file in YAML may have other values than JSON knows."""
    try:
        return msgspec.to_builtins(config, str_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None


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


def child(prepare: Callable[[], Start]) -> None:
    """The child's part: import everything, make and start it, report problems, and end.

    `prepare` loads what it takes to start plugins, which takes longer than all the rest: only where one is enabled.
    """
    import faulthandler

    from scheduler.framework.errors import ConfigError
    from scheduler.framework.tracebacks import described_with_place
    from scheduler.plugin_loading.accidents import Imports
    from scheduler.plugin_loading.load import load

    given = _requests.decode(sys.stdin.buffer.read())
    end = os._exit
    encode, cancel = msgspec.json.encode, faulthandler.cancel_dump_traceback_later  # whatever a plugin does to them
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # whatever a plugin prints or reads
        os.dup2(nowhere, descriptor)
    faulthandler.enable(file=answers)

    exits: list[str] = []

    def refuse(code: object = 0) -> None:
        caller = sys._getframe(1)
        exits.append(f"{caller.f_code.co_filename}:{caller.f_lineno}")
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
        others = {name: type(name, (Plugin,), {"name": name}) for name in given.taken}  # only the names matter here
        loaded = load(given.sources, others, {}, begun)
    except ConfigError as error:
        problems = list(error.problems)
    except BaseException as error:  # noqa: BLE001  a metaclass of a plugin's
        problems = [f"{imports.place}: its class cannot be looked at: {described_with_place(error)}"]
    imports.end()
    cancel()
    problems += imports.problems
    tried = {} if problems else {name: each for name, each in loaded.registry.items() if name not in given.taken}
    if not tried.keys().isdisjoint(_texts(given.config)):
        start = prepare()
        exits.clear()
        answers.write(encode(_Answer(starts=True)).decode() + "\n")
        faulthandler.dump_traceback_later(given.start_seconds, exit=True, file=answers)
        with suppress(BaseException):  # it comes again in the parent, which has words for it
            start(given.config, tried)
        cancel()
        problems = [f"{place}: it ends the program, with os._exit, while plugins are started" for place in exits]
    answers.write(encode(_Answer(problems=problems)).decode() + "\n")
    answers.flush()
    end(0)  # without waiting for threads that a plugin may have started


def _texts(value: object) -> Iterator[str]:
    """Yield all texts in a parsed configuration, however deep; names of plugins are among them."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            pending += each.values()
        elif isinstance(each, list):
            pending += each
