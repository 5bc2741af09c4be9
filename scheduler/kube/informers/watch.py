"""The watch on pods, nodes and what plugins ask for: kopf keeps it going, `Intake` takes the events in.

kopf opens the watch, opens it again when it breaks or is silent, continues from the last version, lists again after 410
Gone. Five of its habits do not suit a scheduler; this is what is done about them:

- It creates a task, a queue, loggers and a difference per object. So `WatchResponse` takes the objects out of the
  stream and leaves kopf the versions. It has handlers only because it watches nothing else; no event reaches them.
- Its list costs 200 µs per object and never reports deletions. So it gets an empty list (`WatchSession` adds a
  selector that matches nothing): kopf watches from that list's version, and `Relister` is asked to compare.
- When `kopf.operator` ends, it cancels every task that is younger than itself: all of ours. So its tasks are started
  with `kopf.spawn_tasks` and ended here.
- It takes over SIGINT and SIGTERM: `after_start` lets the program take them back.
- It gives up after a number of failures: it is started again.

Pods and nodes share one kopf operator; every further resource has its own, started once the API server serves it
(`Served`), and ended by the 404 when it no longer does. So installing or deleting a definition, or a resource that may
not be watched, never interrupts the watch on pods. kopf's own observation of definitions (`settings.scanning`) would
need one operator only, but also the right to watch all definitions, which it streams whole; the deletion of a
definition is a race that can end the operator for all; and built-in resources that an upgrade of the API server brings
go unnoticed. Sixteen more operators cost 0.15 s of CPU at the start, 5 MB, and nothing measurable when idle.

While events could go through kopf's handlers, too, one of a pod of 1.4 kB took 240 µs of CPU there, 307 where kopf
started a worker, and 13 on this way (`python -m tests.unit.kube.watch_cost` measures it; Python 3.11, uvloop, two busy
cores). Half of that is decoding and checking. On a whole scheduler kopf is left with 1 % of the CPU.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

import aiohttp
import kopf
from yarl import URL

from scheduler.framework.awaited import child
from scheduler.framework.errors import ClusterError
from scheduler.framework.nodes.resources import OTHER_VERSION, SINCE_1_37, ApiResource
from scheduler.kube.http.call_metrics import NO_ANSWER
from scheduler.kube.http.client import Client
from scheduler.kube.http.retries import is_outage, is_trouble, pause
from scheduler.kube.informers.deadlines import BEGIN_SECONDS, PROGRESS_SECONDS, Deadlines
from scheduler.kube.informers.intake import Intake
from scheduler.kube.informers.kopf_settings import IDENTITY, RETRIES, quiet_kopf, watch_settings
from scheduler.kube.informers.relister import Relister
from scheduler.kube.informers.served import Served
from scheduler.kube.informers.watch_stream import WatchResponse
from scheduler.process.metrics import Metrics

log = logging.getLogger(__name__)

FROZEN_SECONDS: Final = 70.0
"""After this time without any event, a watch is opened again. The API server sends a bookmark every minute."""

ANSWER_SECONDS: Final = 30.0
"""For the API server to accept a request and begin its answer, so that no answer counts as its trouble. It queues no
request as long as this."""

END_SECONDS: Final = 5.0
"""For kopf to end; then it is abandoned."""

CALM_SECONDS: Final = 60.0
"""After this time without trouble, waits start over."""

ABSENT_SECONDS: Final = 5.0
"""Between checks for a resource that the API server does not serve."""

LIST_SECONDS: Final = 15.0
"""kopf lists a served resource within this time of its start. Otherwise, of several API servers, it asked one that does
not know the resource yet, and is started again."""

NOTHING: Final = "metadata.name=-"
"""A field selector that matches no object: `-` is no valid name."""


Response: TypeAlias = aiohttp.ClientResponse | WatchResponse


class Watch:
    """`run` it as a task."""

    def __init__(
        self,
        client: Client,
        intakes: Sequence[Intake[Any]],
        comparisons: Relister,
        deadlines: Deadlines,
        metrics: Metrics,
        after_start: Callable[[], None] = lambda: None,
        absent_seconds: float = ABSENT_SECONDS,
        *,
        frozen_seconds: float = FROZEN_SECONDS,
    ) -> None:
        """One intake, or several of resources that the API server certainly serves."""
        self._client = client
        self._intakes = intakes
        self._comparisons = comparisons
        self._deadlines = deadlines
        self._metrics = metrics
        self._after_start = after_start
        self._absent_seconds = absent_seconds
        self._frozen_seconds = frozen_seconds
        self._optional: Intake[Any] | None = intakes[0] if len(intakes) == 1 else None
        self.label = self._optional.resource if self._optional is not None else "all"
        """Its name in logs and metrics."""
        self._listed = asyncio.Event()
        self._session: WatchSession | None = None
        self._logins = 0
        self._logged_in_at = 0.0

    async def run(self) -> None:
        """Watch until cancelled."""
        quiet_kopf()
        for intake in self._intakes:
            self._deadlines.expect(intake.resource, BEGIN_SECONDS)
        waits = iter(RETRIES)
        loop = asyncio.get_running_loop()
        while True:
            if self._optional is not None:
                await self._until_served(self._optional)
            started = loop.time()
            try:
                await self._operate()
                error = "kopf ended"
            except Exception as problem:  # noqa: BLE001  the boundary: whatever it is, kopf is started again
                error = f"{type(problem).__name__}: {problem}"
            if loop.time() - started > CALM_SECONDS:
                waits = iter(RETRIES)
            for intake in self._intakes:
                self._comparisons.watch_interrupted(intake.resource)
            self._metrics.watch_errors.labels(self.label, "operator").inc()
            log.error("The watch ended and is started again", extra={"resource": self.label, "err": error})
            await asyncio.sleep(next(waits))

    async def _until_served(self, intake: Intake[Any]) -> None:
        served, waits = Served(self._client, intake.api), iter(RETRIES)
        is_absent = is_logged = False
        while True:
            try:
                found = await served.ask()
            except ClusterError as error:  # neither yes nor no: our state stays
                if not is_logged:
                    fields = {"resource": intake.resource, "err": str(error)}
                    log.warning("The API server does not say whether it serves a resource", extra=fields)
                is_logged = True
                if is_outage(error):
                    self._deadlines.excuse(intake.resource)
                await asyncio.sleep(next(waits))
                continue
            if found:
                if is_absent:
                    self._deadlines.expect(intake.resource, BEGIN_SECONDS)
                    log.info("The API server serves the resource now", extra={"resource": intake.resource})
                return
            if not is_absent:
                is_absent = True
                self._metrics.watch_errors.labels(intake.resource, "absent").inc()
                level = logging.INFO if await self._may_be_absent(intake.api) else logging.WARNING
                log.log(
                    level, "The API server does not serve a resource of a plugin", extra={"resource": intake.resource}
                )
                self._comparisons.absent(intake.resource)
                self._deadlines.drop(intake.resource)
            await asyncio.sleep(self._absent_seconds)

    async def _may_be_absent(self, api: ApiResource) -> bool:
        """Return whether nothing is missing without a resource: it is new, or another version of it is served."""
        if api in SINCE_1_37:
            return True
        other = OTHER_VERSION.get(api)
        try:
            return other is not None and await Served(self._client, other).ask()
        except ClusterError:
            return False

    async def _operate(self) -> None:
        self._listed.clear()
        tasks = await kopf.spawn_tasks(
            registry=self._registry(),
            settings=watch_settings(self._frozen_seconds),
            identity=IDENTITY,
            clusterwide=True,
            standalone=True,
        )
        self._after_start()
        try:
            await self._until_listed(tasks)
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._end(tasks)
        for task in done:
            if task.cancelled():  # not by us, so it is not for us either
                raise ClusterError(f"kopf's task {task.get_name()!r} was cancelled")
            task.result()

    async def _until_listed(self, tasks: Collection[asyncio.Task[Any]]) -> None:
        if self._optional is None:
            return
        listed = child(f"first list of {self.label}", self._listed.wait())
        try:
            done, _ = await asyncio.wait({*tasks, listed}, timeout=LIST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            listed.cancel()
        if not done:
            raise ClusterError(f"kopf did not list {self.label}")

    def _on_list(self, resource: str) -> None:
        self._listed.set()
        self._comparisons.request(resource)

    async def _end(self, tasks: Collection[asyncio.Task[Any]]) -> None:
        # Watchers do not handle cancellation well: one that is about to reconnect swallows it, one that starts a worker
        # leaves a generator behind. So the session ends them.
        if self._session is not None:
            await self._session.end()
        for task in tasks:
            task.cancel()
        _, pending = await asyncio.wait(tasks, timeout=END_SECONDS)
        if pending:
            log.warning("Parts of kopf did not end", extra={"parts": [task.get_name() for task in pending]})

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry, errors=kopf.ErrorsMode.TEMPORARY, backoff=RETRIES.limit)(self._login)

        for intake in self._intakes:
            group, version, plural = intake.api
            kopf.on.event(group=group, version=version, plural=plural, registry=registry)(_ignore)
        return registry

    async def _login(self, **_: Any) -> kopf.AiohttpSession:
        """Called by kopf at its start and after a 401."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._logged_in_at > CALM_SECONDS:
            self._logins = 0
        # Bad credentials must not cause a busy loop: the first repetition is free, others wait.
        await pause(RETRIES.wait(self._logins) if self._logins > 1 else 0.0)
        await self._client.authorized_session(rejected=self._logins > 0)
        self._logins += 1
        self._logged_in_at = loop.time()
        self._session = WatchSession(self._client, self._intakes, self._on_list, self._comparisons, self._deadlines)
        return kopf.AiohttpSession(
            server=self._client.credentials.identity.server,
            aiohttp_session=self._session,  # type: ignore[arg-type]
        )


