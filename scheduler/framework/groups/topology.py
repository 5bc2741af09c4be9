"""One node label over all nodes, as plugins see it."""

from collections.abc import Sequence
from typing import Protocol

from scheduler.framework.nodes.columns import Int32Column, Rows


class Topology(Protocol):
    """The nodes by one label: all that have the same value are a domain. Read it, never keep it."""

    @property
    def codes(self) -> Int32Column:
        """A number for each domain, at each of its rows; 0 where a node has no such label."""

    @property
    def values(self) -> Sequence[str]:
        """The value behind each code, also codes that no row has any more; the first entry means nothing."""

    @property
    def labelled(self) -> int:
        """How many rows have the label."""

    @property
    def is_one_each(self) -> bool:
        """Whether no two rows have the same value, as with `kubernetes.io/hostname`."""

    @property
    def distinct(self) -> Rows:
        """The codes that any row has, except 0, in ascending order."""

    @property
    def version(self) -> int:
        """Changes with any code of any row."""

    def code_at(self, row: int) -> int:
        """The code of one row."""
