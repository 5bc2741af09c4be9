"""`/debug/record?seconds=N`: a trace of what the scheduler sees and decides, for as long as its reader wants.

It reveals more than any other page: all pods with the fields that scheduling reads. So it needs a right of its own.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Final, Protocol

from scheduler.serve.port.answers import TEXT, Answer

PATH: Final = "/debug/record"
MAX_SECONDS: Final = 86_400
TRACE: Final = "application/gzip"

BAD_SECONDS: Final = Answer(400, f"seconds: expected a whole number from 0 to {MAX_SECONDS}\n".encode(), TEXT)
NOT_LEADING: Final = Answer(409, b"this replica does not lead: it decides nothing\n", TEXT)
BUSY: Final = Answer(429, b"a recording is under way; one goes on at a time\n", TEXT)


class Records(Protocol):
    """Implemented in scheduler.replay.recorder."""

    @property
    def is_busy(self) -> bool: ...
    @property
    def is_leading(self) -> bool: ...
    def record(self, seconds: float) -> AsyncGenerator[bytes, None]: ...


class Recordings:
    """Answers the questions; `seconds` 0, or none: until the reader goes."""

    def __init__(self, recorder: Records) -> None:
        self._recorder = recorder

    async def __call__(self, query: Mapping[str, str]) -> Answer:
        text = query.get("seconds", "0")
        if not (text.isascii() and text.isdigit() and len(text) <= 6 and int(text) <= MAX_SECONDS):
            return BAD_SECONDS
        recorder = self._recorder
        if not recorder.is_leading:
            return NOT_LEADING
        if recorder.is_busy:
            return BUSY
        return Answer(200, recorder.record(float(text)), TRACE, close=True, goes_on=True)
