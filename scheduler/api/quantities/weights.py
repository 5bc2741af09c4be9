"""The memory that values take, including everything they refer to."""

from sys import getsizeof
from typing import Any

import msgspec
from msgspec.structs import astuple


def weight_of(*values: Any) -> int:
    """Return about how many bytes these values take: strings, numbers, containers and structs, nested.

    What is shared counts each time, so the truth is seldom more. Of an object of any other kind only itself counts.
    """
    total = 0
    rest = list(values)
    while rest:
        value = rest.pop()
        if value is None or value is True or value is False:
            continue
        total += getsizeof(value)
        if isinstance(value, msgspec.Struct):
            rest.extend(astuple(value))
        elif isinstance(value, dict):
            rest.extend(value)
            rest.extend(value.values())
        elif isinstance(value, tuple | frozenset | list | set):
            rest.extend(value)
    return total
