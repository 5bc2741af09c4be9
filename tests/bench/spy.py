"""py-spy beside a running process: where its CPU time goes, by the stack, without a change to the process.

py-spy reads the memory of a process, which a kernel may forbid to all but its debugger. So the process is started by
`ALLOWED`, which permits it to everybody of the same user, as far as the kernel's Yama asks for that.
"""

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Final

RATE: Final = 100
"""Samples a second: each stops the process for about 0.1 ms."""

START_SECONDS: Final = 10.0
"""Until py-spy samples; it takes half a second to find its way in the process."""

END_SECONDS: Final = 60.0
"""Until its file is there, once the process has ended."""

ALLOWED: Final = (
    sys.executable,
    "-I",
    "-S",
    "-c",
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0);"  # PR_SET_PTRACER, any
    "os.execv(sys.argv[1], sys.argv[1:])",
)
"""What to put before a command so that py-spy may look at it: the process stays the same, its id too."""


class SpyError(Exception):
    """py-spy is not there or cannot do its work here. The text is one line."""


class Spy:
    """Records one process. `start` it, and `finish` when the process has ended."""

    def __init__(self, directory: Path, *, native: bool = False) -> None:
        """`native`: C functions too, where their libraries have names for them; each sample takes longer."""
        self._stacks = directory / "stacks.txt"
        self._log = directory / "py-spy.log"
        self._native = native
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def started(self) -> bool:
        return self._process is not None

    def start(self, pid: int) -> None:
        """Return when it samples. Raises SpyError."""
        options = [f"--rate={RATE}", "--format=raw", "--function", "--full-filenames", f"--output={self._stacks}"]
        if self._native:
            options.append("--native")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [program(), "record", *options, f"--pid={pid}"], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + START_SECONDS
        while "Sampling process" not in self._log.read_text():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise SpyError(f"py-spy cannot look into a process here: {self._reason()}")
            time.sleep(0.02)

    def finish(self) -> str:
        """The stacks in folded form: a line for each, its frames from the outermost, then how often it was seen."""
        if self._process is None:
            raise SpyError("nothing was recorded: the workload has no measured part")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        self.close()
        if not self._stacks.exists():
            raise SpyError(f"py-spy wrote nothing: {self._reason()}")
        return self._stacks.read_text()

    def close(self) -> None:
        """End it, whatever it does."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def _reason(self) -> str:
        text = self._log.read_text(errors="replace").partition("Stack backtrace")[0]
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return "; ".join(lines)[:300] or "it says nothing"


def program() -> str:
    """Where py-spy is. Raises SpyError."""
    beside = Path(sys.executable).parent / "py-spy"
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise SpyError("py-spy is not installed: `make install` brings it")
    return found


def probe() -> None:
    """Try it on a small process. Raises SpyError if the kernel or the container forbids it: needs CAP_SYS_PTRACE, or a
    seccomp profile that permits ptrace and process_vm_readv."""
    wait = "import time; print(1, flush=True); time.sleep(60)"
    with tempfile.TemporaryDirectory() as directory:
        with subprocess.Popen([*ALLOWED, sys.executable, "-c", wait], stdout=subprocess.PIPE, text=True) as process:
            try:
                _wait_line(process.stdout)
                spy = Spy(Path(directory))
                spy.start(process.pid)
            except SpyError as error:
                needs = "needs CAP_SYS_PTRACE, or a seccomp profile with ptrace and process_vm_readv"
                raise SpyError(f"{error}; {needs}") from error
            finally:
                process.kill()
        spy.finish()


def _wait_line(stream: IO[str] | None) -> None:
    assert stream is not None
    stream.readline()
