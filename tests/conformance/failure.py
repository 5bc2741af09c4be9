"""Compares verdicts case by case. One that differs is shown, made small, and written to a file."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.conformance.compare import Difference
from tests.conformance.compare import differences as of_pods
from tests.conformance.minimise import minimise
from tests.conformance.oracle import Oracle
from tests.conformance.recorded import CASES, write_cases

Json = dict[str, Any]
Judge = Callable[[Json], Json]

SHOWN: Final = 12
"""Differences printed of a failing case; more are seldom read."""


def answer(judge: Judge, case: Json) -> Json:
    """Our verdict; a crash is one too, else the case that crashes us could not be made small."""
    try:
        return judge(case)
    except ImportError:  # no verdict: there is nothing to compare
        raise
    except Exception as error:  # noqa: BLE001
        return {"error": f"{type(error).__name__}: {error}", "pods": []}


def compare(
    judged: Iterable[tuple[Json, Json]],
    outcomes_of: Callable[[Json], Iterable[str]],
    judge: Judge,
    judge_all: Callable[[Sequence[Json]], Iterable[Json]],
    **reported: Any,
) -> int:
    """Judge cases, given with kube-scheduler's verdicts; stop at the first difference. Return the exit code.

    `outcomes_of`: what to count of a verdict; the others are `report`'s.
    """
    counts: Counter[str] = Counter()
    differences, cases = reported.get("differences", of_pods), 0
    for case, expected in judged:
        cases += 1
        if expected.get("error"):
            print(f"\n{case['name']}: kube-scheduler refuses the case: {expected['error']}")
            return 1
        counts.update(outcomes_of(expected))
        if found := differences(expected, answer(judge, case)):
            report(case, found, judge_all, judge, **reported)
            return 1
    print(f"{cases} cases, {counts.total()} outcomes: {dict(sorted(counts.items()))}")
    return 0


def outcome(pod: Json) -> str:
    """What became of a pod, in a word."""
    if pod.get("gated"):
        return "gated"
    if pod["node"]:
        return "placed"
    if pod["nominatedNode"]:
        return "nominated"
    return "rejected" if "nodes are available" in pod["message"] or not pod["nodes"] else "error"


def outcomes(verdict: Json) -> list[str]:
    return [outcome(pod) for pod in verdict["pods"]]


def report(
    case: Json,
    found: Sequence[Difference],
    judge_all: Callable[[Sequence[Json]], Iterable[Json]],
    judge: Judge,
    directory: Path = CASES,
    differences: Callable[[Json, Json], Sequence[Difference]] = of_pods,
    kept: Sequence[str] = (),
) -> Path:
    """Print the differences of a case, then of the small case that is left of it. Return the file with that one.

    `judge_all`: kube-scheduler's verdicts on cases; `kept`: parts of the case that stay as they are.
    """
    print(f"\n{case['name']} differs:")
    show(found)
    print("Making it small …", flush=True)
    fixed = {part: case[part] for part in kept if part in case}
    with Oracle("-validate") as validator:

        def fail(cases: Sequence[Json]) -> Iterator[bool]:
            """Which cases could exist, as no API server would store others, and are judged differently."""
            whole = [each | fixed for each in cases]
            exists = [not objections.get("error") for objections in validator.judge_all(whole)]
            verdicts = iter(judge_all([each for each, does in zip(whole, exists, strict=True) if does]))
            for each, does in zip(whole, exists, strict=True):
                verdict = next(verdicts) if does else {"error": "it cannot exist"}
                yield not verdict.get("error") and bool(differences(verdict, answer(judge, each)))

        small = minimise({key: value for key, value in case.items() if key not in fixed}, fail) | fixed
    (expected,) = judge_all([small])
    print(f"What is left, {len(small['objects'])} objects:")
    show(differences(expected, answer(judge, small)))
    print(json.dumps({"config": small.get("config"), "objects": small["objects"]}, indent=1))
    path = write_cases(directory / f"failed-{case['name']}.jsonl", [{"case": small, "expected": expected}])
    print(f"Written to {path}: once it passes, keep it as a recorded case.")
    return path


def show(found: Sequence[Difference]) -> None:
    """Print the first differences."""
    for difference in found[:SHOWN]:
        print(f"  {difference}")
    if len(found) > SHOWN:
        print(f"  … and {len(found) - SHOWN} more")
