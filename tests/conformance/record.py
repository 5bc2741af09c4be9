"""Choose generated cases that together show everything, and record them with kube-scheduler's verdict.

    python -m tests.conformance.record clusters        or groups, queue, hints, gated

rewrites what was generated in `cases/`, `groups/`, `queues/`, `hints/` or `gated/`; the same sources choose the same
cases. A case is chosen for what no case before it shows: `features.py`. Groups that were made by hand are judged again.

`--again` keeps the cases in `cases/`, and takes what kube-scheduler says now where we say the same: for a move to
another version.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.conformance import features, gated, groups, hints, ours, queue_scripts
from tests.conformance.compare import differences
from tests.conformance.generate import generate
from tests.conformance.oracle import Oracle
from tests.conformance.queue import QUEUES
from tests.conformance.recorded import CASES, read_file, to_line, write_cases

Json = dict[str, Any]
LARGEST: Final = 50_000
"""Bytes of one recorded case: a large cluster shows little that a small one does not."""


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.record")
    parser.add_argument("part", nargs="?", choices=PARTS, default="clusters")
    parser.add_argument("--again", action="store_true", help="only judge the recorded cases again")
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    if options.again:
        return judge_again()
    PARTS[options.part]()
    return 0


def judge_again() -> int:
    """Take the oracle's new verdicts on the recorded cases that we agree with, and say with which we do not."""
    left = 0
    for path in sorted(CASES.glob("*.jsonl*")):
        known = list(read_file(path))
        with Oracle() as oracle:
            verdicts = list(oracle.judge_all([each["case"] for each in known]))
        for each, expected in zip(known, verdicts, strict=True):
            if found := differences(expected, ours.judge(each["case"])):
                left += 1
                print(f"{path.name} {each['case']['name']}: {found[0]}")
            else:
                each["expected"] = expected
        write_cases(path, known)
    print(f"{left} cases differ, and are as they were")
    return 1 if left else 0


def record(
    path: Path, known: Sequence[Json], features: Callable[[Json], Iterable[str]], wanted: int, weight: int = 0
) -> None:
    """Write so many cases to a file that together have as many features as can be.

    Greedily the case that adds most features for its size; once all are shown, another one for each, and so on.
    `weight`: bytes that any case costs: without it only the tiniest are chosen.
    """
    left = [(each, set(features(each)), len(to_line(each))) for each in known]
    every = set().union(*(found for _, found, _ in left))
    chosen: list[Json] = []
    shown: set[str] = set()
    seen: set[str] = set()
    while left and len(chosen) < wanted:
        best = max(left, key=lambda item: len(item[1] - shown) / (item[2] + weight))
        if not best[1] - shown:
            if not shown:
                break  # what is left shows nothing
            shown = set()  # everything is shown: begin again, with other cases
            continue
        left.remove(best)
        shown |= best[1]
        seen |= best[1]
        chosen.append(best[0])
    write_cases(path, chosen)
    print(f"{len(chosen)} cases show {len(seen)} of {len(every)} features; {path}: {path.stat().st_size:,} bytes")


def clusters() -> None:
    with Oracle() as oracle:
        known = with_verdicts([generate(seed) for seed in range(4000)], oracle.judge_all)
    small = [each for each in known if len(to_line(each)) <= LARGEST]
    record(CASES / "generated.jsonl.gz", small, features.of_clusters, wanted=320, weight=4_000)


def of_groups() -> None:
    with groups.Oracles() as oracles:
        by_hand = groups.GROUPS / "by_hand.jsonl"
        write_cases(by_hand, judged_groups(oracles, [each["case"] for each in read_file(by_hand)]))
        for name, makers, wanted in (("generated", groups.OF_GROUPS, 120), ("trees", groups.OF_TREES, 80)):
            known = judged_groups(oracles, [make(seed) for make in makers for seed in range(1500)])
            record(groups.GROUPS / f"{name}.jsonl.gz", known, features.of_groups, wanted, weight=2_000)


def judged_groups(oracles: groups.Oracles, cases: Sequence[Json]) -> list[Json]:
    """The cases with their verdicts. Raises ValueError for one that kube-scheduler refuses."""
    known = with_verdicts(cases, oracles.judge_all)
    for each in known:
        if each["expected"].get("error"):
            raise ValueError(f"{each['case']['name']}: {each['expected']['error']}")
        each["expected"] = {part: each["expected"][part] for part in ("groups", "pods") if each["expected"].get(part)}
    return known


def of_queue() -> None:
    with Oracle() as oracle:
        known = with_verdicts([queue_scripts.generate(seed, length=40) for seed in range(3000)], oracle.judge_all)
    steps = [{"case": each["case"], "expected": {"steps": each["expected"]["steps"]}} for each in known]
    record(QUEUES / "generated.jsonl", steps, features.of_queue, wanted=34)


def of_hints() -> None:
    """Choose a question if a hint says something of an event that no smaller question had it say."""
    with Oracle() as oracle:
        known = [
            hints.alone(case, expected, number)
            for case, expected in hints.judged(oracle, range(600))
            for number in range(len(case["questions"]))
        ]
    chosen: list[Json] = []
    shown: set[str] = set()
    for one in sorted(known, key=lambda each: len(to_line(each))):
        if new := set(features.of_hints(one)) - shown:
            shown |= new
            chosen.append(one)
    write_cases(hints.HINTS / "generated.jsonl", chosen)


def of_gates(wanted: int = 5) -> None:
    """Choose the shortest cases of each set of gates for which the gates matter."""
    with groups.Oracles() as oracles:
        known = [{"case": case, "expected": expected} for case, expected in gated.judged(oracles, range(100))]
    found: dict[tuple[str, ...], list[Json]] = {}
    for each in sorted(known, key=lambda each: len(to_line(each))):
        of_its_gates = found.setdefault(tuple(each["case"]["gates"]), [])
        if len(of_its_gates) < wanted and gated.gates_matter(each):
            of_its_gates.append(each)
    write_cases(gated.GATED / "generated.jsonl.gz", [each for gates in gated.TOPICS for each in found[gates]])


def with_verdicts(cases: Sequence[Json], judge_all: Callable[[Sequence[Json]], Any]) -> list[Json]:
    return [{"case": case, "expected": expected} for case, expected in zip(cases, judge_all(cases), strict=True)]


PARTS: Final = {
    "clusters": clusters,
    "groups": of_groups,
    "queue": of_queue,
    "hints": of_hints,
    "gated": of_gates,
}

if __name__ == "__main__":
    sys.exit(main())
