"""Quantities as the API writes them: `2000` and `2e3` and `2048` and `2000m` are 2k, 2e3, 2048 and 2.

Rule: k8s.io/apimachinery pkg/api/resource/quantity.go (CanonicalizeBytes) and suffix.go at v0.37.2.
"""

import re
from typing import Final

from scheduler.api.quantities.quantity import NANO, parse_quantity

_BINARY: Final = re.compile(r"[KMGTPE]i")
_EXPONENT: Final = re.compile(r"[eE][+-]?\d")
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_SUFFIXES: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}


def canonical(quantity: str | int | float) -> str:
    """Return a quantity in its own form. Raises ValueError if it cannot be read."""
    return written_like(parse_quantity(quantity), quantity)


def written_like(nanos: int, example: str | int | float) -> str:
    """Return an amount of billionths in the form of `example`: binary, decimal or with an exponent."""
    text = str(example)
    if _BINARY.search(text) and nanos % NANO == 0 and abs(nanos) >= 1024 * NANO:
        return _binary(nanos // NANO)
    amount, exponent = nanos, -9
    while amount and amount % 1000 == 0:
        amount //= 1000
        exponent += 3
    if not amount:
        return "0"
    if _EXPONENT.search(text):
        return f"{amount}e{exponent}" if exponent else str(amount)
    return f"{amount}{_DECIMAL_SUFFIXES.get(exponent, '')}"


def _binary(units: int) -> str:
    power = 0
    while units % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        units //= 1024
        power += 1
    return f"{units}{_BINARY_SUFFIXES[power]}"
