"""Chooses a node for a pod with extenders: the steps of `Algorithm`, with waits in between.

    search ─► extenders filter ─► extenders rate ─► search again among those ─► score, choose
       │ no node      │ none left                          │ none left
       ▼              ▼                                     ▼
    PostFilter ◄── search again                         from the beginning, MAX_ROUNDS times
       └─► extenders choose among the candidates

Each search is synchronous, on the live tables; while extenders answer, other pods are placed and nodes change. So only
the names of nodes in an answer are used: the plugins run again on these nodes in the step that places the pod. A node
that no longer fits is left out; if none is left, the answer is outdated, and the extenders are asked again.

Rule: pkg/scheduler/schedule_one.go at v1.36.3 (findNodesThatFitPod, evaluateNominatedNode, prioritizeNodes).
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import (
    Algorithm,
    Placed,
    Search,
    Unplaced,
    may_make_room,
    room_made,
    room_not_made,
    unplaced_by,
)
from scheduler.extenders.chain import FilterVerdict
from scheduler.extenders.conversation import Conversation
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import NO_NODES, Diagnosis
from scheduler.framework.errors import PluginError, SchedulerError
from scheduler.framework.extenders import ExtenderError, Overtaken
from scheduler.framework.nodes.nodes import Rows
from scheduler.framework.status import Status
from scheduler.process.metrics import Metrics
from scheduler.runtime.framework import EXTENDER, Framework
from scheduler.state.nodes.node_table import NodeTable

MAX_ROUNDS: Final = 3
"""Rounds of extender calls in one attempt, if the nodes change each time. Then the pod backs off."""

_logger = logging.getLogger(__name__)


class AttemptWithExtenders(NamedTuple):
    """One attempt for one pod."""

    framework: Framework
    conversation: Callable[[Pod], Conversation]
    """Starts to call the extenders for a version of the pod."""
    newest: Callable[[], Pod]
    """Returns the newest version of the pod. Raises SchedulerError once it need not be placed any more."""
    state: Callable[[], CycleState]
    """Makes a new state: each search has one of its own."""


class DecisionWithExtenders(NamedTuple):
    """A decision, valid until the next await."""

    state: CycleState
    pod: Pod
    """The version of the pod that was decided about."""
    decision: Placed | Unplaced


class ExtendedAlgorithm:
    """Algorithm.schedule with extenders."""

    def __init__(
        self,
        algorithm: Algorithm,
        table: NodeTable,
        ready: Callable[[], Awaitable[None]],
        metrics: Metrics,
    ) -> None:
        """`ready` returns when decisions may be made."""
        self._algorithm = algorithm
        self._table = table
        self._ready = ready
        self._overtaken = metrics.extender_answers_overtaken

    async def schedule(self, attempt: AttemptWithExtenders) -> DecisionWithExtenders:
        """Choose a node, or say why there is none. Raises SchedulerError."""
        for _ in range(MAX_ROUNDS):
            try:
                return await self._round(attempt)
            except Overtaken as error:
                self._overtaken.inc()
                reason = str(error)
        raise SchedulerError(f"extenders were asked {MAX_ROUNDS} times, and each time {reason}")

    async def _round(self, attempt: AttemptWithExtenders) -> DecisionWithExtenders:
        state, pod, search = await self._search(attempt)
        if search is None:
            return DecisionWithExtenders(state, pod, Unplaced(NO_NODES))
        question = attempt.conversation(pod)
        refusals: dict[str, Status] = {}
        if search.is_by_nomination:
            verdict = await self._ask_about_nomination(question)
            if verdict is not None and verdict.passed:
                return await self._choose(attempt, question, verdict)
            if verdict is not None:
                refusals |= verdict.refusals
            state, pod, search = await self._search(attempt, nominated_first=False)
        if search is None or len(search.feasible) == 0:
            return await self._unplaced(attempt.framework, state, pod, search, question)
        names = self._table.names()
        verdict = await question.filter([names[row] for row in search.feasible.tolist()])
        if verdict.passed:
            return await self._choose(attempt, question, verdict)
        refusals |= verdict.refusals
        return await self._refuse(attempt, question, verdict, refusals)

    async def _search(
        self, attempt: AttemptWithExtenders, *, nominated_first: bool = True
    ) -> tuple[CycleState, Pod, Search | None]:
        """Search on the live tables once decisions may be made; None if there are no nodes."""
        await self._ready()
        pod, state = attempt.newest(), attempt.state()
        if self._table.count == 0:
            return state, pod, None
        return state, pod, self._algorithm.search(attempt.framework, state, pod, nominated_first=nominated_first)

    async def _ask_about_nomination(self, question: Conversation) -> FilterVerdict | None:
        """Ask extenders about the nominated node; None if one fails: other nodes may fit."""
        name = question.pod.nominated_node_name
        try:
            return await question.filter([name])
        except ExtenderError as error:
            fields = {"pod": str(question.pod), "node": name, "err": str(error)}
            _logger.error("Evaluation failed on nominated node", extra=fields)
            return None

    async def _choose(
        self, attempt: AttemptWithExtenders, question: Conversation, verdict: FilterVerdict
    ) -> DecisionWithExtenders:
        """Take the best of the nodes that the extenders have left. Raises Overtaken if none of them is left."""
        scores: Mapping[str, int] = await question.prioritize(verdict.passed) if len(verdict.passed) > 1 else {}
        await self._ready()
        pod, state, table = attempt.newest(), attempt.state(), self._table
        if pod.spec != question.pod.spec or pod.labels != question.pod.labels:
            raise Overtaken("the pod changed meanwhile")
        only = np.zeros(table.size, np.bool_)
        only[table.rows_of(verdict.passed)] = True
        search = self._algorithm.search(attempt.framework, state, pod, nominated_first=False, only=only)
        feasible = search.feasible
        if len(feasible) == 0:
            raise Overtaken("no node that they left was free any more")
        if len(feasible) > 1:
            best = self._best(attempt.framework, state, pod, feasible, scores)
            row = self._algorithm.select(best, pod, state.attempt)
        else:
            row = int(feasible[0])
        return DecisionWithExtenders(state, pod, Placed(table.names()[row], table.count, len(verdict.passed)))

    def _best(
        self, framework: Framework, state: CycleState, pod: Pod, feasible: Rows, scores: Mapping[str, int]
    ) -> Sequence[int] | Rows:
        total = framework.run_score(state, pod, feasible).total
        if scores:
            names = self._table.names()
            named = [names[row] for row in feasible.tolist()]
            total = total + np.fromiter(map(scores.get, named, repeat(0)), np.int64, len(named))
        best: Rows = feasible[total == total.max()]
        return best

    async def _refuse(
        self, attempt: AttemptWithExtenders, question: Conversation, verdict: FilterVerdict, refusals: dict[str, Status]
    ) -> DecisionWithExtenders:
        """Diagnose why no node is left: the current reasons of plugins, and those of extenders."""
        state, pod, search = await self._search(attempt, nominated_first=False)
        if search is None or search.outcome is None:
            return await self._unplaced(attempt.framework, state, pod, search, question)
        names = self._table.names()
        asked = frozenset(verdict.asked)
        rest = [row for row in search.feasible.tolist() if names[row] in asked]
        self._algorithm.refuse(state, pod, search, refusals, np.array(rest, np.intp))
        search.diagnosis.unschedulable_plugins.add(EXTENDER)
        return await self._unplaced(attempt.framework, state, pod, search, question)

    async def _unplaced(
        self, framework: Framework, state: CycleState, pod: Pod, search: Search | None, question: Conversation
    ) -> DecisionWithExtenders:
        if search is None:
            return DecisionWithExtenders(state, pod, Unplaced(NO_NODES))
        nominated: str | None = ""
        if may_make_room(framework, search.diagnosis):
            nominated = await self._make_room(framework, state, pod, search.diagnosis, question)
        return DecisionWithExtenders(state, pod, unplaced_by(search.diagnosis, nominated))

    async def _make_room(
        self, framework: Framework, state: CycleState, pod: Pod, diagnosis: Diagnosis, question: Conversation
    ) -> str | None:
        """Run PostFilter and return the new nomination. Raises Overtaken."""
        try:
            result, status = await framework.post_filter.run_with_extenders(state, pod, diagnosis, question)
        except PluginError as error:
            room_not_made(framework, pod, diagnosis, error)
            return None
        return room_made(diagnosis, result, status)
