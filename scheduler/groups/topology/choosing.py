"""The order in which domains are tried for a group: the smallest that hold it first, then the fullest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.framework.nodes.columns import BoolColumn, Int64Column, Rows
from scheduler.groups.rejector_events import TOPOLOGY_LEVELS
from scheduler.groups.topology.capacity import Capacity
from scheduler.groups.topology.domains import Domains, Range
from scheduler.groups.topology.shapes import Shapes


@dataclass(frozen=True, slots=True)
class Outlook:
    """A group, and where it may fit."""

    range: Range
    levels: Sequence[Domains]
    shapes: Shapes
    capacity: Capacity
    needed: int
    """How many members need a node for the group to be placed."""

    running: Rows
    """The row of each member that has its node."""

    problem: str = ""
    """Why it fits nowhere, whatever is free."""

    @property
    def refusing(self) -> frozenset[str]:
        """Those named as plugins that refuse its members: what they wait for may help it."""
        return self.shapes.refusing | {TOPOLOGY_LEVELS}


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A domain that may hold the group, or all nodes."""

    level: int
    """The place of its level among all, the widest first; -1: all nodes."""

    fits: int
    """How many members it holds, at most."""

    domains: Domains | None = None
    number: int = 0

    @property
    def name(self) -> str:
        """The name of the domain; empty for all nodes."""
        return "" if self.domains is None else self.domains.names[self.number]

    @property
    def rows(self) -> BoolColumn | None:
        """Its nodes; None for all."""
        return None if self.domains is None else self.domains.rows(self.number)


def candidates(outlook: Outlook) -> Iterator[Candidate]:
    """Yield the domains in the order in which they are tried.

    From the level tried first to the wider one tried last: those that hold all members; then those of the last that
    hold the needed ones at least, or all nodes if all are to be tried.
    """
    levels, last, capacity, needed = outlook.levels, outlook.range.last, outlook.capacity, outlook.needed
    for level in range(outlook.range.first, max(last, 0) - 1, -1):
        domains = levels[level]
        holding = np.flatnonzero(capacity.fits(domains) == capacity.wanted)
        if len(holding):
            order = _order(domains, holding, capacity, outlook.running)
            yield from (Candidate(level, capacity.wanted, domains, each) for each in order)
    if last < 0:
        yield Candidate(-1, capacity.wanted)
        return
    domains = levels[last]
    fits = capacity.fits(domains)
    for each in _most_first(fits, np.flatnonzero((fits < capacity.wanted) & (fits >= max(needed, 1))), domains):
        yield Candidate(last, int(fits[each]), domains, each)


def _order(domains: Domains, numbers: Rows, capacity: Capacity, running: Rows) -> list[int]:
    """Return domains that hold all members: where most of the running ones are; where nodes take them now; fullest."""
    now = capacity.fits(domains, now=True) == capacity.wanted
    spare, there = capacity.in_domains(domains), domains.count(running)
    return sorted(
        numbers.tolist(),
        key=lambda each: (-there[each], not now[each], spare[each], domains.node_counts[each], domains.names[each]),
    )


def _most_first(fits: Int64Column, numbers: Rows, domains: Domains) -> list[int]:
    return sorted(numbers.tolist(), key=lambda each: (-fits[each], domains.names[each]))
