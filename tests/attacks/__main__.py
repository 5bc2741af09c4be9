"""The developer's command: `python -m tests.attacks [NAME …]`, on a control plane of its own for each attack."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from tests.attacks.catalog import ATTACKS
from tests.attacks.runner import line, mebibytes, run
from tests.bench.wire import Refused, WireError
from tests.controlplane import BuildError, KubectlError, ProcessError

FAILURES: Final = (BuildError, KubectlError, ProcessError, Refused, WireError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run attacks. Returns 0 if the scheduler withstands all of them, 1 if not, 2 for a wrong command line."""
    options = parser().parse_args(argv)
    if options.list:
        for attack in ATTACKS.values():
            print(f"{attack.name:<26}{attack.attacks}")
        return 0
    if unknown := set(options.names) - ATTACKS.keys():
        print(f"no such attack: {', '.join(sorted(unknown))}; --list has them all", file=sys.stderr)
        return 2
    withstood = [attacked(name, options) for name in options.names or ATTACKS]
    return 0 if all(withstood) else 1


def attacked(name: str, options: argparse.Namespace) -> bool:
    """Run one attack and print what it does; return whether the scheduler withstands it."""
    attack = ATTACKS[name]
    print(f"{attack.name}: {attack.attacks}", flush=True)
    try:
        outcome = run(
            attack,
            options.nodes,
            options.seconds,
            lambda phase, figures: print(line(phase, figures), flush=True),
        )
    except FAILURES as error:
        print(f"  FAILED: {type(error).__name__}: {error}", flush=True)
        return False
    told = f"{outcome.rate:.0%} of the rate, memory {mebibytes(outcome.growth)} more, {mebibytes(outcome.rest)} after"
    print(f"  {'NOT WITHSTOOD' if outcome.problems else 'withstood'}: {told}", flush=True)
    return not outcome.problems


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__.partition("\n")[0])
    result.add_argument("names", nargs="*", metavar="NAME", help="attacks to run (default: all)")
    result.add_argument("--list", action="store_true", help="say what there is")
    result.add_argument("--nodes", type=int, default=1_000, help="fake nodes (default: %(default)s)")
    result.add_argument("--seconds", type=float, default=15, help="of each phase (default: %(default)s)")
    return result


if __name__ == "__main__":
    sys.exit(main())
