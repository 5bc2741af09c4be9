"""What a reload costs the pods that come meanwhile: `python -m tests.bench.reload`.

An engine with 5,000 nodes and four profiles gets 200 pods a second, evenly over the profiles. Its configuration changes
every few seconds, in all four profiles, so that nothing of them is kept. For each pod the time is measured from its
arrival to the call of the binder. Printed is how late pods are in the second after a reload, and at other times; exit
code 1 if the difference is more than 100 ms. All runs in one event loop, as in `loadmaster run`, but for the cluster.

Time is that in which the event loop works or has nothing to do: what else the machine does makes no pod late.
"""

import argparse
import asyncio
import random
import selectors
import sys
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import Any, Final

import plugins
from scheduler.api.pod import Pod
from scheduler.commands.reloading import Reloader
from scheduler.config.load import config_from_dict
from scheduler.config.source import Loaded
from scheduler.cycle.engine import build_engine
from scheduler.cycle.profiles import Resources
from scheduler.cycle.writers import Writers
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.runtime.registry import Registry
from tests.bench.cycle_world import NoWorld, decoded_pod, numbered_node

PROFILES: Final = ("one", "two", "three", "four")
RATE: Final = 200.0
WARM: Final = 3.0
"""Seconds of pods that are not measured: the first of their kinds."""

ALLOWED: Final = 0.1
"""Seconds that a pod may be later because of a reload."""


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: the time passes at once."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.passed += max(0.0, timeout or 0.0)
        return super().select(0)


class _WorkingTime(asyncio.SelectorEventLoop):
    """An event loop whose clock runs while it works, and jumps to the next timer when there is nothing to do."""

    def __init__(self) -> None:
        self._waits = _Selector()
        super().__init__(self._waits)

    def time(self) -> float:
        return time.thread_time() + self._waits.passed


class _World(NoWorld):
    """Binds at once, and notes when."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: dict[str, float] = {}

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        check()
        self.bound[pod.uid] = asyncio.get_running_loop().time()
        return ""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Nobody reads it."""


class _Cluster:
    """Everything is watched already."""

    watched: Collection[str] = ()

    async def open(self, resources: Resources) -> None: ...
    async def close(self, names: Collection[str], *, whole_nodes: bool) -> None: ...
    def keep_only(self, resources: Resources) -> None: ...
    def report_as(self, profiles: Sequence[str]) -> None: ...
    async def report(self, type_: str, reason: str, note: str) -> None: ...


class _Source:
    """A configuration whose profiles are others each time that it is read."""

    name = "bench"

    def __init__(self) -> None:
        self.version = 0

    def signature(self) -> Hashable:
        return self.version

    async def load_again(self, before: Registry) -> Loaded:
        return self.load()

    def load(self) -> Loaded:
        weight = {"name": "NodeResourcesFit", "weight": 1 + self.version % 50}
        profiles = [{"schedulerName": name, "plugins": {"multiPoint": {"enabled": [weight]}}} for name in PROFILES]
        header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        return Loaded(config_from_dict({**header, "profiles": profiles}, plugins.IN_TREE), plugins.IN_TREE)


async def measure(
    nodes: int, seconds: float, every: float, waiting: int
) -> tuple[list[float], list[float], list[float]]:
    """Seconds from arrival to binding: after reloads, and otherwise; and how long each reload took.

    `waiting`: pods that find no node all the time, and are asked again at each reload.
    """
    now = asyncio.get_running_loop().time
    world, metrics, source = _World(), Metrics(), _Source()
    tasks = Tasks(metrics)
    writers = Writers(world, world, world, world)
    loaded = source.load()
    engine = build_engine(loaded.config, loaded.registry, writers, metrics, time.monotonic, tasks)
    reloader = Reloader(source, loaded, engine, _Cluster(), metrics, tasks)
    for number in range(nodes):
        engine.handlers.node_changed(numbered_node(number))
    for number in range(waiting):
        engine.handlers.pod_changed(_pod(f"waiting-{number}", number, nodeSelector={"no": "where"}))
    world.unschedulable = lambda *_: None  # type: ignore[method-assign]
    loop = asyncio.create_task(engine.loop.run())
    arrived: dict[str, float] = {}
    reloads: list[tuple[float, float]] = []

    async def reload_now_and_then() -> None:
        await asyncio.sleep(WARM)
        while True:
            await asyncio.sleep(every)
            source.version += 1
            began = now()
            await reloader.reload()
            reloads.append((began, now()))

    await asyncio.sleep(1.0 + waiting / 5_000)
    began = now()
    reloading = asyncio.create_task(reload_now_and_then())
    for number in range(int((WARM + seconds) * RATE)):
        # As though the watch had brought it when it was due, however late the event loop is.
        due = began + number / RATE
        await asyncio.sleep(max(0.0, due - now()))
        pod = _pod(f"pod-{number}", number)
        if due > began + WARM:
            arrived[pod.uid] = due
        engine.handlers.pod_changed(pod)
    await asyncio.sleep(1.0)
    reloading.cancel()
    engine.queue.close()
    await loop
    late = {uid: world.bound[uid] - due for uid, due in arrived.items()}
    after = {uid for uid, due in arrived.items() if any(begin - 0.1 <= due <= end + 1 for begin, end in reloads)}
    engine.close()
    return (
        sorted(late[uid] for uid in after),
        sorted(seconds for uid, seconds in late.items() if uid not in after),
        sorted(end - begin for begin, end in reloads),
    )


def _pod(name: str, number: int, **spec: Any) -> Pod:
    return decoded_pod(name, {"schedulerName": PROFILES[number % len(PROFILES)], **spec}, app=f"app-{number % 20}")


def _row(what: str, seconds: Sequence[float]) -> Iterator[str]:
    picks = ((0.5, "p50"), (0.99, "p99"), (1.0, "max"))
    yield f"{what:<28}{len(seconds):>6}"
    for share, _ in picks:
        yield f"{1000 * seconds[min(len(seconds) - 1, int(share * len(seconds)))]:>10.1f}"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=3.0, help="seconds between two reloads")
    parser.add_argument("--waiting", type=int, default=0, help="pods that wait all the time")
    options = parser.parse_args()
    random.seed(0)
    with asyncio.Runner(loop_factory=_WorkingTime) as runner:
        after, otherwise, took = runner.run(measure(options.nodes, options.seconds, options.every, options.waiting))
    print(f"{'milliseconds':<28}{'count':>6}{'p50':>10}{'p99':>10}{'max':>10}")
    for what, seconds in (("bound after a reload", after), ("bound at other times", otherwise), ("reload", took)):
        print("".join(_row(what, seconds)))
    later = after[-1] - otherwise[-1]
    print(f"after a reload the latest is {1000 * later:+.1f} ms later than otherwise; {1000 * ALLOWED:g} are allowed")
    return 1 if later > ALLOWED else 0


if __name__ == "__main__":
    sys.exit(main())
