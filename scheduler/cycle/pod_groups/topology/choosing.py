"""Which domain a group is tried in first, which next: the smallest that holds it, of several the fullest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.cycle.pod_groups.topology.capacity import Capacity
from scheduler.cycle.pod_groups.topology.domains import Domains
from scheduler.framework.columns import BoolColumn, Int64Column, Rows


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A domain that may hold the group."""

    level: int
    """The place of its level among all, the widest first; -1: all nodes."""

    name: str
    fits: int
    """How many members it holds, at most."""

    rows: BoolColumn


def candidates(
    levels: Sequence[Domains], first: int, last: int, capacity: Capacity, needed: int, running: Rows
) -> Iterator[Candidate]:
    """Yield the domains in the order in which they are tried.

    From the level `first` to the wider level `last`: those that hold all members; then those of `last` that hold the
    `needed` ones at least, or all nodes if `last` is -1. `running`: the row of each member that has its node.
    """
    for level in range(first, max(last, 0) - 1, -1):
        domains = levels[level]
        fits = capacity.fits(domains)
        holding = np.flatnonzero(fits == capacity.wanted)
        if len(holding):
            order = _order(domains, holding, capacity, running)
            yield from (Candidate(level, domains.names[each], capacity.wanted, domains.rows(each)) for each in order)
    if last < 0:
        yield Candidate(-1, "", capacity.wanted, capacity.within)
        return
    domains = levels[last]
    fits = capacity.fits(domains)
    for each in _most_first(fits, np.flatnonzero((fits < capacity.wanted) & (fits >= max(needed, 1))), domains):
        yield Candidate(last, domains.names[each], int(fits[each]), domains.rows(each))


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
