"""The file of a snapshot: compressed as it is written, and moved to its name once it is whole.

    .NAME.XXXX  ──kind by kind, each compressed by itself──► complete ──► NAME

A kind that has to be read again is truncated where it began. A snapshot for a pipe is collected in a temporary file
first: the reader of the pipe gets all of it or nothing.
"""

import os
import shutil
import stat
import tempfile
import zlib
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

import msgspec

from scheduler.framework.errors import ConfigError
from scheduler.process.writing import writing
from scheduler.snapshots.header import Header, LeftOut

LEVEL: Final = 6
"""Of zlib."""

MAX_BYTES: Final = 4 << 30
"""Of an uncompressed snapshot, which `simulate` can read: a million pods with all that kubectl shows."""


class SnapshotFile:
    """A snapshot being written; a context manager that leaves no file unless `complete` was called.

    All methods raise ConfigError if it cannot be written.
    """

    def __init__(self, target: Path | BinaryIO, header: Header, *, force: bool = False) -> None:
        """`target`: its place in the end. `force`: it may replace a file."""
        self._target = target
        self._force = force
        with self._writing():
            self._file, self._path = _temporary(target, force=force)
        self._packer = _packer()
        self._objects = self._size = 0
        self._begun = 0, 0, 0
        """The beginning of the part that `take_back` removes; the number of objects, and of bytes, before it."""
        self._write(b'{"apiVersion":"v1","kind":"List","snapshot":' + msgspec.json.encode(header) + b',"items":[')

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with suppress(OSError):  # a full disk, which `add` has reported
                self._file.close()
        finally:
            if self._path is not None:
                self._path.unlink(missing_ok=True)

    def begin(self) -> None:
        """Begin a part, which `take_back` removes as a whole."""
        self._end_part()
        self._begun = self._file.tell(), self._objects, self._size

    def take_back(self) -> None:
        """Remove what was written since `begin`."""
        self._packer = _packer()
        place, self._objects, self._size = self._begun
        with self._writing():
            self._file.seek(place)
            self._file.truncate()

    def add(self, obj: bytes) -> None:
        """Write an object, in JSON."""
        self._write(b",\n" + obj if self._objects else b"\n" + obj)
        self._objects += 1

    def complete(self, left_out: tuple[LeftOut, ...]) -> int:
        """Write the end, and move the file to its place. Return its size in bytes. Raises OSError for a pipe."""
        self._write(b'\n],"leftOut":' + msgspec.json.encode(left_out) + b"}\n")
        self._end_part()
        with self._writing():
            self._file.flush()
            os.fsync(self._file.fileno())
        size = self._file.tell()
        if isinstance(self._target, Path):
            assert self._path is not None
            check_target(self._target, force=self._force)
            with self._writing():
                self._path.replace(self._target)
            self._path = None
        else:
            self._file.seek(0)
            shutil.copyfileobj(self._file, self._target)
            self._target.flush()
        return size

    def _write(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > MAX_BYTES:
            raise ConfigError([f"the cluster has more than {MAX_BYTES} bytes, which no simulation reads"])
        packed = self._packer.compress(data)
        if packed:
            with self._writing():
                self._file.write(packed)

    def _end_part(self) -> None:
        with self._writing():
            self._file.write(self._packer.flush())
        self._packer = _packer()

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self._target if isinstance(self._target, Path) else f"a file in {tempfile.gettempdir()}")


def check_target(path: Path, *, force: bool) -> None:
    """Raise ConfigError if a file must not be written to `path`."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except ValueError as error:
        raise ConfigError([f"{path}: cannot be written: no name of a file"]) from error
    except OSError as error:
        raise ConfigError([f"{path}: cannot be written: {error.strerror}"]) from error
    if stat.S_ISDIR(mode):
        raise ConfigError([f"{path}: this is a directory: name a file in it"])
    if not stat.S_ISREG(mode):
        raise ConfigError([f"{path}: this is no ordinary file; --out - writes to standard output"])
    if not force:
        raise ConfigError([f"{path}: it is there already; --force replaces it"])


def _temporary(target: Path | BinaryIO, *, force: bool) -> tuple[BinaryIO, Path | None]:
    """Raises OSError, ConfigError."""
    if not isinstance(target, Path):
        unnamed: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - closed at our end
        return unnamed, None
    check_target(target, force=force)
    # Readable by its owner only, regardless of the umask.
    number, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    return os.fdopen(number, "w+b"), Path(name)


def _packer() -> "zlib._Compress":
    return zlib.compressobj(LEVEL, wbits=31)
