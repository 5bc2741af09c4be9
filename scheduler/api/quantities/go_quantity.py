"""Quantities as Go's resource.Quantity computes with them, overflow included: for absurdly large amounts.

A quantity is a whole number times a power of ten. While the number fits an int64, Go computes with that; otherwise, and
after a sum that does not fit, with big numbers. Its value in units or thousandths depends on which of the two was used,
and on its power: `9223372036854775808` is negative, `12E` is 0, `10000000000000M` is 10^19 modulo 2^64. Rule:
k8s.io/apimachinery pkg/api/resource at v0.36.3 (quantity.go, amount.go, math.go, scale_int.go).
"""

import re
from dataclasses import dataclass, field
from typing import Final, Self

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

_NANO: Final = -9
_FAST_DIGITS: Final = 18
"""Digits of a decimal number that are read as an int64."""

_FAST_BINARY_DIGITS: Final = 14
"""The same of a binary one, less the digits of what its suffix stands for."""

_WRAPPING_POWERS: Final = frozenset((0, 1, 2, 3, 6, 9))
"""Powers of ten by which Go multiplies an int64 in one go: an overflow wraps. Of the others it makes 0."""

_BEYOND_ALL: Final = 400
"""Larger powers of ten leave nothing of any number in 64 bits, and smaller ones nothing but a billionth."""

_FORM: Final = re.compile(
    r"([+-]?)(\d*)(?:\.(\d*))?(?:([eE])([+-]?\d+)|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|))", re.ASCII
)

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@dataclass(slots=True, eq=False)
class GoQuantity:
    """A number times ten to the power `exponent`: in an int64, or big."""

    number: int
    exponent: int = 0
    is_big: bool = field(default=False, kw_only=True)

    @classmethod
    def parse(cls, text: str | int | float) -> Self:
        """Read a quantity, as JSON has it, which may have space around it. Raises ValueError as apimachinery would."""
        match = _FORM.fullmatch(str(text).strip())
        if match is None or not match[0]:
            raise ValueError(f"not a quantity: {text!r}")
        sign, whole, fraction, mark, exponent, suffix = match.groups()
        fraction = fraction or ""
        has_digits = bool(whole or fraction)
        whole = whole.lstrip("0") or "0"
        shift = _BINARY.get(suffix or "", 0)
        power = _int32(exponent, text) if mark else _DECIMAL.get(suffix or "", 0)
        if shift:
            is_fast = not fraction and len(whole) + int(shift * 3 / 10) <= _FAST_BINARY_DIGITS
        else:
            is_fast = len(whole + fraction) <= _FAST_DIGITS and power - len(fraction) >= _NANO
        number = int(whole + fraction) << shift
        power = max(-_BEYOND_ALL, min(power - len(fraction), _BEYOND_ALL))
        if is_fast:
            return cls(-number if sign == "-" else number, power)
        if not has_digits:
            raise ValueError(f"not a quantity: {text!r}")
        if number:
            number, power = _rounded_to_nanos(number, power), _NANO
        if shift and number > INT64_MAX * 10**9:
            number, power = INT64_MAX, 0
        return cls(-number if sign == "-" else number, power, is_big=True)

    def __bool__(self) -> bool:
        return self.number != 0

    def value(self) -> int:
        """Return whole units, as an int64."""
        return self.scaled(0)

    def milli(self) -> int:
        """Return thousandths, as an int64."""
        return self.scaled(-3)

    def whole(self) -> int | None:
        """Return the number of units if Go has it at hand: whole, and in an int64. Rule: AsInt64."""
        if self.is_big or self.exponent < 0:
            return None
        number = self.number * ten_to(self.exponent)
        return number if INT64_MIN <= number <= INT64_MAX else None

    def scaled(self, exponent: int) -> int:
        """Return the multiple of ten to the power `exponent`, rounded up, as an int64. Rule: ScaledValue."""
        power = self.exponent - exponent
        if self.is_big:
            return _scaled_big(self.number, power)
        if power < 0:
            size = -(-abs(self.number) // ten_to(-power))
            return size if self.number >= 0 else -size
        return _scaled_up(self.number, power)

    def __add__(self, other: "GoQuantity") -> "GoQuantity":
        """Rule: Quantity.Add."""
        is_big = self.is_big or other.is_big
        if not is_big and not (self.number and other.number):
            return other if other.number else self
        exponent = min(self.exponent, other.exponent)
        mine, theirs = (each.number * ten_to(each.exponent - exponent) for each in (self, other))
        is_big |= not all(INT64_MIN <= each <= INT64_MAX for each in (mine, theirs, mine + theirs))
        return GoQuantity(mine + theirs, exponent, is_big=is_big)

    def __mul__(self, times: int) -> "GoQuantity":
        """Rule: Quantity.Mul."""
        number = self.number * times
        is_big = self.is_big or not INT64_MIN <= number <= INT64_MAX
        return GoQuantity(number, self.exponent, is_big=is_big)

    def compared_to(self, other: "GoQuantity") -> int:
        """Return -1, 0 or 1."""
        exponent = min(self.exponent, other.exponent)
        mine, theirs = (each.number * ten_to(each.exponent - exponent) for each in (self, other))
        return (mine > theirs) - (mine < theirs)

    def raised_to(self, other: "GoQuantity") -> "GoQuantity":
        """Return the larger of the two: what Go compares with something big becomes big itself."""
        if other.compared_to(self) <= 0:
            return self
        return GoQuantity(other.number, other.exponent, is_big=other.is_big or self.is_big)


def ten_to(power: int) -> int:
    """Return ten to a power that is not negative."""
    found: int = 10**power
    return found


def _int32(exponent: str, text: object) -> int:
    """Read an exponent as Go does: as an int64, of which 32 bits are left."""
    found = int(exponent)
    if not INT64_MIN <= found <= INT64_MAX:
        raise ValueError(f"not a quantity: {text!r}")
    return (found + 2**31) % 2**32 - 2**31


def wrapped(number: int) -> int:
    """Return what an overflow leaves of a number in an int64."""
    return (number - INT64_MIN) % 2**64 + INT64_MIN


def _rounded_to_nanos(number: int, exponent: int) -> int:
    power = exponent - _NANO
    return number * ten_to(power) if power >= 0 else -(-number // ten_to(-power))


def _scaled_up(number: int, power: int) -> int:
    """Rule: positiveScaleInt64."""
    scaled = number * ten_to(power)
    if INT64_MIN <= scaled <= INT64_MAX:
        return scaled
    if number == INT64_MIN or power not in _WRAPPING_POWERS:
        return 0
    return wrapped(scaled)


def _scaled_big(number: int, power: int) -> int:
    """Rule: scaledValue."""
    if power >= 0:
        factor = ten_to(power) if power <= _FAST_DIGITS else INT64_MIN  # what a float beyond an int64 becomes on amd64
        return wrapped(wrapped(number) * factor) if power else wrapped(number)
    divisor = ten_to(-power)
    if number < INT64_MAX and -power <= _FAST_DIGITS:
        kept = wrapped(number)
        quotient = abs(kept) // divisor * (1 if kept >= 0 else -1)
        return quotient + (1 if kept % divisor else 0)
    quotient, rest = divmod(number, divisor)
    return wrapped(wrapped(quotient) + (1 if rest else 0))
