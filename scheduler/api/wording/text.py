"""Text that may come from anywhere, made safe for JSON and UTF-8, as Go's encoder does, and for its destination.

Texts of plugins are cut where they enter the scheduler, so that nothing keeps, sorts or joins more than is shown:

    a reason, or what it raises   MAX_REASON characters, MAX_REASONS in one answer
    all that an attempt says      MAX_MESSAGE characters: what logs, conditions, traces and explanations get at most
    an Event                      what the API server takes: see `scheduler.kube.writes.events`
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import orjson

from scheduler.api.read_only import plain

REPLACEMENT: Final = "\ufffd"

MAX_REASON: Final = 4_096
MAX_REASONS: Final = 100
MAX_MESSAGE: Final = 32_768


def shortened(text: str, longest: int) -> str:
    """Return the text, or as many characters of its beginning, and a mark that there was more."""
    return text if len(text) <= longest else f"{text[:longest]}…"


def in_bytes(text: str, longest: int) -> str:
    """Return the text, or as much of its beginning as fits into so many bytes of UTF-8, with a mark."""
    if len(text) <= longest and text.isascii():
        return text
    encoded = encodable(text[: longest + 1]).encode()
    if len(encoded) > longest:
        encoded = encoded[: longest - 4] + b" ..."
    return encoded.decode(errors="ignore")


def encodable(text: str) -> str:
    """Return the text with each lone surrogate, which UTF-8 cannot carry, replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(REPLACEMENT if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def printable(text: str) -> str:
    """Return the text with what a terminal would obey, such as an escape sequence or the end of a line, spelled out."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def counted(count: int, noun: str) -> str:
    """Return the number with its noun: `1 pod`, `12,000 pods`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def some_of(names: Sequence[str], most: int) -> str:
    """Return the first names, and how many more there are: `a, b and 12 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the printable lines of a table. The last cell of a row may be long, and its column is not aligned."""
    widths: dict[int, int] = {}
    for row in rows:
        for column, cell in enumerate(row[:-1]):
            widths[column] = max(widths.get(column, 0), len(cell))
    return [
        printable("  ".join([*(cell.ljust(widths[i]) for i, cell in enumerate(row[:-1])), row[-1]]).rstrip())
        for row in rows
    ]


def to_json(value: Any) -> bytes:
    """Encode a request's body, with our structs in it. Raises TypeError for values without a form in JSON."""
    try:
        return orjson.dumps(value, default=_of_ours)
    except TypeError:  # rare, and a look at each text would cost the others
        return orjson.dumps(encodable_within(value), default=_of_ours)


def _of_ours(value: Any) -> Any:
    """Raw fields of structs are written as they are; read-only values as the ones behind them."""
    if isinstance(value, msgspec.Struct):
        return orjson.Fragment(msgspec.json.encode(value, enc_hook=plain))
    return plain(value)


def encodable_within(value: Any) -> Any:
    """Return the same with each text in it encodable."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, Mapping):
        return {encodable_within(key): encodable_within(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [encodable_within(entry) for entry in value]
    return value


def timestamp(seconds: float) -> str:
    """Return a time, in seconds since 1970, as objects have it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
