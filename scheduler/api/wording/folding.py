"""Makes JSON readable that the API server accepts but decoders refuse: nested too deeply, or not valid Unicode.

The API server passes some parts of objects on as they came: `managedFields[].fieldsV1`, and the `parameters` of a
ResourceClaim. There, ten thousand levels of nesting are allowed, half a surrogate pair, and bytes that are not UTF-8.
Decoders recurse, so they give up at a depth that depends on the version of Python, and they refuse the text, even in
parts that they skip: without this, one such object would make its page unreadable, and so all others on it.

Folded text looks like nothing that anyone would write, and `unfolded` restores it byte by byte. Folding costs more than
decoding, up to 20 ns a byte at worst, so only JSON that a decoder has refused is folded.
"""

import base64
import re
import secrets
from collections.abc import Iterator
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

MAX_DEPTH: Final = 64
"""Levels of nesting that stay. Objects of the API have about twenty."""

_NONCE: Final = secrets.token_hex(4).encode()
_DEEP: Final = b"deep" + _NONCE  # a value, before its base64
_HALF: Final = b"half" + _NONCE  # in the place of the `\\u` of half a surrogate pair
_BYTE: Final = b"byte" + _NONCE  # before a byte that is not UTF-8, as `dcff`
_PAIR: Final = b"pair" + _NONCE  # in the place of an escaped backslash, for a moment

_FOLDED: Final = re.compile(b'"' + _DEEP + b'([A-Za-z0-9+/=]*)"')
_MARKED_BYTE: Final = re.compile(_BYTE + b"dc(..)")
_HALVES: Final = re.compile(
    rb"\\u(?=[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|[c-fC-F]..(?<!\\u[dD][89abAB]..\\u....)))", re.DOTALL
)
"""The `\\u` of each half of a surrogate pair that has no other half."""

_CHUNK: Final = 1 << 17
"""Bytes looked at together: what is made of them stays in the processor's cache."""

_BACKSLASHES: Final = re.compile(rb"\\*")
_QUOTE: Final = ord('"')
_STEP: Final = np.zeros(256, np.int8)
"""Byte → what it adds to the depth outside of strings."""
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1
_STRUCTURAL: Final = _STEP != 0
_STRUCTURAL[_QUOTE] = True

Places: TypeAlias = NDArray[np.int64]


def fold(data: bytes) -> bytes:
    """Return `data` with all folded that is nested too deeply or is no Unicode; `data` itself if nothing is."""
    text = _marked(data)
    parts: list[bytes] = []
    at = 0
    for start, end in _deep_values(text):
        parts += (text[at:start], b'"', _DEEP, base64.b64encode(text[start:end]), b'"')
        at = end
    return b"".join((*parts, text[at:])) if parts else text


def unfolded(data: bytes) -> bytes:
    """Return `data` as it was before it was folded."""
    if _NONCE not in data:
        return data
    text = _FOLDED.sub(lambda found: base64.b64decode(found[1]), data).replace(_HALF, rb"\u")
    return _MARKED_BYTE.sub(lambda found: bytes.fromhex(found[1].decode()), text)


def _marked(data: bytes) -> bytes:
    """Return `data` with its text as Unicode: marks replace invalid parts; `data` itself if there are none."""
    plain = data.replace(rb"\\", _PAIR)
    text = _HALVES.sub(_HALF, plain)
    try:
        text.decode()
    except UnicodeDecodeError:
        escaped = text.decode(errors="surrogateescape").encode(errors="backslashreplace")
        text = _HALVES.sub(_BYTE, escaped)
    return data if text == plain else text.replace(_PAIR, rb"\\")


def _deep_values(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where values begin and end that are below `MAX_DEPTH`. One that does not end is left out: it is no JSON."""
    text = np.frombuffer(data, np.uint8)
    at = depth = start = 0
    in_string = False
    while at < len(data):
        end: int = _BACKSLASHES.match(data, at + _CHUNK).end()  # type: ignore[union-attr]  # it always matches
        places, kinds = _structural(data, text[at:end], at, end)
        is_quote = kinds == _QUOTE
        inside = (np.cumsum(is_quote, dtype=np.int32) + in_string) & 1
        depths = np.cumsum(_STEP[kinds] * (1 - inside), dtype=np.int32) + depth
        if depth > MAX_DEPTH or depths.max(initial=0) > MAX_DEPTH:
            is_deep = np.concatenate(([depth > MAX_DEPTH], depths > MAX_DEPTH))
            for turn in np.flatnonzero(is_deep[1:] != is_deep[:-1]).tolist():
                place = at + int(places[turn])
                if is_deep[turn + 1]:
                    start = place
                else:
                    yield start, place + 1
        if kinds.size:
            depth, in_string = int(depths[-1]), bool(inside[-1])
        at = end


def _structural(data: bytes, text: NDArray[np.uint8], at: int, end: int) -> tuple[Places, NDArray[np.uint8]]:
    """Return where `text` has brackets and quotes, and which; it is `data` from `at` to `end`."""
    places = np.flatnonzero(_STRUCTURAL[text])
    if data.find(b"\\", at, end) < 0:
        return places, text[places]
    is_escaped = np.zeros(text.size + 1, bool)
    is_escaped[_escaping(np.flatnonzero(text == ord("\\"))) + 1] = True
    places = places[~is_escaped[places]]
    return places, text[places]


def _escaping(backslashes: Places) -> Places:
    """Those that escape what follows: the first of each run of backslashes, the third, and so on."""
    begins = np.ones(backslashes.size, bool)
    begins[1:] = np.diff(backslashes) != 1
    number = np.arange(backslashes.size)
    in_run = number - np.maximum.accumulate(np.where(begins, number, 0))
    escaping: Places = backslashes[in_run % 2 == 0]
    return escaping
