"""The commands that compare readings: generated cases are lines of their own, which the oracle and we read."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.oracle import Oracle
from tests.conformance.recorded import write_cases

Json = dict[str, Any]


def compare(
    what: str,
    cases: Callable[[range], Iterator[Json]],
    differences: Callable[[Json, Any], Sequence[str]],
    recorded: Path,
    count: int,
) -> int:
    """Compare cases that the oracle reads with the flag `-what`; return 1 if anything differs.

    `differences` has a line for each thing that means something else to us. With `--record` the cases are written.
    """
    parser = argparse.ArgumentParser(prog=f"python -m tests.conformance.{what}")
    parser.add_argument("--cases", type=int, default=count, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one (default: %(default)s)")
    parser.add_argument("--record", action="store_true", help=f"write the cases into {recorded.name}")
    options = parser.parse_args()
    made = list(cases(range(options.first, options.first + options.cases)))
    with Oracle(f"-{what}") as oracle:
        known = list(zip(made, oracle.judge_all(made), strict=True))
    wrong = [line for case, answer in known for line in differences(case, answer)]
    print("\n".join(wrong[:40]))
    print(f"{len(made)} cases, {len(wrong)} differences")
    if options.record and not wrong:
        write_cases(recorded, ({"case": case, "expected": answer} for case, answer in known))
    return 1 if wrong else 0
