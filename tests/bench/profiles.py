"""Where the scheduler's CPU time goes in a real run: `make profile WORKLOAD=CASE/NAME`.

One round of a workload on a real API server, Loadmaster only, with py-spy attached while it is measured. It writes
folded stacks, of which speedscope.app makes a flame graph, and prints a table by part.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.bench.contenders import Loadmaster
from tests.bench.measure import Patience, measure
from tests.bench.progress import Progress
from tests.bench.results import Measurement
from tests.bench.run import FAILURES, INTERRUPTED, positive, summary
from tests.bench.spy import ALLOWED, Spy, SpyError, probe
from tests.bench.stacks import parse, table
from tests.bench.workloads import Workload, kubernetes_source, load
from tests.controlplane import BuildError, Component, ControlPlane

PROFILES: Final = Path("build/profile")
LIKE: Final = 5
"""Workloads named as an alternative to one that does not exist."""


@dataclass
class Watched(Loadmaster):
    """Loadmaster, started so that py-spy may look at it."""

    command: tuple[str, ...] = (*ALLOWED, *Loadmaster.command)
    process: Component | None = field(default=None, init=False)

    def start(self, controlplane: ControlPlane, workload: Workload) -> Component:
        self.process = super().start(controlplane, workload)
        return self.process


class SpyingProgress(Progress):
    """Shows how far it is, and starts the spy when the measured part begins."""

    def __init__(self, subject: str, spy: Spy, watched: Watched) -> None:
        super().__init__(subject)
        self._spy = spy
        self._watched = watched

    def collecting(self, on: bool) -> None:
        super().collecting(on)
        if on and not self._spy.started:
            assert self._watched.process is not None
            self._spy.start(self._watched.process.pid)


def main(argv: Sequence[str] | None = None) -> int:
    """Profile and print. Returns 0, 1 if the run failed, 2 with a line about what is wrong or missing, 130 after
    Ctrl-C."""
    options = parser().parse_args(argv)
    try:
        workload = find(load(kubernetes_source(), options.scale), options.workload)
        probe()
        spied = record(workload, native=options.native)
    except (LookupError, SpyError) as error:
        print(error.args[0], file=sys.stderr)
        return 2
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    if spied is None:
        return 1
    result, folded = spied
    print(f"\n{report(result, folded, PROFILES)}")
    return 0


def find(workloads: Sequence[Workload], wanted: str) -> Workload:
    """The workload of that CASE/NAME, or the only one that runs and begins so: of twins that differ by a feature gate
    the one with the defaults has a longer name. Raises LookupError with a line to print."""
    exact = [each for each in workloads if each.id == wanted]
    runnable = [each for each in exact if not each.skip]
    runnable = runnable or [each for each in workloads if not each.skip and each.id.startswith(f"{wanted}_")]
    if len(runnable) == 1:
        return runnable[0]
    if exact:
        raise LookupError(f"{wanted} cannot be run here: {exact[0].skip}")
    like = [each.id for each in workloads if wanted.lower() in each.id.lower() and not each.skip][:LIKE]
    hint = f"did you mean {', '.join(like)}?" if wanted and like else "`make bench BENCH=--list` has them all"
    raise LookupError(f"no workload {wanted!r}: {hint}")


def record(workload: Workload, *, native: bool) -> tuple[Measurement, str] | None:
    """Run it once; the figures and the folded stacks, or None if the run failed, which is told. Raises SpyError."""
    watched = Watched()
    with tempfile.TemporaryDirectory() as directory:
        spy = Spy(Path(directory), native=native)
        progress = SpyingProgress(f"{watched.name} {workload.id}", spy, watched)
        try:
            result = measure(workload, watched, 1, Patience(), progress)
        except FAILURES as error:
            progress.finish(f"FAILED: {type(error).__name__}: {error}")
            return None
        else:
            progress.finish(summary(result))
            return result, spy.finish()
        finally:
            spy.close()


def report(result: Measurement, folded: str, directory: Path) -> str:
    """Write the stacks; return the table and where they are. Raises ValueError if the stacks cannot be read."""
    stacks = list(parse(folded))
    micros = 1e6 * result.cpu_seconds / result.pods
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{result.workload.replace('/', '-')}.folded"
    path.write_text("".join(f"{';'.join(stack)} {count}\n" for stack, count in stacks))
    return f"{table(stacks, micros)}\n\n{path}"


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="python -m tests.bench.profiles", description=__doc__.partition("\n")[0])
    result.add_argument("workload", metavar="CASE/NAME", help="such as SchedulingBasic/5000Nodes_10000Pods")
    result.add_argument("--scale", type=positive, default=1.0, help="factor for nodes and pods (default: %(default)s)")
    result.add_argument("--native", action="store_true", help="C functions too: garbage collector, TLS; samples slower")
    return result


if __name__ == "__main__":
    sys.exit(main())
