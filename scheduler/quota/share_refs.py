"""The quotas that pods count against."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

from scheduler.framework.shares import ShareKey

if TYPE_CHECKING:  # loaded once there are shares
    from scheduler.quota.ledger import Ledger


class Root(NamedTuple):
    """A root, for its tree: quota freed in one does not help in another."""

    ledger: "Ledger"
    name: str


class ShareRef(NamedTuple):
    """The share that a pod counts against."""

    ledger: "Ledger"
    name: str
    """Of the share."""

    said: Hashable

    @property
    def key(self) -> ShareKey:
        return ShareKey(self.ledger.source, self.name)

    @property
    def root(self) -> Root:
        return Root(self.ledger, self.ledger.root_of(self.name))
