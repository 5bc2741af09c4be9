"""Kubernetes quantities ("1500m", "1.5Gi", "1e3") as exact integers.

A quantity is a whole number of billionths, the finest step of the API, so that sums are exact and rounding happens
once, upwards, when it is converted to a plain number. Rule and limits: k8s.io/apimachinery
pkg/api/resource/quantity.go (ParseQuantity, Value, MilliValue).
"""

import re
from functools import lru_cache
from typing import Final

NANO: Final = 1_000_000_000
"""Billionths in one."""

INT64_MAX: Final = 2**63 - 1

_QUICK_DIGITS: Final = 18
"""Digits up to which Go reads a decimal number as value and exponent, without checking that it fits an int64."""

_ENOUGH: Final = 400
"""Powers of ten beyond this change nothing: the number is far out of range, or a billionth when rounded up."""

_FORM = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:([eE])([+-]?\d+)|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|))", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@lru_cache(maxsize=16_384)  # the API server rewrites quantities, so none is longer than 30 characters
def parse_quantity(text: str | int | float) -> int:
    """Return `text` in billionths, rounded away from zero.

    Long numbers are capped at ±(2**63 - 1) whole units, as Go caps what its fast path cannot hold. Raises ValueError
    for anything that the API would not accept as a quantity.
    """
    match = _FORM.fullmatch(str(text))
    if match is None or not (match[2] or match[3]):
        raise ValueError(f"not a quantity: {text!r}")
    sign, whole, fraction, exponent_mark, exponent, suffix = match.groups()
    fraction = fraction or ""
    digits = int((whole or "0") + fraction)
    if suffix in _BINARY:
        power, digits = 9 - len(fraction), digits << _BINARY[suffix]
    else:
        power = 9 - len(fraction) + (int(exponent) if exponent_mark else _DECIMAL[suffix])
    power = max(-_ENOUGH, min(power, _ENOUGH))
    nanos: int = digits * 10**power if power >= 0 else -(-digits // 10**-power)
    if suffix in _BINARY or len(whole + fraction) > _QUICK_DIGITS:
        nanos = min(nanos, INT64_MAX * NANO)
    return -nanos if sign == "-" else nanos


def to_value(nanos: int) -> int:
    """Whole units of a quantity in billionths, rounded away from zero; 0 beyond int64, as in Go."""
    return _rounded(nanos, NANO)


def to_milli(nanos: int) -> int:
    """Thousandths of a quantity in billionths, rounded away from zero; 0 beyond int64, as in Go."""
    return _rounded(nanos, 1_000_000)


def _rounded(nanos: int, unit: int) -> int:
    size = -(-abs(nanos) // unit)
    if size > INT64_MAX:
        return 0
    return size if nanos >= 0 else -size
