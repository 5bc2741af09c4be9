"""The first and last fields of a snapshot, and how they are read.

    {"apiVersion": "v1", "kind": "List", "snapshot": {…}, "items": [
    {"apiVersion": "v1", "kind": "Pod", …},
    …
    ], "leftOut": [{"kind": "LimitRange", "why": "…"}]}

A snapshot is an ordinary list: any program that reads lists of Kubernetes objects reads it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable

VERSION: Final = 1
"""Of the format. Grows when an older Loadmaster would misread a snapshot."""

_MARK: Final = b'"snapshot"'
_BEGINNING: Final = 200
"""Bytes within which the mark comes."""


class Header(msgspec.Struct, frozen=True, rename="camel"):
    """The beginning of a snapshot."""

    version: int
    taken_at: str = ""
    """In UTC, as the API server writes times."""

    server: str = ""
    """The version of the API server."""

    loadmaster: str = ""
    """The version of Loadmaster that took it."""

    is_anonymised: bool = msgspec.field(default=False, name="anonymised")


class LeftOut(msgspec.Struct, frozen=True):
    """A kind whose objects the snapshot lacks, or has from several moments, and why."""

    kind: str
    why: str


class _Whole(msgspec.Struct, rename="camel"):
    snapshot: Header | None = None
    left_out: tuple[LeftOut, ...] | None = None


class Reading(msgspec.Struct, frozen=True):
    """Facts that the reader of a snapshot must know."""

    problem: str = ""
    """Why it cannot be read."""

    notes: Sequence[str] = ()


_decoder: Final[Decoder[_Whole]] = Decoder(_Whole)


def header_of(raw: msgspec.Raw) -> Reading | None:
    """Return why a snapshot cannot be read, or its notes; None if the document is no snapshot."""
    if _MARK not in bytes(memoryview(raw)[:_BEGINNING]):
        return None
    try:
        whole = _decoder.decode(raw)
    except Unreadable as error:
        return Reading(f"no snapshot that can be read: {error}")
    header = whole.snapshot
    if header is None:
        return None
    if header.version != VERSION:
        writer = f", written by Loadmaster {header.loadmaster}" if header.loadmaster else ""
        return Reading(f"a snapshot of version {header.version}{writer}: this Loadmaster reads version {VERSION}")
    return Reading(notes=[f"left out of the snapshot: {each.kind}: {each.why}" for each in whole.left_out or ()])
