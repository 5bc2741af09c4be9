"""A whole scheduler over a cluster in memory, in virtual time: every extension point is run as in a cluster.

    with a_scheduler(Partners(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(left)                                  it is tried, and Permit holds it
        scheduler.advance(30)                                   30 s pass at once, with all that happens in them
        assert scheduler.outcome(left).held_by == ("Partners",)

Queue, loop, engine and event loop are those of the program. Only the API server is in memory, where what is written
takes effect at once. Time passes in `advance`, and nowhere else.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final, Self, TypeVar

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.config.types import Config
from scheduler.cycle.loop import SLICE_SECONDS
from scheduler.cycle.writers import Writers
from scheduler.engine.engine import Engine, build_engine
from scheduler.framework.handle import ApiWriter, Reader
from scheduler.framework.plugin import Plugin
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.process.virtual_time import VirtualTimeLoop
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.profile import ProfilePlugins, build
from scheduler.runtime.profile_spec import Plugins, ProfileSpec
from scheduler.runtime.registry import Registry
from scheduler.state.simulated_api import SimulatedApi
from scheduler.testing.api_server import ApiServer, Event, VirtualReader
from scheduler.testing.handles import profile_of
from scheduler.testing.objects import as_kept

T = TypeVar("T")

PROFILE: Final = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of a pod."""

    node: str = ""
    """The node that it is bound to; empty until then."""

    message: str = ""
    """Why its last attempt failed, as the pod's owner reads it."""

    held_by: tuple[str, ...] = ()
    """The Permit plugins that hold it."""

    gated_by: str = ""
    """The PreEnqueue plugin that keeps it out of the queue."""

    nominated_node: str = ""
    """The node where it is expected, as pods are evicted for it or as its binding has begun."""


@contextmanager
def a_scheduler(
    *plugins: Plugin,
    nodes: Iterable[Node] = (),
    objects: Mapping[str, Iterable[Any]] | None = None,
    api: ApiWriter | None = None,
    reader: Reader | None = None,
) -> Iterator["Scheduler"]:
    """Start a scheduler with these plugins in its profile, in this order, for the length of a `with` block.

    Where none of them sorts the queue, PrioritySort does; where none binds, DefaultBinder. Others, such as
    NodeResourcesFit, are there only if they are given. `objects`: resource, as in events and `reads`, → its objects.
    What plugins write changes these. `api` and `reader` take the place of the handle's: without a `reader`, there is
    nothing to read by HTTP.

    Raises ConfigError if a plugin does not start, LookupError for objects of a resource that no plugin names.
    """
    profile = profile_of(*plugins)
    config = Config((ProfileSpec(PROFILE, Plugins()),))
    with Scheduler(config, {}, make_plugins=lambda *_: profile, api=api, reader=reader) as scheduler:
        scheduler.set_node(*nodes)
        for resource, each in (objects or {}).items():
            scheduler.put(resource, *each)
        yield scheduler


