"""Declarations of functions for the CEL library."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from cel_expr_python import cel

MAP: Final = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
"""The stand-in for values of types that the library lacks: a map with one entry, in a normal form."""

LIST: Final = cel.Type.List(cel.Type.DYN)
INT, BOOL, STRING, DOUBLE, DYN = cel.Type.INT, cel.Type.BOOL, cel.Type.STRING, cel.Type.DOUBLE, cel.Type.DYN

Value = dict[str, Any]


class Overload(NamedTuple):
    """One variant of a function."""

    returns: Any
    takes: Sequence[Any]
    compute: Callable[..., Any]
    """Raises ValueError with the text of the error."""

    is_member: bool = True
    """Whether it is called as a method of its first argument."""


def declared(name: str, *overloads: Overload) -> Any:
    """Return the declaration of a function."""
    return cel.FunctionDecl(
        name,
        [
            cel.Overload(
                f"loadmaster_{name}_{i}",
                return_type=each.returns,
                parameters=list(each.takes),
                is_member=each.is_member,
                impl=each.compute,
            )
            for i, each in enumerate(overloads)
        ],
    )


def succeeds(convert: Callable[..., object]) -> Callable[..., bool]:
    """Return a function that says whether `convert` raises no ValueError."""

    def tried(*args: Any) -> bool:
        try:
            convert(*args)
        except ValueError:
            return False
        return True

    return tried
