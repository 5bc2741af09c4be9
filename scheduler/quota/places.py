"""The places where pods count, and what is kept for them there."""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from scheduler.framework.shares import ShareKey

if TYPE_CHECKING:  # loaded once there are shares
    from scheduler.quota.ledger import Ledger

Root: TypeAlias = "tuple[Ledger, str]"
"""The adapter's tree, and the name of a root there."""


class Place(NamedTuple):
    """The place where a pod counts."""

    ledger: "Ledger"
    name: str
    """Of the share."""

    evidence: Hashable

    @property
    def key(self) -> ShareKey:
        return ShareKey(self.ledger.source, self.name)

    @property
    def root(self) -> "Root":
        """The tree that it is part of: what is freed in one does not help in another."""
        return self.ledger, self.ledger.root_of(self.name)


class Promise(NamedTuple):
    """Amounts that are kept for pods that are to be tried."""

    ledger: "Ledger"
    name: str
    amounts: Mapping[str, int]
    """In the names of the tree."""

    @property
    def root(self) -> "Root":
        return self.ledger, self.ledger.root_of(self.name)
