"""The pod group cycle: a group is popped as one entry and tried at once.

    queue.pop ─► order ─► skip ─► decide ─► submit ─┬─► with a node: loop.place
                                                    └─► all others: failure, back to the group ─► queue.group_tried

Rule: pkg/scheduler/schedule_one_podgroup.go at v1.37.2.

All of it is done in steps, so that a large group does not hold the event loop: see `algorithm.py`. Its members are in
flight meanwhile, so the queue remembers what happens to them, and each is looked at again before it is bound.
"""

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from scheduler.api.pod import Pod
from scheduler.config.defaults import CAPACITY_SCHEDULING, COSCHEDULING
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.core import Core
from scheduler.cycle.cycle_events import AttemptStarted, Decided
from scheduler.cycle.steps import QUICK, Steps
from scheduler.cycle.wings import Loop
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.demand import DemandPlugin
from scheduler.framework.errors import SchedulerError
from scheduler.framework.pod_groups import PodGroup, PodGroups
from scheduler.framework.queued import QueuedGroup, QueuedPod, in_order
from scheduler.framework.status import Code
from scheduler.groups.algorithm import PodGroupAlgorithm
from scheduler.groups.conditions import GroupConditions
from scheduler.groups.decision import UNSCHEDULABLE_GROUP, GroupDecision, MemberOutcome
from scheduler.groups.group_events import GroupDecided, GroupStarted
from scheduler.groups.records import GroupRecord, GroupRecords, result_of
from scheduler.groups.reservations.keeper import Reservations
from scheduler.process.metrics import PodGroupMetrics
from scheduler.runtime.framework import Framework

NOT_FOR_NODES: Final = frozenset((COSCHEDULING, CAPACITY_SCHEDULING))
"""The plugins that refuse members for other reasons than nodes: what nodes lack is not known then."""

WAITS_FOR_OTHERS: Final = "the pod group is unschedulable: this pod fits and waits for the others"

REASONS: Final[Mapping[str, str]] = {
    "scheduled": "Scheduled",
    "unschedulable": "Unschedulable",
    "waiting_on_preemption": "Unschedulable",
    "error": "SchedulerError",
}
"""Result → reason of the condition."""

Verdict: TypeAlias = Placed | Unplaced | SchedulerError
"""The outcome for a member."""

_logger = logging.getLogger(__name__)


