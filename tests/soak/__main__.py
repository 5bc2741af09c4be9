"""The developer's command: `python -m tests.soak [--minutes 30]`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.attacks.__main__ import FAILURES
from tests.attacks.catalog import ATTACKS
from tests.soak.run import run
from tests.soak.samples import Sample, read, write
from tests.soak.verdict import MEBIBYTE, memory_chart, problems, state_chart, summary

HOSTILE: Final = (
    "running-terms",
    "resource-names",
    "tolerations",
    "pending-terms",
    "node-values",
    "host-ports",
    "large-pods",
    "containers",
    "labels",
)
"""The attacks that take turns: those of few objects, so that the API server keeps up."""

OUT: Final = Path(__file__).parents[2] / "build" / "soak"


def main(argv: Sequence[str] | None = None) -> int:
    """Run, or judge what another run has written. Returns 0 if nothing grew, 1 if not, 2 for a wrong command line."""
    options = parser().parse_args(argv)
    if unknown := set(options.attacks) - ATTACKS.keys():
        print(f"no such attack: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    if options.judge is not None:
        return judged(read(options.judge), options.out)
    attacks = [ATTACKS[name] for name in options.attacks]
    try:
        samples = run(options.nodes, options.rate, options.minutes, attacks, told)
    except FAILURES as error:
        print(f"FAILED: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return judged(samples, options.out)


def judged(samples: Sequence[Sample], out: Path) -> int:
    """Write and print what was found."""
    out.mkdir(parents=True, exist_ok=True)
    write(samples, out / "samples.jsonl")
    (out / "memory.svg").write_text(memory_chart(samples), encoding="utf-8")
    (out / "state.svg").write_text(state_chart(samples), encoding="utf-8")
    print(summary(samples))
    found = problems(samples)
    print("\n".join(f"NOT WELL: {each}" for each in found) or "nothing grew")
    return 1 if found else 0


def told(sample: Sample) -> None:
    print(
        f"{sample.seconds / 60:6.1f} min {sample.memory / MEBIBYTE:8.1f} MiB {sample.bound:10,.0f} bound "
        f"{sample.pending:7,.0f} pending {sample.descriptors:5} descriptors  {sample.attack}",
        flush=True,
    )


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.partition("\n")[0])
    result.add_argument("--minutes", type=float, default=30, help="(default: %(default)s)")
    result.add_argument("--nodes", type=int, default=1_000, help="fake nodes (default: %(default)s)")
    result.add_argument("--rate", type=int, default=100, help="pods a second (default: %(default)s)")
    result.add_argument(
        "--attacks", nargs="*", default=HOSTILE, metavar="NAME", help="that take turns (default: %(default)s)"
    )
    result.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="(default: build/soak)")
    result.add_argument("--judge", type=Path, metavar="FILE", help="judge the samples of another run instead")
    return result


if __name__ == "__main__":
    sys.exit(main())
