"""A round: nodes and pods under faults, an end of the faults, quiet, and the verdict.

nodes ──► pods + faults (about 4 s) ──► heal ──► quiet? ──yes──► nothing left over? ──► clear up
                                                   └──no, for longer than PATIENCE_SECONDS──► violation
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final

from tests.chaos import load
from tests.chaos.faults import make_budget, strike
from tests.chaos.judge import Judge, is_going, node_of
from tests.chaos.leftovers import Baseline, Watchdog
from tests.chaos.load import HOSTILE, NAMESPACE
from tests.chaos.persistence import insist, insist_on_all
from tests.chaos.plan import Plan
from tests.chaos.proxy import ended
from tests.chaos.record import Record
from tests.chaos.stage import Stage
from tests.chaos.verdict import (
    bound_once,
    disputes,
    is_ours,
    known_overcommits,
    repeated_blindly,
    untrue_conditions,
    untrue_waits,
)
from tests.controlplane.client import Objects

BATCH_SECONDS: Final = 0.5
"""Between the batches of pods."""

PATIENCE_SECONDS: Final = 60.0
"""How long a scheduler may take to put everything right when the faults are over. Usual is 2; a busy machine takes
longer, and only a violation takes all of it."""

POLL_SECONDS: Final = 0.3

MOST_TOLD: Final = 10
"""Pods that wait without a reason, of which a round tells."""


@dataclass(slots=True)
class Outcome:
    """What came of a round."""

    plan: Plan
    violations: list[str] = field(default_factory=list)
    pods: int = 0
    bound: int = 0
    bindings: int = 0
    """Requests, repeated ones too."""
    lost_leases: int = 0
    """How often a leader ended because it could not renew, or was robbed."""
    treated: Counter[str] = field(default_factory=Counter)
    quiet_after: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        faults = " ".join(sorted({fault.kind for fault in self.plan.faults}))
        return (
            f"{self.bound} of {self.pods} pods bound by {self.bindings} requests, "
            f"{sum(self.treated.values())} answers spoilt, {self.lost_leases} leaders deposed, "
            f"quiet after {self.quiet_after:.1f} s, "
            f"{self.seconds:.1f} s in all; {faults}"
        )


@dataclass(slots=True)
class _State:
    """The API server's objects at one moment."""

    nodes: Objects
    pods: Objects
    budgets: Objects

    @property
    def judge(self) -> Judge:
        return Judge(self.nodes, self.pods, self.budgets)


