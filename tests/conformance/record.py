"""Choose generated cases that together show everything, and record them with kube-scheduler's verdict.

    python -m tests.conformance.record

rewrites `cases/generated.jsonl.gz`; the same sources choose the same cases. A case is chosen for the features that
no case before it has: reasons, codes, scores, plugin arguments, fields of pods and nodes and what became of the pod.

`--again` keeps the cases, and takes what kube-scheduler says now where we say the same: for a move to another version.
"""

import argparse
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.conformance import ours
from tests.conformance.compare import differences
from tests.conformance.coverage import Coverage, outcome
from tests.conformance.generate import generate
from tests.conformance.oracle import Oracle
from tests.conformance.recorded import CASES, read_file, to_line, write_cases

Json = dict[str, Any]
SEEDS: Final = range(4000)
WANTED: Final = 320
LARGEST: Final = 50_000
"""Bytes of one recorded case: a large cluster shows little that a small one does not."""

WEIGHT: Final = 4_000
"""Bytes that any case costs: without it only the tiniest clusters are chosen."""

TELLING: Final = frozenset({"operator", "effect", "protocol", "type", "reason", "phase", "hostIP", "restartPolicy"})
"""Fields whose value is a feature; of the others it is that they are set."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.record")
    parser.add_argument("--again", action="store_true", help="only judge the recorded cases again")
    if parser.parse_args(arguments).again:
        return judge_again()
    with Oracle() as oracle:
        cases = [generate(seed) for seed in SEEDS]
        known = [
            {"case": case, "expected": expected} for case, expected in zip(cases, oracle.judge_all(cases), strict=True)
        ]
    chosen = choose([each for each in known if len(to_line(each)) <= LARGEST])
    path = write_cases(CASES / "generated.jsonl.gz", sorted(chosen, key=lambda each: seed_of(each["case"])))
    coverage = Coverage()
    for each in chosen:
        coverage.add(each["expected"])
    print(coverage.table())
    print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


def judge_again() -> int:
    """Take the oracle's new verdicts on the recorded cases that we agree with, and say with which we do not."""
    logging.disable(logging.ERROR)
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


def choose(known: list[Json]) -> list[Json]:
    """Greedily the case that adds most features for its size; once all are shown, another one for each, and so on."""
    left = [(each, set(features(each)), len(to_line(each))) for each in known]
    chosen: list[Json] = []
    shown: set[str] = set()
    while left and len(chosen) < WANTED:
        best = max(left, key=lambda item: len(item[1] - shown) / (item[2] + WEIGHT))
        if not best[1] - shown:
            shown = set()  # everything is shown: begin again, with other cases
            continue
        shown |= best[1]
        chosen.append(best[0])
        left.remove(best)
    every = set().union(*(features(each) for each in known))
    seen = set().union(*(features(each) for each in chosen))
    print(f"{len(chosen)} cases show {len(seen)} of {len(every)} features")
    return chosen


def features(recorded: Json) -> Iterator[str]:
    """What can be seen in a case."""
    case, expected = recorded["case"], recorded["expected"]
    for profile in case["config"]["profiles"]:
        for plugin in profile.get("pluginConfig", ()):
            yield from fields(f"args {plugin['name']}", plugin["args"])
        for point, plugins in profile["plugins"].items():
            yield from (f"{point} disabled {plugin['name']}" for plugin in plugins.get("disabled", ()))
            yield from (f"{point} enabled {plugin['name']}" for plugin in plugins.get("enabled", ()))
    outcomes = {f"{pod['namespace']}/{pod['name']}": outcome(pod) for pod in expected["pods"]}
    for thing in case["objects"]:
        metadata = thing["metadata"]
        became = outcomes.get(f"{metadata.get('namespace')}/{metadata['name']}", "")
        for part in ("spec", "status"):
            yield from fields(f"{thing['kind']} {became} {part}", thing.get(part, {}))
    for pod in expected["pods"]:
        yield from verdict_features(pod)


def verdict_features(pod: Json) -> Iterator[str]:
    """What can be seen in the verdict on a pod."""
    yield f"outcome {outcome(pod)}"
    if "nodes are available" not in pod["message"]:
        yield f"message {re.sub(r'[0-9]+', '#', pod['message'])[:100]}"
    yield f"best {min(len(pod['best']), 3)} of {min(len(pod['nodes']), 3)}"
    for node in pod["nodes"].values():
        reasons = node.get("reasons", ())
        yield f"{node['code']} {node.get('plugin')} for {min(len(reasons), 4)} reasons"
        yield from (f"{node['code']} {node.get('plugin')} {reason}" for reason in reasons)
        for plugin, score in (node.get("scores") or {}).items():
            yield f"score {plugin} {min(score, 100) // 5}"
        if extended := node.get("extended"):
            yield from (f"extended {part} {min(len(extended[part]), 4)}" for part in ("requests", "mappings"))
            yield from fields("extended", extended)


def fields(prefix: str, value: object) -> Iterator[str]:
    """The paths of fields that are set, without positions in lists."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in TELLING:
                yield f"{prefix}.{key}={inner}"
            elif key not in {"labels", "nodeSelector"}:
                yield from fields(f"{prefix}.{key}", inner)
    elif isinstance(value, list):
        yield f"{prefix} of {min(len(value), 2)}"
        for inner in value:
            yield from fields(prefix, inner)
    else:
        yield prefix


def seed_of(case: Json) -> int:
    """The seed that a generated case is named after."""
    return int(case["name"].removeprefix("seed-"))


if __name__ == "__main__":
    sys.exit(main())
