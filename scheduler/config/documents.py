"""YAML and JSON files as documents, with one clear line for each problem.

Text that starts with a bracket is read as JSON if possible, since tabs may indent JSON. Everything else is YAML.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from scheduler.api.wording.text import encodable_within
from scheduler.config.yaml_reader import MAX_ALIASED, read_yaml
from scheduler.files.reading import TooLarge, bounded, chunks, collected, stream_chunks
from scheduler.framework.errors import ConfigError

STDIN: Final = "-"

PIPE_SECONDS: Final = 60.0
"""For each part of a file that comes through a pipe, as `--config <(command)` makes one."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file. Empty ones are left out."""

    place: str
    """File and line at which it starts."""

    value: Any
    is_named: bool = True
    """Whether its file was named, rather than found in a directory."""


def read_file(path: str, limit: int, pipe_seconds: float = PIPE_SECONDS) -> str:
    """Return the text of a file, or of standard input for `-`: `limit` bytes at most. Raises ConfigError.

    `pipe_seconds`: how long a pipe is waited for; 0 if the path must not be one.
    """
    return text_of(collected(chunks_of(path, limit, pipe_seconds), limit), path)


def chunks_of(path: str, limit: int, pipe_seconds: float) -> Iterator[bytes]:
    """Yield the content of a file, or of standard input for `-`, bit by bit; arguments are those of `read_file`.

    Raises ConfigError.
    """
    try:
        if path != STDIN:
            yield from chunks(path, limit, pipe_seconds)
        elif sys.stdin is None:
            raise ValueError("it is closed")
        else:
            yield from bounded(stream_chunks(sys.stdin.buffer), limit)
    except TooLarge as error:
        raise ConfigError([f"{name_of(path)}: {error}"]) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError([f"{name_of(path)}: cannot be read: {reason}"]) from error


def text_of(data: bytes, path: str) -> str:
    """Return the text that was read from there. Raises ConfigError if it is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError([f"{name_of(path)}: not a text: byte {error.start} is not UTF-8"]) from error


def name_of(path: str) -> str:
    """Return how messages name a file."""
    return "standard input" if path == STDIN else path


def parse_documents(text: str, source: str, max_aliased: int = MAX_ALIASED) -> list[Document]:
    """Return the documents in `text`, which came from `source`. Raises ConfigError if it is neither YAML nor JSON.

    `max_aliased`: bytes that aliases may stand for.
    """
    if text.lstrip()[:1] in ("{", "["):
        try:
            return list(_json_documents(text, source))
        except ValueError:
            pass  # YAML may start with a bracket too; if it is neither, YAML's message names the place
    try:
        return [
            Document(f"{source}:{line}", value) for line, value in read_yaml(text, max_aliased) if value is not None
        ]
    except yaml.YAMLError as error:
        raise ConfigError([_yaml_problem(error, source)]) from error


def _yaml_problem(error: yaml.YAMLError, source: str) -> str:
    if isinstance(error, yaml.reader.ReaderError):
        return f"{source}: not a text: character {error.character:#04x} at position {error.position}"
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"{source}: {' '.join(str(error).split())}"
    mark = error.problem_mark or error.context_mark
    place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
    return f"{place}: " + ", ".join(part for part in (error.problem, error.context) if part)


_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE: Final = re.compile(r"[ \t\r\n]*")


def _json_documents(text: str, source: str) -> Iterator[Document]:
    """The values in `text`, one after the other as kubectl and jq print them. Raises ValueError."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
    line, at = 1, 0
    while (start := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # it always matches
        line += text.count("\n", at, start)
        try:
            value, at = decoder.raw_decode(text, start)
            if _SURROGATE.search(text, start, at):
                value = encodable_within(value)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        yield Document(f"{source}:{line}", value)
        line += text.count("\n", start, at)


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise ValueError(f"the key {key!r} is there twice")
        mapping[key] = value
    return mapping


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
