"""The pods on nodes as plugins see them: how many match, on each node.

All bound or assumed pods of all schedulers count, also on rows that are not nodes (see `in_use` of NodeColumns).
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from scheduler.api.label_selectors import Selector
from scheduler.framework.nodes.columns import Int32Column, Int64Column, Rows


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


class PodMatch(NamedTuple):
    """The pods to count. A match is stored by value: use few, such as one for each constraint or term."""

    namespaces: frozenset[str] | None
    """None stands for every namespace, also for those that no Namespace object describes."""
    selector: Selector
    alive_only: bool = False
    """Whether to leave out the pods that are being deleted."""


class TermKind(Enum):
    """The four lists of terms that a pod may have."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


class PodCounts(Protocol):
    """The number of pods of some kind on each row."""

    @property
    def counts(self) -> Int32Column:
        """How many on each row. Read it, never keep or change it."""

    def sums(self, topology: Topology) -> Int64Column:
        """How many in each domain, by code; 0 for code 0, which is no domain. Read it, never keep or change it.

        For a topology of few domains it is kept up to date from the first call on.
        """


TermWeights: TypeAlias = tuple[tuple[TermKind, int], ...]
"""Kinds of terms, and what a term of each counts: times its own weight, if it is a preferred one."""


class PodIndex(Protocol):
    """Counts over the pods on nodes, up to date at any time, also within a what-if."""

    def counts(self, match: PodMatch) -> Int32Column:
        """How many pods of each row match. Read it, never keep or change it.

        The first call for a match checks every distinct set of labels; then the column is kept up to date while it is
        used.
        """

    def matching(self, match: PodMatch) -> PodCounts:
        """The same, to be summed over topologies as well. Read it, never keep it."""

    def has_terms(self, weights: TermWeights) -> bool:
        """Return whether any pod on a row has a term of these kinds with a topology key that any node has."""

    def terms_towards(
        self, weights: TermWeights, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> Sequence[tuple[str, PodCounts]]:
        """The terms of pods on nodes that select a pod of that namespace with these labels.

        For each topology key that any node has, their sum on each row, which is stored for all pods that no term
        distinguishes. Read it, never keep it.
        """
