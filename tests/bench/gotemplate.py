"""The part of Go's templates that scheduler_perf's objects use: fields and arithmetic, no control flow. Pure.

    {{.Index}}   {{ .Count }}   {{Mod .Index 12}}   {{DivideInt 30000 .Count}}

The functions and their rules are those of getTemplateFuncs in test/integration/scheduler_perf/operations.go: all
arithmetic is in floating point, and what is to be an integer is cut towards zero.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

Number = int | float

ACTION: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


class TemplateError(Exception):
    """The template uses something that is not supported here, or divides by zero."""


def divide(first: float, second: float) -> float:
    if second == 0:
        raise TemplateError("division by zero")
    return first / second


def remainder(first: float, second: float) -> int:
    """Go's `%` on integers: the sign is that of the first."""
    divide(first, second)
    return int(math.fmod(int(first), int(second)))


FUNCTIONS: Final[Mapping[str, Callable[..., Number]]] = {
    "AddFloat": lambda *numbers: math.fsum(numbers),
    "AddInt": lambda *numbers: int(math.fsum(numbers)),
    "DivideFloat": divide,
    "DivideInt": lambda first, second: int(divide(first, second)),
    "Mod": remainder,
    "MultiplyFloat": lambda *numbers: float(math.prod(numbers)),
    "MultiplyInt": lambda *numbers: int(math.prod(numbers)),
    "SubtractFloat": lambda first, second: float(first - second),
    "SubtractInt": lambda first, second: int(first - second),
}


@dataclass(frozen=True, slots=True)
class Template:
    """A text with actions in it."""

    text: str

    @property
    def varies(self) -> bool:
        """Whether it may differ from object to object."""
        return ACTION.search(self.text) is not None

    def render(self, index: int, count: int) -> str:
        """The text for one of `count` objects. Raises TemplateError."""
        values: Mapping[str, Number] = {".Index": index, ".Count": count}
        return ACTION.sub(lambda match: form(evaluate(match[1].split(), values)), self.text)


def evaluate(words: list[str], values: Mapping[str, Number]) -> Number:
    """The value of an action: a value, or a function and its arguments."""
    if not words:
        raise TemplateError("an action is empty")
    if len(words) == 1:
        return value_of(words[0], values)
    if words[0] not in FUNCTIONS:
        raise TemplateError(f"no function {words[0]!r}")
    try:
        return FUNCTIONS[words[0]](*(value_of(word, values) for word in words[1:]))
    except TypeError as error:
        raise TemplateError(f"{' '.join(words)}: {error}") from error


def value_of(word: str, values: Mapping[str, Number]) -> Number:
    """A field, or a number as it stands."""
    if word in values:
        return values[word]
    try:
        return float(word) if "." in word else int(word)
    except ValueError:
        raise TemplateError(f"neither a number nor one of {', '.join(values)}: {word!r}") from None


def form(number: Number) -> str:
    """As Go prints it: a float that is whole has no point."""
    return str(int(number)) if isinstance(number, float) and number.is_integer() else str(number)
