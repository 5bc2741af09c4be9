"""What becomes of a failing case: shown, made small, written to a file."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.conformance.compare import Difference, differences
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


@dataclass(frozen=True, slots=True)
class Trial:
    """All who have a say in whether a smaller case still shows the failure."""

    oracle: Oracle
    validator: Oracle
    """Started with `-validate`: a case that no API server would store shows nothing."""

    judge: Judge

    def fail(self, cases: Sequence[Json]) -> Iterator[bool]:
        """Which cases could exist and are judged differently."""
        possible = [not objections.get("error") for objections in self.validator.judge_all(cases)]
        verdicts = iter(list(self.oracle.judge_all([case for case, may in zip(cases, possible, strict=True) if may])))
        for case, exists in zip(cases, possible, strict=True):
            verdict = next(verdicts) if exists else {"error": "it cannot exist"}
            yield not verdict.get("error") and bool(differences(verdict, answer(self.judge, case)))


def report(case: Json, found: Sequence[Difference], judge: Judge, directory: Path = CASES) -> Path:
    """Print the differences of a case, then of the small case that is left of it. Return the file with that one."""
    print(f"\n{case['name']} differs:")
    show(found)
    print("Making it small …", flush=True)
    with Oracle() as oracle, Oracle("-validate") as validator:
        small = minimise(case, Trial(oracle, validator, judge).fail)
        expected = oracle.judge(small)
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
