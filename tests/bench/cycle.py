"""What one decision costs, without any I/O: `make bench-cycle`.

First what pods may ask for, on clusters where pods of 50 apps run already: decisions for the pods of one app, as when a
Deployment grows, and for pods of all apps in turn. Then how this grows with the nodes, and with the pods that run on
them.

With `--out` every figure is also a line of JSON, for tests.bench.report.
"""

import argparse
import cProfile
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.bench.cycle_cases import CASES, GROW_WITH_NODES, GROW_WITH_PODS, Case
from tests.bench.cycle_costs import Costs, costs
from tests.bench.cycle_crowd import APPS
from tests.bench.cycle_world import World
from tests.bench.decisions import Decision, Series
from tests.bench.results import setting_of, write

SIZES: Final = (100, 1_000, 5_000, 15_000, 50_000, 100_000)
PODS_A_NODE: Final = 4

Cluster = tuple[int, int]
"""Nodes, and pods that run on them."""

CLUSTERS: Final[Sequence[Cluster]] = ((5_000, 20_000), (50_000, 500_000))
"""The aims are for the first; on the others a decision may grow as the nodes do."""


GROWING_NODES: Final[Sequence[Cluster]] = tuple((nodes, PODS_A_NODE * nodes) for nodes in SIZES)
GROWING_PODS: Final[Sequence[Cluster]] = tuple((5_000, pods) for pods in (1_000, 5_000, 20_000, 100_000, 500_000))

Listener = Callable[[Decision], None]
"""Is told each figure."""


def print_cases(
    cases: Sequence[Case],
    clusters: Sequence[Cluster],
    count: int,
    profile: cProfile.Profile | None,
    tell: Listener,
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
            tell(decision(Series.CASE, case, cluster, cost))
        print()
        first = first or found
    print("growth: of the median, since the first table. first: the first decision, which the others leave out.")
    print(f"in turn: pods of all {APPS} apps, where the other columns are for pods of one.\n")


def print_growth(
    series: Series, cases: Sequence[Case], clusters: Sequence[Cluster], count: int, tell: Listener
) -> None:
    """Medians in ms, a column a cluster."""
    print(f"A decision over the {series.value}, ms\n")
    print(f"{'nodes':<42}" + "".join(f"{nodes:>12,}" for nodes, _ in clusters))
    print(f"{'pods':<42}" + "".join(f"{pods:>12,}" for _, pods in clusters))
    for case in cases:
        print(f"{case.name:<42}", end="", flush=True)
        for cluster in clusters:
            # On a small cluster fewer: pods that keep away from each other need a node each.
            cost = costs(case, cluster, min(count, cluster[0] // 2))
            print(f"{cost.median * 1e3:>12.3f}", end="", flush=True)
            tell(decision(series, case, cluster, cost))
        print()
    print()


def decision(series: Series, case: Case, cluster: Cluster, cost: Costs) -> Decision:
    """The figures of a case as they are written."""
    return Decision(
        series,
        case.name,
        *cluster,
        cost.median,
        cost.p99,
        cost.median_together,
        in_turn=cost.median_in_turn,
        first=cost.first,
    )


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
    options = parser().parse_args(arguments)
    profile = cProfile.Profile() if options.profile else None
    cases = [case for case in CASES if options.case in case.name]
    with _listener(options.out) as tell:
        print_cases(cases, options.clusters, options.decisions, profile, tell)
        for series, names, clusters in (
            (Series.NODES, GROW_WITH_NODES, options.growing_nodes),
            (Series.PODS, GROW_WITH_PODS, options.growing_pods),
        ):
            growing = [case for case in cases if case.name in names]
            if growing and clusters:
                print_growth(series, growing, clusters, options.decisions, tell)
    if profile is not None:
        profile.print_stats("tottime")


@contextmanager
def _listener(file: Path | None) -> Iterator[Listener]:
    if file is None:
        yield lambda _: None
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "tests.bench.cycle", *sys.argv[1:]])
    with file.open("w") as stream:
        write(stream, setting_of(1.0, 0.0, command))
        yield lambda found: write(stream, found)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    result.add_argument("--case", default="", help="only cases with this in their name")
    result.add_argument("--decisions", type=int, default=400, help="decisions in each case")
    clusters: dict[str, Any] = {"type": _cluster, "nargs": "*", "metavar": "NODES:PODS"}
    result.add_argument("--clusters", default=CLUSTERS, help="for the cases", **clusters)
    result.add_argument("--growing-nodes", default=GROWING_NODES, help="for the growth with nodes", **clusters)
    result.add_argument("--growing-pods", default=GROWING_PODS, help="for the growth with pods", **clusters)
    result.add_argument("--profile", action="store_true", help="print where the time goes")
    result.add_argument("--out", type=Path, metavar="FILE", help="write JSON lines")
    return result


if __name__ == "__main__":
    main()
