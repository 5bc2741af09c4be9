"""How flags are read and written: as Go does. Nothing here loads the scheduler, for `--help` goes without."""

import argparse
from collections.abc import Mapping, Sequence

_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


def truth(text: str) -> bool:
    """What Go's strconv.ParseBool takes."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def duration(text: str) -> object:
    """What Go's time.ParseDuration takes."""
    from scheduler.framework.duration import Duration  # not at the top: its package loads numpy

    try:
        return Duration.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def list_of_modules(text: str) -> tuple[tuple[str, int], ...]:
    """What `--vmodule` takes."""
    from scheduler.process.logs import parse_modules  # not at the top, likewise

    try:
        return parse_modules(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def go_value(value: object) -> str:
    """A flag's value as Go's pflag writes it."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case Mapping():
            return ",".join(f"{key}={go_value(each)}" for key, each in value.items())
        case str():
            return value
        case Sequence() if value and isinstance(value[0], tuple):
            return ",".join(f"{pattern}={level}" for pattern, level in value)
        case Sequence():
            return f"[{','.join(map(go_value, value))}]"
        case _:
            return str(value)
