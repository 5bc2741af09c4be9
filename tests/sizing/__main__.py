"""Measure what the scheduler needs at each size, and write it down: `make sizing`.

    python -m tests.sizing [--sizes NODES:PODS …] [--real NODES:PODS …] [--minutes 25] [--out FILE]

Results are lines of JSON, which tests.sizing.report makes into docs/sizing.md. CPU and memory are those of the process
of the scheduler; on a machine with other work on it, CPU is up to twice as much, and times by the clock mean little.
"""

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.bench import usage
from tests.bench.results import setting_of, write
from tests.bench.wire import Refused, WireError
from tests.controlplane.processes import ProcessError
from tests.sizing.clusters import REAL, SIMULATED
from tests.sizing.measure import measure
from tests.sizing.objects import Size

SIZES: Final = (
    (100, 3_000),
    (1_000, 10_000),
    (1_000, 30_000),
    (5_000, 50_000),
    (5_000, 150_000),
    (15_000, 150_000),
    (50_000, 200_000),
    (100_000, 300_000),
)
REALS: Final = ((100, 3_000), (1_000, 10_000))
"""In time and memory of a small machine: a real API server takes 300 objects a second."""
OUT: Final = Path("build/bench/sizing.jsonl")

BYTES_A_NODE: Final = 32 << 10
BYTES_A_POD: Final = 16 << 10
"""Of memory for two replicas and the simulated API server together, so that no machine is filled up."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, largest sizes last. Returns 0, or 1 if a size could not be measured."""
    options = parser().parse_args(argv)
    plan = [(REAL, size) for size in options.real] + [(SIMULATED, size) for size in options.sizes]
    began, failed = time.monotonic(), False
    options.out.parent.mkdir(parents=True, exist_ok=True)
    command = "python -m tests.sizing " + shlex.join(sys.argv[1:] if argv is None else argv)
    with options.out.open("w") as stream:
        write(stream, setting_of(1, 0, command.rstrip()))
        for kind, size in plan:
            title = f"{size.nodes:,} nodes, {size.pods:,} pods, {kind}"
            if time.monotonic() - began > 60 * options.minutes:
                print(f"{title}: left out, as {options.minutes:g} minutes are over")
                continue
            if (missing := missing_memory(size)) > 0:
                print(f"{title}: left out, {missing >> 20:,} MiB of memory are missing")
                continue
            print(title, flush=True)
            try:
                write(stream, measure(kind, size, options.pods, options.idle, noting()))
            except (ProcessError, Refused, WireError, TimeoutError) as error:
                print(f"failed: {error}", flush=True)
                failed = True
    print(f"written: {options.out}")
    return 1 if failed else 0


def missing_memory(size: Size) -> int:
    """Bytes that the machine has not got for a size; 0 or less if it has."""
    return BYTES_A_NODE * size.nodes + BYTES_A_POD * size.pods - usage.available_memory()


def noting() -> Callable[[str], None]:
    """Prints what it is given, with the seconds since it was made."""
    began = time.monotonic()
    return lambda text: print(f"{time.monotonic() - began:8.1f} s  {text}", flush=True)


def size_of(text: str) -> Size:
    """Raises ValueError, as argparse wants it."""
    nodes, pods = map(int, text.split(":"))
    if min(nodes, pods) < 1:
        raise ValueError(text)
    return Size(nodes, pods)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="python -m tests.sizing", description=__doc__.partition("\n")[0])
    for name, sizes, what in (("sizes", SIZES, "a simulated"), ("real", REALS, "a real")):
        default = [Size(*size) for size in sizes]
        what = f"to measure on {what} API server; without any: none"
        result.add_argument(f"--{name}", nargs="*", type=size_of, metavar="NODES:PODS", default=default, help=what)
    result.add_argument("--pods", type=int, default=1000, help="to be placed of each kind; default: %(default)s")
    result.add_argument("--idle", type=float, default=15.0, help="seconds of idle time; default: %(default)s")
    result.add_argument("--minutes", type=float, default=25.0, help="no new size after these; default: %(default)s")
    result.add_argument("--out", type=Path, default=OUT, help="results, as lines of JSON; default: %(default)s")
    return result


if __name__ == "__main__":
    sys.exit(main())
