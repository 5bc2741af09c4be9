"""The watches on objects that plugins look up, except pods and nodes: opened and closed as the configuration changes.

    (none) ──open──► LISTED AND WATCHED ──close──► the watch ends, no list is under way: its objects are forgotten
                          │    ▲
                          └────┘ open, with more parts of its objects: all of them are read again

What is opened while the scheduler works is taken in whole, before any plugin that needs it is asked.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from scheduler.cycle.object_handlers import ObjectEventHandlers
from scheduler.engine.profiles import Resources
from scheduler.framework.nodes.resources import ApiResource, struct_of
from scheduler.kube.http.client import Client
from scheduler.kube.informers.deadlines import Deadlines
from scheduler.kube.informers.intake import Intake, Reduction, object_intake
from scheduler.kube.informers.relister import Relister
from scheduler.kube.informers.watch import Watch
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks


class _Watched(NamedTuple):
    intake: Intake[Any]
    kept: Reduction
    """The parts of its objects that are kept."""

    task: "asyncio.Task[None] | None"
    """None until the watches are started."""


class FurtherWatches:
    """By event resource. The relister compares what is watched here."""

    def __init__(
        self,
        client: Client,
        relister: Relister,
        handlers: ObjectEventHandlers,
        deadlines: Deadlines,
        metrics: Metrics,
        tasks: Tasks,
        failed: Callable[[str], None],
        after_start: Callable[[], None],
    ) -> None:
        """`failed`, `after_start`: as `Intake` and `Watch` want them."""
        self._client = client
        self._relister = relister
        self._handlers = handlers
        self._deadlines = deadlines
        self._metrics = metrics
        self._tasks = tasks
        self._failed = failed
        self._after_start = after_start
        self._watched: dict[str, _Watched] = {}
        self._is_started = False

    def __contains__(self, name: str) -> bool:
        return name in self._watched

    @property
    def resources(self) -> Collection[str]:
        """Event resources."""
        return self._watched.keys()

    def start(self) -> None:
        """Begin to watch what was opened."""
        self._is_started = True
        for name, watched in self._watched.items():
            self._watched[name] = watched._replace(task=self._start(watched.intake))

    async def open(self, resources: Resources) -> None:
        """Watch all of these. If the watches are started, return once the new ones were compared."""
        opened: list[str] = []
        for name, resource in resources.watched.items():
            parts = self._parts(name, resources.parts_read)
            opened.append(resource.name)
            known = self._watched.get(name)
            if known is None:
                self._handlers.watch([name])
                self._add(name, resource, parts)
            else:
                self._keep(name, parts)
        if self._is_started:
            await self._relister.compared(opened)

    def keep_only(self, resources: Resources) -> None:
        """Keep no more of the watched objects than these."""
        for name in self._watched.keys() & resources.watched.keys():
            self._keep(name, resources.parts_read.get(name))

    def _keep(self, name: str, parts: frozenset[str] | None) -> None:
        watched = self._watched[name]
        if parts != watched.kept.parts:
            watched.kept.parts = parts
            watched.intake.decode_into(struct_of(name))
            self._relister.read_again(watched.intake.resource)

    async def close(self, names: Collection[str]) -> None:
        """Watch these no longer."""
        for name in names:
            await self._end(self._watched.pop(name))
            self._handlers.unwatch(name)

    def _parts(self, name: str, read: Mapping[str, frozenset[str]]) -> frozenset[str] | None:
        """The parts of the objects to keep: those that are read, and those that are kept already and in use."""
        parts = read.get(name)
        if name not in self._watched or parts is None:
            return parts
        kept = self._watched[name].kept.parts
        return None if kept is None else parts.union(kept)

    def _add(self, name: str, resource: ApiResource, parts: frozenset[str] | None) -> None:
        kept = Reduction(parts)
        intake = object_intake(name, resource, self._handlers, self._metrics, kept, self._failed)
        self._relister.add(intake)
        self._watched[name] = _Watched(intake, kept, self._start(intake) if self._is_started else None)

    def _start(self, intake: Intake[Any]) -> "asyncio.Task[None]":
        watch = Watch(
            self._client, (intake,), self._relister, self._deadlines, self._metrics, after_start=self._after_start
        )
        return self._tasks.start(f"watch on {watch.label}", watch.run())

    async def _end(self, watched: _Watched) -> None:
        resource = watched.intake.resource
        if watched.task is not None:
            await self._tasks.cancel(watched.task)
        await self._relister.remove(resource)
        self._deadlines.drop(resource)
