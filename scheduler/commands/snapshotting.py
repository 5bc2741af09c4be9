"""Takes a snapshot for `loadmaster snapshot`.

Kinds are read one after the other, page by page, and written at once: only one page is in memory.
"""

import argparse
import asyncio
import re
import signal
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO, Final

from scheduler.api.decoding import Unreadable
from scheduler.assembly.cluster_objects import MAKES, further_kinds, without
from scheduler.config.documents import STDIN
from scheduler.config.load import load_config
from scheduler.config.types import Config
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.framework.nodes.resources import read_raw_pods
from scheduler.kube.http.client import BadStatus, connected
from scheduler.kube.informers.listing import BEGINNINGS, Expired, Lister
from scheduler.kube.services.api_server import ask_api_server
from scheduler.process.progress import Progress, on_stderr
from scheduler.process.results import results
from scheduler.runtime.registry import Registry
from scheduler.snapshots.aliases import Aliases
from scheduler.snapshots.file import SnapshotFile, check_target
from scheduler.snapshots.header import VERSION, Header, LeftOut
from scheduler.snapshots.kept_fields import KINDS, Kind
from scheduler.snapshots.reduction import Reduction

STDOUT: Final = STDIN
TERMINATED: Final = 143
"""The exit code after a SIGTERM."""


def run(options: argparse.Namespace, registry: Registry) -> int:
    """Take a snapshot. Raises ConfigError for what cannot be read or written, OSError for a pipe."""
    try:
        return asyncio.run(_run(options, registry))
    except ClusterError as error:
        raise ConfigError([f"{error}; no snapshot was written"]) from error
    except asyncio.CancelledError:
        return TERMINATED


async def _run(options: argparse.Namespace, registry: Registry) -> int:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # so that no temporary file is left
    target = _target(options)
    config = load_config(options.config, registry)
    progress = on_stderr()
    async with connected(options.kubeconfig, options.context) as client:
        server = (await ask_api_server(client)).version or "of unknown version"
        header = Header(
            version=VERSION,
            taken_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            server=_without_build(server) if options.anonymise else server,
            loadmaster=version("loadmaster"),
            is_anonymised=options.anonymise,
        )
        with progress.shown(), SnapshotFile(target, header, force=options.force) as file:
            taking = _Taking(Lister(client, progress.say), file, _reduction(options, config, registry), progress)
            for kind in (*KINDS, *further_kinds(config, registry)):
                await taking.take(kind)
            size = file.complete(tuple(taking.left_out))
    for line in taking.said:
        progress.say(line)
    where = "standard output" if options.out == STDOUT else options.out
    progress.say(
        f"{where}: {_objects(taking.objects)} of {taking.kinds} kinds in {_amount(size)}, of an API server {server}"
    )
    return 0


class _Taking:
    def __init__(self, lister: Lister, file: SnapshotFile, reduction: Reduction, progress: Progress) -> None:
        self._lister, self._file, self._reduction, self._progress = lister, file, reduction, progress
        self.left_out: list[LeftOut] = []
        self.said: list[str] = []
        """The kinds that are left out, for the user who takes the snapshot."""
        self.objects = self.kinds = 0
        self._refused: set[str] = set()

    async def take(self, kind: Kind) -> None:
        """Read a kind, and write it. Raises ClusterError, ConfigError."""
        if why := self._why_not(kind):
            self._leave_out(kind, why)
            return
        for beginning in range(BEGINNINGS):
            self._file.begin()
            try:
                count, notes = await self._take(kind)
                break
            except Expired as error:
                self._file.take_back()
                if beginning + 1 == BEGINNINGS:
                    raise
                self._progress.say(f"{error}; reading it again")
            except BadStatus as error:
                self._file.take_back()
                self._refused.add(kind.name)
                # The API server's words have the name of the user.
                self._leave_out(kind, without(kind, error), f"HTTP {error.status}; in a simulation, {kind.without}")
                return
        self.objects += count
        self.kinds += count > 0
        for note in notes:
            self._leave_out(kind, note)

    def _why_not(self, kind: Kind) -> str:
        """Why a kind is not even read; empty if it is."""
        owned = MAKES.get(kind.name)
        if owned in self._refused:
            return f"without any {owned}, a simulation would make all of its pods anew"
        if self._reduction.is_anonymous and kind not in KINDS:
            return "what names stand in it is not known, so they cannot be replaced"
        return ""

    async def _take(self, kind: Kind) -> tuple[int, list[str]]:
        """Return the number of objects, and the notes."""
        count, unreadable, notes = 0, 0, []
        self._progress.doing(f"reading {kind.resource.plural}")
        async for page in self._lister.pages(kind.resource):
            if kind.name == "":
                kind = kind._replace(name=page.kind)
            if page.is_later:
                notes.append(
                    f"after {_objects(count)} the list is of a later moment: it was too long to be read at once"
                )
            for item in page.items:
                try:
                    self._file.add(self._reduction.reduced(item, kind))
                except Unreadable:
                    unreadable += 1
                else:
                    count += 1
            self._progress.done = count
        if unreadable:
            notes.append(f"{_objects(unreadable)} cannot be read")
        return count, notes

    def _leave_out(self, kind: Kind, why: str, anonymous: str = "") -> None:
        """Note a resource that is left out; an anonymised snapshot gives the reason `anonymous` instead of `why`."""
        name = kind.name or kind.resource.name
        self.said.append(f"left out: {name}: {why}")
        if self._reduction.is_anonymous:
            name, why = kind.name or "a kind that a plugin looks at", anonymous or why
        self.left_out.append(LeftOut(name, why))


def _target(options: argparse.Namespace) -> Path | BinaryIO:
    """Raises ConfigError, before anything is read."""
    if options.out != STDOUT:
        path = Path(options.out)
        check_target(path, force=options.force)
        return path
    if results().isatty():
        raise ConfigError(["standard output: a snapshot is packed, and not for a terminal: --out names a file"])
    return results().buffer


def _reduction(options: argparse.Namespace, config: Config, registry: Registry) -> Reduction:
    enabled = {name for profile in config.profiles for name in profile.enabled}
    raw_pods = read_raw_pods(registry[name] for name in enabled)
    return Reduction(Aliases() if options.anonymise else None, whole_pods=raw_pods)


_RELEASE: Final = re.compile(r"v\d{1,3}\.\d{1,3}\.\d{1,3}", re.ASCII)


def _without_build(server: str) -> str:
    """`v1.36.3-acme.7` ─► `v1.36.3`: the builder stays private."""
    match = _RELEASE.match(server)
    return match[0] if match else ""


def _objects(count: int) -> str:
    return "1 object" if count == 1 else f"{count} objects"


def _amount(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{max(size // 1000, 1)} KB"
