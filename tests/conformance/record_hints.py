"""Choose generated questions about events that together show everything, and record them with kube-scheduler's answer.

    python -m tests.conformance.record_hints

rewrites `hints/generated.jsonl`: the same sources choose the same questions. A question is chosen if a plugin's hint
says something of an event that no smaller question had it say, or if an update amounts to another event.
"""

import sys
from collections.abc import Iterator
from typing import Final

from tests.conformance.generators.topic import assigned
from tests.conformance.hints import HINTS, Json, alone, judged
from tests.conformance.oracle import Oracle
from tests.conformance.recorded import to_line, write_cases

SEEDS: Final = range(600)


def main() -> int:
    """Run the command."""
    with Oracle() as oracle:
        known = [
            alone(case, expected, number)
            for case, expected in judged(oracle, SEEDS)
            for number in range(len(case["questions"]))
        ]
    chosen: list[Json] = []
    shown: set[str] = set()
    for one in sorted(known, key=lambda each: len(to_line(each))):
        if new := set(features(one)) - shown:
            shown |= new
            chosen.append(one)
    path = write_cases(HINTS / "generated.jsonl", chosen)
    print(f"{len(chosen)} questions show {len(shown)} features; {path}: {path.stat().st_size:,} bytes")
    return 0


def features(recorded: Json) -> Iterator[str]:
    """What can be seen in a question and its answer."""
    (asked,), (said,) = recorded["case"]["questions"], recorded["expected"]["answers"]
    old, new = asked["old"], asked["new"]
    itself = (new or old)["metadata"].get("uid") == asked["pod"]["metadata"]["uid"]
    where = (
        f"{'assigned' if (new or old)['kind'] == 'Pod' and assigned(new or old) else ''} {'itself' if itself else ''}"
    )
    kind = "add" if old is None else "delete" if new is None else "update"
    for plugin, answers in said["hints"].items():
        yield from (f"{plugin} {answer} {kind} {where} under {key}" for key, answer in answers.items())
    yield from (f"{kind} {where} {change['actions']}" for change in said["changes"])


if __name__ == "__main__":
    sys.exit(main())
