"""kube-scheduler's own benchmark workloads, Loadmaster and kube-scheduler in turn on a real API server: `make bench`.

What is measured and how is told in docs/benchmarks.md.
"""

import argparse
import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

import orjson

from tests.bench.contenders import OURS, PEER, Contender, KubeScheduler, Loadmaster
from tests.bench.executor import WorkloadFailed
from tests.bench.measure import Patience, measure
from tests.bench.progress import Progress
from tests.bench.report import tables
from tests.bench.results import Failure, Measurement, read, setting_of, write
from tests.bench.wire import Refused, WireError
from tests.bench.workloads import Workload, kubernetes_source, load, select
from tests.controlplane import ApiError, ApiUnreachable, BuildError, KubectlError, ProcessError

FAILURES: Final = (
    ApiError, ApiUnreachable, KubectlError, LookupError, ProcessError, Refused, WireError, WorkloadFailed
)  # fmt: skip
"""What ends a run and not the series."""

INTERRUPTED: Final = 130
RESULTS: Final = Path("build/bench")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print. Returns 0, 1 if a run failed, 2 for a wrong command line, 130 after Ctrl-C."""
    options = parser().parse_args(argv)
    try:
        found = load(kubernetes_source(), options.scale)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    if options.list:
        return print_list(found)
    chosen = select(found, options.workloads, every=options.every)
    runnable = [workload for workload in chosen if not workload.skip]
    for workload in chosen:
        if workload.skip:
            print(f"skipped: {workload.id}: {workload.skip}")
    if not runnable:
        print("no workload to run: --list has them all", file=sys.stderr)
        return 2
    return run_all(runnable, options)


def print_list(workloads: Sequence[Workload]) -> int:
    """A line of JSON for each; a reader such as `head` may have seen enough before the end."""
    try:
        for workload in workloads:
            print(orjson.dumps(description(workload)).decode())
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
    return 0


def run_all(workloads: Sequence[Workload], options: argparse.Namespace) -> int:
    """The series, written to a file as it goes and printed as tables at the end."""
    command = shlex.join(["python", "-m", "tests.bench.run", *sys.argv[1:]])
    limits = (50.0, 100) if options.default_limits else (KubeScheduler.qps, KubeScheduler.burst)
    contenders = [one for one in (Loadmaster(), KubeScheduler(*limits)) if one.name in options.only]
    out: Path = options.out or RESULTS / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w") as stream:
        write(stream, setting_of(options.scale, limits[0], command))
        series = Series(stream, Patience(options.timeout, options.stall))
        try:
            series.run(workloads, contenders, options.rounds, options.minutes * 60)
            code = 1 if series.failed else 0
        except KeyboardInterrupt:
            code = INTERRUPTED
    print(f"\n{tables(read([out]))}\n\n{out}")
    return code


class Series:
    """Rounds of all workloads. A workload in which a scheduler failed is not tried again."""

    def __init__(self, stream: TextIO, patience: Patience) -> None:
        self._stream = stream
        self._patience = patience
        self.failed: Counter[str] = Counter()
        """Runs that gave no figures, by workload."""

    def run(self, workloads: Sequence[Workload], contenders: Sequence[Contender], rounds: int, seconds: float) -> None:
        """All rounds, or as many runs as begin within `seconds` (0: no limit)."""
        started = time.monotonic()
        turns = list(turns_of(workloads, contenders, rounds))
        for number, (workload, contender, round_number) in enumerate(turns, 1):
            if seconds and time.monotonic() - started > seconds:
                print(f"the time is up: {len(turns) - number + 1} of {len(turns)} runs are left out")
                return
            if self.failed[workload.id] and round_number > 1:
                continue
            subject = f"{number}/{len(turns)} {contender.name} {workload.id}"
            self._run(workload, contender, round_number, Progress(subject))

    def _run(self, workload: Workload, contender: Contender, round_number: int, progress: Progress) -> None:
        try:
            result = measure(workload, contender, round_number, self._patience, progress)
        except FAILURES as error:
            self.failed[workload.id] += 1
            reason = f"{error}" if isinstance(error, WorkloadFailed) else f"{type(error).__name__}: {error}"
            write(self._stream, Failure(workload.id, contender.name, round_number, reason))
            progress.finish(f"FAILED: {reason}")
        else:
            write(self._stream, result)
            progress.finish(summary(result))


def turns_of(
    workloads: Sequence[Workload], contenders: Sequence[Contender], rounds: int
) -> Iterator[tuple[Workload, Contender, int]]:
    """Workload by workload in each round. Who goes first changes with each round: what a run leaves in the machine's
    caches is to nobody's advantage."""
    for round_number in range(1, rounds + 1):
        for workload in workloads:
            for contender in contenders if round_number % 2 else contenders[::-1]:
                yield workload, contender, round_number


def summary(result: Measurement) -> str:
    """The figures of a run in a line."""
    return (
        f"{result.pods:,} pods on {result.nodes:,} nodes in {result.seconds:.1f} s: {result.overall:,.0f} pods/s, "
        f"mean of seconds {result.average:,.0f}, created to bound p50 {1000 * result.latency_p50:,.0f} ms "
        f"p99 {1000 * result.latency_p99:,.0f} ms, CPU {1000 * result.cpu_seconds / result.pods:.2f} ms per pod, "
        f"{result.peak_memory / 2**20:,.0f} MiB, {sum(result.requests.values()):.2f} API calls per pod"
    )


def description(workload: Workload) -> dict[str, object]:
    """A workload for `--list`."""
    return {
        "id": workload.id,
        "labels": workload.labels,
        "nodes": workload.nodes,
        "pods": workload.pods,
        "feature_gates": workload.gates,
        "runs": not workload.skip,
        "skipped_because": workload.skip,
    }


def parser() -> argparse.ArgumentParser:
    names = [PEER, OURS]
    result = argparse.ArgumentParser(prog="python -m tests.bench.run", description=__doc__.partition("\n")[0])
    result.add_argument(
        "workloads",
        nargs="*",
        metavar="REGEX",
        help="workloads to run, found in CASE/NAME (default: of each case the smallest that is labelled performance)",
    )
    result.add_argument("--every", action="store_true", help="all that are labelled performance")
    result.add_argument("--list", action="store_true", help="print all workloads as JSON lines, and why not if so")
    result.add_argument("--scale", type=positive, default=1.0, help="factor for nodes and pods (default: %(default)s)")
    result.add_argument("--rounds", type=int, default=3, help="runs of each scheduler (default: %(default)s)")
    who = result.add_mutually_exclusive_group()
    who.add_argument("--both", dest="only", action="store_const", const=names, help="both schedulers (default)")
    who.add_argument("--only", choices=names, nargs=1, help="measure only this one")
    result.set_defaults(only=names)
    result.add_argument("--minutes", type=float, default=0, help="begin no run after that time (default: no limit)")
    result.add_argument("--timeout", type=float, default=900, help="seconds for a run (default: %(default)s)")
    result.add_argument("--stall", type=float, default=60, help="seconds without progress (default: %(default)s)")
    result.add_argument("--default-limits", action="store_true", help="kube-scheduler's own QPS 50 and burst 100")
    result.add_argument("--out", type=Path, metavar="FILE", help=f"JSON lines (default: {RESULTS}/TIME.jsonl)")
    return result


def positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return value


if __name__ == "__main__":
    sys.exit(main())
