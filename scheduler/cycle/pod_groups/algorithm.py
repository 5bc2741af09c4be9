"""Decides about a group of pods at once: a what-if on the live tables, all of which is taken back.

    for each member:  schedule ─► assume ─► reserve ─► permit: does any plugin say that the group is complete?
    at the end:       unreserve, forget, in reverse order

A member sees those before it on their nodes. One that fits nowhere is left out: the others may be enough. One that
needs a preemption counts on its nominated node. Nothing awaits meanwhile, so nobody sees what is only assumed; it is
taken back whatever a plugin raises.

With placements, this is done in each of them: see `placements.py`.

Rule: podGroupSchedulingDefaultAlgorithm in pkg/scheduler/schedule_one_podgroup.go at v1.36.3.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TypeAlias

from scheduler.api.pod import Pod
from scheduler.cycle.algorithm import Algorithm, Placed, Unplaced, refused_by
from scheduler.cycle.failure import as_scheduler_error
from scheduler.cycle.pod_groups.decision import WAITING_FOR_PREEMPTION, GroupDecision, MemberOutcome
from scheduler.cycle.pod_groups.placements import decide_among_placements
from scheduler.cycle.pod_groups.preemption import preempt
from scheduler.framework.columns import BoolColumn
from scheduler.framework.cycle_state import CycleState, GroupCycleState
from scheduler.framework.errors import SchedulerError
from scheduler.framework.plugin import PermitWait
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code, Status
from scheduler.process.metrics import PLUGIN_METRICS_SAMPLE_PERCENT, Metrics
from scheduler.runtime.framework import Framework
from scheduler.state.cache import Cache
from scheduler.state.nominator import Nominator

ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"

Schedule: TypeAlias = Callable[[CycleState, Pod, int], Placed | Unplaced]
"""State, pod, and how often it was tried → a node, or why there is none. Raises PluginError."""

_logger = logging.getLogger(__name__)


class PodGroupAlgorithm:
    """Decides about groups. Has no state of its own but the choice of the cycles that time their plugins."""

    def __init__(
        self,
        algorithm: Algorithm,
        cache: Cache,
        nominator: Nominator,
        metrics: Metrics,
        *,
        uses_placements: bool,
        preempts: bool,
    ) -> None:
        """`uses_placements`: whether plugins are asked in which placements to try a group.

        `preempts`: whether pods are evicted for a group as a whole.
        """
        self._preempts = preempts
        self._algorithm = algorithm
        self._uses_placements = uses_placements
        self._cache = cache
        self._nominator = nominator
        self._duration = metrics.scheduling_algorithm_duration
        self._sampler = random.Random(0)  # chooses the cycles that time their plugins; no decision depends on it

    def decide(self, framework: Framework, members: Sequence[QueuedPod]) -> GroupDecision:
        """Decide about the members of one group, in this order. Tables are as before afterwards. Raises nothing."""
        with self._without_nominations(members):
            began = time.perf_counter()
            decision = self.simulate(framework, members, runs_post_filter=True)
            decision.seconds = time.perf_counter() - began
            if self._preempts and decision.code is Code.UNSCHEDULABLE:
                again = partial(self.simulate, framework, members, runs_post_filter=False)
                preempt(framework, decision, [queued.pod for queued in members], self._algorithm.table, again)
            return decision

    @contextmanager
    def _without_nominations(self, members: Sequence[QueuedPod]) -> Iterator[None]:
        """Let no member claim space for itself while all are decided about; then they are nominated as before."""
        nominated = [(each.pod, self._nominator.node_of(each.pod.uid)) for each in members]
        for pod, _ in nominated:
            self._nominator.delete(pod.uid)
        try:
            yield
        finally:
            for pod, node_name in nominated:
                if node_name:
                    self._nominator.add(pod, node_name)

    def simulate(self, framework: Framework, members: Sequence[QueuedPod], *, runs_post_filter: bool) -> GroupDecision:
        """The same; `runs_post_filter`: whether PostFilter runs for members that fit nowhere."""
        what_if = partial(self._decide_within, framework, members, runs_post_filter)
        if self._uses_placements:
            return decide_among_placements(framework, self._algorithm, members, what_if)
        return what_if(None)

    def _decide_within(
        self,
        framework: Framework,
        members: Sequence[QueuedPod],
        runs_post_filter: bool,
        placement: BoolColumn | None,
    ) -> GroupDecision:
        """Decide about the members among the rows of a placement, or all nodes."""
        schedule = partial(self._algorithm.schedule, framework, runs_post_filter=runs_post_filter, placement=placement)
        decision = GroupDecision()
        requires_preemption = False
        with self._cache.what_if(), ExitStack() as undo:
            for queued in members:
                outcome = self._decide_member(framework, queued, undo, schedule)
                decision.members.append(outcome)
                if isinstance(outcome.decision, SchedulerError):
                    text = f"failed to schedule other pod from a pod group: {outcome.decision}"
                    decision.status = Status(Code.ERROR, (text,))
                    decision.is_waiting_for_preemption = False
                    break
                requires_preemption |= outcome.requires_preemption
                if outcome.is_permitted and requires_preemption:
                    rejected = GroupDecision().status
                    assert rejected is not None, "a group is rejected until a plugin permits a member"
                    decision.status = Status(rejected.code, (*rejected.reasons, WAITING_FOR_PREEMPTION))
                    decision.is_waiting_for_preemption = True
                elif outcome.is_permitted:
                    decision.status = None
        return decision

    def _decide_member(
        self, framework: Framework, queued: QueuedPod, undo: ExitStack, schedule: Schedule
    ) -> MemberOutcome:
        """Decide about a member, and assume it on its node until `undo`."""
        started = time.perf_counter()
        state = GroupCycleState()
        state.record_plugin_metrics = self._sampler.randrange(100) < PLUGIN_METRICS_SAMPLE_PERCENT
        outcome = MemberOutcome(queued, state, SchedulerError("not decided"), started)
        try:
            self._schedule(outcome, schedule)
            if outcome.node_name:
                self._try_out(framework, outcome, undo)
        except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
            framework.faults.report(error, queued.pod)
            outcome.decision, outcome.node_name = as_scheduler_error(error), ""
        outcome.seconds = time.perf_counter() - started
        return outcome

    def _schedule(self, outcome: MemberOutcome, schedule: Schedule) -> None:
        queued, state = outcome.queued, outcome.state
        if self._cache.table.is_broken:
            self._cache.mend()
        try:
            decision = schedule(state, queued.pod, queued.attempts)
        finally:
            self._duration.observe(time.perf_counter() - outcome.started)
        outcome.decision = decision
        outcome.node_name = decision.node_name if isinstance(decision, Placed) else decision.nominated_node_name or ""

    def _try_out(self, framework: Framework, outcome: MemberOutcome, undo: ExitStack) -> None:
        """Assume a member on its node, run Reserve and Permit; take it back at once if they refuse, or raise."""
        pod = outcome.queued.pod.bound_to(outcome.node_name)
        with ExitStack() as of_member:
            of_member.enter_context(self._assumed(pod))
            of_member.callback(_unreserve, framework, outcome.state, pod, outcome.node_name)
            refusal = framework.run_reserve(outcome.state, pod, outcome.node_name)
            if refusal is None:
                holds, refusal = framework.run_permit(outcome.state, pod, outcome.node_name)
            if refusal is not None:
                outcome.decision, outcome.node_name = refused_by(refusal), ""
                return
            outcome.is_permitted = not holds
            outcome.permit_message = _waiting_for(list(holds.values()))
            undo.push(of_member.pop_all())

    @contextmanager
    def _assumed(self, assumed: Pod) -> Iterator[None]:
        """Count a pod on its node. Raises SchedulerError."""
        try:
            self._cache.assume(assumed)
        except ValueError as error:
            raise SchedulerError(str(error)) from error
        try:
            yield
        finally:
            self._cache.forget(assumed)


def _unreserve(framework: Framework, state: CycleState, pod: Pod, node_name: str) -> None:
    for problem in framework.run_unreserve(state, pod, node_name):
        _logger.error("Unreserve failed", extra={"pod": str(pod), "err": str(problem)})
        framework.faults.report(problem, pod)


def _waiting_for(holds: Sequence[PermitWait]) -> str:
    """Return what kube-scheduler says of a pod that waits at Permit: what the last plugin said, and its own words."""
    if not holds:
        return ""
    return f"{holds[-1].message}, {ASKED_TO_WAIT}" if holds[-1].message else ASKED_TO_WAIT
