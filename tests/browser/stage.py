"""A running scheduler with its page and no cluster: the real engine and the real port; the API server is played."""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import msgspec

from plugins import IN_TREE
from scheduler import framework as fw
from scheduler.assembly.share_gauges import ShareGauges
from scheduler.config.effective import as_shown
from scheduler.config.load import load_config
from scheduler.config.options import ServingOptions
from scheduler.config.types import Config
from scheduler.engine.engine import Engine, build_engine
from scheduler.explain.explainer import Explainer
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.runtime.profile_spec import PluginRef, PluginSet
from scheduler.serve.access.authentication import Authentication
from scheduler.serve.access.authorization import Authorization
from scheduler.serve.endpoints.explanations import PATH as EXPLAIN
from scheduler.serve.endpoints.explanations import Explanations
from scheduler.serve.page.about import About
from scheduler.serve.page.pages import PATH, ClusterPage
from scheduler.serve.port.http import HttpServer, Pages
from scheduler.serve.port.limits import Limits
from scheduler.testing import a_node, a_pod
from tests.fakes import FakeWorld

PROFILE: Final = "loadmaster"
ZONES: Final = ("europe-west1-b", "europe-west1-c", "europe-west1-d")
APPS: Final = ("web", "checkout", "search", "feed", "billing", "reports", "auth", "mail")
SECONDS: Final = 30.0

LIMITS: Final = Limits(handshakes_per_second=1000.0, burst=1000)
"""A test opens the page more often in a minute than a user does in a day, and each time over six connections."""

T = TypeVar("T")


class Bindings(FakeWorld):
    """The API server: a binding takes some milliseconds, and then the watch tells of it."""

    engine: Engine

    async def bind(self, pod: fw.Pod, node_name: str, check: Callable[[], None] = lambda: None) -> str:
        await asyncio.sleep(random.uniform(0.004, 0.02))
        check()
        bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
        asyncio.get_running_loop().call_soon(self.engine.handlers.pod_changed, bound)
        return ""


@dataclass
class Who:
    """What the replica says of itself; a test may change it."""

    leads: bool = True
    leader: str = "loadmaster-7d4b9_1c"
    refuses: int = 0
    """An HTTP status with which requests for the page are refused."""


