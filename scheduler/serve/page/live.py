"""Live updates for all readers: everything for a new one, then changes once a second.

    a reader comes ─► hello, all nodes, figures, decisions, queue ─► what changed meanwhile ─► with the others
    every second   ─► records ─► figures ─► (any reader yet) ─► nodes, queue, decisions that changed ─► all readers

A message is made once for all readers. Each step holds the event loop for 3 ms at most, and then others have their
turn; without readers a second costs a look at what was decided in it.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Final

from scheduler.engine.engine import Engine
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.serve.page.about import About
from scheduler.serve.page.decisions import DecisionPicture
from scheduler.serve.page.figures import Figures
from scheduler.serve.page.messages import BEAT, event
from scheduler.serve.page.nodes import NodeReader
from scheduler.serve.page.queues import QueuePicture
from scheduler.serve.page.shares import ShareHistory
from scheduler.serve.port.answers import Answer
from scheduler.serve.port.feed import Feed

SECONDS: Final = 1.0
"""Between two looks."""

LATE_SECONDS: Final = 30.0
"""After which a look takes too long."""

QUEUE_LOOKS: Final = 2
"""The queue is looked at every second time: it costs most."""

MAX_WAITING_BYTES: Final = 4 << 20
"""For one reader: a minute of a busy cluster of 5,000 nodes."""

ROUNDS: Final = 3
"""So often all nodes are sent to a new reader alone, if too many change meanwhile; after that they are sent to all
readers."""

EVENT_STREAM: Final = "text/event-stream"


class Live:
    """The page `live`, and its updates."""

    def __init__(self, engine: Engine, metrics: Metrics, about: About, epoch: float) -> None:
        """`epoch`: when the queue's clock was 0, in seconds since 1970."""
        self._engine = engine
        self._about = about
        self._table = engine.cache.table
        self._nodes = NodeReader(self._table)
        self._queues = QueuePicture(engine, epoch)
        self._decisions = DecisionPicture(engine.records, engine.stream, engine.pods)
        self._figures = Figures(metrics, engine.queue.pending_counts)
        self.shares = ShareHistory(engine.stream)
        self.readers: set[Feed] = set()
        self._sent_about = about.document()
        self._looks = 0
        self._is_missed = False
        """Whether some reader may have missed changes of nodes: all are sent to all readers at the next look."""

    async def __call__(self, _query: Mapping[str, str]) -> Answer:
        return Answer(200, self._stream(), EVENT_STREAM, goes_on=True, headers=self._about.headers)

    def start(self, tasks: Tasks) -> None:
        """Look every second. A failure costs only the readers their connections."""
        tasks.repeat("page", LATE_SECONDS, SECONDS, self.look)

    async def look(self) -> None:
        """Send the changes to all readers."""
        try:
            await self._look()
        except BaseException:
            # They may have missed something: they come back, and get everything.
            for reader in tuple(self.readers):
                reader.end()
            raise

    async def _look(self) -> None:
        looked = self._decisions.look()
        figures = self._figures.sample(looked.deciding, looked.binding)
        shares = await self.shares.look()
        self._looks += 1
        if not self.readers:
            return
        self._send(figures)
        if looked.message:
            self._send(looked.message)
        if shares:
            self._send(shares)
        about = self._about.document()
        if about != self._sent_about:
            self._sent_about = about
            self._send(event("about", about))
        await asyncio.sleep(0)
        changes = self._nodes.changes()
        is_missed, self._is_missed = self._is_missed, False
        for message in self._nodes.whole() if changes is None or is_missed else changes:
            self._send(message)
            await asyncio.sleep(0)
        if self._looks % QUEUE_LOOKS == 0:
            await self._look_at_the_queue()

    def _send(self, message: bytes) -> None:
        for reader in tuple(self.readers):
            reader.push(message)
            if reader.is_over:
                self.readers.discard(reader)

    async def _look_at_the_queue(self) -> None:
        for message in await self._queues.look():
            self._send(message)

    async def _stream(self) -> AsyncGenerator[bytes, None]:
        yield event("hello", self._about.document())
        await self._look_at_the_queue()
        reader = NodeReader(self._table)
        for _ in range(ROUNDS):
            for message in reader.whole():
                yield message
                await asyncio.sleep(0)
            changes = reader.changes()
            if changes is not None:
                break
        self._is_missed |= changes is None
        feed = Feed(BEAT, MAX_WAITING_BYTES)
        self.readers.add(feed)
        try:
            for message in changes or ():
                feed.push(message)
                await asyncio.sleep(0)
            for message in self._others():
                feed.push(message)
            async for chunk in feed.chunks():
                yield chunk
        finally:
            self.readers.discard(feed)

    def _others(self) -> Iterator[bytes]:
        """The messages for a new reader, except the nodes."""
        yield self._figures.history()
        yield self._decisions.latest()
        yield from self._queues.messages.values()
        if self.shares.shares:
            yield self.shares.message
        yield event("ready", {})
