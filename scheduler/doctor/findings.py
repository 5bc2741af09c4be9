"""The result of a check: a line of the screen."""

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    UNKNOWN = "unknown"
    """It could not be checked."""


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    message: str
    advice: str = ""
    """With line breaks if it is to be copied."""

    topic: str = ""
    """Set where the checks are run."""


def ok(message: str) -> Finding:
    return Finding(Level.OK, message)


def warning(message: str, advice: str) -> Finding:
    return Finding(Level.WARNING, message, advice)


def problem(message: str, advice: str) -> Finding:
    return Finding(Level.PROBLEM, message, advice)


def unknown(message: str, advice: str = "") -> Finding:
    return Finding(Level.UNKNOWN, message, advice)