@dataclass
class Stage:
    """Runs in a thread of its own, with its own event loop."""

    who: Who = field(default_factory=Who)
    port: int = 0
    plugins: tuple[type[fw.Plugin], ...] = ()
    """On top of the default ones."""
    engine: Engine = field(init=False)
    page: ClusterPage = field(init=False)
    _share_gauges: ShareGauges = field(init=False)
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _stop: asyncio.Event = field(init=False)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}{PATH}"

    def do(self, work: Callable[[], T]) -> T:
        """Do it in the scheduler's thread, between two of its steps."""

        async def once() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(once(), self._loop).result(SECONDS)

    def see(self, *objects: fw.Pod | fw.Node) -> None:
        """Have the scheduler hear of objects from the watch."""

        def hear() -> None:
            for each in objects:
                if isinstance(each, fw.Pod):
                    self.engine.handlers.pod_changed(each)
                else:
                    self.engine.handlers.node_changed(each)

        self.do(hear)

    def look_at_shares(self) -> None:
        """Have the gauges of shares take a look, of which the page hears."""
        asyncio.run_coroutine_threadsafe(self._share_gauges.look(), self._loop).result(SECONDS)

    def end_streams(self) -> None:
        """End those of the page; to be done in the scheduler's thread."""
        for reader in tuple(self.page.live.readers):
            reader.end()

    async def run(self, ready: threading.Event) -> None:
        """Serve and schedule until told to stop."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        known = {**IN_TREE, **{plugin.name: plugin for plugin in self.plugins}}
        metrics, world, config = Metrics(), Bindings(), a_config(self.plugins)
        tasks = Tasks(metrics, self._stop)
        self.engine = engine = build_engine(config, known, world.writers, metrics, time.monotonic, tasks)
        world.engine = engine
        self._share_gauges = ShareGauges(engine, metrics)
        about = About("0.2.0", lambda: self.who.leads, lambda: self.who.leader)
        epoch = time.time() - time.monotonic()
        self.page = ClusterPage(engine, metrics, about, lambda: as_shown(config, known), epoch)
        explanations = Explanations(Explainer(engine, time.monotonic, lambda: self.who.leads))
        pages = Pages(self.page.pages, {}, {}, metrics, queried={EXPLAIN: explanations, **self.page.queried})
        options = ServingOptions(secure_port=self.port, bind_address="127.0.0.1")
        rights = Authorization(None, ("*",), 10.0, 10.0)
        server = HttpServer(options, pages, Authentication(None, 10.0), rights, metrics, tasks, LIMITS)
        async with server:
            self.port = server.port
            self.page.live.start(tasks)
            tasks.start("scheduling loop", engine.loop.run())
            tasks.start("queue flushers", engine.queue.run_flushers())
            ready.set()
            await self._stop.wait()
            engine.queue.close()
            await engine.loop.finish(1.0)
        await tasks.close()
        engine.close()
        assert not tasks.failed

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)


@contextmanager
def staged(port: int = 0, who: Who | None = None, *plugins: type[fw.Plugin]) -> Iterator[Stage]:
    """Run a scheduler meanwhile, with these plugins on top of the default ones."""
    stage, ready = Stage(who or Who(), port, plugins), threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(stage.run(ready))
        except BaseException as error:
            failed.append(error)
            ready.set()
            raise

    thread = threading.Thread(target=run, name="stage")
    thread.start()
    try:
        assert ready.wait(SECONDS)
        assert not failed, failed
        yield stage
    finally:
        if not failed:
            stage.stop()
        thread.join(SECONDS)
    assert not failed, failed


def a_config(plugins: Iterable[type[fw.Plugin]] = ()) -> Config:
    """The default configuration, for one profile, with these plugins on top."""
    config = load_config(None, IN_TREE)
    default = config.profiles[0].plugins
    refs = tuple(PluginRef(plugin.name) for plugin in plugins)
    enabled = replace(default, multi_point=PluginSet(default.multi_point.enabled + refs))
    return replace(config, profiles=(replace(config.profiles[0], scheduler_name=PROFILE, plugins=enabled),))


def nodes(count: int) -> Iterator[fw.Node]:
    """Nodes in three zones, some of them with devices, some cordoned, tainted or not ready."""
    for number in range(count):
        zone = ZONES[number % 3]
        labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": f"node-{number:04}"}
        has_gpu = number % 7 == 3
        devices = {"nvidia.com/gpu": 8} if has_gpu else {}
        taints = []
        if number % 41 == 11:
            taints.append(fw.Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"))
        if has_gpu:
            taints.append(fw.Taint(key="dedicated", value="gpu", effect="NoSchedule"))
        yield a_node(
            f"node-{number:04}",
            cpu="16",
            memory="64Gi",
            allocatable=devices,
            labels=labels,
            taints=taints,
            unschedulable=number % 53 == 17,
        )


def running(node_names: Iterable[str], count: int, seed: int = 1) -> Iterator[fw.Pod]:
    """Pods that run, more of them on some nodes than on others."""
    names, chance = list(node_names), random.Random(seed)
    weights = [chance.betavariate(2.2, 1.6) for _ in names]
    for number, name in enumerate(chance.choices(names, weights, k=count)):
        app = APPS[number % len(APPS)]
        cpu, memory = chance.choice((500, 1000, 2000, 3000)), chance.choice((1, 2, 4, 8, 12))
        requests = {"cpu": f"{cpu}m", "memory": f"{memory}Gi"}
        yield scheduled(f"{app}-{number:05}", node_name=name, requests=requests, labels={"app": app})


def scheduled(name: str, **fields: Any) -> fw.Pod:
    """A pod of our profile."""
    return a_pod(name, **{"namespace": "shop", "scheduler_name": PROFILE, **fields})


def some_pods(prefix: str, count: int) -> Iterator[fw.Pod]:
    """Small pods that have not been placed yet."""
    return (scheduled(f"{prefix}-{number}", requests={"cpu": "50m", "memory": "64Mi"}) for number in range(count))
