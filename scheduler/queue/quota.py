"""The queue's question to quota: whether a refused entry lacks it, and so is pending for it."""

from collections.abc import Collection, Hashable
from typing import Final, Protocol

from scheduler.framework.queued import Entry


class Request(Protocol):
    """The need of an entry, as the queue sees it."""

    @property
    def kind(self) -> Hashable:
        """The same for all entries for which there is space at the same time."""

    @property
    def sources(self) -> Collection[Hashable]:
        """The objects, in addition to its pods, that say how much it is."""


class Quota(Protocol):
    """The needs of entries."""

    def lacking(self, entry: Entry) -> Request | None:
        """Return what an entry needs that quota has refused, and for which there is no space; None for others."""
        return None

    def has_come_free(self, entry: Entry) -> bool:
        """Say whether there is space now for a group that quota has refused as a whole."""
        return False


class NoQuota(Quota):
    """There is none."""


NO_QUOTA: Final[Quota] = NoQuota()
