"""Kubernetes objects in files: YAML or JSON, written by kubectl or by hand, packed by gzip or not.

All of it becomes JSON, and stays bytes until somebody wants one object: that takes the least memory, whatever aliases
in YAML stand for, and structs are decoded from it directly.
"""

import codecs
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from scheduler.config.documents import STDIN, Document, name_of, read_bytes, text_of
from scheduler.framework.errors import ConfigError
from scheduler.progress import SILENT, Progress
from scheduler.simulate.field_lines import Texts
from scheduler.simulate.json_documents import json_documents
from scheduler.simulate.yaml_documents import yaml_documents

SUFFIXES: Final = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
"""Which files of a directory are read; a file given by its own path may have any name."""

MAX_UNPACKED: Final = 2 << 30
"""Bytes that a packed file may have: a thousandth of that is enough to write so much."""

_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 20
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How texts in UTF-16 begin, and those in UTF-32."""


def read_documents(
    paths: Iterable[str], problems: list[str], texts: Texts, progress: Progress = SILENT
) -> Iterator[Document]:
    """Read files, directories recursively, and standard input for `-`; add what is wrong to `problems`.

    The value of each document is a msgspec.Raw. A file in which there is nothing is a problem. Small ones are kept in
    `texts`.
    """
    for path in _files(paths, problems):
        progress.doing(f"reading {name_of(path)}")
        try:
            yield from _documents(path, texts)
        except ConfigError as error:
            problems += error.problems


def _files(paths: Iterable[str], problems: list[str]) -> Iterator[str]:
    seen: set[str] = set()
    for path in paths:
        if path == STDIN or not os.path.isdir(path):
            if path == STDIN and path in seen:
                problems.append(f"{path}: standard input can be read once only")
                continue
            seen.add(path)
            yield path
            continue
        matching = []
        for folder, below, names in os.walk(path, onerror=lambda error: problems.append(_unreadable(error))):
            # Not hidden ones: where Kubernetes mounts a ConfigMap, its files would be read twice.
            below[:] = sorted(name for name in below if not name.startswith("."))
            matching += [os.path.join(folder, name) for name in sorted(names) if name.lower().endswith(SUFFIXES)]
        if not matching:
            problems.append(f"{path}: no file in this directory ends in {', '.join(SUFFIXES)}")
        yield from matching


def _unreadable(error: OSError) -> str:
    return f"{error.filename}: cannot be read: {error.strerror}"


def _documents(path: str, texts: Texts) -> Iterator[Document]:
    name = name_of(path)
    is_any = False
    for document in _parsed(_text(read_bytes(path), name), name, texts):
        is_any = True
        yield document
    if not is_any:
        raise ConfigError([f"{name}: there is nothing in it"])


def _parsed(data: bytes, name: str, texts: Texts) -> Iterator[Document]:
    """The documents; the one way in which they are read is the only one that keeps large data."""
    texts.keep(name, data)
    if data[:64].lstrip()[:1] in (b"{", b"["):
        return json_documents(data, name)
    return yaml_documents(data.decode(), name)


def _text(data: bytes, name: str) -> bytes:
    """Unpack the data, and see that it is UTF-8. Raises ConfigError."""
    if data.startswith(_GZIP):
        data = _unpacked(data, name)
    if data.startswith(_WIDE) or data[:2].count(0) == 1:
        hint = "it looks like UTF-16, which PowerShell's > writes: have it written as UTF-8"
        raise ConfigError([f"{name}: not UTF-8: {hint}"])
    if not data.isascii():
        text_of(data, name)
    return data.removeprefix(codecs.BOM_UTF8)


def _unpacked(data: bytes, name: str) -> bytes:
    """Return what gzip packed, which may be several pieces one after the other. Raises ConfigError."""
    pieces: list[bytes] = []
    size, rest = 0, data
    while rest:
        stream = zlib.decompressobj(wbits=31)
        while not stream.eof:
            try:
                piece = stream.decompress(rest, _CHUNK)
            except zlib.error as error:
                raise ConfigError([f"{name}: packed by gzip, but cannot be unpacked: {error}"]) from error
            if not piece and not stream.unconsumed_tail and not stream.eof:
                raise ConfigError([f"{name}: packed by gzip, but its end is missing"])
            rest, size = stream.unconsumed_tail, size + len(piece)
            if size > MAX_UNPACKED:
                raise ConfigError([f"{name}: larger than {MAX_UNPACKED} bytes once it is unpacked"])
            pieces.append(piece)
        rest = stream.unused_data
    return b"".join(pieces)
