"""The engine that runs the nodes: Docker or podman if one answers, otherwise a Docker engine of our own.

Our own keeps its images, its socket and its log below the cache directory, so it meets nothing of the user's. It needs
root and Debian's package docker.io, which `make kind-deps` installs.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.controlplane.build import cache_directory
from tests.kind import runc_within_bounds

START_SECONDS: Final = 60
PULL_SECONDS: Final = 600
UNREACHABLE: Final = ("dial tcp", "no such host", "i/o timeout", "connection refused", "TLS handshake", "EOF")
"""What is said of a registry that cannot be reached at all."""


class EngineError(Exception):
    """A command of the engine failed. The text has the end of what it said."""


class RefusedError(EngineError):
    """No node can run on this machine: our own engine does not start, or one refuses what a node needs."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A command line that manages containers: `docker` or `podman`."""

    command: str
    host: str = ""
    """The address of the engine if it is not the default one, as in DOCKER_HOST."""

    @property
    def environment(self) -> dict[str, str]:
        """For processes that use the engine, such as kind."""
        given = {"DOCKER_HOST": self.host} if self.host else {}
        provider = {"KIND_EXPERIMENTAL_PROVIDER": self.command}
        return {**os.environ, **given, **provider}

    def __call__(self, *arguments: str, timeout: float = 120.0) -> str:
        """Run a command of the engine; return what it prints. Raises EngineError."""
        return run([self.command, *arguments], self.environment, timeout)

    def answers(self) -> bool:
        """Whether there is an engine behind the command."""
        try:
            self("info", timeout=20)
        except EngineError:
            return False
        return True

    def has(self, image: str) -> bool:
        try:
            self("image", "inspect", image)
        except EngineError:
            return False
        return True

    def pull(self, image: str) -> None:
        """Have the image here, from its registry if it is not. Raises EngineError."""
        if not self.has(image):
            self("pull", "--quiet", image, timeout=PULL_SECONDS)

    def check_privileged(self, image: str) -> None:
        """Run `true` of a node image in a container that may do what a node may. Raises RefusedError."""
        try:
            self("run", "--rm", "--privileged", "--entrypoint=/bin/true", image)
        except EngineError as error:
            raise RefusedError(f"privileged containers are refused here.\n{error}") from None

    @property
    def export_line(self) -> str:
        """What the user types so that `docker` means this engine; empty if it does already."""
        return f"export DOCKER_HOST={self.host}" if self.host else ""


def find() -> Engine | None:
    """The engine that answers, the user's before our own; None if there is none."""
    # The address is kept with the cluster: a later command finds it without the variable.
    candidates = [Engine("docker", os.environ.get("DOCKER_HOST", "")), Engine("podman"), own()]
    return next((each for each in candidates if shutil.which(each.command) and each.answers()), None)


def find_or_start() -> Engine:
    """The engine that answers, otherwise our own, started. Raises RefusedError."""
    return find() or start(own_directory())


def can_start() -> bool:
    """Whether our own can be started here."""
    return os.geteuid() == 0 and all(shutil.which(command) for command in ("dockerd", "docker", "runc", "iptables"))


def own_directory() -> Path:
    return cache_directory().with_name("kind") / "engine"


def own(directory: Path | None = None) -> Engine:
    """Our own engine, whether it runs or not."""
    return Engine("docker", f"unix://{(directory or own_directory()) / 'docker.sock'}")


def start(directory: Path) -> Engine:
    """Start a Docker engine that keeps everything in `directory`, and return when it answers. Raises RefusedError."""
    engine = own(directory)
    if engine.answers():
        return engine
    directory.mkdir(parents=True, exist_ok=True)
    command = ["dockerd", f"--host={engine.host}", f"--pidfile={directory}/pid"]
    command += [f"--data-root={directory}/data", f"--exec-root={directory}/exec"]
    if withheld := runc_within_bounds.withheld():
        print(f"This machine withholds {', '.join(sorted(withheld))}: containers do without.", file=sys.stderr)
        command += [f"--add-runtime=within-bounds={runtime(directory)}", "--default-runtime=within-bounds"]
    log = directory / "log"
    with log.open("w") as stream:
        # A session of its own: it outlives this command, as the cluster on it does.
        process = subprocess.Popen(command, stdout=stream, stderr=stream, start_new_session=True)
    deadline = time.monotonic() + START_SECONDS
    while not engine.answers():
        if process.poll() is not None or time.monotonic() > deadline:
            stop(directory)
            raise RefusedError(f"dockerd does not start; {log} ends with:\n{end_of(log.read_text(), lines=2)}")
        time.sleep(0.2)
    return engine


def stop(directory: Path) -> None:
    """Stop the engine that keeps everything in `directory`, if it runs; what it keeps stays."""
    pid_file = directory / "pid"
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text())
    with suppress(OSError):  # it is gone already
        if "dockerd" in Path(f"/proc/{pid}/comm").read_text():
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + START_SECONDS
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.1)


def runtime(directory: Path) -> Path:
    """The executable that Docker runs in place of runc."""
    path = directory / "runc-within-bounds"
    # -I and -S: it starts for each command in a container, and needs no library.
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {runc_within_bounds.__file__} "$@"\n')
    path.chmod(0o755)
    return path


def run(command: list[str], environment: dict[str, str] | None = None, timeout: float = 120.0) -> str:
    """Run a command and return what it prints. Raises EngineError with the end of what it said."""
    shown = " ".join(command[:6])
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EngineError(f"{shown} … did not end within {timeout:g} s") from None
    if result.returncode != 0:
        raise EngineError(f"{shown} … failed with code {result.returncode}:\n{end_of(result.stdout + result.stderr)}")
    return result.stdout


def end_of(text: str, lines: int = 20) -> str:
    return "\n".join(text.splitlines()[-lines:])
