"""The way of a warm decision: which functions one passes through, for a pod of a class that was seen before.

    python -m tests.bench.warm_decision      print the way as docs/design/columns.md has it, and its length

One pod of a Deployment is placed by the default profile, with all its plugins, after others of the same Deployment.
Functions of `scheduler` and `plugins` count; comprehensions do not, as some versions of Python call them and others do
not.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

from scheduler.cycle.algorithm import Placed
from scheduler.framework.cycle_state import CycleState
from tests.bench.cycle_world import World, decoded_pod

NODES: Final = 100
BEFORE: Final = 10

ROOT: Final = str(Path(__file__).parents[2]) + "/"

ENGINE: Final = ("scheduler/cycle/", "scheduler/runtime/")
"""The rooms whose functions the page shows."""

TIMERS: Final = ("PointTimer.", "Histogram.")
"""Left out of the page: they come four times."""


@dataclass(slots=True)
class Call:
    """A function that was called, and what it called."""

    file: str
    """From the root of the repository."""

    function: str
    """With its class."""

    calls: "list[Call]" = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.file}:{self.function}"

    def all(self) -> "Iterator[tuple[Call, Call]]":
        """Every call within this one, in order: caller and callee."""
        for call in self.calls:
            yield self, call
            yield from call.all()


@dataclass(frozen=True, slots=True)
class Length:
    """How much a reader has to look at."""

    functions: int
    files: int
    calls: int
    between_files: int
    """Calls from one file into another."""


def traced() -> Call:
    """Return the call of `Algorithm.schedule` for one more pod of a Deployment."""
    world = World(NODES)
    engine, framework = world.engine, world.framework
    algorithm = engine.algorithm
    way: list[Call] = []
    for number in range(BEFORE + 1):
        pod, state = decoded_pod(f"pod-{number}", app="web"), CycleState()
        state.record_plugin_metrics = False
        if number < BEFORE:
            decision = algorithm.schedule(framework, state, pod)
        else:
            with calls_into(way):
                decision = algorithm.schedule(framework, state, pod)
        assert isinstance(decision, Placed), decision
        engine.cache.assume(pod.bound_to(decision.node_name))
    [schedule] = way
    return schedule


@contextmanager
def calls_into(way: list[Call]) -> Iterator[None]:
    """Append the calls that are made meanwhile."""
    stack = [Call("", "", way)]

    def observe(frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(_COUNTED) or code.co_name.startswith("<"):
            return
        if event == "call":
            call = Call(code.co_filename.removeprefix(ROOT), code.co_qualname)
            stack[-1].calls.append(call)
            stack.append(call)
        elif event == "return":
            stack.pop()

    before = sys.getprofile()
    sys.setprofile(observe)
    try:
        yield
    finally:
        sys.setprofile(before)


_COUNTED = (f"{ROOT}scheduler/", f"{ROOT}plugins/")


def length(way: Call) -> Length:
    """Measure a way, its first call included."""
    calls = [(Call("", ""), way), *way.all()]
    return Length(
        functions=len({str(callee) for _, callee in calls}),
        files=len({callee.file for _, callee in calls}),
        calls=len(calls),
        between_files=sum(caller.file != callee.file for caller, callee in calls),
    )


def page(way: Call) -> str:
    """The engine's part of a way as text: a line for each function below its caller, however often it calls it."""
    return "\n".join(_lines([way], 0))


def _lines(calls: Sequence[Call], depth: int) -> Iterator[str]:
    by_name: dict[str, Call] = {}
    for call in calls:
        if call.file.startswith(ENGINE) and not call.function.startswith(TIMERS):
            by_name.setdefault(str(call), Call(call.file, call.function)).calls.extend(call.calls)
    for name, call in by_name.items():
        yield "  " * depth + name.removeprefix("scheduler/")
        yield from _lines(call.calls, depth + 1)


def main() -> int:
    """Print both."""
    way = traced()
    print(f"{page(way)}\n\n{length(way)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
