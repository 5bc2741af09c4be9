"""Kubernetes quantities ("1500m", "1.5Gi", "1e3") as exact integers.

A quantity is a whole number of billionths, the finest step of the API, so that sums are exact and rounding happens
once, upwards, when it is converted to a plain number. That is what Go computes too, as long as nothing is negative and
thousandths fit an int64: `is_plain`. All other amounts are in `go_quantity.py`. Rule and limits: k8s.io/apimachinery
pkg/api/resource/quantity.go (ParseQuantity, Value, MilliValue, CanonicalizeBytes) and suffix.go at v0.36.3.
"""

import re
from functools import lru_cache
from typing import Final

from scheduler.api.quantities.go_quantity import INT64_MAX as INT64_MAX
from scheduler.api.quantities.go_quantity import GoQuantity, ten_to

NANO: Final = 1_000_000_000
"""Billionths in one."""

PLAIN_MAX: Final = INT64_MAX // 1000 * NANO
"""The largest amount, in billionths, of which thousandths fit an int64."""

_BINARY: Final = re.compile(r"[KMGTPE]i")
_EXPONENT: Final = re.compile(r"[eE][+-]?\d")
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_SUFFIXES: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}


@lru_cache(maxsize=16_384)  # the API server rewrites quantities, so few are longer than 30 characters
def parse_quantity(text: str | int | float) -> int:
    """Return `text` in billionths, rounded away from zero.

    Raises ValueError for anything that the API would not accept as a quantity.
    """
    read = GoQuantity.parse(text)
    power = read.exponent + 9
    if power >= 0:
        return read.number * ten_to(power)
    size = -(-abs(read.number) // ten_to(-power))
    return size if read.number >= 0 else -size


def is_plain(nanos: int) -> bool:
    """Return whether Go computes with this amount as with any number."""
    return 0 <= nanos <= PLAIN_MAX


def value_of(text: str | int | float) -> int:
    """Return the whole units of a quantity, rounded away from zero: an int64, whatever Go makes of the amount."""
    nanos = parse_quantity(text)
    return to_value(nanos) if is_plain(nanos) else GoQuantity.parse(text).value()


def to_value(amount: int | GoQuantity) -> int:
    """Whole units of a plain amount in billionths, rounded up; or of whatever else, as Go has them."""
    return -(-amount // NANO) if isinstance(amount, int) else amount.value()


def to_float(amount: int | GoQuantity) -> float:
    """Units of an amount in billionths, or of whatever else, about as Go has them. Raises OverflowError."""
    return amount / NANO if isinstance(amount, int) else amount.number * 10.0**amount.exponent


def to_milli(amount: int | GoQuantity) -> int:
    """Thousandths of a plain amount in billionths, rounded up; or of whatever else, as Go has them."""
    return -(-amount // 1_000_000) if isinstance(amount, int) else amount.milli()


def canonical(quantity: str | int | float) -> str:
    """Return a quantity as the API writes it: `2000m` is 2, `2000` is 2k. Raises ValueError if it cannot be read."""
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
