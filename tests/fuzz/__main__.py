"""`python -m tests.fuzz`: fuzz each target in a process of its own, and tell how many inputs it took.

With atheris, where it is installed, inputs are steered to code that none has reached; otherwise they are random. An
input that something comes out of is written into `build/fuzz/`, with the error.
"""

import argparse
import importlib.util
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.fuzz.one import FOUND, done
from tests.fuzz.targets import TARGETS

OUT: Final = Path("build/fuzz")
_DONE: Final = re.compile(r"^(?:Done (\d+) runs|INPUTS (\d+))", re.MULTILINE)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 if anything came out of a target."""
    options = parser().parse_args(argv)
    names = [options.target] if options.target else list(TARGETS)
    OUT.mkdir(parents=True, exist_ok=True)
    total, failed = 0, []
    for name in names:
        started = time.monotonic()
        inputs, found = fuzz(name, options)
        total += inputs
        failed += [name] if found else []
        print(
            f"{name:<18} {inputs:>10,} inputs {time.monotonic() - started:>6.0f} s  {found or 'nothing else came out'}"
        )
    print(f"{'total':<18} {total:>10,} inputs, {len(failed)} targets with findings", flush=True)
    return 1 if failed else 0


def fuzz(name: str, options: argparse.Namespace) -> tuple[int, str]:
    """Run one target; return how many inputs it took, and the file of what was found or an empty string."""
    engine = "atheris" if options.engine != "random" and importlib.util.find_spec("atheris") else "random"
    limit = [f"--runs={options.runs}"] if options.runs else [f"--seconds={options.seconds}"]
    command = [sys.executable, "-m", "tests.fuzz.one", name, engine, f"--seed={options.seed}", *limit]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    output = run.stdout + run.stderr
    counts = [int(one or other) for one, other in _DONE.findall(output)]
    if run.returncode == 0 and counts:
        return counts[-1], ""
    file = OUT / f"{name}.txt"
    file.write_text(output)
    return counts[-1] if counts else 0, f"see {file}" if FOUND in output or not done(output) else ""


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    found.add_argument("--target", choices=TARGETS, help="only this one")
    found.add_argument("--runs", type=int, default=0, help="inputs for each target")
    found.add_argument("--seconds", type=int, default=10, help="for each target, unless --runs are given")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--engine", choices=("atheris", "random"), default="atheris")
    return found


if __name__ == "__main__":
    sys.exit(main())
