"""Kubernetes objects in files: YAML or JSON, written by kubectl or by hand, packed by gzip or not.

All of it becomes JSON, and stays bytes until one object is needed: that takes the least memory, whatever aliases in
YAML stand for, and structs are decoded from it directly.
"""

import codecs
import os
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

import msgspec

from scheduler.api.decoding import QUICK_ERRORS, Decoder
from scheduler.api.wording.folding import fold
from scheduler.config.documents import STDIN, Document, chunks_of, name_of, parse_documents, text_of
from scheduler.files.memory import memory_of_process
from scheduler.files.reading import TooLarge, collected
from scheduler.files.unpacking import MAGIC, BadGzip, CutOff, unpacked
from scheduler.framework.errors import ConfigError
from scheduler.process.progress import SILENT, Progress
from scheduler.simulate.files.field_lines import Texts
from scheduler.simulate.files.objects import as_written
from scheduler.snapshots.file import MAX_BYTES

SUFFIXES: Final = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
"""Which files of a directory are read; a file given by its own path may have any name."""

MAX_SHARE: Final = 2
"""If memory is short, all files together may use this part of it: their objects take as much again."""

PIPE_SECONDS: Final = 600.0
"""For each part of what comes through a pipe: the API server may take minutes for a list."""

MAX_HAND_WRITTEN: Final = 1 << 20
"""Bytes up to which a file is read with care: a key may occur once, and it may be YAML in brackets. More is a dump."""

_ZEROS: Final = bytes(4096)
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How texts in UTF-16 begin, and those in UTF-32."""

_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_PLACE: Final = re.compile(r"(.*) \(byte (\d+)\)")
_decode: Final = Decoder[msgspec.Raw](msgspec.Raw).quick


def read_documents(
    paths: Iterable[str], problems: list[str], notes: list[str], texts: Texts, progress: Progress = SILENT
) -> Iterator[Document]:
    """Read files, directories recursively, and standard input for `-`; add errors to `problems`.

    The value of each document is a msgspec.Raw. A file in which there is nothing is a problem, in a directory a note,
    and one with more than may be in all files together is a problem. Small ones are kept in `texts`.
    """
    left = most = max_bytes()
    for path, is_named in _files(paths, problems):
        progress.doing(f"reading {name_of(path)}")
        try:
            size, is_empty = yield from _documents(path, texts, left, is_named=is_named)
            left -= size
            if is_empty:
                (problems if is_named else notes).append(f"{name_of(path)}: there is nothing in it")
        except ConfigError as error:
            why = ""
            if isinstance(error.__cause__, TooLarge) and left < most:
                why = f", which is what the files before it leave of {most}"
            problems += (f"{problem}{why}" for problem in error.problems)
        except MemoryError:
            problems.append(f"{name_of(path)}: more than fits into the memory that this process may have")


def max_bytes() -> int:
    """How many bytes all files may have, once they are unpacked."""
    return min(MAX_BYTES, memory_of_process() // MAX_SHARE)


def _files(paths: Iterable[str], problems: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield the files, and whether each is named, or was found in a directory."""
    seen: set[str] = set()
    for path in paths:
        if path == STDIN or not os.path.isdir(path):
            if path == STDIN and path in seen:
                problems.append(f"{path}: standard input can be read once only")
                continue
            seen.add(path)
            yield path, True
            continue
        matching = []
        for folder, below, names in os.walk(path, onerror=lambda error: problems.append(_unreadable(error))):
            # Not hidden ones: where Kubernetes mounts a ConfigMap, its files would be read twice.
            below[:] = sorted(name for name in below if not name.startswith("."))
            matching += [os.path.join(folder, name) for name in sorted(names) if name.lower().endswith(SUFFIXES)]
        if not matching:
            problems.append(f"{path}: no file in this directory ends in {', '.join(SUFFIXES)}")
        yield from ((each, False) for each in matching)


def _unreadable(error: OSError) -> str:
    return f"{error.filename}: cannot be read: {error.strerror}"


def _documents(path: str, texts: Texts, left: int, *, is_named: bool) -> Generator[Document, None, tuple[int, bool]]:
    """Yield the documents of a file of `left` bytes at most; return how many it has, and whether it is empty.

    Raises ConfigError.
    """
    name = name_of(path)
    is_empty = True
    data = _read(path, PIPE_SECONDS if is_named else 0.0, left)
    for document in _parsed(_text(data, name), name, texts):
        is_empty = False
        yield replace(document, is_named=is_named)
    return len(data), is_empty


def _parsed(data: bytes, name: str, texts: Texts) -> Iterator[Document]:
    """The documents; the one way in which they are read is the only one that keeps large data."""
    texts.keep(name, data)
    if data[:64].lstrip()[:1] in (b"{", b"["):
        return _json_documents(data, name)
    return as_written(parse_documents(data.decode(), name))


def _text(data: bytes, name: str) -> bytes:
    """See that the data is UTF-8, and return it without a mark of that. Raises ConfigError."""
    if data.startswith(_WIDE) or data[:2].count(0) == 1:
        hint = "it looks like UTF-16, which PowerShell's > writes: have it written as UTF-8"
        raise ConfigError([f"{name}: not UTF-8: {hint}"])
    if not data.isascii():
        text_of(data, name)
    return data.removeprefix(codecs.BOM_UTF8)


def _read(path: str, pipe_seconds: float, left: int) -> bytes:
    """Return the content of a file, unpacked: `left` bytes at most. Raises ConfigError."""
    name = name_of(path)
    parts = chunks_of(path, left, pipe_seconds)
    first = next(parts, b"")
    parts = chain((first,), parts)
    try:
        if not first.startswith(MAGIC):
            return collected(_without_zeros(parts, name), left)
        return collected(_without_zeros(unpacked(parts), name), left)
    except TooLarge as error:
        raise ConfigError([f"{name}: larger than {left} bytes once it is unpacked"]) from error
    except BadGzip as error:
        what = "but its end is missing" if isinstance(error, CutOff) else f"but cannot be unpacked: {error}"
        raise ConfigError([f"{name}: packed by gzip, {what}"]) from error


def _without_zeros(parts: Iterable[bytes], name: str) -> Iterator[bytes]:
    """The parts of a text; a device or a sparse file shows at once that it is none. Raises ConfigError."""
    for part in parts:
        if part.startswith(_ZEROS):
            raise ConfigError([f"{name}: not a text: there are only zeros in it"])
        yield part


def _json_documents(data: bytes, source: str) -> Iterator[Document]:
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
