"""What a pod costs, counted instead of timed: the same on every machine, so that continuous integration can judge it.

    python -m tests.bench.counted            compare with the recorded counts; exit code 1 if one is exceeded
    python -m tests.bench.counted --write    record the counts

100 pods of one app come at once to a cluster of 500 nodes where 40 of them run already. Counted is all that belongs to
a pod's way: the watch's line decoded, queue, decision, binding, Event, status patch, the watch's answer. Left out are
sockets, TLS and kopf. `counted.json` has what is recorded. From Python 3.11 to 3.13 counts differ by a fiftieth, which
the limits allow for.
"""

import argparse
import asyncio
import cProfile
import gc
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Final

import orjson

from tests.bench.arrays import Arrays, counting_arrays
from tests.bench.counted_world import CountedWorld, ticking
from tests.bench.cycle_cases import CASES
from tests.bench.cycle_costs import settled
from tests.bench.cycle_world import Json
from tests.bench.still_loop import StillLoop

NODES: Final = 500
RUNNING: Final = 40
PODS: Final = 100
APP: Final = "app-0"

RECORDED: Final = Path(__file__).with_suffix(".json")
TESTS: Final = str(Path(__file__).parents[1])

Counts = dict[str, float]
"""What is counted → how much of it for each pod."""

Table = dict[str, Counts]
"""Workload → its counts."""

ALLOWED: Final[Mapping[str, tuple[float, float]]] = {
    "Python calls": (1.10, 5.0),
    "C calls": (1.10, 5.0),
    "numpy calls": (1.10, 1.0),
    "arrays": (1.10, 1.0),
    "array KiB": (1.10, 1.0),
    "blocks kept": (1.10, 3.0),
    "API calls": (1.00, 0.0),
}
"""What may be: what is recorded times the first, or plus the second, whichever is more.

- numpy calls: its functions and methods; operators and ufuncs are not seen by a profiler
- arrays: memory taken for new arrays, so operators too; what writes into an array that exists is left out
- blocks kept: allocations of Python that are still there when the pods are bound
"""

_SPECS: Final = {case.name: case.spec for case in CASES}

WORKLOADS: Final[Mapping[str, Json]] = {
    "plain": {},
    "hard spread, zone": _SPECS["hard spread, zone"](APP),
    "required anti-affinity, hostname": _SPECS["required anti-affinity, hostname"](APP),
    "preferred affinity, hostname": _SPECS["preferred affinity, hostname"](APP),
    "unschedulable": {"nodeSelector": {"no-node": "has-this"}},
}
"""Workload → what the spec of its pods says, besides a container."""


def count(workload: str, *, nodes: int = NODES, running: int = RUNNING, pods: int = PODS) -> Counts:
    """Count for each of `pods` pods, when `running` ones have come before."""
    with settled(), counting_arrays() as arrays, ticking(), asyncio.Runner(loop_factory=StillLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, StillLoop)
        arrivals = Arrivals(CountedWorld(loop, nodes), WORKLOADS[workload], arrays)
        return runner.run(arrivals.count(running, pods))


class Arrivals:
    """Pods of one workload that come to a world."""

    def __init__(self, world: CountedWorld, spec: Json, arrays: Arrays) -> None:
        self._world = world
        self._spec = spec
        self._arrays = arrays
        self._number = 0

    async def count(self, running: int, pods: int) -> Counts:
        async with self._world.running():
            await self._come(running)
            requests, made, size = Counter(self._world.requests), self._arrays.count, self._arrays.bytes
            profile = cProfile.Profile()
            await self._come(pods, profile)
            requests = self._world.requests - requests
            made, size = self._arrays.count - made, self._arrays.bytes - size
            found = calls_of(profile)
            # In a second go, as a profiler keeps blocks of its own.
            found |= {"arrays": made, "array KiB": size / 1024, "blocks kept": await self._come(pods)}
            found["API calls"] = requests.total()
        return {what: round(found[what] / pods, 2) for what in ALLOWED}

    async def _come(self, pods: int, profile: cProfile.Profile | None = None) -> int:
        """Let this many pods come; return how many blocks of memory are kept for them."""
        names = [f"pod-{self._number + each:05}" for each in range(pods)]
        self._number += pods
        kept = 0
        for lines_of in (self._world.new_pods, self._world.changed_pods):
            lines = lines_of(names, self._spec, APP)
            gc.collect()
            before = sys.getallocatedblocks()
            with _observed(profile):
                await self._world.schedule(lines)
            gc.collect()
            kept += sys.getallocatedblocks() - before
        missing = [name for name in names if not self._world.is_settled(name)]
        assert not missing, f"neither bound nor refused: {missing[:3]} {self._world.warning}"
        return kept


