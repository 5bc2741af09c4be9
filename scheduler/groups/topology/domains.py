"""Levels of a topology, such as block, rack and host, and the domains of each: nodes with the same value of its label.

A domain lies within one domain of each wider level: two racks of the same name in two blocks are two domains.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from scheduler.framework.nodes.columns import BoolColumn, Rows
from scheduler.framework.nodes.nodes import NodeColumns


@dataclass(frozen=True, eq=False)
class Domains:
    """All domains of one level."""

    label: str
    numbers: npt.NDArray[np.intp]
    """The number of the domain of each row; -1 where the node has no such label."""

    names: Sequence[str]
    """The name of each domain: the value of its label, after those of the wider levels if it is not the only one."""

    @cached_property
    def node_counts(self) -> npt.NDArray[np.int64]:
        """How many nodes each has."""
        return self.count(np.flatnonzero(self.numbers >= 0))

    def count(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Return how many of the rows each domain has; a row may be there several times."""
        numbers = self.numbers[rows]
        return np.bincount(numbers[numbers >= 0], minlength=len(self.names)).astype(np.int64)

    def sum(self, column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the sum of a column over the rows of each domain."""
        sums = np.zeros(len(self.names) + 1, np.int64)
        np.add.at(sums, self.numbers, column)  # not bincount, which adds floats; -1 is the last
        return sums[:-1]

    def rows(self, number: int) -> BoolColumn:
        """Return which rows are in a domain."""
        found: BoolColumn = self.numbers == number
        return found


@dataclass(frozen=True, slots=True)
class Range:
    """The levels that a group may be placed in, and the widest of them that it may not leave."""

    labels: Sequence[str]
    """Labels of all levels that are known, the widest first."""

    first: int
    """The level that is tried first; the wider ones follow."""

    last: int
    """The level that is tried last; -1: after the widest, all nodes."""


def range_of(configured: Sequence[str], required: str, preferred: str) -> Range:
    """Return the levels of a group, which names one at least. `configured`: labels, the widest first.

    One that is not configured is a level by itself; a preferred one lies within the required one then.
    """
    wider, narrower = _around(configured, required), _around(configured, preferred)
    if not preferred or not required:
        known = wider or narrower
        labels = known[0] if known else (required or preferred,)
        at = known[1] if known else 0
        return Range(labels, at, at if required else -1)
    if wider and narrower:
        return Range(configured, max(wider[1], narrower[1]), wider[1])
    if wider:
        labels = (*configured[: wider[1] + 1], preferred)
        return Range(labels, len(labels) - 1, wider[1])
    if narrower:
        return Range((required, *configured[narrower[1] :]), 1, 0)
    labels = (required,) if required == preferred else (required, preferred)
    return Range(labels, len(labels) - 1, 0)


def _around(configured: Sequence[str], label: str) -> tuple[Sequence[str], int] | None:
    return (configured, configured.index(label)) if label in configured else None


def all_nodes(nodes: NodeColumns) -> Domains:
    """Return all nodes as one domain without a name."""
    return Domains("", np.where(nodes.in_use, 0, -1).astype(np.intp), [""])


def domains_of(nodes: NodeColumns, labels: Sequence[str]) -> list[Domains]:
    """Return the domains of each level, the widest first."""
    return [_domains(nodes, label, labels[:place]) for place, label in enumerate(labels)]


def _domains(nodes: NodeColumns, label: str, wider: Sequence[str]) -> Domains:
    topology = nodes.topology(label)
    rows = np.flatnonzero(topology.codes)
    values, firsts, numbers = _numbered(topology.codes[rows])
    names = [topology.values[code] for code in values]
    for other in wider if not topology.is_one_each else ():
        codes = nodes.topology(other).codes[rows].astype(np.int64)
        _, firsts, numbers = _numbered(codes * (len(rows) + 1) + numbers)
    if len(firsts) > len(names):
        names = _full_names(nodes, (*wider, label), rows[firsts])
    column = np.full(nodes.size, -1, np.intp)
    column[rows] = numbers
    return Domains(label, column, names)


def _numbered(codes: npt.NDArray[np.signedinteger]) -> tuple[list[int], Rows, npt.NDArray[np.intp]]:
    """Number equal codes: return the distinct ones, where each is first, and the number of each entry."""
    distinct, firsts, numbers = np.unique(codes, return_index=True, return_inverse=True)
    return distinct.tolist(), firsts, numbers


def _full_names(nodes: NodeColumns, labels: Sequence[str], rows: Rows) -> list[str]:
    """Name domains by the values of all levels, from one row of each; where its own value is the only one, by that."""
    topologies = [nodes.topology(label) for label in labels]
    paths = [[topology.values[topology.code_at(row)] for topology in topologies] for row in rows.tolist()]
    uses = Counter(path[-1] for path in paths)
    return [path[-1] if uses[path[-1]] == 1 else "/".join(path) for path in paths]
