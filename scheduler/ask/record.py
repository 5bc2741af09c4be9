"""`loadmaster record`: writes what a running scheduler tells into a file, until one of both has enough."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.framework.awaited import first_of
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.client import Client
from scheduler.kube.credentials import load_credentials
from scheduler.kube.service_proxy import RECORD, RunningScheduler
from scheduler.replay.members import BadStream, Members, last_member
from scheduler.runtime.metrics import Metrics

_end: Final = Decoder[tuple[str, int, str]](tuple[str, int, str])

ENDED_HERE: Final = "whoever recorded it had enough"
CUT: Final = "the connection to the scheduler was lost"
SHOW_SECONDS: Final = 1.0


def run(options: argparse.Namespace) -> int:
    """Record, and say what there is. Raises ConfigError for what cannot be asked or written."""
    path = Path(options.out)
    try:
        file = created(path)
    except FileExistsError as error:
        raise ConfigError([f"{path}: is there already"]) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError([f"{path}: cannot be written: {reason}"]) from error
    members = Members()
    try:
        with file:
            return asyncio.run(_run(options, file, members))
    except BadStream as error:
        raise ConfigError([f"what the scheduler's Service answers is no trace: {error}"]) from error
    except ClusterError as error:
        raise ConfigError([str(error)]) from error
    except OSError as error:
        raise ConfigError([f"{path}: cannot be written: {error.strerror}"]) from error
    finally:
        if not path.stat().st_size:
            path.unlink()


def created(path: Path) -> BinaryIO:
    """Create a file that only its owner reads: a trace names what runs in the cluster. Raises OSError, ValueError."""
    return open(path, "xb", opener=partial(os.open, mode=0o600))


async def _run(options: argparse.Namespace, file: BinaryIO, members: Members) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    credentials = await load_credentials(options.kubeconfig, options.context)
    async with Client(credentials, Metrics()) as client:
        scheduler = RunningScheduler(client, options.service_namespace, options.service, RECORD)
        why = CUT
        try:
            async with scheduler.record(options.seconds) as parts:
                await first_of(stop.wait(), _write(parts, file, members))
        except ClusterError as error:
            if not members.decisions:
                raise
            why = f"{CUT}: {error}"
    if stop.is_set():
        why = ENDED_HERE
    if not members.end:
        file.write(last_member(members.milliseconds, why))
    else:
        why = _why(members.end)
    seconds = members.milliseconds / 1000
    print(f"{options.out}: {members.decisions} decisions in {seconds:.1f} s; it ended as {why}")
    return 0


def _why(line: str) -> str:
    """What the last line of a trace says. Raises BadStream."""
    try:
        return _end.decode(line.encode())[2]
    except Unreadable as error:
        raise BadStream(f"the last line of the trace cannot be read: {error}") from error


async def _write(parts: AsyncIterator[bytes], file: BinaryIO, members: Members) -> None:
    loop = asyncio.get_running_loop()
    shown_at = loop.time()
    async for part in parts:
        for member in members.feed(part):
            file.write(member)
            file.flush()
        if sys.stderr.isatty() and loop.time() - shown_at > SHOW_SECONDS:
            shown_at = loop.time()
            sys.stderr.write(f"\r{members.decisions} decisions in {members.milliseconds / 1000:.0f} s; Ctrl-C ends it ")
            sys.stderr.flush()
