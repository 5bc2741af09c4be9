"""Tracebacks of plugins' code for their authors, without the frames of the scheduler."""

import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, Final

from scheduler.api.wording.text import encodable, shortened

MAX_TEXT: Final = 1_000
"""Characters of what a plugin raises: it may quote all of a pod."""

MAX_KIND: Final = 200
"""Characters of the name of its type."""

_TRACEBACK: Final[Any] = vars(BaseException)["__traceback__"]

_ENGINE: Final = str(Path(__file__).parents[1]) + "/"


def text_of(error: BaseException) -> str:
    """The text of an error, in MAX_TEXT characters; computing it runs the plugin's code, too."""
    try:
        text = str(error)
    except BaseException as another:  # noqa: BLE001  the plugin's own code
        text = f"(its text cannot be had: {type(another).__name__})"
    return encodable(shortened(text, MAX_TEXT))


def described(error: BaseException) -> str:
    """The type of an error, and what it says."""
    return f"{kind_of(error)}: {text_of(error)}"


def kind_of(error: BaseException) -> str:
    """The name of an error's type; a plugin may make it while it works."""
    return encodable(shortened(type(error).__name__, MAX_KIND))


def described_with_place(error: BaseException) -> str:
    """The same, with file and line in the author's code, if there are any."""
    text, place = described(error), place_in(authors_frames(trace_of(error)))
    return text if place in text else f"{text}, in {place}"


def trace_of(error: BaseException) -> TracebackType | None:
    """The traceback of an error, whatever its class makes of the attribute."""
    found: TracebackType | None = _TRACEBACK.__get__(error)
    return found


def tellable(error: BaseException, trace: TracebackType | None) -> BaseException:
    """The error, or one that says the same if it cannot be written: its attributes are the plugin's code, too."""
    try:
        traceback.format_exception(type(error), error, trace)
    except BaseException:  # noqa: BLE001  the plugin's own code
        return Exception(described(error))
    return error


def authors_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of the scheduler; None if there are no others."""
    kept: TracebackType | None = None
    for entry in reversed(list(entries(trace))):
        if not is_engine(entry.tb_frame.f_code):
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def is_engine(code: CodeType) -> bool:
    """Return whether code is the scheduler's, and no plugin's."""
    return code.co_filename.startswith(_ENGINE)


def place_in(trace: TracebackType | None) -> str:
    """File and line of the innermost frame; empty without a traceback."""
    place = ""
    for entry in entries(trace):
        place = f"{entry.tb_frame.f_code.co_filename}:{entry.tb_lineno}"
    return place


def entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    """Yield those of a traceback, the outermost first."""
    while trace is not None:
        yield trace
        trace = trace.tb_next
