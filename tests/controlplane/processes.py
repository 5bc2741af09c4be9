"""Processes that never outlive the caller: the caller's side of `supervisor.py`, and one process with its port.

supervisor = Supervisor(directory)
etcd = Component(supervisor, Program("etcd", argv=lambda port: [...], ready=lambda port: ...))
etcd.start(); etcd.stop(); etcd.start(); etcd.kill()
supervisor.close()
"""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.controlplane import supervisor as supervisor_program

PORTS = range(20000, 30000)
"""Below the ports that Linux gives to outgoing connections (32768 and up) and the NodePorts (30000 and up): a
benchmark with thousands of connections cannot take the port of an API server that is stopped for a moment."""

LOG_TAIL = 25
"""Lines of a log shown in an error."""


class ProcessError(Exception):
    """A process did not start, did not become ready, or ended when it should not. The text has its log's tail."""


class Supervisor:
    """The process that owns all others of one cluster, and its directory.

    `close` ends every process, removes the directory and returns when both is done; so does the end of this
    process, whatever its cause. A process forked from this one by `multiprocessing` keeps the supervisor alive.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = threading.Lock()
        # Its errors go to a file, not to the caller's: a reader of those would wait for this process as well.
        with (directory / "supervisor.log").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor_program.__file__, str(directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C in the terminal is for the caller alone
                text=True,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send one request and return the answer. Raises ProcessError if the supervisor is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            try:
                self._process.stdin.write(json.dumps(request) + "\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except (OSError, ValueError) as error:  # ValueError: the pipe is closed
                raise ProcessError("the supervisor of the test cluster has ended") from error
        if not line:
            raise ProcessError("the supervisor of the test cluster has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self, timeout: float = 20.0) -> None:
        """End every process and remove the directory. May be called twice."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has already ended
            self._process.stdin.close()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its children follow: PR_SET_PDEATHSIG
            self._process.wait()
        self._process.stdout.close()


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. `argv` and `ready` are given the port that was chosen for it."""

    name: str
    argv: Callable[[int], Sequence[str]]
    ready: Callable[[int], bool] = lambda _: True
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of the caller."""
    start_timeout: float = 60.0
    """Seconds until `ready`. Usual is 1 to 4; the rest is for a machine that is busy building."""


class Component:
    """One process, the same object and the same port over stops and starts.

    A context manager, for those that a test wants to end before the cluster: leaving it stops the process.
    """

    def __init__(self, supervisor: Supervisor, program: Program) -> None:
        self.name = program.name
        self.port = free_port()
        self.log = supervisor.directory / f"{program.name}.log"
        self._supervisor = supervisor
        self._program = program
        self.starts = 0
        """How often it was started."""
        self._pid: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process id. Raises ProcessError before the first start."""
        if self._pid is None:
            raise ProcessError(f"{self.name} was not started")
        return self._pid

    @property
    def running(self) -> bool:
        """Whether the process exists."""
        return self._pid is not None and self.exit_code is None

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        code: int | None = self._supervisor.ask(op="poll", name=self.name)["code"]
        return code

    def start(self) -> None:
        """Start it and return when it is ready. Raises ProcessError with the log's tail if it is not.

        On the first start a port that was taken in the meantime is exchanged for another; later starts keep it,
        since others know it.
        """
        if self.running:
            raise ProcessError(f"{self.name} is running already")
        first = self._pid is None
        for attempts_left in (2, 1, 0):
            self._spawn()
            try:
                return self.wait_ready()
            except ProcessError as error:
                self.kill()
                if not (first and attempts_left and "address already in use" in str(error)):
                    raise
                self.port = free_port()
        raise AssertionError("the last attempt returns or raises")

    def wait_ready(self) -> None:
        """Return when it answers as ready, which start has waited for already. Raises as start does."""
        deadline = time.monotonic() + self._program.start_timeout
        while not self._program.ready(self.port):
            if (code := self.exit_code) is not None:
                raise ProcessError(f"{self.name} ended with code {code}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                limit = self._program.start_timeout
                raise ProcessError(f"{self.name} is not ready after {limit:.0f} s:\n{self.log_tail()}")
            time.sleep(0.05)

    def stop(self, timeout: float = 15.0) -> None:
        """Ask it to end (SIGTERM), and kill it after `timeout` seconds. Nothing happens if it is not running."""
        if self.running:
            self.send_signal(signal.SIGTERM)
            if not self._wait_end(timeout):
                self.kill()

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would. Nothing happens if it is not running."""
        if self.running:
            self.send_signal(signal.SIGKILL)
            self._wait_end(timeout=10.0)

    def send_signal(self, signum: signal.Signals) -> None:
        """Send a signal; SIGSTOP and SIGCONT make it hang for a while."""
        self._supervisor.ask(op="signal", name=self.name, signal=int(signum))

    def log_tail(self, lines: int = LOG_TAIL) -> str:
        """The last lines of its output."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:]) or "(it wrote nothing)"

    def _spawn(self) -> None:
        program = self._program
        answer = self._supervisor.ask(
            op="spawn",
            name=self.name,
            argv=[str(argument) for argument in program.argv(self.port)],
            env={**os.environ, **program.env},
            log=str(self.log),
        )
        if "error" in answer:
            raise ProcessError(f"{self.name} cannot be started: {answer['error']}")
        self._pid = answer["pid"]
        self.starts += 1

    def _wait_end(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self.running and time.monotonic() < deadline:
            time.sleep(0.02)
        return not self.running


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            # As Go's listeners do: a port with old connections in TIME_WAIT is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ProcessError(f"none of 100 ports tried between {PORTS.start} and {PORTS.stop} is free")
