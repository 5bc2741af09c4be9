"""Choose generated clusters with pod groups that together show everything, and record kube-scheduler's verdicts.

    python -m tests.conformance.record_groups

rewrites `groups/generated.jsonl.gz` and `groups/trees.jsonl.gz`; the same sources choose the same cases. A case is
chosen for what becomes of its groups and members, for their messages without numbers and names, and for the gates and
fields that led to it. The examples that are worked out by hand are recorded in `groups/by_hand.jsonl`.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.conformance.group_examples import EXAMPLES
from tests.conformance.groups import GROUPS, OF_GROUPS, OF_TREES, Json, Oracles, outcome
from tests.conformance.record import fields
from tests.conformance.recorded import to_line, write_cases

SEEDS: Final = range(1500)
WEIGHT: Final = 2_000
"""Bytes that any case costs: without it only the tiniest clusters are chosen."""


def main() -> int:
    """Run the command."""
    with Oracles() as oracles:
        write_cases(GROUPS / "by_hand.jsonl", recorded(oracles, [example.case for example in EXAMPLES]))
        for name, makers, wanted in (("generated", OF_GROUPS, 120), ("trees", OF_TREES, 80)):
            known = recorded(oracles, [make(seed) for make in makers for seed in SEEDS])
            choose(GROUPS / f"{name}.jsonl.gz", known, wanted)
    return 0


def choose(path: Path, known: Sequence[Json], wanted: int) -> None:
    """Write so many cases to a file that together have as many features as can be."""
    left = [(each, set(features(each)), len(to_line(each))) for each in known]
    every = set().union(*(found for _, found, _ in left))
    chosen: list[Json] = []
    shown: set[str] = set()
    while len(chosen) < wanted:
        best = max(left, key=lambda item: len(item[1] - shown) / (item[2] + WEIGHT))
        if not best[1] - shown:
            break
        left.remove(best)
        shown |= best[1]
        chosen.append(best[0])
    write_cases(path, chosen)
    print(f"{len(chosen)} cases show {len(shown)} of {len(every)} features; {path}: {path.stat().st_size:,} bytes")


def recorded(oracles: Oracles, cases: Sequence[Json]) -> list[Json]:
    """The cases with their verdicts. Raises ValueError for one that kube-scheduler refuses."""
    verdicts = oracles.judge_all(cases)
    for case, verdict in zip(cases, verdicts, strict=True):
        if verdict.get("error"):
            raise ValueError(f"{case['name']}: {verdict['error']}")
    return [
        {"case": case, "expected": {part: verdict[part] for part in ("groups", "pods") if verdict.get(part)}}
        for case, verdict in zip(cases, verdicts, strict=True)
    ]


def features(known: Json) -> Iterator[str]:
    """What can be seen in a case: what became of each group, and of what it was made."""
    case, expected = known["case"], known["expected"]
    gates = "+".join(sorted(case["gates"]))
    outcomes: dict[str, str] = {}
    for pod in expected.get("pods", ()):
        yield f"{gates} alone {steady(pod['message'])} victims {min(len(pod['victims']), 3)}"
    for group in expected.get("groups", ()):
        became = outcomes[f"{group['namespace']}/{group['name']}"] = outcome(group)
        yield f"{gates} {became}"
        yield f"{became} {steady(group['message'])} victims {min(len(group['victims']), 3)}"
        yield f"{became} condition {group['condition'] and steady(group['condition']['message'])}"
        yield from (f"gated {steady(why)}" for why in group["gated"].values())
        for name, part in group.get("parts", {}).items():
            outcomes[f"{group['namespace']}/{name}"] = became
            yield f"{became} part {part['code']} {steady(part['message'])}"
            yield f"{became} part's condition {part['condition'] and steady(part['condition']['message'])}"
        for member in group["members"]:
            told = steady(member.get("message", ""))
            yield f"{became} {member.get('reason')} nominated {bool(member['nominatedNode'])} {told}"
    for thing in case["objects"]:
        metadata, spec = thing["metadata"], thing.get("spec", {})
        name = spec.get("schedulingGroup", {}).get("podGroupName", metadata["name"])
        became = outcomes.get(f"{metadata.get('namespace')}/{name}", "around")
        yield from (f"{became} {path}" for path in fields(thing["kind"], spec))


def steady(message: str) -> str:
    """A message without numbers and names of groups, nodes and pods."""
    return re.sub(r"\b(job|n|r|old|past|lone|zone)-?\w*\d[-\w]*|\d+", "#", message)


if __name__ == "__main__":
    sys.exit(main())