@contextmanager
def _observed(profile: cProfile.Profile | None) -> Iterator[None]:
    """Without the garbage collector, which comes when it likes."""
    gc.disable()
    if profile is not None:
        profile.enable()
    try:
        yield
    finally:
        if profile is not None:
            profile.disable()
        gc.enable()


def calls_of(profile: cProfile.Profile) -> Counts:
    """The calls that a profile has seen, without those that the test's own functions are and make."""
    found: Counter[str] = Counter()
    for entry in profile.getstats():
        if isinstance(entry.code, CodeType):
            if not entry.code.co_filename.startswith(TESTS):
                found["Python calls"] += entry.callcount
                continue
            for inner in entry.calls or ():
                found.subtract(dict.fromkeys(_kinds(inner.code), inner.callcount))
        else:
            found.update(dict.fromkeys(_kinds(entry.code), entry.callcount))
    return {**found}


def _kinds(code: CodeType | str) -> Sequence[str]:
    """As what a call to a function of C counts; nothing for one of Python."""
    if isinstance(code, CodeType):
        return ()
    return ("C calls", "numpy calls") if "numpy" in code else ("C calls",)


def count_all() -> Table:
    """Every workload."""
    return {workload: count(workload) for workload in WORKLOADS}


def recorded(file: Path = RECORDED) -> Table:
    """What was recorded; nothing if there is no file."""
    found: Table = orjson.loads(file.read_bytes()) if file.exists() else {}
    return found


def write(found: Table, file: Path = RECORDED) -> None:
    """Record."""
    file.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n")


def limit(what: str, before: float) -> float:
    """How much there may be of what was recorded as `before`."""
    factor, more = ALLOWED[what]
    return max(before * factor, before + more)


def exceeded(found: Counts, before: Counts) -> list[str]:
    """A line for each count that is above what is allowed, or was not recorded."""
    lines = [f"{what}: never recorded" for what in found if what not in before]
    return lines + [
        f"{what}: {found[what]:,.2f} a pod, recorded were {number:,.2f}, allowed are {limit(what, number):,.2f}"
        for what, number in before.items()
        if what in found and found[what] > limit(what, number)
    ]


def table(found: Table, before: Table) -> str:
    """The counts as text, each beside the ratio to what is recorded."""
    lines = [f"{'a pod':<34}" + "".join(f"{what:>20}" for what in ALLOWED)]
    for workload, counts in found.items():
        old = before.get(workload, {})
        ratios = [f" ({counts[what] / old[what]:.2f})" if old.get(what) else "" for what in ALLOWED]
        cells = (f"{counts[what]:,.1f}{ratio}" for what, ratio in zip(ALLOWED, ratios, strict=True))
        lines.append(f"{workload:<34}" + "".join(f"{cell:>20}" for cell in cells))
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Count and print. Returns 0; without --write 1 if something is exceeded or nothing is recorded."""
    options = parser().parse_args(argv)
    found, before = count_all(), recorded()
    print(table(found, before))
    if options.write:
        write(found)
        return 0
    problems = [f"{name}: {line}" for name in found for line in exceeded(found[name], before.get(name, {}))]
    print("\n".join(problems))
    return 1 if problems else 0


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="python -m tests.bench.counted", description=__doc__.partition("\n")[0])
    result.add_argument("--write", action="store_true", help="record the counts")
    return result


if __name__ == "__main__":
    sys.exit(main())
