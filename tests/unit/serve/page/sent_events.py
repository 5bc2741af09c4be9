"""Server-sent events, parsed."""

import json
from collections.abc import Iterable
from typing import Any


def events(*texts: bytes) -> list[tuple[str, Any]]:
    """Name and data of each event; comments are left out."""
    found = []
    for part in b"".join(texts).decode().split("\n\n"):
        lines = part.split("\n")
        if len(lines) == 2:
            found.append((lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))))
    return found


def named(name: str, sent: Iterable[tuple[str, Any]]) -> list[Any]:
    """The data of the events of one name."""
    return [data for event, data in sent if event == name]
