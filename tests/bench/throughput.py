"""Pods per second on a real API server, Loadmaster and kube-scheduler in turn: `make bench`.

What is measured and how is told in docs/benchmarks.md.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import orjson

from tests.bench.measure import Contender, KubeScheduler, Load, Loadmaster, Measurement, MeasurementError, measure
from tests.bench.report import as_json, table
from tests.controlplane import ApiError, ApiUnreachable, BuildError, KubectlError, ProcessError

FAILURES = (ApiError, ApiUnreachable, BuildError, KubectlError, MeasurementError, ProcessError)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print. Returns 0, 1 if a measurement failed, 2 for a wrong command line, 130 after Ctrl-C."""
    options = parser().parse_args(argv)
    try:
        load = Load(options.nodes, options.pods)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    contenders = [contender for contender in (Loadmaster(), KubeScheduler()) if contender.name in options.only]
    measurements: list[Measurement] = []
    code = 0
    try:
        for run in range(1, options.runs + 1):
            for contender in in_turn(contenders, run):
                tell = progress(f"run {run}/{options.runs} {contender.name}")
                measurements.append(measure(contender, load, run, tell))
                tell(f"{measurements[-1].pods_per_second:,.0f} pods/s")
    except FAILURES as error:
        print(error, file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        code = 130
    complete = [m for m in measurements if sum(n.run == m.run for n in measurements) == len(contenders)]
    if complete:
        print(f"\n{load.nodes:,} nodes, {load.pods:,} pods; median (range) of {complete[-1].run} runs\n")
        print(table(complete, load))
    if options.json:
        options.json.write_bytes(orjson.dumps(as_json(measurements, load), option=orjson.OPT_INDENT_2))
    return code


def in_turn(contenders: Sequence[Contender], run: int) -> Sequence[Contender]:
    """Who goes first changes with each run: what a run leaves in the machine's caches is to nobody's advantage."""
    return contenders if run % 2 else contenders[::-1]


def progress(subject: str) -> Callable[[str], None]:
    return partial(_tell, subject, time.monotonic())


def _tell(subject: str, since: float, text: str) -> None:
    print(f"{time.monotonic() - since:6.1f} s  {subject}: {text}", flush=True)


def parser() -> argparse.ArgumentParser:
    names = [KubeScheduler.name, Loadmaster.name]
    result = argparse.ArgumentParser(prog="python -m tests.bench.throughput", description=__doc__.partition("\n")[0])
    result.add_argument("--nodes", type=int, default=5_000)
    result.add_argument("--pods", type=int, default=10_000)
    result.add_argument("--runs", type=int, default=3, help="of each scheduler (default: %(default)s)")
    result.add_argument("--only", choices=names, nargs="+", default=names, help="measure only this one")
    result.add_argument("--json", type=Path, metavar="FILE", help="write every figure of every run there")
    return result


if __name__ == "__main__":
    sys.exit(main())
