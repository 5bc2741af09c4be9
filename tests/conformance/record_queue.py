"""Choose generated scripts for the queue that together show everything, and record them with kube-scheduler's steps.

    python -m tests.conformance.record_queue

rewrites `queues/generated.jsonl`; the same sources choose the same scripts. A script is chosen for the ways in which
its pods go from one place to another.
"""

import sys
from collections.abc import Iterator
from typing import Final

from tests.conformance.oracle import Oracle
from tests.conformance.queue import QUEUES, Json, place_of
from tests.conformance.queue_scripts import generate
from tests.conformance.recorded import to_line, write_cases

SEEDS: Final = range(3000)
LENGTH: Final = 40
WANTED: Final = 40


def main() -> int:
    """Run the command."""
    cases = [generate(seed, LENGTH) for seed in SEEDS]
    with Oracle() as oracle:
        known = [
            {"case": case, "expected": {"steps": verdict["steps"]}}
            for case, verdict in zip(cases, oracle.judge_all(cases), strict=True)
        ]
    left = [(each, set(features(each)), len(to_line(each))) for each in known]
    every = set().union(*(found for _, found, _ in left))
    chosen: list[Json] = []
    shown: set[str] = set()
    while len(chosen) < WANTED:
        best = max(left, key=lambda item: len(item[1] - shown) / item[2])
        if not best[1] - shown:
            break
        left.remove(best)
        shown |= best[1]
        chosen.append(best[0])
    path = write_cases(QUEUES / "generated.jsonl", chosen)
    print(f"{len(chosen)} scripts show {len(shown)} of {len(every)} features; {path}: {path.stat().st_size:,} bytes")
    return 0


def features(recorded: Json) -> Iterator[str]:
    """From where to where pods go, by which operation, and who had refused them."""
    places: dict[str, str] = {}
    for operation, step in zip(recorded["case"]["queue"]["operations"], recorded["expected"]["steps"], strict=True):
        for name, state in step.items():
            if name.startswith("("):
                continue
            before, after = places.get(name, "gone"), place_of(state)
            places[name] = after
            event = operation.get("event", {}).get("resource", "")
            refused = "refused" if " by= " not in state else ""
            pending = "pending" if " pending= " not in state else ""
            yield f"{operation['do']} {event} {before} to {after} {refused} {pending}"


if __name__ == "__main__":
    sys.exit(main())
