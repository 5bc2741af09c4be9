"""Attempts with extenders, decided again: they search when they did in the trace, and get the recorded answers.

AskExtenders ──► WAITS ──Search──► it searches the nodes as they are ──► WAITS ──ExtenderAnswer──► … ──► Decided
                   └──GiveUp──► cancelled
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar

from scheduler.api.pods.pod import Pod
from scheduler.engine.engine import Engine
from scheduler.extenders.chain import FilterVerdict
from scheduler.extenders.decision import AttemptWithExtenders, DecisionWithExtenders, ExtendedAlgorithm
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.extenders import ExtenderError, Overtaken
from scheduler.framework.preemption.dry_run import Victims
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Jobs
from scheduler.replay.trace.extender_answers import (
    Agreed,
    Failed,
    Filtered,
    Rated,
    WrittenAnswer,
    verdict_of,
    victims_of,
)
from scheduler.replay.trace.trace_time import turns
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable

S = TypeVar("S", Filtered, Rated, Agreed)


class OtherWay(Exception):
    """The attempt asks something else than the recorded one did, so that the recorded answers do not fit."""


class ReplayedAttempt:
    """One attempt, in a task of its own. It searches and gets answers when the trace says so."""

    def __init__(self, engine: Engine, framework: Framework, number: int, metrics: Metrics, jobs: Jobs) -> None:
        self.framework, self.number = framework, number
        self.pod: Pod | None = None
        """As it was when it searched last; None before that."""
        self.start = 0
        """The start of that search, if it looked at a part of the nodes."""
        self.outcome: DecisionWithExtenders | Exception = OtherWay("it asks its extenders what they were not asked")
        self._engine = engine
        self._searches: asyncio.Queue[tuple[Pod, int]] = asyncio.Queue()
        self._answers: asyncio.Queue[WrittenAnswer] = asyncio.Queue()
        self._jobs = jobs
        self._task = jobs.start("decide with extenders", self._run(metrics))

    async def search(self, pod: Pod, start: int) -> None:
        self._searches.put_nowait((pod, start))
        await turns()

    async def answer(self, answer: WrittenAnswer) -> None:
        self._answers.put_nowait(answer)
        await turns()

    def end(self) -> None:
        self._jobs.cancel(self._task)

    async def _run(self, metrics: Metrics) -> None:
        table = self._engine.cache.table
        algorithm = ExtendedAlgorithm(self._engine.algorithm, table, self._ready, metrics)
        conversation = partial(_Conversation, self._answers, table)
        try:
            self.outcome = await algorithm.schedule(
                AttemptWithExtenders(self.framework, conversation, self._newest, self._state)
            )
        except Exception as error:  # noqa: BLE001  an exception of a plugin is the outcome of the attempt
            self.outcome = error

    async def _ready(self) -> None:
        self.pod, self.start = await self._searches.get()
        self._engine.algorithm.next_start = self.start

    def _newest(self) -> Pod:
        assert self.pod is not None, "called when it is ready"
        return self.pod

    def _state(self) -> CycleState:
        state = CycleState()
        state.attempt = self.number
        return state


class _Conversation:
    """Implements scheduler.extenders.conversation.Conversation with the recorded answers."""

    def __init__(self, answers: "asyncio.Queue[WrittenAnswer]", table: NodeTable, pod: Pod) -> None:
        self._answers = answers
        self._table = table
        self.pod = pod

    async def filter(self, names: Sequence[str]) -> FilterVerdict:
        return verdict_of(await self._next(Filtered), names)

    async def prioritize(self, names: Sequence[str]) -> Mapping[str, int]:
        return {name: score for score, names in (await self._next(Rated)).scores for name in names}

    async def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        return victims_of(await self._next(Agreed), self._table)

    async def _next(self, kind: type[S]) -> S:
        answer = await self._answers.get()
        if isinstance(answer, Failed):
            raise Overtaken(answer.message) if answer.is_overtaken else ExtenderError(answer.message)
        if not isinstance(answer, kind):
            raise OtherWay("it asks its extenders something else than they were asked")
        return answer
