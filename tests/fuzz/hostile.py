"""Hostile values and texts, made of bytes: the same bytes, the same input."""

import random
from collections.abc import Sequence
from typing import Any, Final

import msgspec

TEXTS: Final = (
    "",
    " ",
    "a",
    "-",
    "0",
    "-0",
    "1e9999999999",
    "9" * 30,
    "9" * 5000,
    "9" * 400 + "%",
    "NaN",
    "inf",
    "\x00",
    "\n",
    "é",
    "\U0001f600",
    "\u2028",
    "a/b",
    "/",
    "A" * 64,
    "A" * 300,
    "1.5Gi",
    "0.1m",
    "true",
    "null",
    "Exists",
    "In",
    "Gt",
    "NoSchedule",
    "2026-01-01T00:00:00Z",
    "kubernetes.io/hostname",
    "metadata.name",
    "12345678901234567890",
    "<",
    "{",
    "v1.2.3",
    "1h",
    "\ufffd",
    "a.b.c/d_e-f.0",
)

RAW: Final = (
    b"null",
    b"true",
    b"0",
    b"-1",
    b"1.5",
    b"1e400",
    b"-0.0",
    b"18446744073709551616",
    b"9" * 400,
    b"9" * 5000,
    b"[]",
    b"{}",
    b'""',
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b'"\xff"',
    b'"\\u0000"',
    b"[[[[]]]]",
    b"[" * 70 + b"]" * 70,
    b"[" * 1200 + b"]" * 1200,
    b'{"a":' * 1100 + b"1" + b"}" * 1100,
    b'{"a":1,"a":2}',
    b"[1,]",
    b"nul",
    b"NaN",
    b'"',
    b"[",
    b'{"metadata":{}}',
)
"""JSON values that are seldom expected, and some that are none."""


def text(dice: random.Random, alphabet: str, most: int = 12) -> str:
    """A text that is mostly of these characters."""
    if dice.random() < 0.1:
        return dice.choice(TEXTS)
    found = "".join(dice.choices(alphabet, k=dice.randint(0, most)))
    return found if dice.random() < 0.95 else found + dice.choice(TEXTS)


def mutated(dice: random.Random, seed: Any) -> bytes:
    """JSON like `seed`, with some values replaced, doubled, renamed or left out, and perhaps some bytes."""
    chance = dice.choice((0.0, 0.02, 0.1, 0.3))
    encoded = _mutated(dice, seed, chance)
    return spoilt(dice, encoded) if dice.random() < 0.15 else encoded


def _mutated(dice: random.Random, value: Any, chance: float) -> bytes:
    if dice.random() < chance:
        if dice.random() < 0.5:
            return dice.choice(RAW)
        return msgspec.json.encode(dice.choice(TEXTS))
    if isinstance(value, dict):
        parts = []
        for key, each in value.items():
            if dice.random() < chance:
                continue
            name = dice.choice(TEXTS) if dice.random() < chance / 4 else key
            parts.append(msgspec.json.encode(name) + b":" + _mutated(dice, each, chance))
        return b"{" + b",".join(parts) + b"}"
    if isinstance(value, list):
        items = [_mutated(dice, each, chance) for each in value]
        if items and dice.random() < chance:
            items *= dice.choice((2, 3, 100))
        return b"[" + b",".join(items) + b"]"
    return msgspec.json.encode(value)


def spoilt(dice: random.Random, data: bytes) -> bytes:
    """The same with some bytes changed, cut out or doubled."""
    found = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at = dice.randint(0, len(found))
        cut = slice(at, at + dice.choice((0, 1, 1, 8, 100)))
        found[cut] = dice.choice(
            (b"", b"\xff", b"\\", b'"', b"\\ud8", b"{", b"]", b"\r\n", b"\n", b"0", found[cut] * 2)
        )
    return bytes(found)


def pieces(dice: random.Random, data: bytes) -> Sequence[bytes]:
    """The data as a network may deliver it."""
    cuts = sorted(dice.randint(0, len(data)) for _ in range(dice.choice((0, 1, 5))))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def of_bytes(data: bytes) -> random.Random:
    """The dice that these bytes throw."""
    return random.Random(data)
