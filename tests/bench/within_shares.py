"""What shares cost a pod that is within its own, and a start: `python -m tests.bench.within_shares`.

The default profile beside one with the plugin CapacityScheduling and 1,001 shares in four levels: those of
`tests.bench.reclaim`, of which each team has more than its pods use. A decision is that for another pod of a shape,
as when a Deployment grows, by the clock; both profiles take turns. A start is what nodes and running pods cost until
the first decision, which counts them in shares, by the time of the process; the least of `--starts`.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any, Final

from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from scheduler.api.pods.pod import Pod
from scheduler.framework.shares import DeclaredShare
from tests.bench.cycle_costs import Times, decisions, settled
from tests.bench.cycle_world import World, decoded_pod, sibling
from tests.bench.reclaim import TEAMS, shares

ROUNDS: Final = 40
BATCH: Final = 100
"""Pods of one team that are placed in a round."""

LIMITS: Final = "aims: 5 µs, 10 %"


def running(pods: int) -> Iterator[Pod]:
    """Pods of all teams in turn."""
    first = [decoded_pod(f"first-{team}", namespace=f"team-{team}") for team in range(TEAMS)]
    for number in range(pods):
        yield sibling(first[number % TEAMS], f"running-{number}")


def declared(share: DeclaredShare) -> dict[str, Any]:
    """A share as a configuration has it."""
    found = {"name": share.name, "parent": share.parent, "reclaim": share.reclaim}
    return {**found, "minimum": dict(share.minimum), "namespaces": list(share.namespaces)}


def started(arguments: dict[str, Any] | None, nodes: int, pods: list[Pod]) -> tuple[World, float]:
    """Return an engine that has made its first decision, and the seconds of the process that this took.

    `arguments`: of the plugin; None without it.
    """
    with settled():
        begun = time.process_time()
        world = World(nodes) if arguments is None else World(nodes, CapacityScheduling, arguments)
        world.add_pods(pods)
        list(placed(world, "first", 1))
        return world, time.process_time() - begun


def placed(world: World, name: str, count: int, team: int = 0) -> Iterator[Times]:
    pod = decoded_pod(name, namespace=f"team-{team}")
    return decisions(world, [sibling(pod, f"{name}-{number}") for number in range(count)])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=5_000)
    options.add_argument("--pods", type=int, default=100_000)
    options.add_argument("--starts", type=int, default=3)
    given = options.parse_args()
    arguments = {"elasticQuotas": False, "shares": [declared(each) for each in shares(given.pods)]}
    kinds = {"without shares": None, "with shares": arguments}
    print(f"{given.nodes:,} nodes, {given.pods:,} pods, {TEAMS + 112:,} shares; {LIMITS}")
    pods, worlds, starts = list(running(given.pods)), dict[str, World](), {kind: list[float]() for kind in kinds}
    for _ in range(given.starts):
        for kind, its in kinds.items():
            worlds.pop(kind, None)
            worlds[kind], seconds = started(its, given.nodes, pods)
            starts[kind].append(seconds)
    times = {kind: list[tuple[float, float]]() for kind in kinds}
    with settled():
        for number in range(ROUNDS):
            for kind, world in worlds.items():
                found = list(placed(world, f"next-{number}", BATCH, number % TEAMS))[1:]
                times[kind].append((statistics.median(a for a, _ in found), statistics.median(b for _, b in found)))
    print(f"{'':16} {'decision µs':>12} {'and assumption':>15} {'start s':>8}")
    for kind in kinds:
        alone, together = (statistics.median(each) * 1e6 for each in zip(*times[kind], strict=True))
        print(f"{kind:16} {alone:12.1f} {together:15.1f} {min(starts[kind]):8.2f}")


if __name__ == "__main__":
    main()