class PodGroupCycle:
    """Schedules groups of pods, one group after the other."""

    def __init__(
        self,
        core: Core,
        groups: PodGroups,
        algorithm: PodGroupAlgorithm,
        conditions: GroupConditions,
        reservations: Reservations,
        metrics: PodGroupMetrics,
    ) -> None:
        self._frameworks = core.frameworks
        self._groups = groups
        self._algorithm = algorithm
        self._queue = core.queue
        self._failure = core.failure
        self._conditions = conditions
        self.reservations = reservations
        self._events = core.writers.group_events
        self._metrics = metrics
        self._now = core.now
        self._stream = core.stream
        self._under_way: Framework | None = None
        self.records = GroupRecords()

    def is_used(self, framework: Framework) -> bool:
        """Return whether a group is being scheduled with the plugins of this profile."""
        return self._under_way is framework

    def steps(self, group: QueuedGroup, loop: Loop) -> Steps[None]:
        """Schedule a popped group in steps, between which nothing else may be decided.

        Errors are raised for the loop to report; the group is in the queue again then, too.
        """
        attempt = _Attempt(group)
        try:
            if not self._is_in_vain(attempt):
                yield from self._schedule(attempt, loop)
        except BaseException:
            attempt.code = Code.ERROR
            for each in attempt.open.values():
                loop.settle(each)
            raise
        finally:
            self._under_way = None
            self._algorithm.forget_left()
            self._queue.group_tried(group, attempt.code, attempt.plugins)

    def _is_in_vain(self, attempt: "_Attempt") -> bool:
        """Return whether to leave a group of our own rules alone for now, as too little is free for it."""
        queued = attempt.group
        if queued.attempts == 1:
            return False
        framework = self._frameworks.get(queued.pod.spec.scheduler_name)
        plugins = queued.unschedulable_plugins.union(*[each.unschedulable_plugins for each in queued.members])
        if framework is None or queued.was_flushed or plugins <= NOT_FOR_NODES:
            return False
        group, members = self._groups.of(queued.pod), self._groups.members(queued.pod)
        if group is None or not group.is_ours or self._is_evicting(framework, group):
            return False
        if self._algorithm.may_fit(framework, group, members):
            return False
        attempt.plugins = {plugin.name for plugin in framework.plugins.of("filter", DemandPlugin)}
        return True

    def _schedule(self, attempt: "_Attempt", loop: Loop) -> Steps[None]:
        began, now = time.perf_counter(), self._now()
        members = in_order(attempt.group.take_all())
        attempt.open = {queued.pod.uid: queued for queued in members}
        for queued in members:
            queued.attempt_began = now
        if problem := disagreement(self._groups, [queued.pod for queued in members]):
            attempt.code = Code.ERROR
            for queued in members:
                del attempt.open[queued.pod.uid]
                name = queued.pod.spec.scheduler_name
                self._failure.handle(name, queued, SchedulerError(problem), time.perf_counter())
                yield
            self._set_condition(self._groups.of(members[0].pod), "error", problem)
            return
        framework = self._frameworks.get(members[0].pod.spec.scheduler_name)
        self._under_way = framework
        tried = yield from self._worth_trying(framework, members, attempt, loop)
        if framework is None or not tried:
            return
        if GroupStarted in self._stream.listeners:
            self._stream.publish(GroupStarted(framework.name, tried))
        decision = yield from self._algorithm.decide_and_leave(framework, tried)
        record = self._record(framework, tried, decision)
        self._metrics.scheduling_algorithm_duration.observe(decision.seconds)
        yield from self._submit(framework, tried, decision, attempt, record, loop)
        self._report(framework, tried[0].pod, decision, began, record)
        if decision.status is not None:
            attempt.code, attempt.plugins = decision.code, plugins_of(framework, decision)
        if record is not None and decision.status is None:
            self.reservations.placed(record.group)
        elif record is not None and self._is_evicting(framework, record.group):
            self.reservations.placed(record.group)  # what it is nominated to is kept for it, and no other nodes
        elif record is not None and decision.is_rejected:
            self.reservations.refused(record.group, [queued.pod for queued in tried])

    def _is_evicting(self, framework: Framework, group: PodGroup) -> bool:
        return framework.handle.preemptions.of(group.uid) is not None

    def _worth_trying(
        self, framework: Framework | None, members: Sequence[QueuedPod], attempt: "_Attempt", loop: Loop
    ) -> Steps[list[QueuedPod]]:
        """Return the members without those that are skipped."""
        tried = []
        for number, queued in enumerate(members, 1):
            if framework is None or loop.should_skip(queued.pod):
                del attempt.open[queued.pod.uid]
                self._queue.done(queued.pod.uid)
            else:
                tried.append(queued)
            if not number % QUICK:
                yield
        return tried

    def _submit(
        self,
        framework: Framework,
        members: Sequence[QueuedPod],
        decision: GroupDecision,
        attempt: "_Attempt",
        record: GroupRecord | None,
        loop: Loop,
    ) -> Steps[None]:
        """Begin to bind those that have a node if the group is schedulable; send all others back to the queue."""
        stream = self._stream
        if GroupDecided in stream.listeners:
            name = self._groups.name_of(members[0].pod)
            stream.publish(GroupDecided(framework.name, name, members, decision))
        is_ours = record is not None and record.group.is_ours  # one Event for all of them then
        for number, (queued, outcome, verdict) in enumerate(verdicts_of(decision, members, is_ours=is_ours)):
            if number:
                yield
            uid = queued.pod.metadata.uid
            newest = self._queue.in_flight.newest(uid)
            if newest is None or loop.should_skip(newest):  # deleted or bound by others meanwhile
                del attempt.open[uid]
                self._queue.done(uid)
                continue
            state = CycleState() if outcome is None else outcome.state
            # As for a pod by itself, an attempt begins when the pod's own part begins.
            started = time.perf_counter() - (0.0 if outcome is None else outcome.seconds)
            if AttemptStarted in stream.listeners:
                stream.publish(AttemptStarted(framework.name, queued, False))
            if Decided in stream.listeners:
                stream.publish(Decided(framework.name, state, queued, verdict, False))
            del attempt.open[uid]
            try:
                if isinstance(verdict, Placed):
                    loop.place(framework, state, queued, verdict, started, decision.changes)
                    if uid not in attempt.group:  # it was not refused at once
                        attempt.code = Code.SUCCESS
                else:
                    self._failure.handle(framework.name, queued, verdict, started, has_event=not is_ours)
            except BaseException:
                attempt.open[uid] = queued
                raise

    def _record(
        self, framework: Framework, members: Sequence[QueuedPod], decision: GroupDecision
    ) -> GroupRecord | None:
        """Note the decision for those who ask about the group; return the note, None if the group is gone."""
        pod = members[0].pod
        group = self._groups.of(pod)
        if group is None:
            return None
        scheduled = self._groups.members(pod).scheduled_count
        return self.records.add(group, framework.name, decision, len(members), scheduled)

    def _report(
        self, framework: Framework, member: Pod, decision: GroupDecision, began: float, record: GroupRecord | None
    ) -> None:
        """Count the attempt, set the group's condition, and say at the group why it waits."""
        result = result_of(decision)
        if result == "error":
            fields = {"podGroup": _name(self._groups, member), "err": decision.message}
            _logger.error("Error scheduling pod group; retrying", extra=fields)
        self._metrics.schedule_attempts.labels(result, framework.name).inc()
        lasted = self._metrics.scheduling_attempt_duration.labels(result, framework.name)
        lasted.observe(time.perf_counter() - began)
        if decision.preemption is not None:
            self._metrics.preemption_attempts.labels(decision.preemption.label).inc()
        if decision.preemption is Code.SUCCESS:
            self._metrics.preemption_victims.observe(len(decision.victims))
        if _logger.isEnabledFor(logging.DEBUG):
            fields = {"podGroup": _name(self._groups, member), "result": result, "err": decision.message}
            _logger.debug("Tried to schedule a pod group", extra=fields)
        if record is not None and result != "scheduled":
            self._events.group_event(record.group, member, "Warning", "FailedScheduling", "Scheduling", record.text)
        if record is not None and decision.given_up:
            self._report_given_up(record.group, decision)
        self._set_condition(None if record is None else record.group, result, decision.message)

    def _set_condition(self, group: PodGroup | None, result: str, message: str) -> None:
        if group is not None and not group.is_ours:
            is_scheduled = result == "scheduled"
            self._conditions.set(group, is_scheduled=is_scheduled, reason=REASONS[result], message=message)

    def _report_given_up(self, to: PodGroup, decision: GroupDecision) -> None:
        """Say at damaged groups that what is left of them is evicted."""
        self._metrics.given_up.inc(len(decision.given_up))
        for key in decision.given_up:
            pods = [pod for pod in decision.victims if self._groups.key_of(pod) == key]
            group = self._groups.of(pods[0])
            if group is not None:
                note = f"the {len(pods):,} of its pods that have a node are evicted for {to}: both are incomplete"
                self._events.group_event(group, pods[0], "Warning", "PodGroupGivenUp", "Scheduling", note)


