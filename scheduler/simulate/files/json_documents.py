"""JSON files as documents that are still bytes: one value, or one after the other as kubectl and jq print them."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from scheduler.api.decoding import QUICK_ERRORS, Decoder
from scheduler.api.folding import fold
from scheduler.config.documents import Document, parse_documents
from scheduler.framework.errors import ConfigError
from scheduler.simulate.files.written import as_written

MAX_HAND_WRITTEN: Final = 1 << 20
"""Bytes up to which a file is read with care: a key may occur once, and it may be YAML in brackets. More is a dump."""

_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_PLACE: Final = re.compile(r"(.*) \(byte (\d+)\)")
_decode: Final = Decoder[msgspec.Raw](msgspec.Raw).quick


def json_documents(data: bytes, source: str) -> Iterator[Document]:
    """Yield the values in `data`. Raises ConfigError if it is neither JSON nor YAML."""
    if len(data) <= MAX_HAND_WRITTEN:
        yield from as_written(parse_documents(data.decode(), source))
        return
    try:
        yield from list(_values(data, source))
    except QUICK_ERRORS:
        yield from list(_odd_values(data, source))


def _odd_values(data: bytes, source: str) -> Iterator[Document]:
    """Yield the same from data in which something is odd: nested deeply, half a character, or no JSON at all."""
    try:
        yield from list(_values(fold(data), source))
    except QUICK_ERRORS as error:
        raise ConfigError([_problem(data, source, error)]) from error


def _values(data: bytes, source: str) -> Iterator[Document]:
    line, at, view = 1, 0, memoryview(data)
    while (start := _SPACE.match(data, at).end()) < len(data):  # type: ignore[union-attr]  # it always matches
        line += data.count(b"\n", at, start)
        rest = view[start:]
        try:
            value, at = _decode(msgspec.Raw(rest)), len(data)
        except msgspec.DecodeError as error:
            match = _PLACE.fullmatch(str(error))
            if match is None or "trailing characters" not in match[1]:
                raise _At(start, error) from error
            at = start + int(match[2])
            value = _decode(msgspec.Raw(view[start:at]))
        yield Document(f"{source}:{line}", value)
        line += data.count(b"\n", start, at)


class _At(ValueError):
    """The error of a value that starts there."""


def _problem(data: bytes, source: str, error: Exception) -> str:
    start, cause = error.args if isinstance(error, _At) else (0, error)
    match = _PLACE.fullmatch(str(cause))
    if match is None:
        return f"{source}: no JSON that can be read to its end: {str(cause)[:1].lower()}{str(cause)[1:]}"
    at = start + int(match[2])
    line, column = data.count(b"\n", 0, at) + 1, at - data.rfind(b"\n", 0, at)
    return f"{source}:{line}:{column}: {match[1]}"
