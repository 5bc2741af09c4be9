"""Texts that may come from anywhere: made fit for JSON and UTF-8, as Go's encoder does."""

from typing import Any, Final

import orjson

REPLACEMENT: Final = "\ufffd"


def encodable(text: str) -> str:
    """Return the text with each lone surrogate, which UTF-8 cannot carry, replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(REPLACEMENT if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def to_json(value: Any) -> bytes:
    """Encode what is sent to the API server. Raises TypeError for what is no JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:  # rare, and a look at each text would cost the others
        return orjson.dumps(_encodable_within(value))


def _encodable_within(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {_encodable_within(key): _encodable_within(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable_within(entry) for entry in value]
    return value
