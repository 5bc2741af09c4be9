"""One sentence about the shortage of a request for space in a share.

share "team-a" has no space: 2 of cpu more than "research" has, of which "team-b" borrows 4
"""

from collections.abc import Mapping, Sequence
from typing import Final

from scheduler.api.wording.spelling import spelled_for
from scheduler.api.wording.text import shortened
from scheduler.framework.events import CLUSTER_QUEUE
from scheduler.framework.shares import ShareKey, ShareLack, ShareRefusal
from scheduler.quota.tree import ShareTree

MAX_LACKS: Final = 3
MAX_BORROWERS: Final = 3
"""That are named."""

MAX_NAME: Final = 253
"""Characters of a resource's name that are shown."""


def refused(
    key: ShareKey, tree: ShareTree, amounts: Mapping[str, int], pods: int, others: Sequence[Mapping[str, int]] = ()
) -> ShareRefusal:
    """Return the refusal of a request of so many pods that does not fit.

    `others`: what it might take instead, which does not fit either.
    """
    lacks = tree.lacks(key.name, amounts)
    named = [*lacks, *(lack for each in others for lack in tree.lacks(key.name, each) if lack not in lacks)]
    whose = f" for {pods} pods that start together" if pods > 1 else ""
    return ShareRefusal(key, f'share "{key.name}" has no space{whose}: {in_words(key, named)}', lacks)


def in_words(key: ShareKey, lacks: Sequence[ShareLack]) -> str:
    """Name the lacking amounts, their share, and the borrowers."""
    clauses = [_clause(key, lack) for lack in lacks[:MAX_LACKS]]
    if len(lacks) > MAX_LACKS:
        clauses.append(f"and {len(lacks) - MAX_LACKS} more")
    return "; ".join(clauses)


def _clause(key: ShareKey, lack: ShareLack) -> str:
    source, name, resource = *key, lack.resource
    missing = f"{spelled_for(source, resource, lack.missing)} of {shortened(resource, MAX_NAME)}"
    is_own = lack.share == name
    if lack.is_limit:
        limit = "borrowingLimit" if source == CLUSTER_QUEUE else "limit"
        return f"{missing} above its {limit}" if is_own else f'{missing} above the {limit} of "{lack.share}"'
    has = "its nominalQuota" if source == CLUSTER_QUEUE else "it has"
    where = has if is_own else f'"{lack.share}" has'
    borrowers = list(lack.borrowers.items())
    if not borrowers:
        return f"{missing} more than {where}"
    named = [f'"{each}" borrows {spelled_for(source, resource, of)}' for each, of in borrowers[:MAX_BORROWERS]]
    if len(borrowers) > MAX_BORROWERS:
        named.append(f"{len(borrowers) - MAX_BORROWERS} more borrow")
    return f"{missing} more than {where}, of which {' and '.join(named)}"
