"""Reads a trace from a file: line by line, in bounded memory, and with one clear sentence for whatever is no trace.

A trace that was cut off can be replayed up to there: `Trace.incomplete` says so once all lines were read.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from scheduler.api.decoding import QUICK_ERRORS, Decoder, Unreadable
from scheduler.framework.errors import ConfigError
from scheduler.replay.lines import END, FORMAT, MARK, Header

READ: Final = 1 << 16
MAX_LINE: Final = 64 << 20
"""Bytes. The largest is an answer with the measurements of all nodes."""

MAX_RATIO: Final = 400
"""Packed to unpacked bytes. Traces of pods that are all alike reach a third of it, a bomb a thousand."""

FREE: Final = 16 << 20
"""Unpacked bytes before the ratio is looked at."""

GZIP: Final = b"\x1f\x8b"

Line = list[msgspec.Raw]

_header: Decoder[Header] = Decoder(Header)
_mark: Decoder[dict[str, msgspec.Raw]] = Decoder(dict[str, msgspec.Raw])
_line = Decoder[Line](Line).quick
_text = Decoder[str](str).quick


class Trace:
    """One file."""

    def __init__(self, path: str) -> None:
        """Read the header. Raises ConfigError."""
        self.path = path
        self._texts = _texts(path)
        self.incomplete = ""
        """Why it is not whole; known once all lines were read."""
        self.end = ""
        """Why the recording ended; known likewise."""
        self.number = 1
        """Of the last line that was read."""
        try:
            first = next(self._texts, b"")
        except _Cut as cut:
            raise ConfigError([f"{path}: not a trace of Loadmaster, or no more than its beginning: {cut}"]) from cut
        if not first.startswith(MARK):
            raise ConfigError([f"{path}: not a trace of Loadmaster"])
        self.header = _header_of(path, first)

    def lines(self) -> Iterator[tuple[str, Line]]:
        """Yield kind and parts of all lines but the last. Raises ConfigError for one that is none."""
        try:
            for text in self._texts:
                self.number += 1
                try:
                    line = _line(text)
                    kind = _text(line[0])
                    if kind == END:
                        self.end = _text(line[2])
                        return
                except (IndexError, *QUICK_ERRORS) as error:
                    raise ConfigError(
                        [f"{self.path}: line {self.number} cannot be read: {Unreadable(error)}"]
                    ) from error
                yield kind, line
        except _Cut as cut:
            self.incomplete = str(cut)
            return
        self.incomplete = "its end is missing"


class _Cut(Exception):
    """The file is right up to here."""


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
    packed = unpacked = 0
    member: zlib._Decompress | None = None
    for data in _data(path):
        packed += len(data)
        while data:
            if member is None:
                if not data.startswith(GZIP[: len(data)]):
                    if packed == len(data):
                        raise ConfigError([f"{path}: not a trace of Loadmaster: no gzip file"])
                    raise ConfigError([f"{path}: damaged after {packed - len(data)} bytes: no gzip data"])
                member = zlib.decompressobj(wbits=31)
            try:
                part = member.decompress(data, READ)
            except zlib.error as error:
                raise ConfigError([f"{path}: damaged after about {packed - len(data)} bytes: {error}"]) from error
            unpacked += len(part)
            if unpacked > FREE and unpacked > MAX_RATIO * packed:
                raise ConfigError([f"{path}: unpacks to more than {MAX_RATIO} times its size; this is no trace"])
            yield part
            data = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                member = None
    if member is not None:
        raise _Cut("the file is cut off")


def _data(path: str) -> Iterator[bytes]:
    try:
        with Path(path).open("rb") as file:
            found = False
            while data := file.read(READ):
                found = True
                yield data
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError([f"{path}: cannot be read: {reason}"]) from error
    if not found:
        raise ConfigError([f"{path}: the file is empty"])
