"""A whole engine behind the real intake and relister, in which the n-th call of a handler fails: for test_faults.py.

The n-th call is counted over all functions of ours that a handler leads to, so for some n it lies between any two steps
that change something. A second fault may follow some calls later, in whatever puts the first one right.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import msgspec

import plugins
import scheduler
from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from scheduler.kube.http.client import Reply
from scheduler.kube.informers.comparison_schedule import ComparisonSchedule
from scheduler.kube.informers.deadlines import Deadlines
from scheduler.kube.informers.intake import Intake, node_intake, object_intake, pod_intake
from scheduler.kube.informers.relister import Relister
from tests.unit.cycle.fakes import an_engine
from tests.unit.kube.fake_api import watch_line

Raw = dict[str, Any]

OURS: Final = tuple(str(Path(str(package.__file__)).parent) for package in (scheduler, plugins))


class Fault(Exception):
    """What an injected fault raises."""


class Injector:
    """Counts calls of ours within `with injector.active()`; the n-th raises, and another one `then` calls later."""

    def __init__(self) -> None:
        self.calls = 0
        self.fails_at = 0
        self.then = 0

    @contextmanager
    def active(self) -> Iterator[None]:
        before = sys.getprofile(), sys.gettrace()
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(before[0])
            sys.settrace(before[1])

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not _is_ours(frame.f_code):
            return
        self.calls += 1
        if self.calls == self.fails_at:
            if self.then:
                sys.settrace(self._called_later)
            raise Fault(f"call {self.calls}: {frame.f_code.co_qualname}")

    def _called_later(self, frame: FrameType, event: str, _: Any) -> None:
        if _is_ours(frame.f_code):
            self.calls += 1
            if self.calls == self.fails_at + self.then:
                raise Fault(f"call {self.calls}: {frame.f_code.co_qualname}")


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(OURS)


class Faulty:
    """Handlers that fail when the injector says so; what only reads, or mends, does not."""

    def __init__(self, handlers: Any, injector: Injector) -> None:
        self._handlers = handlers
        self._injector = injector

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._handlers, name)
        return self._failing(method) if name.endswith(("_changed", "_deleted")) else method

    def _failing(self, method: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            with self._injector.active():
                method(*arguments)

        return call


class World:
    """The truth, by resource and UID, and an engine that learns of it."""

    def __init__(self, events: asyncio.AbstractEventLoop) -> None:
        self.run = events.run_until_complete
        self.injector = Injector()
        self.engine = an_engine()
        self.engine.world.hangs = True
        self.objects: dict[str, dict[str, Raw]] = {}
        self.version = 0
        handlers = Faulty(self.engine.handlers, self.injector)
        others = Faulty(self.engine.engine.object_handlers, self.injector)
        metrics, self.failed = self.engine.metrics, list[str]()
        self.intakes: dict[str, Intake[Any]] = {}
        intakes: tuple[Intake[Any], ...] = (
            pod_intake(handlers, metrics, self.failed.append),
            node_intake(handlers, metrics, self.failed.append),
            *(
                object_intake(*each, others, metrics, failed=self.failed.append)
                for each in self.engine.engine.watched.items()
            ),
        )
        for intake in intakes:
            self.intakes[intake.api.plural] = intake
            self.objects[intake.api.plural] = {}
        deadlines = Deadlines(metrics)
        self.relister = Relister(
            self,  # type: ignore[arg-type]
            intakes,
            ComparisonSchedule(),
            nullcontext,
            deadlines,
            metrics,
            settle=0.0,
        )

    async def page(self, operation: Any, path: str, limit: int, query: str) -> Reply:
        """Answer a list, as `Client` does, on one page."""
        items = [*self.objects[path.rpartition("/")[2]].values()]
        metadata = {"resourceVersion": str(self.version)}
        return Reply(200, msgspec.json.encode({"metadata": metadata, "items": items}))

    def put(self, plural: str, raw: Raw) -> None:
        """Have an object, or a new version of it, and let the watch tell."""
        self.version += 1
        metadata = {**raw["metadata"], "resourceVersion": str(self.version)}
        uid = metadata.setdefault("uid", "uid-" + metadata["name"])
        is_new = uid not in self.objects[plural]
        self.objects[plural][uid] = {**raw, "metadata": metadata}
        self.tell("ADDED" if is_new else "MODIFIED", plural, self.objects[plural][uid])

    def remove(self, plural: str, name: str) -> None:
        self.version += 1
        gone = self.objects[plural].pop(f"uid-{name}")
        self.tell("DELETED", plural, {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}})

    def change(self, plural: str, name: str, **parts: Any) -> None:
        """Update parts of an object: `spec={...}` is merged into its spec."""
        old = self.objects[plural][f"uid-{name}"]
        self.put(plural, {**old, **{part: {**old.get(part, {}), **new} for part, new in parts.items()}})

    def tell(self, type_: str, plural: str, raw: Raw) -> None:
        self.intakes[plural].from_line(watch_line(type_, raw))

    def schedule(self) -> None:
        """Try all pods that may be tried; bindings hang."""
        self.run(self.engine.schedule())

    def compare(self) -> None:
        """Compare the resources of which a change was lost, as the relister does."""
        failed, self.failed[:] = {*self.failed}, []
        for intake in self.intakes.values():
            if intake.resource in failed:
                self.run(self.relister.compare(intake, first=False))

    def tables(self) -> dict[str, Any]:
        """All that is believed, in a form that compares."""
        engine, table = self.engine, self.engine.cache.table
        catalog = engine.framework.handle.shared.get(DeviceCatalog, lambda: DeviceCatalog(engine.engine.objects))
        binding: Any = engine.framework.plugins.by_name["VolumeBinding"]
        allocations, slices = catalog.allocations, catalog.slices
        volumes, capacities = binding._finder._index, binding._finder.capacities
        in_queue = {queued.pod.uid for pods in engine.queue.pending_pods().values() for queued in pods}
        return {
            "pods": _versions(engine.handlers.known_pods()),
            "nodes": _versions(engine.handlers.known_nodes()),
            "objects": {name: _versions(engine.engine.objects.known(name)) for name in engine.engine.watched},
            "counted": {
                name: sorted((pod.uid, pod.metadata.resource_version) for pod in table.pods_on(name))
                for name in {*table.node_names(), *table.placeholder_names()}
            },
            "node versions": {name: _version(table.node(name)) for name in table.node_names()},
            "assumed": sorted(pod.uid for pod in engine.cache.assumed_pods()),
            "waiting": sorted(in_queue),
            "in flight": sorted(queued.pod.uid for queued in engine.queue.in_flight_pods()),
            "nominated": {name: sorted(pod.uid for pod in pods) for name, pods in engine.nominator.by_node()},
            "devices": (
                allocations.allocated().whole,
                allocations.allocated().shared,
                allocations.allocated().capacity,
            ),
            "claims": _versions(allocations._written),
            "slices": [
                {key: sorted(views) for key, views in index.items()} for index in (slices._of_node, slices._of_pool)
            ],
            "free volumes": {
                name: sorted(each.name for candidates in kinds.values() for each in candidates)
                for name, kinds in volumes._free.items()
                if kinds
            },
            "claimed volumes": {
                (namespace, name): sorted(volume.name for volume in found)
                for namespace, claims in volumes._prebound.items()
                for name, found in claims.items()
            },
            "capacities": {name: sorted(found) for name, found in capacities._capacities.items() if found},
        }

    def check(self) -> None:
        self.engine.check()
        self.engine.engine.objects.check_invariants()

    def close(self) -> None:
        self.engine.queue.close()
        self.run(self.engine.loop.finish(0))


def _versions(known: Any) -> dict[str, str]:
    return {uid: _version(found) for uid, found in known.items()}


def _version(found: Any) -> str:
    version: str = found.metadata.resource_version
    return version
