"""What a snapshot says of itself, and how that is read.

    {"apiVersion": "v1", "kind": "List", "snapshot": {…}, "items": [
    {"apiVersion": "v1", "kind": "Pod", …},
    …
    ], "leftOut": [{"kind": "LimitRange", "why": "…"}]}

It is a list as any other, so that whatever reads lists of Kubernetes objects reads it too.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable

VERSION: Final = 1
"""Of the format. Grows when an older Loadmaster would take something for what it is not."""

_MARK: Final = b'"snapshot"'
_BEGINNING: Final = 200
"""Bytes within which the mark comes."""


class Header(msgspec.Struct, frozen=True, rename="camel"):
    """How a snapshot begins."""

    version: int
    taken_at: str = ""
    """In UTC, as the API server writes times."""

    server: str = ""
    """The version of the API server."""

    loadmaster: str = ""
    """The version of Loadmaster that took it."""

    is_anonymised: bool = msgspec.field(default=False, name="anonymised")


class LeftOut(msgspec.Struct, frozen=True):
    """A kind of which there may have been objects, and why the snapshot has none, or not all at one moment."""

    kind: str
    why: str


class _Whole(msgspec.Struct, rename="camel"):
    snapshot: Header | None = None
    left_out: tuple[LeftOut, ...] | None = None


class Told(msgspec.Struct, frozen=True):
    """What a snapshot tells its reader."""

    problem: str = ""
    """Why it cannot be read."""

    notes: Sequence[str] = ()


_decoder: Final[Decoder[_Whole]] = Decoder(_Whole)


def header_of(raw: msgspec.Raw) -> Told | None:
    """Return what a document tells, if it is a snapshot; else None."""
    if _MARK not in bytes(memoryview(raw)[:_BEGINNING]):
        return None
    try:
        whole = _decoder.decode(raw)
    except Unreadable as error:
        return Told(f"no snapshot that can be read: {error}")
    header = whole.snapshot
    if header is None:
        return None
    if header.version != VERSION:
        writer = f", written by Loadmaster {header.loadmaster}" if header.loadmaster else ""
        return Told(f"a snapshot of version {header.version}{writer}: this Loadmaster reads version {VERSION}")
    return Told(notes=[f"left out of the snapshot: {each.kind}: {each.why}" for each in whole.left_out or ()])
