"""events.k8s.io/v1 Events for the owners of pods. Best effort: dropped under pressure, never waited for.

As in client-go's tools/events, a repeated Event becomes a series: the second occurrence starts it by a patch, further
ones are only counted, and the count is patched every few minutes and when the series ends. Unlike there, an Event with
another note is another Event, and a pod that changed meanwhile is the same pod.

kube-scheduler sends each Event at once, however many are in flight. Here bindings come first, as a late pod is worse
than a late Event:

    recorded ──no bindings in flight──► up to MIN_IN_FLIGHT at once
        └─────bindings in flight──► waits ──PATIENCE is over, or too many wait──► more and more at once
"""

import asyncio
import logging
import socket
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import msgspec

from scheduler.api.wording.text import to_json
from scheduler.kube.http.client import Client, Reply
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import Meaning, Outcome, RetryPolicy, meaning_of
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks

log = logging.getLogger(__name__)

MAX_WAITING: Final = 10_000
"""Unsent Events; more are dropped."""

MIN_IN_FLIGHT: Final = 8
"""Concurrent Events while nothing is being bound."""

MAX_IN_FLIGHT: Final = 100
"""The same once the oldest has waited for twice `PATIENCE`, or the queue is full: as many as bindings."""

PATIENCE: Final = 10.0
"""Seconds that an Event waits at most while pods are being bound."""

LOOK_SECONDS: Final = 0.05
"""How often to check whether bindings are still in flight."""

MAX_INSTANCE: Final = 128
"""Characters of `reportingInstance`."""

SERIES_SECONDS: Final = 360.0
"""A series ends after this time without a repetition (client-go: finishTime)."""

REFRESH_SECONDS: Final = 300.0
"""How often the count of an ongoing series is sent. client-go's 30 minutes are long for a reader."""

MAX_SERIES: Final = 4096
"""Events remembered to recognise repetitions; the oldest are forgotten first."""

RETRIES: Final = RetryPolicy(first=0.1, limit=10.0, tries=12)
"""For one Event; limit and tries are client-go's."""

TURN_SECONDS: Final = 60.0
"""After this time a sender leaves further Events to a new one."""

MAX_SECONDS: Final = 900.0
"""For one sender: its turn, and the last Event with all its retries."""

Key: TypeAlias = tuple[str, str, str, str, str, str]
"""UID of what it is about, controller, type, reason, action, note."""


class Reference(NamedTuple):
    """An object that an Event is about. Names and UIDs need no escaping."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str


class _Event(msgspec.Struct, gc=False):
    """An Event as created, and how often it was repeated since."""

    namespace: str
    name: str
    head: bytes
    """Its JSON up to the series."""
    count: int
    last_seen: float
    sent_count: int
    sent_at: float


class _Sending(NamedTuple):
    event: _Event
    patch: bool
    """Patch the series of an existing Event, rather than create it."""
    since: float
    """When it was recorded, by the recorder's clock."""


