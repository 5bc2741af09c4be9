"""The page's messages: server-sent events with JSON, and texts that are safe to pass on.

The creator of a pod chooses names and messages: they are cut, and the page shows them as text only.
"""

from collections.abc import Mapping
from typing import Any, Final

from scheduler.api.wording.text import shortened, to_json

MAX_NAME: Final = 253
MAX_MESSAGE: Final = 300

BEAT: Final = b": beat\n\n"
"""A comment, which readers ignore: a sign of life."""


def event(name: str, data: Mapping[str, Any]) -> bytes:
    """One event. JSON has no line breaks, so it is one line."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), to_json(data))


def cut(text: str, length: int = MAX_NAME) -> str:
    """The beginning of a text, if it is long."""
    return text if len(text) <= length else shortened(text, length - 1)