class Rounds:
    """Plays rounds on one stage, one after the other."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._baselines: dict[str, Baseline] = {}
        self._watchdogs = [Watchdog(replica, self._baselines) for replica in stage.replicas]

    async def begin(self) -> list[str]:
        """Note what each scheduler has before the first round; return what is wrong already."""
        await make_budget(self._stage)
        problems, deadline = await self._leaders(), time.monotonic() + PATIENCE_SECONDS
        while not problems:
            self._baselines.clear()
            await self._look_after_all_once()  # the first look sets the baselines, the second must find the same
            if not (found := await self._look_after_all_once()):
                break
            problems = found if time.monotonic() > deadline else []
        return problems

    async def _look_after_all_once(self) -> list[str]:
        judge = (await self._state()).judge
        return [problem for watchdog in self._watchdogs for problem in await watchdog.leftovers(judge)]

    async def play(self, plan: Plan) -> Outcome:
        """Play a round to its end, whatever comes of it."""
        started = time.monotonic()
        outcome, record = Outcome(plan), Record()
        for replica in self._stage.replicas:
            replica.proxy.record, replica.proxy.treated = record, outcome.treated
            replica.proxy.trouble.rng = plan.rng(replica.name)
        seen: dict[str, set[str]] = {}
        beside = [asyncio.create_task(work) for work in (self._observe(seen), self._keep_running())]
        try:
            await self._make_trouble(plan)
            healed = time.monotonic()
            state, violations = await self._settle()
            outcome.quiet_after = time.monotonic() - healed
            violations += self._judge(state, record, seen)
            violations += await self._leaders()
            violations += await self._look_after()
            await self._clear_up()
        finally:
            await ended(*beside)
        ours = [pod for pod in state.pods if is_ours(pod)]
        outcome.pods, outcome.bound = len(ours), sum(bool(node_of(pod)) for pod in ours)
        outcome.bindings, outcome.violations = len(record.posts), violations
        outcome.lost_leases = sum(replica.forget_losses() for replica in self._stage.replicas)
        outcome.seconds = time.monotonic() - started
        return outcome

    async def _make_trouble(self, plan: Plan) -> None:
        """Nodes first, then pods and faults; return when all is healed."""
        await insist_on_all([partial(self._stage.api.create, node) for node in load.nodes(plan)])
        async with asyncio.TaskGroup() as group:
            group.create_task(self._make_pods(plan))
            for fault in plan.faults:
                group.create_task(strike(self._stage, fault), name=str(fault))
        await self._heal()

    def _judge(self, state: _State, record: Record, seen: dict[str, set[str]]) -> list[str]:
        return [
            *bound_once(record, state.pods, seen),
            *repeated_blindly(record),
            *disputes(record),
            *known_overcommits(record, state.nodes, state.pods),
            *untrue_conditions(state.pods),
        ]

    async def _make_pods(self, plan: Plan) -> None:
        for batch in load.batches(plan):
            await insist_on_all([partial(self._stage.api.create, pod) for pod in batch])
            await asyncio.sleep(BATCH_SECONDS)

    async def _observe(self, seen: dict[str, set[str]]) -> None:
        """Look again and again where pods are; UID → nodes."""
        while True:
            for pod in await insist(lambda: self._stage.api.list("Pod", NAMESPACE)) or ():
                if node := node_of(pod):
                    seen.setdefault(pod["metadata"]["uid"], set()).add(node)
            await asyncio.sleep(POLL_SECONDS * 3)

    async def _keep_running(self) -> None:
        """Start again whoever has ended by itself."""
        while True:
            for replica in self._stage.replicas:
                await replica.mend()
            await asyncio.sleep(POLL_SECONDS)

    async def _leaders(self) -> list[str]:
        """Exactly one leads, once all is quiet."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            leading = [watchdog.replica.name for watchdog in self._watchdogs if await watchdog.leads()]
            if len(leading) == 1:
                return []
            if time.monotonic() > deadline:
                return [f"of the replicas these lead: {leading}"]
            await asyncio.sleep(POLL_SECONDS)

    async def _heal(self) -> None:
        self._stage.clock.step(0)
        for replica in self._stage.replicas:
            replica.proxy.heal()
        for replica in self._stage.replicas:
            await replica.started()
        await self._finish_deletions()

    async def _finish_deletions(self) -> None:
        """Ask again for deletions that an API server began before it was killed: on a real node the kubelet does."""
        pods = await insist(lambda: self._stage.api.list("Pod", NAMESPACE)) or ()
        names = [pod["metadata"]["name"] for pod in pods if is_going(pod)]
        await insist_on_all([partial(self._stage.api.delete, "Pod", name, NAMESPACE, 0) for name in names])

    async def _settle(self) -> tuple[_State, list[str]]:
        """Wait until whoever waits does so for a true reason, and return the violations that stay."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        before = -1
        while True:
            state, late = await self._state(), time.monotonic() > deadline
            waiting = sum(not node_of(pod) for pod in state.pods)
            if late:
                return state, [*islice(untrue_waits(state.judge, state.pods), MOST_TOLD)]
            # Not while pods are being bound: the judge takes its time, and the proxies are in the same event loop.
            if waiting == before and next(untrue_waits(state.judge, state.pods), None) is None:
                return state, []
            before = waiting
            await asyncio.sleep(POLL_SECONDS)

    async def _look_after(self) -> list[str]:
        found = await asyncio.gather(*map(self._look_after_one, self._watchdogs))
        return [problem for problems in found for problem in problems]

    async def _look_after_one(self, watchdog: Watchdog) -> list[str]:
        replica, deadline = watchdog.replica, time.monotonic() + PATIENCE_SECONDS
        while found := await watchdog.leftovers((await self._state()).judge):
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(POLL_SECONDS)
        problems = [*found, *watchdog.alarms(), *replica.problems]
        replica.problems.clear()
        return [f"{replica.name}: {problem}" for problem in problems]

    async def _state(self) -> _State:
        api = self._stage.api
        nodes, pods = await api.list("Node"), await api.list("Pod", NAMESPACE)
        return _State(nodes, pods, await api.list("example.com/v1/Budget", NAMESPACE))

    async def _clear_up(self) -> None:
        """Delete everything: the next round begins at once, with the same names."""
        api = self._stage.api
        await api.delete_all("Pod", HOSTILE)
        await api.delete_all("Pod", NAMESPACE)
        await api.delete_all("Node")
