"""Lengths of time as Kubernetes files spell them: `15s`, `1m30s`, `100ms`."""

import re
from typing import Final

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_FORM: Final = re.compile(rf"([-+]?)(0|(?:{_PART})+)", re.ASCII)
_LIMIT: Final = 2**63 / 1e9
"""Seconds that Go's time.Duration cannot hold."""


class Duration(float):
    """Seconds, read and written as Go's time.Duration does."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """Read `1h2m3.5s`. Raises ValueError for anything that Go's time.ParseDuration refuses."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"not a duration: {text!r} (write for example '15s' or '1m30s')")
        seconds = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, match[2], re.ASCII))
        if seconds >= _LIMIT:
            raise ValueError(f"not a duration: {text!r} is too long")
        return cls(-seconds if match[1] == "-" else seconds)

    def __str__(self) -> str:
        seconds = abs(self)
        sign = "-" if self < 0 else ""
        for unit in ("ns", "µs", "ms"):
            if 0 < seconds < _UNITS[unit] * 1000:
                return f"{sign}{seconds / _UNITS[unit]:.12g}{unit}"
        minutes, rest = divmod(seconds, 60)
        hours, minutes = divmod(int(minutes), 60)
        seconds_left = f"{rest:.9f}".rstrip("0").rstrip(".")
        return sign + (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds_left}s"
