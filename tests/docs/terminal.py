"""A shell as a reader of a page has it."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

SECONDS = 900.0
"""For one block: the longest installs everything."""


class Terminal:
    """A shell that keeps its directory and variables from one block to the next."""

    def __init__(self, directory: Path, env: Mapping[str, str] | None = None) -> None:
        """`env` is added to the environment of the caller, without what belongs to the test."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "KUBECONFIG"))}
        environment.pop("VIRTUAL_ENV", None)
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment | dict(env or {}),
            start_new_session=True,
        )
        self.output = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def run(self, commands: str, seconds: float = SECONDS) -> str:
        """Run commands to their end, and return what they print. Fails if one of them does."""
        before, marker = len(self.output), f"ended-{time.monotonic_ns()}"
        self.begin(f"set -e\n{commands}\nset +e\necho {marker}")
        self.wait_for(marker, seconds, before)
        return self.output[before:].replace(marker, "")

    def begin(self, commands: str) -> None:
        """Type commands, and do not wait."""
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{commands}\n")
        self._shell.stdin.flush()

    def wait_for(self, text: str, seconds: float, since: int = 0) -> None:
        """Return when the text is in the output after the position `since`. Fails if it does not come."""
        deadline = time.monotonic() + seconds
        while text not in self.output[since:]:
            if time.monotonic() > deadline or not self._reader.is_alive():
                pytest.fail(f"there is no {text!r} in the output:\n{self.output[since:][-5000:]}")
            self._reader.join(0.05)

    def close(self) -> None:
        """Press Ctrl-C, as the pages say, and see that everything ends."""
        assert self._shell.stdin is not None
        os.killpg(self._shell.pid, signal.SIGINT)
        self._shell.stdin.close()
        try:
            self._shell.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(self._shell.pid, signal.SIGKILL)
            raise
        finally:
            self._reader.join()
            assert self._shell.stdout is not None
            self._shell.stdout.close()

    def _read(self) -> None:
        assert self._shell.stdout is not None
        for line in self._shell.stdout:
            self.output += line


@contextmanager
def terminal(directory: Path, env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    """A terminal for the time of a `with` block."""
    opened = Terminal(directory, env)
    try:
        yield opened
    finally:
        opened.close()
