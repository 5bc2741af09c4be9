"""The pod group cycle: a group is popped as one entry and tried at once.

    queue.pop ─► order ─► skip ─► decide ─► submit ─┬─► with a node: loop.place
                                                    └─► all others: failure, back to the group ─► queue.group_tried

Rule: pkg/scheduler/schedule_one_podgroup.go at v1.37.2.

All of it is done in steps, so that a large group does not hold the event loop: see `algorithm.py`. Its members are in
flight meanwhile, so the queue remembers what happens to them, and each is checked again before it is bound.
"""

import logging
import time
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import msgspec

from scheduler.api.pods.pod import Pod
from scheduler.config.defaults import CAPACITY_SCHEDULING, COSCHEDULING
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.core import Core
from scheduler.cycle.cycle_events import AttemptStarted, Decided
from scheduler.cycle.steps import QUICK, Steps
from scheduler.cycle.wings import Loop
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import SchedulerError
from scheduler.framework.groups.pod_groups import LOWER, GroupMembers, PodGroup
from scheduler.framework.plugin import DemandPlugin
from scheduler.framework.queued import QueuedGroup, QueuedPod, in_order
from scheduler.framework.status import Code
from scheduler.groups.algorithm import PodGroupAlgorithm
from scheduler.groups.apis.adapters import AdaptedGroups
from scheduler.groups.decision import GroupDecision, GroupPreemption, verdicts_of
from scheduler.groups.group_events import GroupDecided, GroupStarted
from scheduler.groups.records import GroupRecord, GroupRecords
from scheduler.groups.rejector_events import POD_GROUP_RESERVATION
from scheduler.groups.reservations.keeper import Reservations
from scheduler.groups.reservations.reserved_nodes import ReservedNodes
from scheduler.groups.statuses.conditions import GroupConditions
from scheduler.groups.topology.levels import TopologyLevels
from scheduler.runtime.framework import Framework

NOT_FOR_NODES: Final = frozenset((COSCHEDULING, CAPACITY_SCHEDULING))
"""The plugins that refuse members for other reasons than nodes: what nodes lack is not known then."""

_logger = logging.getLogger(__name__)


