"""Finds the names that a misspelt name may stand for."""

import difflib
from collections.abc import Iterable
from typing import Final

MAX_LOOKED_UP: Final = 100
"""Characters of a wrong name for which similar ones are looked for: the search takes the square of the length."""


def near_names(name: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Return the most similar of the known names, at most `count`, without regard to case; never the name itself."""
    if len(name) > MAX_LOOKED_UP:
        return []
    by_lower = {each.lower(): each for each in known if each != name}
    return [by_lower[each] for each in difflib.get_close_matches(name.lower(), by_lower, count)]