async def _ignore(**_: Any) -> None:
    """kopf watches what has handlers; no event reaches them. Async, as kopf runs plain functions in threads."""


class WatchSession:
    """kopf's aiohttp session: wraps the client's, with fresh credentials, empty lists and its own streams."""

    def __init__(
        self,
        client: Client,
        intakes: Sequence[Intake[Any]],
        listed: Callable[[str], None],
        comparisons: Relister,
        deadlines: Deadlines,
    ) -> None:
        """`listed` is called with the resource of every emptied list, `comparisons` with each watch."""
        self._client = client
        # The API server may be behind a proxy that adds a path.
        root = URL(client.credentials.identity.server).path.rstrip("/")
        self._intakes = {root + intake.api.path: intake for intake in intakes}
        self._listed = listed
        self._comparisons = comparisons
        self._deadlines = deadlines
        self._interrupted: set[str] = set()
        self._streams: list[Response] = []
        self._ended = False
        self._refused = asyncio.Semaphore(0)
        self.closed = False
        self.headers = dict(client.session.headers)

    async def request(self, method: str, url: str, **options: Any) -> Response:
        if self._ended:
            self._refused.release()
            raise asyncio.CancelledError
        if self.closed:
            raise RuntimeError("Session is closed")
        target = URL(url)
        intake, is_watch = self._intakes.get(target.path), "watch" in target.query
        if intake is not None and not is_watch:
            target = target.update_query(fieldSelector=NOTHING)
        began, code = time.perf_counter(), NO_ANSWER
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                response = await self._client.request(method, target, **options)
            code = str(response.status)
        except (aiohttp.ClientError, TimeoutError) as error:
            self._note(target.path, f"{type(error).__name__}: {error}")
            if is_outage(error):
                self._excuse(intake)
            raise
        finally:
            self._client.metrics.observe_request(method.upper(), code, time.perf_counter() - began)
        self._note(target.path, f"HTTP {response.status}" if response.status >= 400 else None)
        if is_trouble(response.status):
            self._excuse(intake)
        if is_watch:
            stream = self._stream(response, intake)
            self._streams = [stream for stream in self._streams if not stream.closed] + [stream]
            return stream
        # Compare after kopf's version is fixed, so that the compared list is at least as new.
        if intake is not None and response.status == 200:
            self._listed(intake.resource)
        return response

    def _stream(self, response: aiohttp.ClientResponse, intake: Intake[Any] | None) -> Response:
        if intake is None or response.status != 200:
            return response
        self._deadlines.expect(intake.resource, PROGRESS_SECONDS)
        self._comparisons.watch_opened(intake.resource)
        return WatchResponse(response, intake.from_line, partial(self._deadlines.progress, intake.resource))

    def _excuse(self, intake: Intake[Any] | None) -> None:
        # Without an intake it was discovery, which all of them need.
        excused = self._intakes.values() if intake is None else [intake]
        self._deadlines.excuse(*(intake.resource for intake in excused))

    def _note(self, path: str, error: str | None) -> None:
        """Note an interruption, and log when it begins and ends; kopf would log every try."""
        if error is not None and path in self._intakes:
            self._comparisons.watch_interrupted(self._intakes[path].resource)
        if error is None and path in self._interrupted:
            self._interrupted.discard(path)
            log.info("Watching resumed", extra={"path": path})
        elif error is not None and path not in self._interrupted:
            self._interrupted.add(path)
            log.warning("Watching was interrupted", extra={"path": path, "err": error})

    async def end(self) -> None:
        """Close the streams, and cancel the tasks that make further requests: the watchers."""
        self._ended = True
        streams = [stream for stream in self._streams if not stream.closed]
        for stream in streams:
            stream.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                for _ in streams:
                    await self._refused.acquire()

    async def close(self) -> None:
        """Close for kopf; the client keeps its session."""
        self.closed = True
        # kopf itself would close aiohttp's own responses only.
        for stream in self._streams:
            stream.close()
