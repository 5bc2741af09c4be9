"""Writes the trace that a running scheduler sends for `loadmaster record`, until one of the two ends it.

asked ──► RECORDING ──the scheduler says why it ends──► its last line
  │          └─Ctrl-C, the connection is lost, it ends without a word──► a last line of ours
  └─nothing came──► an error, and no file
"""

import argparse
import asyncio
import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.wording.text import counted, printable
from scheduler.framework.awaited import first_of
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.http.client import connected
from scheduler.kube.services.service_proxy import RECORD, RunningScheduler
from scheduler.process.progress import Progress, on_stderr
from scheduler.process.results import results
from scheduler.process.writing import writing
from scheduler.replay.trace.gzip_members import BadStream, GzipMembers
from scheduler.replay.trace.lines import End

_end: Final = Decoder[End](End)

ENDED_HERE: Final = "it was stopped where it was recorded"
ENDED_THERE: Final = "the scheduler sent no more: it was stopped, or the right to read it was taken away"
CUT: Final = "the connection to the scheduler was lost"
TOO_EARLY: Final = "nothing was recorded: it was ended before the scheduler had answered"
NOTHING: Final = "nothing was recorded: the scheduler sent nothing; another recording may be under way"


def run(options: argparse.Namespace) -> int:
    """Record, and report the result. Raises ConfigError, ClusterError."""
    path = Path(options.out)
    with writing(path):
        file = created(path)
    trace = _TraceFile(file)
    try:
        with file:
            return asyncio.run(_run(options, trace))
    except BadStream as error:
        raise ConfigError([f"what the scheduler's Service answers is no trace: {error}"]) from error
    except OSError as error:
        so_far = "; what came before that is in it, and can be replayed" if trace.size else ""
        raise ConfigError([f"{path}: cannot be written: {error.strerror}{so_far}"]) from error
    finally:
        if not trace.size:
            path.unlink(missing_ok=True)


def created(path: Path) -> BinaryIO:
    """Create a file that only its owner reads: a trace names what runs in the cluster. Raises OSError, ValueError.

    Nothing waits in a buffer: what was written is there, whatever ends us.
    """
    return open(path, "xb", buffering=0, opener=partial(os.open, mode=0o600))


class _TraceFile:
    """A file of whole members: a part that a full disk has cut off is removed again."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.members = GzipMembers()
        self.size = 0
        """Bytes of the members that are in it."""

    def feed(self, data: bytes) -> None:
        """Write the members that are whole with this. Raises BadStream, OSError."""
        for member in self.members.feed(data):
            self._write(member)

    def end(self, why: str) -> str:
        """Write the end and the checksum; return why it ended, which the scheduler may have said by itself.

        Raises BadStream, OSError.
        """
        said = self.members.end
        if said:
            try:
                why = _end.decode(said.encode()).why
            except Unreadable as error:
                raise BadStream(f"its last line cannot be read: {error}") from error
        self._write(self.members.last(why))
        return why

    def _write(self, member: bytes) -> None:
        rest = memoryview(member)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            with suppress(OSError):
                self._file.truncate(self.size)
            raise
        self.size += len(member)


async def _run(options: argparse.Namespace, trace: _TraceFile) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    why, members = ENDED_THERE, trace.members
    progress = on_stderr()
    try:
        with progress.shown():
            await first_of(stop.wait(), _recorded(options, trace, progress))
    except ClusterError as error:
        if not members.decisions:
            raise
        why = f"{CUT}: {error}"
    if stop.is_set():
        why = ENDED_HERE
    if not trace.size:
        raise ClusterError(TOO_EARLY if stop.is_set() else NOTHING)
    why = trace.end(why)
    decisions, seconds = counted(members.decisions, "decision"), members.milliseconds / 1000
    print(printable(f"{options.out}: {decisions} in {seconds:.1f} s; it ended because {why}"), file=results())
    return 0


async def _recorded(options: argparse.Namespace, trace: _TraceFile, progress: Progress) -> None:
    async with connected(options.kubeconfig, options.context) as client:
        scheduler = RunningScheduler(client, options.service_namespace, options.service, RECORD)
        async with scheduler.record(options.seconds) as parts:
            progress.doing("recording decisions (Ctrl-C to stop)")
            async for part in parts:
                trace.feed(part)
                progress.done = trace.members.decisions
