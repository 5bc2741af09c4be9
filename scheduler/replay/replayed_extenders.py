"""Attempts in which extenders are asked, decided once more: they search when they did, and hear what they heard.

asking ──► WAITS ──search──► it searches, in the state as it is ──► WAITS ──extenders──► it goes on ──► … ──► decided
             └──gave up──► nothing comes of it
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar

from scheduler.api.pod import Pod
from scheduler.cycle.engine import Engine
from scheduler.cycle.with_extenders.algorithm import Attempt, Decided, ExtendedAlgorithm
from scheduler.extenders.chain import FilterVerdict
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.extenders import Victims
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Jobs
from scheduler.replay.trace.extender_answers import (
    Agreed,
    Failed,
    Filtered,
    Rated,
    WrittenAnswer,
    error_of,
    scores_of,
    verdict_of,
    victims_of,
)
from scheduler.replay.trace.trace_time import turns
from scheduler.runtime.framework import Framework
from scheduler.state.node_table import NodeTable

S = TypeVar("S", Filtered, Rated, Agreed)


class OtherWay(Exception):
    """The attempt goes another way than the recorded one, so that what the extenders said does not fit."""


class ReplayedAttempt:
    """One of them."""

    def __init__(self, engine: Engine, framework: Framework, number: int) -> None:
        self.framework, self.number = framework, number
        self.pod: Pod | None = None
        """As it was when it searched last; None before that."""
        self.start = 0
        """Where that search began, if it looked at a part of the nodes."""
        self.outcome: Decided | Exception = OtherWay("it asks its extenders what they were not asked")
        self._engine = engine
        self._searches: asyncio.Queue[tuple[Pod, int]] = asyncio.Queue()
        self._answers: asyncio.Queue[WrittenAnswer] = asyncio.Queue()

    async def run(self, metrics: Metrics) -> None:
        """Decide, as far as the trace goes."""
        table = self._engine.cache.table
        algorithm = ExtendedAlgorithm(self._engine.algorithm, table, self._ready, metrics)
        conversation = partial(_Conversation, self._answers, table)
        try:
            self.outcome = await algorithm.schedule(Attempt(self.framework, conversation, self._newest, self._state))
        except Exception as error:  # noqa: BLE001  whatever a plugin raises is what the attempt came to
            self.outcome = error

    async def search(self, pod: Pod, start: int) -> None:
        """Let it search now."""
        self._searches.put_nowait((pod, start))
        await turns()

    async def hear(self, answer: WrittenAnswer) -> None:
        """Let it go on with an answer."""
        self._answers.put_nowait(answer)
        await turns()

    async def _ready(self) -> None:
        self.pod, self.start = await self._searches.get()
        self._engine.algorithm.next_start = self.start

    def _newest(self) -> Pod:
        assert self.pod is not None, "asked when it is ready"
        return self.pod

    def _state(self) -> CycleState:
        state = CycleState()
        state.attempt = self.number
        return state


class ReplayedAttempts:
    """Those under way."""

    def __init__(self, engine: Engine, jobs: Jobs, metrics: Metrics) -> None:
        self._engine = engine
        self._jobs = jobs
        self._metrics = metrics
        self._all: dict[str, tuple[ReplayedAttempt, asyncio.Task[None]]] = {}

    def begin(self, uid: str, framework: Framework, number: int) -> None:
        """Begin one, instead of any other for the pod."""
        self.take(uid)
        attempt = ReplayedAttempt(self._engine, framework, number)
        self._all[uid] = attempt, self._jobs.start(f"decide about {uid}", attempt.run(self._metrics))

    def get(self, uid: str) -> ReplayedAttempt | None:
        """The attempt for a pod; None if it had begun before the recording."""
        found = self._all.get(uid)
        return None if found is None else found[0]

    def take(self, uid: str) -> ReplayedAttempt | None:
        """End the attempt for a pod, and return it with what it has come to."""
        found = self._all.pop(uid, None)
        if found is None:
            return None
        attempt, job = found
        self._jobs.cancel(job)  # if it has not ended
        return attempt


class _Conversation:
    """Implements scheduler.extenders.conversation.Conversation: what was said then."""

    def __init__(self, answers: "asyncio.Queue[WrittenAnswer]", table: NodeTable, pod: Pod) -> None:
        self._answers = answers
        self._table = table
        self.pod = pod

    async def filter(self, names: Sequence[str]) -> FilterVerdict:
        return verdict_of(await self._next(Filtered), names)

    async def prioritize(self, names: Sequence[str]) -> Mapping[str, int]:
        return scores_of(await self._next(Rated))

    async def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        return victims_of(await self._next(Agreed), self._table)

    async def _next(self, kind: type[S]) -> S:
        answer = await self._answers.get()
        if isinstance(answer, Failed):
            raise error_of(answer)
        if not isinstance(answer, kind):
            raise OtherWay("it asks its extenders something else than they were asked")
        return answer
