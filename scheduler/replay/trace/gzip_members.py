"""The gzip members of a trace that arrives as bytes: only whole ones are written, so a file ends with a whole line."""

import gzip
import zlib
from collections.abc import Iterator
from typing import Final

from scheduler.replay.trace.lines import MARK, Checksum, Decide, Decided, DecideMember, End, Sum, encode, kind_of
from scheduler.replay.trace.trace_file import MAX_LINE

_DECISIONS = tuple(f'["{kind_of(kind)}",'.encode() for kind in (Decide, Decided, DecideMember))
_END = f'["{kind_of(End)}",'.encode()

MAX_TEXT: Final = 2 * MAX_LINE
"""Bytes of lines in a member: few lines, or one long one."""


class BadStream(Exception):
    """The bytes are not a trace."""


class GzipMembers:
    def __init__(self) -> None:
        self._whole = bytearray()
        """The bytes of the member that is not whole yet."""
        self._text = bytearray()
        self._unpacker = zlib.decompressobj(wbits=31)
        self._is_begun = False
        self._checksum = Checksum()
        """Of the lines in the members so far."""
        self.decisions = 0
        """In the members so far."""
        self.milliseconds = 0
        """Of the last line of these."""
        self.end = ""
        """The line that ends the trace; empty until it has come."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the members that `data` completes. Raises BadStream."""
        while data:
            try:
                self._text += self._unpacker.decompress(data, MAX_TEXT + 1 - len(self._text))
            except zlib.error as error:
                raise BadStream(str(error)) from error
            if len(self._text) > MAX_TEXT:
                raise BadStream(f"a part of it has more than {MAX_TEXT >> 20} MiB")
            rest = self._unpacker.unused_data
            self._whole += data[: len(data) - len(rest)]
            if len(self._whole) > MAX_TEXT:  # of empty blocks, or of a name in its header
                raise BadStream(f"a part of it has more than {MAX_TEXT >> 20} MiB")
            if not self._unpacker.eof:
                return
            yield self._finished()
            data = rest

    def _finished(self) -> bytes:
        whole, text = bytes(self._whole), bytes(self._text)
        if not self._is_begun and not text.startswith(MARK):
            raise BadStream("it does not begin as one")
        self._is_begun = True
        self._checksum.update(text)
        self.decisions += sum(text.count(b"\n" + begin) for begin in _DECISIONS) + text.startswith(_DECISIONS)
        last = text.rstrip(b"\n").rpartition(b"\n")[2]
        number = last.split(b",", 2)[1:2]
        if number and number[0].strip(b"]").isdigit():
            self.milliseconds = int(number[0].strip(b"]"))
        if last.startswith(_END):
            self.end = last.decode(errors="replace")
        self._whole.clear()
        self._text.clear()
        self._unpacker = zlib.decompressobj(wbits=31)
        return whole

    def last(self, why: str) -> bytes:
        """Return the last member: the end of the trace, unless the scheduler has written it, and the checksum."""
        end = b"" if self.end else encode(End(self.milliseconds, why))
        self._checksum.update(end)
        return gzip.compress(end + encode(Sum(self.milliseconds, self._checksum.hexdigest())), mtime=0)
