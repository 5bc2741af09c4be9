"""Random lives of groups of pods, held against the rules of docs/groups.md.

    python -m tests.campaigns.groups --scenarios 1000 --seed 1
    python -m tests.campaigns.groups --seed 1 --scenario 17         one of them, with its whole history

prints the shortest history for the first findings of each kind, which scenarios had them, and how many scenarios had
which kind of event. `scenarios.py` says what may happen, `findings.py` which rules there are. Exit code 1: a rule was
violated.
"""

import argparse
import sys
import time

from tests.campaigns.groups.campaign import Figures, play, report, search
from tests.campaigns.groups.scenarios import scenario


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m tests.campaigns.groups", description=__doc__, formatter_class=form)
    parser.add_argument("--scenarios", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenario", type=int, help="only this one")
    parser.add_argument("--whole", action="store_true", help="with --scenario: nothing is left out of the history")
    parser.add_argument("--shown", type=int, default=1, help="how many histories of each kind of finding are printed")
    options = parser.parse_args()
    if options.scenario is not None:
        return _one(options.seed, options.scenario, is_whole=options.whole)
    began = time.process_time()
    figures = search(options.seed, iter(range(options.scenarios)), print, options.shown)
    _summary(figures, time.process_time() - began)
    return int(bool(figures.found))


def _one(seed: int, number: int, *, is_whole: bool) -> int:
    record = play(scenario(seed, number))
    if is_whole or not record.findings:
        print("\n".join(record.history))
    for finding in record.findings:
        print(finding.text if is_whole else report(seed, number, finding.kind))
    return int(bool(record.findings))


def _summary(figures: Figures, seconds: float) -> None:
    for kind, count in figures.seen.most_common():
        print(f"{count:6} scenarios had: {kind}")
    for kind, numbers in sorted(figures.found.items(), key=lambda each: -len(each[1])):
        print(f"{len(numbers):6} scenarios violate {kind}: {', '.join(map(str, numbers[:8]))}")
    average = 1000 * seconds / max(1, figures.scenarios)
    total = sum(map(len, figures.found.values()))
    print(f"{figures.scenarios} scenarios, {total} findings of {len(figures.found)} kinds; {average:.0f} ms each")


if __name__ == "__main__":
    sys.exit(main())
