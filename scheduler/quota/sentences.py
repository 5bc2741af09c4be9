"""One sentence about what a request for space in a share is short of.

share "team-a" has no space: 2000m of cpu more than "research" has, of which "team-b" borrows 4000m
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from scheduler.api.read_only import NOTHING
from scheduler.api.requests import CPU
from scheduler.api.text import shortened
from scheduler.framework.shares import ShareKey, ShareLack, ShareRefusal
from scheduler.quota.tree import ShareTree

MAX_LACKS: Final = 3
MAX_BORROWERS: Final = 3
"""That are named."""

MAX_NAME: Final = 253
"""Characters of a resource's name that are shown."""


def lacks_of(tree: ShareTree, name: str, amounts: Mapping[str, int]) -> tuple[ShareLack, ...]:
    """Return what a share and its ancestors are short of, with those who borrow it."""
    return tuple(
        ShareLack(
            lack.share,
            lack.resource,
            lack.missing,
            lack.is_limit,
            NOTHING if lack.is_limit else MappingProxyType(tree.borrowers(lack.share, lack.resource)),
        )
        for lack in tree.lacks(name, amounts)
    )


def refused(source: str, tree: ShareTree, name: str, amounts: Mapping[str, int]) -> ShareRefusal:
    """Return the refusal of a request that does not fit."""
    lacks = lacks_of(tree, name, amounts)
    return ShareRefusal(ShareKey(source, name), f'share "{name}" has no space: {in_words(name, lacks)}', lacks)


def in_words(name: str, lacks: Sequence[ShareLack]) -> str:
    """Say what is lacking, where, and who borrows it."""
    clauses = [_clause(name, lack) for lack in lacks[:MAX_LACKS]]
    if len(lacks) > MAX_LACKS:
        clauses.append(f"and {len(lacks) - MAX_LACKS} more")
    return "; ".join(clauses)


def _clause(name: str, lack: ShareLack) -> str:
    missing = f"{_amount(lack.resource, lack.missing)} of {shortened(lack.resource, MAX_NAME)}"
    if lack.is_limit:
        return f"{missing} above its limit" if lack.share == name else f'{missing} above the limit of "{lack.share}"'
    where = "it has" if lack.share == name else f'"{lack.share}" has'
    borrowers = list(lack.borrowers.items())
    if not borrowers:
        return f"{missing} more than {where}"
    named = [f'"{each}" borrows {_amount(lack.resource, amount)}' for each, amount in borrowers[:MAX_BORROWERS]]
    if len(borrowers) > MAX_BORROWERS:
        named.append(f"{len(borrowers) - MAX_BORROWERS} more borrow")
    return f"{missing} more than {where}, of which {' and '.join(named)}"


def _amount(resource: str, amount: int) -> str:
    return f"{amount}m" if resource.rpartition("/")[2] == CPU else str(amount)
