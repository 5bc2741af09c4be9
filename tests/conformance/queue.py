"""Run kube-scheduler's scheduling queue and ours on the same operations, and compare where every pod is after each.

    python -m tests.conformance.run --only queue

A script that differs is made short and written to `queues/`. What is compared: in
which queue a pod is and in which order they are popped, its attempts, timestamps, backoff, rejectors and version, and
which pods are nominated to which nodes.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

from tests.conformance.compare import Difference
from tests.conformance.minimise import minimise_runs
from tests.conformance.oracle import Oracle
from tests.conformance.queue_ours import State, run_script
from tests.conformance.queue_scripts import generate
from tests.conformance.recorded import CASES, write_cases

Json = dict[str, Any]
SCRIPTS: Final = 10
"""For each seed: a script takes a tenth of the time of a cluster."""

CHUNK: Final = 500
QUEUES: Final = CASES.parent / "queues"


def differences(case: Json, expected: Json, actual: Sequence[State]) -> list[Difference]:
    """What `actual`, ours, says otherwise after the first operation after which anything differs.

    What comes later follows from it.
    """
    empty: State = {}
    operations = case["queue"]["operations"]
    for i, (theirs, ours) in enumerate(zip_longest(expected["steps"], actual, fillvalue=empty)):
        if theirs != ours:
            where = f"[{i}] {operations[i]['do'] if i < len(operations) else 'end'}"
            return [
                Difference(f"{where}: {name}", theirs.get(name, "as before"), ours.get(name, "as before"))
                for name in sorted(theirs.keys() | ours.keys())
                if theirs.get(name) != ours.get(name)
            ]
    return []


def answer(case: Json) -> list[State]:
    """Our steps; a crash is one too, else the script that crashes us could not be made short."""
    try:
        return run_script(case["queue"])
    except Exception as error:  # noqa: BLE001
        return [{"(crash)": f"{type(error).__name__}: {error}"}]


def compare(seeds: Sequence[int]) -> int:
    """Run the scripts of these seeds on both; stop at the first difference. Return the exit code."""
    operations = 0
    with Oracle() as oracle:
        for case, expected in executed(oracle, seeds):
            if found := differences(case, expected, answer(case)):
                report(case, found, oracle)
                return 1
            operations += len(expected["steps"])
    print(f"{len(seeds)} queue scripts, {operations} operations")
    return 0


def executed(oracle: Oracle, seeds: Sequence[int]) -> Iterator[tuple[Json, Json]]:
    """The scripts of these seeds with kube-scheduler's steps. Raises ValueError for a script that it refuses."""
    for start in range(0, len(seeds), CHUNK):
        cases = [generate(seed) for seed in seeds[start : start + CHUNK]]
        for case, verdict in zip(cases, list(oracle.judge_all(cases)), strict=True):
            if verdict.get("error"):
                raise ValueError(f"{case['name']}: kube-scheduler refuses the script: {verdict['error']}")
            yield case, {"steps": verdict["steps"]}


def place_of(state: str) -> str:
    """Where a pod is, of the line that says all of it."""
    place = state.partition(" attempts=")[0]
    return "gated" if place.startswith("gated") else place or "gone"


def report(case: Json, found: Sequence[Difference], oracle: Oracle) -> None:
    """Print the differences of a script, then of the short one that is left of it, which is written down."""
    print(f"\n{case['name']} differs:", *found, "Making it short …", sep="\n  ", flush=True)
    length = len(case["queue"]["operations"])
    small = minimise_runs(case, length, without_operations, lambda cases: fails(cases, oracle))
    expected = {"steps": oracle.judge(small)["steps"]}
    left = [f"{i}: {operation}" for i, operation in enumerate(small["queue"]["operations"])]
    print("What is left:", *left, *differences(small, expected, answer(small)), sep="\n  ")
    path = write_cases(QUEUES / f"failed-{case['name']}.jsonl", [{"case": small, "expected": expected}])
    print(f"Written to {path}: once it passes, keep it as a recorded script.")


def fails(cases: Sequence[Json], oracle: Oracle) -> Iterator[bool]:
    """Which scripts the two still execute differently."""
    for case, verdict in zip(cases, list(oracle.judge_all(cases)), strict=True):
        yield not verdict.get("error") and bool(differences(case, verdict, answer(case)))


def without_operations(case: Json, size: int) -> Iterator[Json]:
    """The script without each run of `size` operations, never empty."""
    operations = case["queue"]["operations"]
    for start in range(0, len(operations), size):
        left = operations[:start] + operations[start + size :]
        if left:
            yield case | {"queue": case["queue"] | {"operations": left}}
