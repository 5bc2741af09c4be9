"""Steps the wall clock of a process while it runs, by a library that it preloads (clock.c); monotonic clocks stay."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("clock.c")


class Clock:
    """The wall clock of the processes that have `env` in their environment."""

    def __init__(self, directory: Path, library: Path | None) -> None:
        """`library`: None where it cannot be built, and the clock cannot be stepped."""
        self._file = directory / "clock-shift"
        self._library = library
        self.step(0)

    @property
    def can_step(self) -> bool:
        return self._library is not None

    @property
    def env(self) -> dict[str, str]:
        """For the environment of a process."""
        return {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK": str(self._file)} if self._library else {}

    def step(self, seconds: int) -> None:
        """Set how far the clock is off, in seconds from the true time."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(seconds.to_bytes(8, "little", signed=True))


def build(directory: Path) -> Path | None:
    """Compile the library into a directory; None if there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = directory / "clock.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return library
