"""Reads a trace from a file, line by line and in bounded memory. Anything else is refused with one clear sentence.

A trace that was cut off can be replayed up to its end: `Trace.incomplete` says so once all lines were read.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from scheduler.api.decoding import QUICK_ERRORS, Decoder, Unreadable
from scheduler.files.reading import chunks
from scheduler.files.unpacking import BadGzip, CutOff, NoGzip, TooDense, unpacked
from scheduler.framework.errors import ConfigError
from scheduler.replay.trace.lines import FORMAT, MARK, Checksum, End, Header, Line, Sum, decode_line, encode, kind_of

MAX_LINE: Final = 64 << 20
"""Bytes. The largest is an answer with the measurements of all nodes."""

PIPE_SECONDS: Final = 60.0
"""For each part of a trace that comes through a pipe."""

_SUM: Final = f'["{kind_of(Sum)}",'.encode()

_header: Decoder[Header] = Decoder(Header)
_mark: Decoder[dict[str, msgspec.Raw]] = Decoder(dict[str, msgspec.Raw])


class Trace:
    def __init__(self, path: str) -> None:
        """Read the header. Raises ConfigError."""
        self.path = path
        self._texts = _texts(path)
        self.incomplete = ""
        """Why the file is not whole; known once all lines were read."""
        self.end = ""
        """Why the recording ended; known once all lines were read."""
        self.number = 1
        """Of the last line that was read."""
        try:
            first = next(self._texts, b"")
        except _Cut as cut:
            raise ConfigError([f"{path}: not a trace of Loadmaster, or no more than its beginning: {cut}"]) from cut
        if not first.startswith(MARK):
            raise ConfigError([f"{path}: not a trace of Loadmaster"])
        self.header = _header_of(path, first)

    def lines(self) -> Iterator[Line]:
        """Yield all lines before the end. Raises ConfigError for one that cannot be read."""
        try:
            for text in self._texts:
                self.number += 1
                try:
                    line = decode_line(text)
                except QUICK_ERRORS as error:
                    is_unknown = str(error).endswith("at `$[0]`")
                    problem = "a kind of line that this program does not know" if is_unknown else Unreadable(error)
                    raise ConfigError([f"{self.path}: line {self.number} cannot be read: {problem}"]) from error
                if isinstance(line, End):
                    self.end = line.why
                    return
                yield line
        except _Cut as cut:
            self.incomplete = str(cut)
            return
        self.incomplete = "its end is missing"


def is_as_recorded(path: str) -> bool | None:
    """Return whether the lines of a trace fit its checksum; None if it has none, since it is not whole or of an older
    program.

    Raises ConfigError.
    """
    checksum = Checksum()
    try:
        for text in _texts(path):
            if text.startswith(_SUM):
                return text + b"\n" == encode(Sum(decode_line(text).milliseconds, checksum.hexdigest()))
            checksum.update(text + b"\n")
    except QUICK_ERRORS:
        return False
    except _Cut:
        return None
    return None


class _Cut(Exception):
    """The file ends early."""


def _header_of(path: str, text: bytes) -> Header:
    try:
        version = _mark.decode(text)["loadmasterTrace"]
        if bytes(version) != str(FORMAT).encode():
            found = bytes(version)[:20].decode(errors="replace")
            raise ConfigError([f"{path}: a trace of format {found}; this program reads format {FORMAT}"])
        return _header.decode(text)
    except (Unreadable, KeyError) as error:
        raise ConfigError([f"{path}: the first line of the trace cannot be read: {error}"]) from error


def _texts(path: str) -> Iterator[bytes]:
    """Yield the lines that are whole. Raises ConfigError, or _Cut after these."""
    rest = bytearray()
    for part in _unpacked(path):
        end = part.rfind(b"\n") + 1
        if end:
            rest += part[:end]
            yield from bytes(rest).split(b"\n")[:-1]
            rest.clear()
        rest += part[end:]
        if len(rest) > MAX_LINE:
            raise ConfigError([f"{path}: a line of more than {MAX_LINE >> 20} MiB; this is no trace"])
    if rest:
        raise _Cut("its last line is cut off")


def _unpacked(path: str) -> Iterator[bytes]:
    try:
        yield from unpacked(_data(path))
    except CutOff as error:
        raise _Cut("the file is cut off") from error
    except TooDense as error:
        raise ConfigError([f"{path}: {error}; this is no trace"]) from error
    except BadGzip as error:
        is_other = isinstance(error, NoGzip) and not error.at
        where = "not a trace of Loadmaster" if is_other else f"damaged after about {error.at} bytes"
        raise ConfigError([f"{path}: {where}: {error}"]) from error


def _data(path: str) -> Iterator[bytes]:
    try:
        found = False
        for data in chunks(path, None, PIPE_SECONDS):
            found = True
            yield data
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError([f"{path}: cannot be read: {reason}"]) from error
    if not found:
        raise ConfigError([f"{path}: the file is empty"])