class PodGroupCycle:
    """Schedules groups of pods, one group after the other."""

    def __init__(self, core: Core, groups: AdaptedGroups, levels: TopologyLevels, reserved: ReservedNodes) -> None:
        self._frameworks = core.frameworks
        self._groups = groups
        self.algorithm = PodGroupAlgorithm(core, groups, levels, reserved)
        self._queue = core.queue
        self._cache = core.cache
        self._failure = core.failure
        self._conditions = GroupConditions(core)
        self._events = core.writers.group_events
        self._metrics = core.metrics.add_pod_groups()
        core.metrics.watch_reserved_nodes(lambda: len(reserved))
        self.reservations = Reservations(core, reserved, levels, groups, self._metrics.reservations)
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
        members, ended = group.members, _Ended(Code.ERROR)
        try:
            ended = self._in_vain(group) or (yield from self._schedule(group, loop))
        except BaseException:
            for queued in members:  # it is not known what becomes of those that are neither done nor in the group again
                if queued.pod.uid in self._queue.in_flight and queued.pod.uid not in group:
                    loop.settle(queued)
            raise
        finally:
            self._under_way = None
            self._cache.forget_left()
            if self._queue.group_tried(group, *ended):
                self._let_none_wait_alone(group.pod)

    def _let_none_wait_alone(self, pod: Pod) -> None:
        """Have members of a group of our own rules tried again that wait at Permit for others which have come back."""
        group, members = self._groups.of(pod), self._groups.members(pod)
        framework = self._frameworks.get(pod.spec.scheduler_name)
        if group is None or not group.is_ours or framework is None or members.scheduled_count >= group.minimum:
            return
        for uid in tuple(members.assumed):
            waiting = framework.handle.waiting_pods.get(uid)
            if waiting is not None:
                waiting.preempt("", "other pods of its group were not bound")

    def _in_vain(self, queued: QueuedGroup) -> "_Ended | None":
        """Return the end of an attempt that is not made: too little is free for a group of our own rules."""
        if queued.was_changed or queued.was_flushed:
            return None
        framework = self._frameworks.get(queued.pod.spec.scheduler_name)
        plugins = queued.unschedulable_plugins.union(*[each.unschedulable_plugins for each in queued.members])
        if framework is None or plugins <= NOT_FOR_NODES:
            return None
        group, members = self._groups.of(queued.pod), self._groups.members(queued.pod)
        if group is None or not group.is_ours or self._is_evicting(framework, group):
            return None
        if self.algorithm.may_fit(framework, group, members):
            return None
        return _Ended(Code.UNSCHEDULABLE, {plugin.name for plugin in framework.plugins.of("filter", DemandPlugin)})

    def _schedule(self, group: QueuedGroup, loop: Loop) -> "Steps[_Ended]":
        began, now = time.perf_counter(), self._now()
        members = in_order(group.take_all())
        for queued in members:
            queued.attempt_began = now
        first = members[0].pod
        tree = self._groups.tree_of(first)
        if tree is None:
            problem = f"pod group object not found for pod group {self._groups.key_of(first)}"
        else:
            problem = disagreement(tree.group, tree.members, [queued.pod for queued in members])
        if problem:
            for queued in members:
                name = queued.pod.spec.scheduler_name
                self._failure.handle(name, queued, SchedulerError(problem), time.perf_counter())
                yield
            for each in tree.leaves() if tree is not None and not tree.group.is_ours else ():
                self._set_condition(each.group, "error", problem)
            return _Ended(Code.ERROR)
        framework = self._frameworks.get(first.spec.scheduler_name)
        self._under_way = framework
        tried = yield from self._worth_trying(framework, members, loop)
        if framework is None or not tried:
            return _Ended(Code.UNSCHEDULABLE)
        if GroupStarted in self._stream.listeners:
            self._stream.publish(GroupStarted(framework.name, tried))
        decision = yield from self.algorithm.decide_and_leave(framework, tree, tried)
        self._metrics.scheduling_algorithm_duration.observe(decision.seconds)
        parts = self._recorded(framework, decision, tried)
        if GroupDecided in self._stream.listeners:
            self._stream.publish(GroupDecided(framework.name, self._groups.name_of(tried[0].pod), tried, decision))
        is_any_placed = yield from self._submit(framework, parts, group, loop)
        self._report(framework, tried[0].pod, decision, began, parts)
        self._reserve(framework, tried, decision)
        if decision.status is not None:
            return _Ended(decision.code, plugins_of(framework, decision))
        return _Ended(Code.SUCCESS if is_any_placed else Code.UNSCHEDULABLE)

    def _recorded(
        self, framework: Framework, decision: GroupDecision, members: Sequence[QueuedPod]
    ) -> "Sequence[_Part]":
        """Note what is decided about each group that has pods, before it takes effect."""
        parts = list[_Part]()
        for part, pods in decision.by_group(members, self._groups.key_of):
            record = self.records.add(framework.name, part, len(pods))
            parts.append(_Part(part, pods, record, part.result if record is None else record.result))
        return parts

    def _reserve(self, framework: Framework, members: Sequence[QueuedPod], decision: GroupDecision) -> None:
        group = decision.group
        if group is None:
            return
        if decision.status is None or self._is_evicting(framework, group):
            self.reservations.placed(group)  # what one that evicts is nominated to is kept for it, and no other nodes
        elif decision.is_rejected:
            self.reservations.refused(group, [queued.pod for queued in members])

    def _is_evicting(self, framework: Framework, group: PodGroup) -> bool:
        return framework.handle.preemptions.of(group.key) is not None

    def _worth_trying(
        self, framework: Framework | None, members: Sequence[QueuedPod], loop: Loop
    ) -> Steps[list[QueuedPod]]:
        tried = []
        for number, queued in enumerate(members, 1):
            if framework is None or loop.should_skip(queued.pod):
                self._queue.done(queued.pod.uid)
            else:
                tried.append(queued)
            if not number % QUICK:
                yield
        return tried

    def _submit(self, framework: Framework, parts: "Sequence[_Part]", group: QueuedGroup, loop: Loop) -> Steps[bool]:
        """Begin to bind those that have a node if the group is schedulable; send all others back to the queue.

        Return whether any has a node, and was not refused at once.
        """
        stream, is_any_placed = self._stream, False
        verdicts = ((part.decision, *each) for part in parts for each in verdicts_of(part.decision, part.members))
        for number, (decision, queued, outcome, verdict) in enumerate(verdicts):
            if number:
                yield
            uid = queued.pod.metadata.uid
            newest = self._queue.in_flight.newest(uid)
            if newest is None or loop.should_skip(newest):  # deleted or bound by others meanwhile
                self._queue.done(uid)
                continue
            state = CycleState() if outcome is None else outcome.state
            # As for a pod by itself, an attempt begins when the pod's own part begins.
            started = time.perf_counter() - (0.0 if outcome is None else outcome.seconds)
            if AttemptStarted in stream.listeners:
                stream.publish(AttemptStarted(framework.name, queued, False))
            if Decided in stream.listeners:
                stream.publish(Decided(framework.name, state, queued, verdict, False))
            if isinstance(verdict, Placed):
                loop.place(framework, state, queued, verdict, started, decision.changes)
                is_any_placed |= uid not in group
            else:
                # Of a group of our own rules there is one Event for all of them.
                self._failure.handle(framework.name, queued, verdict, started, has_event=not decision.is_ours)
        return is_any_placed

    def _report(
        self, framework: Framework, member: Pod, decision: GroupDecision, began: float, parts: "Sequence[_Part]"
    ) -> None:
        """Count the attempt, set the conditions of its groups, and say at each why it waits."""
        result = decision.result if len(parts) > 1 else parts[0].result
        if result == "error":
            _logger.error("Error scheduling pod group; retrying", extra=self._fields(decision, member))
        self._metrics.schedule_attempts.labels(result, framework.name).inc()
        lasted = self._metrics.scheduling_attempt_duration.labels(result, framework.name)
        lasted.observe(time.perf_counter() - began)
        preemption = decision.preemption
        if preemption.code is not None:
            self._metrics.preemption_attempts.labels(preemption.code.label).inc()
        if preemption.code is Code.SUCCESS:
            self._metrics.preemption_victims.observe(len(preemption.victims))
        if _logger.isEnabledFor(logging.DEBUG):
            fields = {**self._fields(decision, member), "result": result}
            _logger.debug("Tried to schedule a pod group", extra=fields)
        for part in parts:
            if part.record is not None and part.result != "scheduled":
                group, pod = part.record.group, part.members[0].pod if part.members else member
                self._events.group_event(group, pod, "Warning", "FailedScheduling", "Scheduling", part.record.text)
            if part.decision.group is not None and not part.decision.group.is_ours:
                self._set_condition(part.decision.group, part.result, part.decision.message)
        if preemption.given_up and parts[0].record is not None:
            self._report_given_up(parts[0].record.group, preemption)

    def _fields(self, decision: GroupDecision, member: Pod) -> dict[str, str]:
        return {"podGroup": f"{member.namespace}/{self._groups.name_of(member)}", "err": decision.message}

    def _set_condition(self, group: PodGroup, result: str, message: str) -> None:
        reason = {"scheduled": "Scheduled", "error": "SchedulerError"}.get(result, "Unschedulable")
        self._conditions.set(group, is_scheduled=result == "scheduled", reason=reason, message=message)

    def _report_given_up(self, to: PodGroup, preemption: GroupPreemption) -> None:
        """Say on damaged groups that their remaining pods are evicted."""
        self._metrics.given_up.inc(len(preemption.given_up))
        for key in preemption.given_up:
            pods = [pod for pod in preemption.victims if self._groups.key_of(pod) == key]
            group = self._groups.of(pods[0])
            if group is not None:
                note = f"the {len(pods):,} of its pods that have a node are evicted for {to}: both are incomplete"
                self._events.group_event(group, pods[0], "Warning", "PodGroupGivenUp", "Scheduling", note)


