"""Compare Loadmaster with kube-scheduler on clusters that need feature gates which are off by default.

    python -m tests.conformance.gated --seeds 300

A case that differs is made small and written to `gated/`. `--record` chooses the cases there again: of each set of
gates the shortest for which the gates matter.
"""

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from tests.conformance import ours
from tests.conformance.compare import differences
from tests.conformance.failure import answer
from tests.conformance.generate import cluster_of, objects_of
from tests.conformance.generators.gated_devices import GATES, GatedDevices
from tests.conformance.generators.resources import Resources
from tests.conformance.generators.topic import Draw
from tests.conformance.groups import Oracles, report
from tests.conformance.recorded import CASES, to_line, write_cases

Json = dict[str, Any]
GATED: Final = CASES.parent / "gated"


def generate(seed: int) -> Json:
    """The case of this seed."""
    draw = Draw(seed)
    objects = objects_of(draw, (Resources(), GatedDevices()), ours.DEFAULT_CONFIG, cluster_of(draw.randint(1, 5)))
    gates = list(GATES[seed % len(GATES)])
    return {"name": f"gated-{seed}", "gates": gates, "alone": True, "config": ours.DEFAULT_CONFIG, "objects": objects}


def compare(seeds: range) -> int:
    """Judge the cases of these seeds; stop at the first difference. Return the exit code."""
    outcomes: Counter[str] = Counter()
    cases = [generate(seed) for seed in seeds]
    with Oracles() as oracles:
        for case, expected in zip(cases, oracles.judge_all(cases), strict=True):
            if expected.get("error"):
                print(f"\n{case['name']}: kube-scheduler refuses the case: {expected['error']}")
                return 1
            if found := differences(expected, answer(ours.judge, case)):
                report(case, found, oracles, ours.judge, GATED)
                return 1
            outcomes.update("placed" if pod["node"] else "refused" for pod in expected["pods"])
    print(f"{len(cases)} cases with {outcomes.total()} pods: {dict(sorted(outcomes.items()))}")
    return 0


def record(seeds: range, wanted: int = 5) -> int:
    """Write the recorded cases. Return the exit code."""
    cases = [generate(seed) for seed in seeds]
    with Oracles() as oracles:
        verdicts = oracles.judge_all(cases)
    known = [{"case": case, "expected": expected} for case, expected in zip(cases, verdicts, strict=True)]
    found: dict[tuple[str, ...], list[Json]] = {}
    for each in sorted(known, key=lambda each: len(to_line(each))):
        of_gates = found.setdefault(tuple(each["case"]["gates"]), [])
        if len(of_gates) < wanted and gates_matter(each):
            of_gates.append(each)
    write_cases(GATED / "generated.jsonl.gz", [each for gates in GATES for each in found[gates]])
    return 0


def gates_matter(recorded: Json) -> bool:
    """Whether something else would become of a pod if the gates were off."""
    return bool(differences(recorded["expected"], answer(ours.judge, recorded["case"] | {"gates": []})))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.gated")
    parser.add_argument("--seeds", type=int, default=100, help="how many generated clusters (default 100)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--record", action="store_true", help="choose the recorded cases again")
    options = parser.parse_args(arguments)
    logging.disable(logging.ERROR)
    seeds = range(options.start, options.start + options.seeds)
    return record(seeds) if options.record else compare(seeds)


if __name__ == "__main__":
    sys.exit(main())