@dataclass(slots=True, eq=False)
class _Attempt:
    """One attempt for a group."""

    group: QueuedGroup
    open: dict[str, QueuedPod] = field(default_factory=dict)
    """UID → the members of which it is not known yet what becomes of them."""

    code: Code = Code.UNSCHEDULABLE
    plugins: Collection[str] = ()
    """Those that refused the group as a whole."""


def plugins_of(framework: Framework, decision: GroupDecision) -> Collection[str]:
    """Return the plugins that refused a group as a whole, apart from those that refused some of its members."""
    if decision.refused_by:
        return {decision.refused_by}
    refused = [each.decision for each in decision.members if isinstance(each.decision, Unplaced) and not each.node_name]
    if any(each.unschedulable_plugins or each.pending_plugins for each in refused) or not decision.is_rejected:
        return ()
    # No member was looked at, or all fit once others are gone: whatever changes about nodes may help.
    return {each.name for each in framework.plugins.at["filter"]}


def verdicts_of(
    decision: GroupDecision, members: Sequence[QueuedPod], *, is_ours: bool
) -> Iterator[tuple[QueuedPod, MemberOutcome | None, Verdict]]:
    """Yield the decision about each member, and what becomes of it.

    If a group of our own rules was refused as a whole, its first member names the plugin for all of them.
    """
    # Not by position: ranks may have given them another order, and after an error some are missing.
    decided = {outcome.queued.pod.metadata.uid: outcome for outcome in decision.members}
    for number, queued in enumerate(members):
        outcome = decided.get(queued.pod.metadata.uid)
        verdict = verdict_of(decision, queued, outcome, is_ours=is_ours)
        if is_ours and number and outcome is None and isinstance(verdict, Unplaced):
            verdict = replace(verdict, unschedulable_plugins=frozenset())
        yield queued, outcome, verdict