class Events:
    """Sends Events in the background, from `start` to `close`; see `recorder.py` for what they say."""

    def __init__(
        self,
        client: Client,
        metrics: Metrics,
        tasks: Tasks,
        is_binding: Callable[[], bool],
        now: Callable[[], float] = time.time,
        hostname: str | None = None,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        """`is_binding`: whether bindings are in flight, which Events wait for. `now`: seconds since 1970."""
        limit = CallLimit(MAX_IN_FLIGHT)
        self._client = client
        self._metrics = metrics
        self._now = now
        self._hostname = hostname or socket.gethostname()
        self._create = Operation("POST", "events", limit, fenced=False)
        self._patch = Operation("PATCH", "events", limit, content_type="application/merge-patch+json", fenced=False)
        self._max_waiting = max_waiting
        self._waiting: deque[_Sending] = deque()
        self._known: OrderedDict[Key, _Event] = OrderedDict()
        self._last_stamp = 0
        """Nanoseconds since 1970, the suffix of an Event's name; unique."""
        self._is_binding = is_binding
        self._looking: asyncio.TimerHandle | None = None
        self._closing = False
        self._tasks = tasks
        self._jobs = tasks.jobs("event", MAX_SECONDS)
        self._ending_series: asyncio.Task[None] | None = None
        """Set while started."""

    def start(self) -> None:
        self._ending_series = self._tasks.start("end of event series", self._end_series_forever())
        self._add_senders()

    async def close(self, grace: float = 2.0) -> None:
        """Send waiting Events for at most `grace` seconds, and stop."""
        for event in self._known.values():
            self._send_series(event)
        if self._ending_series is None:
            return
        self._closing = True
        self._add_senders()
        try:
            async with asyncio.timeout(grace):
                await self._sent()
        except TimeoutError:
            self._dropped("shutdown", len(self._waiting))
        ending_series, self._ending_series = self._ending_series, None
        if self._looking is not None:
            self._looking.cancel()
        await self._tasks.cancel(ending_series)
        await self._jobs.finish(0)

    async def _sent(self) -> None:
        while self._jobs:
            await asyncio.wait(self._jobs)

    def record(self, key: Key, regarding: Reference) -> None:
        """Record an Event, or count a repetition. Never waits, never raises."""
        now = self._now()
        event = self._known.get(key)
        if event is None or now - event.last_seen > SERIES_SECONDS:
            event = self._new_event(key, regarding, now)
            if self._enqueue(event, patch=False):
                self._remember(key, event)
            return
        event.count += 1
        event.last_seen = now
        self._known.move_to_end(key)
        if event.count == 2 or now - event.sent_at >= REFRESH_SECONDS:
            self._send_series(event)

    def end_series(self) -> None:
        """Send the final count of ended series, and forget them."""
        ended = self._now() - SERIES_SECONDS
        while self._known:
            key, event = next(iter(self._known.items()))
            if event.last_seen > ended:
                return
            del self._known[key]
            self._send_series(event)

    def _remember(self, key: Key, event: _Event) -> None:
        self._known[key] = event
        self._known.move_to_end(key)
        if len(self._known) > MAX_SERIES:
            _, oldest = self._known.popitem(last=False)
            self._send_series(oldest)

    def _send_series(self, event: _Event) -> None:
        if event.count > event.sent_count and self._enqueue(event, patch=True):
            event.sent_count = event.count
            event.sent_at = event.last_seen

    def _enqueue(self, event: _Event, *, patch: bool) -> bool:
        if len(self._waiting) >= self._max_waiting:
            self._dropped("queue_full")
            return False
        self._waiting.append(_Sending(event, patch, self._now()))
        self._add_senders()
        return True

    def _add_senders(self) -> None:
        if self._ending_series is None:
            return
        while self._waiting and len(self._jobs) < self._allowed():
            self._jobs.start("send events", self._send_from(self._waiting.popleft()), self._sender_ended)
        if self._waiting and self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._looking = None
        self._add_senders()

    def _allowed(self) -> int:
        if self._closing:
            return MAX_IN_FLIGHT
        waited = self._now() - self._waiting[0].since if self._waiting else 0.0
        overdue = max(waited / PATIENCE, 2 * len(self._waiting) / self._max_waiting) - 1
        if overdue <= 0:
            return 0 if self._is_binding() else MIN_IN_FLIGHT
        return MIN_IN_FLIGHT + int((MAX_IN_FLIGHT - MIN_IN_FLIGHT) * min(overdue, 1.0))

    def _new_event(self, key: Key, regarding: Reference, now: float) -> _Event:
        _, controller, type_, reason, action, note = key
        instance = f"{controller}-{self._hostname}"[:MAX_INSTANCE]
        namespace = regarding.namespace or "default"
        self._last_stamp = max(self._last_stamp + 1, int(now * 1e6) * 1000)
        name = f"{regarding.name}.{self._last_stamp:x}"
        if len(name) > 253:
            name = str(uuid.uuid4())
        head = _HEAD % (name, namespace, _micro_time(now), controller, instance) + _REGARDING % regarding
        tail = _TAIL % (_encoded(type_), _encoded(reason), _encoded(action), to_json(note))
        return _Event(namespace, name, head.encode() + tail, 1, now, 1, now)

    async def _send_from(self, item: _Sending) -> None:
        """Send an Event, then waiting ones while this many senders are allowed."""
        loop = asyncio.get_running_loop()
        until = loop.time() + TURN_SECONDS
        while True:
            await self._send(item)
            if not self._waiting or len(self._jobs) > self._allowed() or loop.time() > until:
                return
            item = self._waiting.popleft()

    def _sender_ended(self, error: BaseException | None) -> None:
        if error is not None:
            self._dropped("failed")  # the one that it was sending
        self._add_senders()

    async def _end_series_forever(self) -> None:
        while True:
            await asyncio.sleep(SERIES_SECONDS / 6)
            self.end_series()

    async def _send(self, item: _Sending) -> None:
        """Send one Event, with retries; drop it if it is refused or fails too often."""
        event, patch, _ = item
        for failures in range(RETRIES.tries):
            outcome = await self._try(event, patch=patch)
            if outcome.ok or (outcome.status == 409 and not patch):
                return  # 409: created by the call whose answer was lost
            if outcome.status == 404 and patch:
                patch = False  # it expired: create it again, with its series
                continue
            if meaning_of(outcome) is Meaning.SETTLED:
                self._dropped("refused")
                return
            await asyncio.sleep(RETRIES.wait(failures, outcome.retry_after))
        self._dropped("unreachable")

    async def _try(self, event: _Event, *, patch: bool) -> Outcome:
        path = f"/apis/events.k8s.io/v1/namespaces/{event.namespace}/events"
        if patch:
            outcome = await self._client.attempt(self._patch, f"{path}/{event.name}", b"{%b}" % _series(event))
        else:
            series = b"," + _series(event) if event.count > 1 else b""
            outcome = await self._client.attempt(self._create, path, b"%b%b}" % (event.head, series))
        if not outcome.ok and outcome.status not in (404, 409) and isinstance(outcome, Reply):
            log.info("An Event was not accepted", extra={"event": event.name, "err": outcome.message})
        return outcome

    def _dropped(self, reason: str, count: int = 1) -> None:
        self._metrics.events_dropped.labels(reason).inc(count)


_HEAD = (
    '{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"%s","namespace":"%s"},"eventTime":"%s",'
    '"reportingController":"%s","reportingInstance":"%s"'
)
_REGARDING = (
    ',"regarding":{"apiVersion":"%s","kind":"%s","namespace":"%s","name":"%s","uid":"%s","resourceVersion":"%s"}'
)
_TAIL = b',"type":%b,"reason":%b,"action":%b,"note":%b'


_encoded = lru_cache(maxsize=64)(to_json)
"""Of the few words that Events of all pods have."""


def _series(event: _Event) -> bytes:
    return b'"series":{"count":%d,"lastObservedTime":"%b"}' % (event.count, _micro_time(event.last_seen).encode())


def _micro_time(seconds: float) -> str:
    second, micros = divmod(round(seconds * 1e6), 1_000_000)
    return f"{_whole_second(second)}.{micros:06}Z"


@lru_cache(maxsize=2)  # thousands of Events in one second
def _whole_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
