"""What a decision about victims costs in a large tree of shares: `python -m tests.bench.shares`.

1,000 shares in four levels (a root, 10 organisations, 100 departments, 890 teams), and 100,000 pods of two resources
that run in the teams. Everybody borrows from one team, which claims its guarantee back. Times are by the clock, the
median and the largest of `--runs` decisions with different requests; the nodes always suffice, so they are what the
choice itself costs.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Final

from scheduler.shares.order import FairOrder, Head
from scheduler.shares.reclaim.fair import FairSharing
from scheduler.shares.reclaim.reclaim import Reclaim
from scheduler.shares.reclaim.units import Claim, Policy, Preemption, Running, Unit
from scheduler.shares.tree import Share, ShareTree

ORGANISATIONS, DEPARTMENTS, TEAMS = 10, 100, 889
PODS: Final = 100_000
LIMIT: Final = 50.0
"""Milliseconds that a decision may take."""

CLAIMING: Final = "claiming"
EVERYBODY: Final = Preemption(
    within_share=Policy.LOWER_PRIORITY, reclaim_within_cohort=Policy.ANY, borrow_within_cohort=True
)
LOWER_ONLY: Final = Preemption(within_share=Policy.LOWER_PRIORITY, reclaim_within_cohort=Policy.LOWER_PRIORITY)
WITHIN_ONLY: Final = Preemption(within_share=Policy.LOWER_OR_NEWER_EQUAL_PRIORITY)


def shares() -> Iterator[Share]:
    yield Share(name="root")
    for number in range(ORGANISATIONS):
        yield Share(name=f"organisation-{number}", parent="root")
    for number in range(DEPARTMENTS):
        yield Share(name=f"department-{number}", parent=f"organisation-{number % ORGANISATIONS}")
    for number in range(TEAMS):
        parent = f"department-{number % DEPARTMENTS}"
        yield Share(name=f"team-{number}", parent=parent, minimum={"cpu": 50_000, "memory": 100}, weight=1 + number % 3)
    yield Share(name=CLAIMING, parent="department-0", minimum={"cpu": 60_000_000, "memory": 200_000})


def world(seed: int = 1) -> tuple[ShareTree, Running]:
    """Return a tree whose quota is all in use, most of it by teams that borrow, and what runs."""
    chance = random.Random(seed)
    tree, running = ShareTree(list(shares())), Running()
    for number in range(PODS):
        unit = Unit(
            uid=f"pod-{number}",
            share=f"team-{number % TEAMS}",
            usage={"cpu": 1000, "memory": 1},
            priority=chance.randrange(5),
            queued_at=float(number),
            reserved_at=float(number),
        )
        running.add(unit)
        tree.add(unit.share, unit.usage)
    tree.add(CLAIMING, {resource: tree.available(CLAIMING, resource) for resource in ("cpu", "memory")})
    return tree, running


def claims(priority: int) -> Iterator[Claim]:
    for pods in (1, 10, 100, 1000):
        yield Claim(
            share=CLAIMING, request={"cpu": 1000 * pods, "memory": pods}, priority=priority, queued_at=float(PODS)
        )


def timed(decide: Callable[[], int], runs: int) -> tuple[float, float, int]:
    """Return the median and the largest time in milliseconds, and the last answer."""
    times, answer = [], 0
    for _ in range(runs):
        start = time.process_time()
        answer = decide()
        times.append((time.process_time() - start) * 1000)
    return statistics.median(times), max(times), answer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=5)
    runs = options.parse_args().runs
    tree, running = world()
    print(f"{len(tree.shares):,} shares, {PODS:,} pods, {runs} runs")
    print(f"{'decision':46} {'asked':>7} {'victims':>8} {'median ms':>10} {'largest ms':>11}")
    kinds = (
        ("classical, reclaim from any", EVERYBODY, None, 2),
        ("classical, reclaim from lower priority", LOWER_ONLY, None, 2),
        ("classical, reclaim, nobody is lower", LOWER_ONLY, None, 0),
        ("classical, within the share only", WITHIN_ONLY, None, 2),
        ("fair sharing, reclaim from any", EVERYBODY, FairSharing(), 2),
        ("fair sharing, nobody is lower", LOWER_ONLY, FairSharing(), 0),
    )
    for title, preemption, fair, priority in kinds:
        reclaim = Reclaim(tree, running, {CLAIMING: preemption}, fair)
        for claim in claims(priority):
            median, largest, victims = timed(lambda c=claim, r=reclaim: len(r.victims(c)), runs)  # type: ignore[misc]
            note = "" if median <= LIMIT else f"  over {LIMIT:.0f} ms"
            print(f"{title:46} {claim.request['cpu'] // 1000:7,} {victims:8,} {median:10.2f} {largest:11.2f}{note}")
    order = FairOrder(tree)
    for name in tree.shares:
        if running.has(name, evicted=False):
            order.offer(Head(share=name, uid=name, request={"cpu": 1000, "memory": 1}))
    median, largest, _ = timed(lambda: first_and_next(order), 1000)
    print(f"{'next share in fair order, after a change':46} {'':7} {'':8} {median:10.3f} {largest:11.2f}")


def first_and_next(order: FairOrder) -> int:
    head = order.first()
    if head is None:
        return 0
    order.withdraw(head.share)
    order.offer(head)
    return 1


if __name__ == "__main__":
    main()
