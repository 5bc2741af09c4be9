"""What one decision costs, without any I/O: `make bench-cycle`.

First pods of one shape, with the memo and without it, which is what a pod of a new shape costs every time. Then what
pods may ask for, on clusters where pods of 50 apps run already: decisions for the pods of one app, as when a Deployment
grows, and for pods of all apps in turn.
"""

import argparse
import cProfile
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from tests.bench.cycle_cases import CASES, Case
from tests.bench.cycle_costs import Costs, costs, decisions, percentile, settled
from tests.bench.cycle_crowd import APPS
from tests.bench.cycle_world import World, a_pod

SIZES: Final = (1_000, 5_000, 100_000)

Cluster = tuple[int, int]
"""Nodes, and pods that run on them."""

CLUSTERS: Final[Sequence[Cluster]] = ((5_000, 20_000), (50_000, 500_000))
"""The aims are for the first; on the others a decision may grow as the nodes do."""


def print_sizes(sizes: Sequence[int], count: int, profile: cProfile.Profile | None) -> None:
    """Plain pods on empty nodes."""
    print("Pods of one shape, µs\n")
    print(f"{'nodes':>8}  {'memo':<4}  {'decision':>10}  {'p99':>8}  {'with assume':>11}")
    for nodes in sizes:
        for memo in (True, False):
            world = World(nodes)
            wanted = count if nodes <= 10_000 or memo else max(100, count // 10)
            with settled(profile):
                times = list(decisions(world, (a_pod(f"pod-{each}") for each in range(wanted)), memo=memo))
            alone = [each * 1e6 for each, _ in times]
            together = statistics.median(each * 1e6 for _, each in times)
            state = "on" if memo else "off"
            median = statistics.median(alone)
            print(f"{nodes:>8,}  {state:<4}  {median:>10.1f}  {percentile(alone):>8.1f}  {together:>11.1f}", flush=True)
    print()


def print_cases(
    cases: Sequence[Case], clusters: Sequence[Cluster], count: int, profile: cProfile.Profile | None
) -> None:
    """What pods may ask for, on each of the clusters."""
    first: dict[str, Costs] = {}
    for cluster in clusters:
        nodes, pods = cluster
        print(f"{nodes:,} nodes with {pods:,} pods of {APPS} apps, a decision in ms\n")
        heads = ("growth" if first else "aim", "median", "p99", "with assume", "in turn", "first", "set up, s")
        print(" " * 42 + "".join(f"{head:>12}" for head in heads))
        found: dict[str, Costs] = {}
        for case in cases:
            lacking = missing(case)
            if lacking:
                print(f"{case.name:<42}  not there: {', '.join(lacking)}")
                continue
            cost = found[case.name] = costs(case, cluster, count, profile)
            print(f"{case.name:<42}{row(case, cost, first, nodes / clusters[0][0])}", flush=True)
        print()
        first = first or found
    print("growth: of the median, since the first table. first: the first decision, which the others leave out.")
    print(f"in turn: pods of all {APPS} apps, where the other columns are for pods of one.")


def missing(case: Case) -> list[str]:
    """The plugins that the case needs and the default profile does not have."""
    enabled = World(1).framework.plugins.by_name
    return [name for name in case.needs if name not in enabled]


def row(case: Case, cost: Costs, first: Mapping[str, Costs], growth: float) -> str:
    """The figures as text, with a mark if one is above what it may be: the aim, or `growth` times the `first`."""
    limit, shown = case.aim, "" if case.aim is None else f"{case.aim:.1f}"
    if first:
        before = first[case.name].median * 1e3
        limit, shown = before * growth, f"{cost.median * 1e3 / before:.1f}x"
    figures = (cost.median, cost.p99, cost.median_together, cost.median_in_turn, cost.first)
    cells = "".join(f"{each * 1e3:>12.3f}" for each in figures)
    return f"{shown:>12}{cells}{cost.set_up:>12.1f}{mark(cost, limit)}"


def mark(cost: Costs, limit: float | None) -> str:
    """Say where a median is above `limit` milliseconds."""
    if limit is None:
        return ""
    if cost.median * 1e3 > limit:
        return "  MISSED"
    return "  missed in turn" if cost.median_in_turn * 1e3 > limit else ""


def _cluster(text: str) -> Cluster:
    nodes, _, pods = text.partition(":")
    return int(nodes), int(pods)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="*", default=SIZES, help="sizes for pods of one shape")
    parser.add_argument("--pods", type=int, default=2_000, help="decisions on pods of one shape, at each size")
    parser.add_argument("--case", default="", help="only cases with this in their name")
    parser.add_argument("--decisions", type=int, default=400, help="decisions in each case")
    parser.add_argument(
        "--clusters", type=_cluster, nargs="*", default=CLUSTERS, metavar="NODES:PODS", help="for the cases"
    )
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args(arguments)
    profile = cProfile.Profile() if options.profile else None
    print_sizes(options.nodes, options.pods, profile)
    cases = [case for case in CASES if options.case in case.name]
    print_cases(cases, options.clusters, options.decisions, profile)
    if profile is not None:
        profile.print_stats("tottime")


if __name__ == "__main__":
    main()
