"""The fingerprint of the pods on a node, as node agents write it into their NodeResourceTopology.

Format and algorithm: github.com/k8stopologyawareschedwg/podfingerprint, version v001; XXH64 is specified in
https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
"""

import struct
from collections.abc import Iterable
from typing import Final

_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5

PREFIX: Final = "pfp0v001"


def pod_fingerprint(pods: Iterable[tuple[str, str]]) -> str:
    """Return the fingerprint of a set of pods, given by namespace and name, in any order."""
    hashes = sorted(xxh64(name.encode(), xxh64(namespace.encode())) for namespace, name in pods)
    return f"{PREFIX}{xxh64(struct.pack(f'<{len(hashes)}Q', *hashes)):016x}"


def xxh64(data: bytes, seed: int = 0) -> int:
    """Return the 64 bit hash of that name."""
    length, position = len(data), 0
    if length >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while position <= length - 32:
            words = struct.unpack_from("<4Q", data, position)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            position += 32
        turns = (1, 7, 12, 18)
        total = sum(_turned(lane, turn) for lane, turn in zip(lanes, turns, strict=True)) & _MASK
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        total = (seed + _P5) & _MASK
    return _finished((total + length) & _MASK, data, position)


def _finished(total: int, data: bytes, position: int) -> int:
    """Mix in the rest, fewer than 32 bytes, and spread every bit over all of them."""
    while position + 8 <= len(data):
        (word,) = struct.unpack_from("<Q", data, position)
        total = (_turned(total ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        position += 8
    if position + 4 <= len(data):
        (half,) = struct.unpack_from("<I", data, position)
        total = (_turned(total ^ (half * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        position += 4
    for byte in data[position:]:
        total = _turned(total ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    total = (total ^ total >> 33) * _P2 & _MASK
    total = (total ^ total >> 29) * _P3 & _MASK
    return total ^ total >> 32


def _round(lane: int, word: int) -> int:
    return _turned((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK
