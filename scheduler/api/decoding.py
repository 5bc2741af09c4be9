"""The one way from JSON, and from parsed JSON or YAML, to values; the only error is `Unreadable`.

Objects of the cluster come from other programs. One that no decoder accepts is folded first (see
`scheduler.api.wording.folding`): its odd parts are mostly ones that we skip or pass on.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from scheduler.api.read_only import plain
from scheduler.api.wording.text import shortened

T = TypeVar("T")
Hook = Callable[[type[Any], Any], Any]
Encoded: TypeAlias = bytes | bytearray | memoryview | msgspec.Raw
"""JSON."""

QUICK_ERRORS: Final = (ValueError, RecursionError)
"""The exceptions of msgspec for data that it cannot read: its own errors, and UnicodeDecodeError, are ValueErrors."""

MAX_PROBLEM: Final = 500
"""Characters of an error's text: it may quote what it is about."""


class Unreadable(ValueError):
    """Data of the wrong form; the text has the problem and its place."""

    def __init__(self, problem: object) -> None:
        text = "nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        super().__init__(shortened(text, MAX_PROBLEM))


class Decoder(Generic[T]):
    """Decodes JSON into one type."""

    def __init__(self, type_: Any, hook: Hook | None = None) -> None:
        """`hook`: msgspec's `dec_hook`."""
        self.quick: Callable[[Encoded], T] = msgspec.json.Decoder(type_, dec_hook=hook).decode
        """The same for data that is rarely odd, without a call of Python. Raises QUICK_ERRORS: then try `decode`."""

    def decode(self, data: bytes | bytearray | msgspec.Raw) -> T:
        """Decode, folding what cannot be read otherwise. Raises Unreadable."""
        try:
            return self.quick(data)
        except msgspec.ValidationError as error:  # JSON, of another type
            raise Unreadable(error) from error
        except QUICK_ERRORS as error:
            from scheduler.api.wording.folding import (
                fold,  # loads numpy, which a question to a running scheduler does without
            )

            whole = bytes(data)
            folded = fold(whole)
            if folded is whole:
                raise Unreadable(error) from error
        try:
            return self.quick(folded)
        except QUICK_ERRORS as error:
            raise Unreadable(error) from error


def convert(value: Any, type_: type[T], hook: Hook | None = None) -> T:
    """Return as a `type_` what was parsed before. Raises Unreadable."""
    try:
        return msgspec.convert(value, type_, dec_hook=hook)
    except QUICK_ERRORS as error:
        raise Unreadable(error) from error


def reread(value: Any, type_: type[T], hook: Hook | None = None) -> T:
    """The same, for types that keep parts as they are in JSON, a msgspec.Raw. Raises Unreadable."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=plain)
    except (TypeError, *QUICK_ERRORS) as error:
        raise Unreadable(error) from error
    return Decoder(type_, hook).decode(encoded)
