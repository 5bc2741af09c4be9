"""Versions that may run together: of API servers, and of Loadmaster's replicas."""

import re
from typing import Final

OLDEST, NEWEST = (1, 34), (1, 37)
"""The minor versions of the API server that Loadmaster is tested with."""

MAX_APART: Final = 1
"""Minor versions between two parts of Loadmaster that are run together."""

_MINOR: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?!\d)", re.ASCII)


def minor_of(version: str) -> tuple[int, int] | None:
    """Major and minor version of `v1.36.3` or `0.2.0`; None for any other text."""
    match = _MINOR.match(version)
    return (int(match[1]), int(match[2])) if match else None


def distance(one: str, other: str) -> int:
    """Minor versions between two; of another major version, many; 0 if one cannot be read."""
    first, second = minor_of(one), minor_of(other)
    if first is None or second is None:
        return 0
    return abs(first[1] - second[1]) + 100 * abs(first[0] - second[0])


def version_problem(version: str) -> str:
    """Say how an API server's version is outside of what Loadmaster is tested with; empty if it is not."""
    minor = minor_of(version)
    if minor is None:
        return f"the API server's version, {version[:40]!r}, cannot be read"
    oldest, newest = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
    if minor < OLDEST:
        return f"the API server is {version}, older than the oldest that Loadmaster is tested with, {oldest}"
    if minor > NEWEST:
        return f"the API server is {version}, newer than the newest that Loadmaster is tested with, {newest}"
    return ""