def verdict_of(decision: GroupDecision, queued: QueuedPod, outcome: MemberOutcome | None, *, is_ours: bool) -> Verdict:
    """Return what becomes of one member. Rule: submitPodGroupAlgorithmResult."""
    if decision.status is None and outcome is not None and isinstance(outcome.decision, Placed):
        return outcome.decision
    if decision.code is Code.ERROR:
        if outcome is not None and isinstance(outcome.decision, SchedulerError):
            return outcome.decision
        return SchedulerError(decision.message)
    refused_by, nominated = frozenset(filter(None, (decision.refused_by,))), decision.nominations.get(queued.pod.uid)
    if outcome is None:  # it was not looked at
        return Unplaced(
            decision.refusal,
            nominated_node_name=nominated,
            unschedulable_plugins=refused_by,
            refused_group_by=decision.refused_by,
        )
    if decision.keeps_nominations:
        plugins = outcome.decision.unschedulable_plugins if isinstance(outcome.decision, Unplaced) else refused_by
        return Unplaced(decision.message, nominated_node_name=None, unschedulable_plugins=plugins)
    if isinstance(outcome.decision, Placed):
        if decision.is_waiting_for_preemption:
            return Unplaced(decision.message, nominated_node_name=nominated, unschedulable_plugins=refused_by)
        return Unplaced(WAITS_FOR_OTHERS if is_ours else f"{UNSCHEDULABLE_GROUP}, {decision.message}")
    if is_ours and decision.status is None and isinstance(outcome.decision, Unplaced):
        # The others have what was freed for the group: nothing is kept for this one.
        return replace(outcome.decision, nominated_node_name="")
    if nominated is not None and isinstance(outcome.decision, Unplaced):
        return replace(outcome.decision, nominated_node_name=nominated)
    return outcome.decision


def disagreement(groups: PodGroups, pods: Sequence[Pod]) -> str:
    """Return what keeps these pods of a group from being tried together; empty if nothing does.

    Groups of our own rules are looked at before their pods come into the queue. Rule: validatePodGroup.
    """
    group, first = groups.of(pods[0]), pods[0]
    if group is None:
        return f"pod group object not found for pod group {groups.key_of(first)}"
    name, policy, problem = first.spec.scheduler_name, first.spec.preemption_policy, ""
    for pod in (*pods, *groups.members(first).scheduled):
        spec = pod.spec
        if spec.scheduler_name != name:
            problem = f'.spec.schedulerName set, got: "{spec.scheduler_name}" and "{name}"'
        elif group.is_ours:
            continue
        elif (spec.priority or 0) != group.priority:
            problem = f"priority as the pod group's priority, got {pod.priority} and {group.priority}"
        elif spec.preemption_policy != policy and _policy(pod) != _policy(first):
            problem = f"preemption policy, got {_policy(pod)} and {_policy(first)}"
        if problem:
            return f"all pods in a single pod group should have the same {problem}"
    return ""


def _policy(pod: Pod) -> str:
    return pod.spec.preemption_policy or "PreemptLowerPriority"


def _name(groups: PodGroups, pod: Pod) -> str:
    return f"{pod.namespace}/{groups.name_of(pod)}"