class Scheduler:
    """A scheduler over a cluster in memory. Each method returns when nothing is left to do but to wait.

    They raise NeverAtRest if a task of a plugin runs on without waiting for anything.
    """

    def __init__(
        self,
        config: Config,
        registry: Registry,
        *,
        stream: EventStream | None = None,
        make_plugins: Callable[[ProfileSpec, Registry], ProfilePlugins] = build,
        api: ApiWriter | None = None,
        reader: Reader | None = None,
        server: ApiServer | None = None,
        decisions_at_once: int = 3,
    ) -> None:
        """`server` takes the place of one where every write takes effect at once.

        `decisions_at_once`: so many are made before other tasks get their turn, however long they take.
        """
        self._make: Callable[[Writers, Metrics, Tasks], Engine] = lambda writers, metrics, tasks: build_engine(
            config,
            registry,
            writers,
            metrics,
            asyncio.get_running_loop().time,
            tasks,
            stream=stream,
            make_plugins=make_plugins,
            stopwatch=partial(next, count(0.0, SLICE_SECONDS / decisions_at_once)),
        )
        self._simulated_api = SimulatedApi()
        self._api: ApiWriter = api or self._simulated_api
        self._reader: Reader = reader or VirtualReader()
        self._server = server or ApiServer()
        self._runner = asyncio.Runner(loop_factory=VirtualTimeLoop)

    def __enter__(self) -> Self:
        try:
            self._runner.run(self._start())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._runner.run(self._stop())
            if kind is None:
                self.check_invariants()
        finally:
            self._runner.close()

    def create(self, *pods: Pod) -> None:
        """Let pods come, all at once. Those with a node run there."""
        self._do(self._show, pods)

    def update(self, *pods: Pod) -> None:
        """Let pods have a new version."""
        self.create(*pods)

    def delete(self, *pods: Pod) -> None:
        """Let pods be gone."""
        self._do(self.engine.handlers.pod_deleted, [self.engine.pods.get(pod.uid, pod) for pod in pods])

    def set_node(self, *nodes: Node) -> None:
        """Let nodes come, or have a new version."""
        self._do(self.engine.handlers.node_changed, nodes)

    def remove_node(self, *nodes: Node) -> None:
        """Let nodes be gone; pods on them stay until they are deleted."""
        self._do(self.engine.handlers.node_deleted, nodes)

    def put(self, resource: str, *objects: Any) -> None:
        """Let objects of a resource come, or have a new version. Raises LookupError if no plugin names the resource."""
        self._check_watched(resource)
        self._do(partial(self.engine.object_handlers.object_changed, resource), objects)

    def remove(self, resource: str, *objects: Any) -> None:
        """Let objects of a resource be gone. Raises LookupError if no plugin names the resource."""
        self._check_watched(resource)
        self._do(partial(self.engine.object_handlers.object_deleted, resource), objects)

    def advance(self, seconds: float) -> None:
        """Let time pass, and all happen that happens in it. 0: let happen what a test has set off itself."""
        self._do(self._show, (), seconds)

    def outcome(self, pod: Pod) -> Outcome:
        """The state of a pod."""
        uid, engine = pod.uid, self.engine
        newest = engine.pods.get(uid)
        waiting = [framework.handle.waiting_pods.get(uid) for framework in engine.frameworks.values()]
        gates = {queued.pod.uid: queued.gating_plugin for queued in engine.queue.pending_pods()["gated"]}
        return Outcome(
            node=newest.node_name if newest is not None else "",
            message=self._server.messages.get(uid, ""),
            held_by=next((each.pending_plugins for each in waiting if each is not None), ()),
            gated_by=gates.get(uid, ""),
            nominated_node=self._server.nominated.get(uid, ""),
        )

    @property
    def bound(self) -> Sequence[Pod]:
        """The pods that were bound, in this order, with their nodes."""
        return self._server.bound

    @property
    def evicted(self) -> Sequence[Pod]:
        """The pods that plugins have evicted, in this order. They are gone at once."""
        return self._server.evicted

    @property
    def events(self) -> Sequence[Event]:
        """The Events about pods, in this order."""
        return self._server.events

    def check_invariants(self) -> None:
        """Raise AssertionError if the scheduler's own tables are inconsistent. Done at the end of the `with` block."""
        for part in (self.engine.cache, self.engine.queue, self.engine.nominator):
            part.check_invariants()

    async def _start(self) -> None:
        metrics = Metrics()
        self._tasks = tasks = Tasks(metrics)
        server = self._server
        writers = Writers(server, server, server, server, self._api, self._reader)
        self.engine = server.engine = self._make(writers, metrics, tasks)
        self._simulated_api.objects = self.engine.objects
        self._simulated_api.observer = self.engine.object_handlers
        tasks.start("scheduling", self.engine.loop.run())
        tasks.start("queue", self.engine.queue.run_flushers())
        tasks.start("reservations", self.engine.group_parts.keep_reservations(self.engine.pauses.ready))
        tasks.start("shares", self.engine.share_parts.run())
        await _at_rest()

    async def _stop(self) -> None:
        await self.engine.loop.finish(0)
        await self._tasks.close()
        self.engine.close()

    def _show(self, pod: Pod) -> None:
        self.engine.handlers.pod_changed(as_kept(pod, raw=self.engine.profiles.resources.raw_pods))

    def _check_watched(self, resource: str) -> None:
        if resource not in self.engine.watched:
            raise LookupError(f"{resource!r} is not watched: no plugin names it in its events or in `reads`")

    def _do(self, change: Callable[[T], None], given: Iterable[T], seconds: float = 0.0) -> None:
        async def done() -> None:
            for each in given:
                change(each)
            if seconds:
                await asyncio.sleep(seconds)
            await _at_rest()

        self._runner.run(done())
        if self._tasks.failed:
            raise RuntimeError("the scheduler has ended; its log says why")


async def _at_rest() -> None:
    """Wait until nothing is left to do but to wait."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    await loop.at_rest()
