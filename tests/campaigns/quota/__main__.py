"""Whether quota keeps over time what docs/quota.md says, in random clusters.

    python -m tests.campaigns.quota --scenarios 10000 --seed 1
    python -m tests.campaigns.quota --seed 1 --scenario 17

plays scenarios of up to 40 events over hours of virtual time, and prints what broke a rule: the first time in full, as
the shortest history that does. `judge.py` lists the rules. Exit code 1: something was found.
"""

import argparse
import logging
import sys
import time

from tests.campaigns.quota.campaign import Figures, search


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.quota", description=__doc__)
    parser.add_argument("--scenarios", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenario", type=int, help="only this one, in full")
    parser.add_argument("--first", type=int, default=0, help="the number of the first scenario")
    parser.add_argument("--quiet", action="store_true", help="only the figures")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    numbers = range(options.first, options.first + options.scenarios)
    if options.scenario is not None:
        numbers = range(options.scenario, options.scenario + 1)
    began = time.process_time()
    figures = search(options.seed, numbers, (lambda _: None) if options.quiet else print, shrinks=not options.quiet)
    _print(figures, time.process_time() - began)
    return int(bool(figures.found))


def _print(figures: Figures, seconds: float) -> None:
    print("\nwhat happened, and in how many scenarios:")
    for kind, count in sorted(figures.kinds.items()):
        print(f"{count:7,}  {kind}")
    print("\nrules that were broken, in how many scenarios, and in which first:")
    for rule, found in sorted(figures.found.items(), key=lambda each: -len(each[1])):
        print(f"{len(found):7,}  {rule}: {', '.join(map(str, found[:8]))}")
    print(f"\n{figures}; {seconds / max(1, figures.scenarios) * 1e3:.0f} ms of CPU each")


if __name__ == "__main__":
    sys.exit(main())
