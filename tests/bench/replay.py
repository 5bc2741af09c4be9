"""How many recorded decisions `loadmaster replay` makes again a second: `python -m tests.bench.replay`.

The trace is of a scheduler that places 10,000 pods of 200 applications on 5,000 empty nodes, each spread over zones
where that is possible; it is made once, under `build/bench`. Each run is a process of its own. Printed are decisions in
a second of wall-clock time, from the first to the last, and in a second of all its CPU, the start and the state at the
beginning included. Exit code 1: a decision differs, or the fastest run is below the aim.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.bench import simulate
from tests.unit.replay.stage import Stage

NODES: Final = 5000
PODS: Final = 10_000
AIM: Final = 5000
TRACE: Final = Path("build/bench/replay/busy.trace")


class Run(NamedTuple):
    """What one replay came to."""

    per_second: int
    per_cpu_second: float
    differences: int


async def record(trace: Path, nodes: int, pods: int) -> None:
    """Let a scheduler without a cluster place the pods, and record it."""
    stage = Stage()
    for number in range(nodes):
        stage.node_object(simulate.a_node(number))

    async def play() -> None:
        for number in range(pods):
            content = simulate.a_pod(number)
            spec: dict[str, Any] = content["spec"]
            spec.pop("nodeName", None)
            spec["containers"][0]["resources"]["requests"]["cpu"] = "500m"
            stage.pod(content["metadata"]["name"], spec, labels=content["metadata"]["labels"])
            stage.clock.advance(0.001)
            await stage.schedule()

    trace.parent.mkdir(parents=True, exist_ok=True)
    unfinished = trace.with_suffix(".unfinished")
    await stage.recorded(unfinished, play)
    stage.close()
    unfinished.rename(trace)


def replay(trace: Path) -> Run:
    """Raises SystemExit if the run fails."""
    command = [sys.executable, "-m", "scheduler", "replay", str(trace), "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        text = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):  # 1: a decision differs, which the document tells
        sys.exit(f"exit code {child.returncode}")
    document = json.loads(text)
    cpu = usage.ru_utime + usage.ru_stime
    return Run(document["perSecond"], document["decisions"] / cpu, len(document["differences"]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.replay", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    if not TRACE.exists():
        asyncio.run(record(TRACE, NODES, PODS))
    runs = []
    for _ in range(options.runs):
        runs.append(replay(TRACE))
        print("{:,} decisions a second, {:,.0f} a second of CPU, {} differ".format(*runs[-1]), flush=True)
    best = max(run.per_second for run in runs)
    print(f"at best {best:,} a second (aim {AIM:,})")
    return int(best < AIM or any(run.differences for run in runs))


if __name__ == "__main__":
    sys.exit(main())
