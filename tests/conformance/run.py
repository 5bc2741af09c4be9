"""Compare Loadmaster with kube-scheduler on generated clusters.

    python -m tests.conformance.run --seeds 500 --start 1000 [--only groups]

prints what was judged and exits 1 when the two disagree; the failing case is made small and written beside the recorded
ones. `--count` goes on, and says what differs how often. `--check-generator` asks the API server's validation whether
the cases could exist.
"""

import argparse
import logging
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from tests.conformance import failure, gated, groups, hints, ours, queue
from tests.conformance.compare import Difference, differences
from tests.conformance.failure import answer
from tests.conformance.generate import generate
from tests.conformance.oracle import Oracle

Json = dict[str, Any]
CHUNK: Final = 200
"""Cases in memory at a time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.run")
    parser.add_argument("--seeds", type=int, default=50, help="how many generated clusters (default 50)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--only", choices=PARTS, help="of all that is compared")
    parser.add_argument("--count", action="store_true", help="do not stop at a difference, count them")
    parser.add_argument("--check-generator", action="store_true", help="only say which cases could not exist")
    options = parser.parse_args(arguments)
    logging.disable(logging.ERROR)  # generated clusters are full of errors: the verdicts tell of them
    seeds = range(options.start, options.start + options.seeds)
    if options.check_generator:
        return check_generator([make(seed) for make in MAKERS[options.only or CLUSTERS] for seed in seeds])
    if options.count:
        return count(seeds)
    return next(filter(None, (part(seeds) for name, part in PARTS.items() if options.only in (None, name))), 0)


def compare(seeds: range) -> int:
    """Judge the cases of these seeds; stop at the first difference."""
    with Oracle() as oracle:
        return failure.compare(judged(oracle, seeds), failure.outcomes, ours.judge, oracle.judge_all)


def count(seeds: range) -> int:
    """Judge all cases of these seeds, and print for each thing that differs where it does, with an example."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    with Oracle() as oracle:
        for case, expected in judged(oracle, seeds):
            for what, example in {
                kind_of(each): each for each in differences(expected, answer(ours.judge, case))
            }.items():
                found[what].append(f"{case['name']}, {example}")
    for what, examples in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"{len(examples)} cases: {what}\n  such as {examples[0]}")
    return 1 if found else 0


def kind_of(difference: Difference) -> str:
    """What differs, whatever the pod and the node."""
    return re.sub(r"^\S+/\S+ (on \S+: )?", "", difference.where)


def judged(oracle: Oracle, seeds: range) -> Iterator[tuple[Json, Json]]:
    """The cases of these seeds and the oracle's verdicts."""
    for start in range(0, len(seeds), CHUNK):
        cases = [generate(seed) for seed in seeds[start : start + CHUNK]]
        yield from zip(cases, list(oracle.judge_all(cases)), strict=True)


def check_generator(cases: Sequence[Json]) -> int:
    """Print what the API server or kube-scheduler would refuse."""
    refused = 0
    with Oracle("-validate") as oracle:
        for case, verdict in zip(cases, oracle.judge_all(cases), strict=True):
            if verdict.get("error"):
                refused += 1
                print(f"{case['name']}: {verdict['error']}")
    print(f"{refused} of {len(cases)} cases could not exist")
    return 1 if refused else 0


CLUSTERS, GROUPS, TREES = "clusters", "groups", "trees"
PARTS: Final[Mapping[str, Callable[[range], int]]] = {
    CLUSTERS: compare,
    GROUPS: partial(groups.compare, makers=groups.OF_GROUPS),
    TREES: partial(groups.compare, makers=groups.OF_TREES),
    "gated": gated.compare,
    "hints": hints.compare,
    "queue": lambda seeds: queue.compare(range(seeds.start * queue.SCRIPTS, seeds.stop * queue.SCRIPTS)),
}
"""Name → what compares the cases of these seeds, stops at the first difference, and returns the exit code."""

MAKERS: Final[Mapping[str, Sequence[Callable[[int], Json]]]] = {
    CLUSTERS: (generate,),
    GROUPS: groups.OF_GROUPS,
    TREES: groups.OF_TREES,
}


if __name__ == "__main__":
    sys.exit(main())
