"""One scheduler under test: a process, the proxy through which it sees the API server, and what it leaves behind."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.chaos.proxy import Proxy
from tests.cluster.loadmaster import is_ready, metric, serving
from tests.controlplane import Cluster, Component, ProcessError
from tests.controlplane.processes import Program

ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = Path(__file__).with_name("scheduler_under_test.py")
START_SECONDS: Final = 90.0
"""For a start in the middle of faults."""
END_SECONDS: Final = 35.0
"""For an orderly end: 20 s for its bindings, and the rest."""

LISTENING: Final = "0A"
"""A state of a socket, in /proc/net/tcp."""

LOST_LEASE: Final = re.compile(b'"part": "leader election"')
"""In the line with which the program of a leader ends that leads no more."""

Line = dict[str, Any]


class Replica:
    """A process that is killed and started again; `incarnation` counts its lives."""

    def __init__(self, cluster: Cluster, name: str, proxy: Proxy, options: list[str], env: dict[str, str]) -> None:
        self.name = name
        self.proxy = proxy
        self.problems: list[str] = []
        """What happened to the process that nobody had told it to."""
        self._lost_leases = 0
        self._is_down = False
        """Whether it is not to run now."""
        self._lock = asyncio.Lock()
        self._born = 0
        """Where in the log this life begins."""
        self._read = 0
        self._lives = 0
        self._starting: asyncio.Task[None] | None = None

        def argv(port: int) -> list[str]:
            return [sys.executable, str(PROGRAM), "run", *serving(port), "--logging-format=json", "-v=2", *options]

        environment = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'docs' / 'examples'}", **env}
        program = Program(name, argv, is_ready, environment, START_SECONDS)
        self._component = Component(cluster.supervisor, program)

    @property
    def log(self) -> Path:
        return self._component.log

    @property
    def port(self) -> int:
        return self._component.port

    @property
    def incarnation(self) -> str:
        return self.proxy.incarnation

    def start(self) -> None:
        """Start the process without waiting for it."""
        self._is_down = False
        self._born = self.log.stat().st_size if self.log.exists() else 0
        self._lives += 1
        self.proxy.incarnation = f"{self.name}#{self._lives}"
        self._starting = asyncio.create_task(asyncio.to_thread(self._component.start), name=f"start {self.name}")

    async def mend(self) -> None:
        """Start it again if it has ended by itself, as a kubelet would; unless it lost the Lease, that is a problem."""
        async with self._lock:
            if self._is_down or self.is_starting:
                return
            if await asyncio.to_thread(lambda: self._component.running):
                return
            await self._abandon_start()
            code = self._component.exit_code
            if code == 1 and self._has_lost_lease():
                self._lost_leases += 1
            else:
                self.problems.append(f"ended by itself with code {code}:\n{self._component.log_tail()}")
            self.start()

    async def started(self) -> None:
        """Return when it is ready."""
        while True:
            if (starting := self._starting) is not None:
                await asyncio.wait([starting])
                starting.exception()  # if it failed, the process has ended, and `mend` tells
            before = self._lives
            await self.mend()
            if self._lives == before:
                return

    def forget_losses(self) -> int:
        """How often it ended because it had lost the Lease, since the last call."""
        lost, self._lost_leases = self._lost_leases, 0
        return lost

    async def kill(self) -> None:
        """SIGKILL, in the middle of a start, too."""
        async with self._lock:
            self._is_down = True
            await asyncio.to_thread(self._component.kill)
            await self._abandon_start()

    async def terminate(self) -> None:
        """SIGTERM; ending late, or with another code than 0, is a problem."""
        async with self._lock:
            await self._terminate()

    async def _terminate(self) -> None:
        starting = self.is_starting
        self._is_down = True
        self.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                while await asyncio.to_thread(lambda: self._component.running):  # noqa: ASYNC110  another process
                    await asyncio.sleep(0.05)
        code = self._component.exit_code
        if code != 0 and not starting and not (code == 1 and self._has_lost_lease()):
            self.problems.append(f"was told to end and did so with code {code} (None: not at all)")
        await asyncio.to_thread(self._component.kill)
        await self._abandon_start()

    @property
    def is_starting(self) -> bool:
        return self._starting is not None and not self._starting.done()

    def signal(self, signum: signal.Signals) -> None:
        self._component.send_signal(signum)

    async def _abandon_start(self) -> None:
        """Wait for the end of a start whose process has been ended."""
        if self._starting is not None:
            await asyncio.wait([self._starting])
            self._starting.exception()
            self._starting = None

    def _has_lost_lease(self) -> bool:
        """Whether it told in this life that it leads no more."""
        return LOST_LEASE.search(self.log.read_bytes()[self._born :]) is not None

    def new_lines(self) -> tuple[list[Line], list[str]]:
        """What it has logged since the last call: its lines, and whatever else came over its standard error."""
        text = self._component.log.read_bytes() if self._component.log.exists() else b""
        end = text.rfind(b"\n") + 1
        fresh, self._read = text[self._read : end].decode(errors="replace"), end
        lines: list[Line] = []
        others: list[str] = []
        for line in filter(None, fresh.splitlines()):
            try:
                lines.append(json.loads(line))
            except ValueError:
                others.append(line)
        return lines, others

    async def metric(self, name: str, **labels: str) -> float:
        return await asyncio.to_thread(metric, self.port, name, **labels)

    def memory(self) -> int:
        """Bytes in use: the resident set."""
        for line in Path(f"/proc/{self._component.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
        raise ProcessError(f"{self.name} has no memory: it has ended")

    def descriptors(self) -> Counter[str]:
        """Open descriptors by what they are: socket, pipe, anon_inode, file; but for who looks at its health."""
        found: Counter[str] = Counter()
        of_visitors = accepted(Path(f"/proc/{self._component.pid}/net/tcp").read_text(), self.port)
        for entry in Path(f"/proc/{self._component.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                target = str(entry.readlink())
                if target not in of_visitors:
                    found[re.sub("^/.*", "file", target.split(":")[0])] += 1
        return found


def accepted(table: str, port: int) -> set[str]:
    """The sockets of connections that came to a port, as /proc names them. `table`: that of /proc/net/tcp."""
    found = set()
    for line in table.splitlines()[1:]:
        columns = line.split()
        if int(columns[1].split(":")[1], 16) == port and columns[3] != LISTENING:
            found.add(f"socket:[{columns[9]}]")
    return found