class _Part(msgspec.Struct, frozen=True, eq=False):
    """A group that has pods: the whole, or a part of a tree."""

    decision: GroupDecision
    members: Sequence[QueuedPod]
    record: GroupRecord | None
    """None if the group is gone."""

    result: str
    """As metrics say it."""


class _Ended(NamedTuple):
    """How an attempt has ended."""

    code: Code
    """SUCCESS if some members got their node."""

    plugins: Collection[str] = ()
    """Those that refused the group as a whole."""


def plugins_of(framework: Framework, decision: GroupDecision) -> Collection[str]:
    """Return the plugins that refused a group as a whole, apart from those that refused some of its members."""
    if decision.refused_by:
        return {decision.refused_by}
    if decision.rejectors and decision.is_rejected:
        return decision.rejectors
    refused = [each.decision for each in decision.members if isinstance(each.decision, Unplaced) and not each.node_name]
    if any(each.unschedulable_plugins or each.pending_plugins for each in refused) or not decision.is_rejected:
        return ()
    # No member was looked at, or all fit once others are gone: whatever changes about nodes may help.
    return {POD_GROUP_RESERVATION, *(each.name for each in framework.plugins.at["filter"])}


def disagreement(group: PodGroup, members: GroupMembers, pods: Sequence[Pod]) -> str:
    """Return what keeps these pods of a group from being tried together; empty if nothing does.

    Groups of our own rules are looked at before their pods come into the queue. Rule: validatePodGroup.
    """
    first, name, problem = pods[0], pods[0].spec.scheduler_name, ""
    whose = " as the pod group's preemption policy" if group.preemption_policy else ""
    policy = group.preemption_policy or first.spec.preemption_policy
    for pod in (*pods, *members.scheduled):
        spec = pod.spec
        if spec.scheduler_name != name:
            problem = f'.spec.schedulerName set, got: "{spec.scheduler_name}" and "{name}"'
        elif group.is_ours:
            continue
        elif (spec.priority or 0) != group.priority:
            problem = f"priority as the pod group's priority, got {pod.priority} and {group.priority}"
        elif spec.preemption_policy != policy and (spec.preemption_policy or LOWER) != (policy or LOWER):
            problem = f"preemption policy{whose}, got {spec.preemption_policy or LOWER} and {policy or LOWER}"
        if problem:
            return f"all pods in a single pod group should have the same {problem}"
    return ""
