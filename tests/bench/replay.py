"""How many recorded decisions `loadmaster replay` makes again a second: `python -m tests.bench.replay`.

The traces are of a scheduler that places 10,000 pods on 5,000 empty nodes: plain ones, as in kube-scheduler's
SchedulingBasic, and those of 200 applications, each of which is spread over zones where that is possible. They are made
once, under `build/bench`. Each run is a process of its own. Printed are decisions in a second of wall-clock time, from
the first to the last, and in a second of all its CPU, the start and the state at the beginning included. Exit code 1: a
decision differs, or the fastest run over plain pods is below the aim.
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
"""Of plain pods. Others take as long as it takes to decide about them."""

PLAIN: Final = "plain"
KINDS: Final = (PLAIN, "spread")
FOLDER: Final = Path("build/bench/replay")


class Run(NamedTuple):
    """What one replay came to."""

    per_second: int
    per_cpu_second: float
    differences: int


async def record(trace: Path, kind: str, nodes: int, pods: int) -> None:
    """Let a scheduler without a cluster place pods of a kind, and record it."""
    stage = Stage()
    for number in range(nodes):
        stage.node_object(simulate.a_node(number))

    async def play() -> None:
        for number in range(pods):
            content = simulate.a_pod(number)
            spec: dict[str, Any] = content["spec"]
            spec.pop("nodeName", None)
            if kind == PLAIN:
                del spec["topologySpreadConstraints"]
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
    is_missed = False
    for kind in KINDS:
        trace = FOLDER / f"{kind}.trace"
        if not trace.exists():
            asyncio.run(record(trace, kind, NODES, PODS))
        runs = [replay(trace) for _ in range(options.runs)]
        best, differences = max(runs), sum(run.differences for run in runs)
        is_missed |= differences > 0 or (kind == PLAIN and best.per_second < AIM)
        aim = f" (aim {AIM:,})" if kind == PLAIN else ""
        rates = f"{best.per_second:,} decisions a second{aim}, {best.per_cpu_second:,.0f} a second of CPU"
        print(f"{kind:7} at best {rates}; {differences} differ", flush=True)
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())
