"""What a decision about a group of pods takes, and for how long it holds the event loop: `make bench-groups`.

No API server: a real engine whose bindings succeed at once. Nodes have 32 cores; pods ask for a tenth of one. All times
are CPU time, so that other work on the machine counts less.
"""

import argparse
import asyncio
import logging
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench.cycle_costs import settled
from tests.bench.group_worlds import Racks, World, bound_by, decided, run_until
from tests.bench.plot import Curve, curves

SMALL: Final = 3
"""Pods of a small gang; many of them are decided about, and the median counts."""


class Figures(NamedTuple):
    """Of gangs of one size. Times are in milliseconds."""

    size: int
    decision: float
    longest_hold: float
    """Of the event loop, while one is decided about and bound."""
    until_bound: float


def gangs(nodes: int, size: int, rounds: int) -> Figures:
    """Decide about gangs of a size again and again, then bind one."""
    world = World(nodes)
    seconds = []
    with settled():
        for _ in range(rounds):
            world.gang(size)
            seconds.append(world.decide())
    decision = statistics.median(seconds[len(seconds) // 3 :])
    world = World(nodes)
    world.gang(size)
    until_bound, longest = bound_by(world.under_test, size)
    return Figures(size, decision * 1000, longest * 1000, until_bound * 1000)


def in_a_rack(racks: int, nodes: int, size: int) -> Figures:
    """The same for one gang that is to be in one rack."""
    world = Racks(racks, nodes)
    world.gang(size)
    seconds = decided(world.under_test)
    world = Racks(racks, nodes)
    world.gang(size)
    until_bound, longest = bound_by(world.under_test, size)
    return Figures(size, seconds * 1000, longest * 1000, until_bound * 1000)


def chart(figures: Sequence[Figures]) -> str:
    """Show them over the size of the gang, as SVG."""
    lines = [
        Curve("decision", [(each.size, each.decision) for each in figures]),
        Curve("event loop held at most", [(each.size, each.longest_hold) for each in figures]),
        Curve("until all are bound", [(each.size, each.until_bound) for each in figures]),
    ]
    return curves("Gangs on 5,000 nodes", "pods", "milliseconds", lines, log_x=True, log_y=True, dots=True)


def preemption(nodes: int, lower: int, size: int) -> str:
    """The choice of victims for a gang where every node is full of pods of lower priority."""
    world = World(nodes, cores=lower // nodes)
    world.fill(lower)
    world.gang(size, priority=10)
    seconds, longest = asyncio.run(run_until(world.engine, lambda: world.evicts))
    return f"{seconds * 1000:,.0f} | {longest * 1000:.0f}"


def row(what: str, found: Figures) -> str:
    """Return a row of the table about gangs."""
    return f"| {what} | {found.decision:,.2f} | {found.longest_hold:.0f} | {found.until_bound:,.0f} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print Markdown. Returns 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.groups", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5_000, help="(default: %(default)s)")
    parser.add_argument("--only", choices=("gangs", "preemption"), help="a part of it")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="where to write a chart of the gangs, as SVG")
    options = parser.parse_args(argv)
    nodes: int = options.nodes
    logging.disable(logging.CRITICAL)
    if options.only in (None, "gangs"):
        print("| gang | decision, ms | event loop held at most, ms | until all are bound, ms |\n|---:|---:|---:|---:|")
        found = []
        for size, rounds in ((SMALL, 300), (100, 20), (1_000, 6), (10_000, 3)):
            found.append(each := gangs(nodes, size, rounds))
            print(row(f"{size:,}", each), flush=True)
        for size in (1_000, 10_000):
            print(row(f"{size:,}, in one of 250 racks", in_a_rack(250, nodes // 250, size)), flush=True)
        if options.plot:
            options.plot.write_text(chart(found))
    if options.only in (None, "preemption"):
        print("\n| gang | pods that might leave | until victims are chosen, ms | event loop held at most, ms |")
        print("|---:|---:|---:|---:|")
        for size, lower in ((SMALL, 1_000), (SMALL, 50_000), (1_000, 50_000)):
            print(f"| {size:,} | {lower:,} | {preemption(min(nodes, lower // 10), lower, size)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
