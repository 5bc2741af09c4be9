"""Make room for an unschedulable pod by evicting pods of lower priority.

Its node and victims are chosen in `shared/eviction/candidates.py`, those of a group in `pod_groups.py`;
`shared/eviction/executor.py` evicts.
"""

import time
from collections.abc import Callable, Collection, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar, Final, NamedTuple

import numpy as np

from plugins.default_preemption.pod_groups import select_victims
from plugins.default_preemption.smallest_victims import smallest_victims
from plugins.shared.eviction.budgets import BUDGET_PARTS, POD_DISRUPTION_BUDGET, Budgets
from plugins.shared.eviction.candidates import (
    Candidate,
    CandidateSearch,
    Exempt,
    SearchResult,
    cheapest,
    costs,
    exempt_none,
)
from plugins.shared.eviction.eligibility import (
    GROUP_WAITING,
    IN_VAIN,
    LEAVING,
    SOON,
    WAITING,
    ineligibility,
    leaving,
    newest_of,
    no_victims,
)
from plugins.shared.eviction.executor import CLUSTER, Executor, Preemptor
from plugins.shared.eviction.units import GroupUnits
from scheduler import framework as fw
from scheduler.api.wording.messages import aggregated
from scheduler.framework.field_errors import invalid
from scheduler.framework.preemption.victims import NEVER, priority_of

ONGOING: Final = fw.Status(fw.Code.SUCCESS, ("ongoing preemption on nominated nodes",))

_MAX_INT32: Final = 2**31 - 1

NO_ROWS: Final = np.zeros(0, np.intp)


class _Candidates(NamedTuple):
    """The nodes on which a preemption would make room."""

    pod: fw.Pod
    """The newest version of the preemptor."""
    search: CandidateSearch
    candidates: Sequence[Candidate]


@dataclass
class DefaultPreemption(
    fw.PostFilterPlugin,
    fw.ExtendedPostFilterPlugin,
    fw.PreEnqueuePlugin,
    fw.ExplainPreemptionPlugin,
    fw.PodGroupPostFilterPlugin,
):
    """PostFilter: nominate the node on which the least has to be evicted, and evict it in the background.

    PreEnqueue: hold a pod back while its victims are being evicted. Rule: defaultpreemption/default_preemption.go and
    framework/preemption at v1.37.2, with asynchronous preemption.
    """

    name: ClassVar[str] = "DefaultPreemption"
    reads: ClassVar[Sequence[str]] = (POD_DISRUPTION_BUDGET,)
    writes: ClassVar[Sequence[fw.Write]] = (fw.Write(fw.POD, ("delete",)), fw.Write(fw.POD, ("patch",), "status"))
    parts: ClassVar[Mapping[str, Sequence[str]]] = {POD_DISRUPTION_BUDGET: BUDGET_PARTS}

    min_candidate_nodes_percentage: int = 10
    """How many candidates to look for before the best is chosen, in percent of the nodes that preemption may help."""

    min_candidate_nodes_absolute: int = 100
    """How many at least."""

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle
        self._groups = handle.pod_groups
        self._executor = Executor(handle, self.name)
        self._in_vain: tuple[Hashable, fw.Rows, SearchResult] = None, NO_ROWS, SearchResult()
        """The last search without a candidate, with its nodes: pods that are alike need not repeat it."""

    def kept(self) -> Executor:
        """The preemptions that are under way: their preemptors still have to wait for them."""
        return self._executor

    def take_over(self, kept: Executor) -> None:
        self._executor = kept

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each problem of the arguments, with its place.

        Rule: validation_pluginargs.go (ValidateDefaultPreemptionArgs) at v1.36.3.
        """
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= percentage <= 100:
            yield "minCandidateNodesPercentage", invalid(percentage, "not in valid range [0, 100]")
        if not 0 <= absolute <= _MAX_INT32:
            yield "minCandidateNodesAbsolute", invalid(absolute, "not in valid range [0, inf)")
        if percentage == 0 and absolute == 0:
            both = "cannot be zero at the same time as {}"
            yield "minCandidateNodesPercentage", invalid(0, both.format("minCandidateNodesAbsolute"))
            yield "minCandidateNodesAbsolute", invalid(0, both.format("minCandidateNodesPercentage"))

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Deleted pods may open the gate; whether that is worth an attempt, those say that refused the pod.

        Rule: default_preemption.go (EventsToRegister).
        """
        return (fw.on(fw.ASSIGNED_POD, fw.Action.DELETE, _skip, _same_key),)

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        """Refuse a pod whose preemption is under way, or that of its group."""
        if self._executor.group_count and (key := fw.entry_key(self._groups, pod)):
            return GROUP_WAITING if self._executor.is_running(key) else None
        return WAITING if self._executor.is_running(pod.uid) else None

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]
    ) -> tuple[fw.PostFilterResult | None, fw.Status | None]:
        """Nominate a node and begin to evict, or say why not. Raises PluginError."""
        started, answer = time.perf_counter(), None
        try:
            answer = self._preempt(state, pod, node_to_status)
            return answer
        finally:
            self._count(started, answer)

    async def post_filter_with_extenders(
        self,
        state: fw.CycleState,
        pod: fw.Pod,
        node_to_status: Mapping[str, fw.Status],
        extenders: fw.PreemptionExtenders,
    ) -> tuple[fw.PostFilterResult | None, fw.Status | None]:
        """Let extenders choose among the candidates first. Raises AttemptFailed, PluginError, Overtaken."""
        started, answer = time.perf_counter(), None
        try:
            answer = await self._preempt_with_extenders(state, pod, node_to_status, extenders)
            return answer
        finally:
            self._count(started, answer)

    def _count(self, started: float, answer: tuple[fw.PostFilterResult | None, fw.Status | None] | None) -> None:
        """Count a search for victims; it failed if there is no answer."""
        self.handle.metrics.preemption_attempts.inc()
        code = fw.Code.ERROR if answer is None else fw.Code.SUCCESS if answer[1] is None else answer[1].code
        self._observe("pod", code, started)

    def _observe(self, preemptor: str, code: fw.Code, started: float) -> None:
        seconds = time.perf_counter() - started
        self.handle.metrics.preemption.evaluation_duration.labels(preemptor, code.label).observe(seconds)

    def exempt_from(self, preemptor: fw.Pod) -> Exempt:
        """Return what says which pods it may not evict although they are of lower priority: here, of none."""
        return exempt_none

    def may_leave(self, group: fw.PodGroup, pods: Sequence[fw.Pod]) -> Callable[[fw.Pod], bool]:
        """One of lower priority, or of any group, which has a priority of its own."""
        return lambda pod: pod.priority < group.priority or bool(self._groups.name_of(pod))

    def pod_group_victims(
        self, group: fw.PodGroup, pods: Sequence[fw.Pod], what_if: fw.GroupWhatIf
    ) -> Generator[None, None, fw.Victims | fw.Status]:
        """Choose victims for a group as a whole, or say why there are none."""
        if not group.may_preempt(pods):
            return NEVER
        if not group.is_ours and self._is_ongoing(group, pods):
            return ONGOING
        started = time.perf_counter()
        found = yield from select_victims(group, self._groups, Budgets.of(self.handle), what_if)
        self._observe("podgroup", found.code if isinstance(found, fw.Status) else fw.Code.SUCCESS, started)
        return found

    def _is_ongoing(self, group: fw.PodGroup, pods: Sequence[fw.Pod]) -> bool:
        """Return whether pods are leaving the nodes for which members are nominated. Rule: isOngoingPreemption.

        Among these are the victims that were being deleted before they were chosen.
        """
        chosen = self.handle.preemptions.leaving()
        rows = map(self.handle.nodes.row_of, {pod.nominated_node_name for pod in pods} - {""})
        there = (pod for row in rows if row is not None for pod in self.handle.nodes.info(row).pods)
        leaving = (pod for pod in there if is_leaving_for_another(pod) or (pod.is_deleting and pod.uid in chosen))
        return any(priority_of(self._groups, pod) < group.priority for pod in leaving)

    def evict_for_pod_group(self, group: fw.PodGroup, pods: Sequence[fw.Pod], victims: fw.Victims) -> None:
        """Begin to evict them. What they free is kept for a group of our own rules; kube-scheduler keeps nothing."""
        self._executor.start(Preemptor.of_group(group, pods), CLUSTER, victims, keeps=group.is_ours)

    def possible_preemptions(
        self, state: fw.CycleState, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]
    ) -> Iterator[fw.PossiblePreemption | None]:
        """Yield where victims could go, whether or not this pod may preempt, the fewest first. Raises PluginError."""
        nodes, rows = self.handle.nodes, self._rows(pod, node_to_status)
        ineligible = self._ineligibility(pod, node_to_status)
        obstacle = "" if ineligible is None else f"preemption is {ineligible.message.partition(' ')[2].rstrip('.')}"
        run, budgets = self.handle.dry_runs.begin(state, pod), Budgets.of(self.handle)
        search = CandidateSearch(run, pod, nodes, budgets, self.exempt_from(pod))
        for victims in smallest_victims(run, search, budgets, pod, nodes, rows):
            if victims is None:
                yield None
            else:
                against = tuple(budgets.violated_by(victims.pods))
                yield fw.PossiblePreemption(nodes.names()[victims.row], tuple(victims.pods), obstacle, against)

    def _preempt(
        self, state: fw.CycleState, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]
    ) -> tuple[fw.PostFilterResult | None, fw.Status | None]:
        found = self._candidates(state, pod, node_to_status)
        if not isinstance(found, _Candidates):
            return found
        best = cheapest(found.candidates)
        victims = fw.Victims(found.search.victims_of(best.row), best.costs[0])
        return self._evict(found.pod, self.handle.nodes.names()[best.row], victims)

    async def _preempt_with_extenders(
        self,
        state: fw.CycleState,
        pod: fw.Pod,
        node_to_status: Mapping[str, fw.Status],
        extenders: fw.PreemptionExtenders,
    ) -> tuple[fw.PostFilterResult | None, fw.Status | None]:
        found = self._candidates(state, pod, node_to_status)
        if not isinstance(found, _Candidates):
            return found
        names, search = self.handle.nodes.names(), found.search
        proposed = {
            names[each.row]: fw.Victims(search.victims_of(each.row), each.costs[0]) for each in found.candidates
        }
        try:
            agreed = await extenders.process_preemption(found.pod, proposed)
        except fw.ExtenderError as error:
            raise fw.AttemptFailed(f"preemption: {error}") from error
        if not agreed:
            return None, fw.unschedulable("preemption: no candidate node for preemption")
        node_name = min(agreed, key=lambda name: costs(*agreed[name]))
        return self._evict(found.pod, node_name, agreed[node_name])

    def _candidates(
        self, state: fw.CycleState, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]
    ) -> "_Candidates | tuple[fw.PostFilterResult | None, fw.Status | None]":
        """Return at least one candidate, or the answer if there is none. Raises AttemptFailed, PluginError."""
        newest = newest_of(pod, self.handle)
        under_way = self.handle.preemptions.of(newest.uid)
        if under_way is not None:  # for quota
            return (fw.PostFilterResult(""), IN_VAIN) if under_way.is_due else (None, LEAVING)
        ineligible = self._ineligibility(newest, node_to_status)
        if ineligible is not None:
            return None, ineligible
        rows = self._rows(newest, node_to_status)
        if rows is NO_ROWS and self._keeps_its_node(newest):
            return None, SOON
        search, found = self._search(state, newest, rows)
        if not found.candidates:
            if found.errors:
                raise fw.PluginError(self.name, "PostFilter", f"preemption: {aggregated(found.errors)}")
            return fw.PostFilterResult(""), no_victims(found.refusals, self.handle.nodes.count)
        return _Candidates(newest, search, found.candidates)

    def _evict(
        self, pod: fw.Pod, node_name: str, victims: fw.Victims
    ) -> tuple[fw.PostFilterResult | None, fw.Status | None]:
        self._executor.start(Preemptor.of_pod(pod), node_name, victims)
        count = len(victims.pods)
        text = f"preemption: found a potential placement for pod on node {node_name}, preempting {count} victims"
        return fw.PostFilterResult(node_name, victims.pods), fw.Status(fw.Code.SUCCESS, (text,))

    def _keeps_its_node(self, pod: fw.Pod) -> bool:
        """Say whether a pod is nominated, and lacks space in its share only until others are gone, or were tried."""
        is_nominated = bool(self.handle.nominator.node_of(pod.uid))
        return is_nominated and self.handle.shares.has_space_soon(pod, leaving(self.handle))

    def _rows(self, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]) -> fw.Rows:
        """Return the nodes that evictions may help: none for a pod whose share has no space."""
        if self.handle.shares.refusal(pod) is not None:
            return NO_ROWS
        return fw.rows_with(fw.Code.UNSCHEDULABLE, node_to_status, self.handle.nodes)

    def _ineligibility(self, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]) -> fw.Status | None:
        """Say why a pod may not preempt; None if it may."""

        def is_on_the_way(pods: Collection[fw.Pod]) -> bool:
            return any(
                is_leaving_for_another(other) and priority_of(self._groups, other) < pod.priority for other in pods
            )

        return ineligibility(pod, node_to_status, self.handle.nodes, is_on_the_way)

    def _search(self, state: fw.CycleState, pod: fw.Pod, rows: fw.Rows) -> tuple[CandidateSearch, SearchResult]:
        handle = self.handle
        run, budgets = handle.dry_runs.begin(state, pod), Budgets.of(handle)
        is_exempt = self.exempt_from(pod)
        units = GroupUnits(self._groups.running(), handle.nodes)
        search = CandidateSearch(run, pod, handle.nodes, budgets, is_exempt, units)
        if not len(rows):
            return search, SearchResult()
        situation = run.situation if is_exempt is exempt_none else None
        known, of_rows, in_vain = self._in_vain
        if situation is not None and situation == known and np.array_equal(rows, of_rows):
            return search, in_vain
        start = _offset(pod, state.attempt, len(rows))
        order = np.concatenate([rows[start:], rows[:start]])
        found = search.among(order, self._wanted(len(rows)))
        if situation is not None and not (found.candidates or found.errors):
            self._in_vain = situation, rows, found
        return search, found

    def _wanted(self, nodes: int) -> int:
        """Rule: calculateNumCandidates."""
        return min(max(nodes * self.min_candidate_nodes_percentage // 100, self.min_candidate_nodes_absolute), nodes)


def is_leaving_for_another(pod: fw.Pod) -> bool:
    """Return whether a preemption is the reason why a pod is terminating. Rule: podTerminatingByPreemption."""
    if not pod.is_deleting:
        return False
    conditions = pod.status.conditions or ()
    target = next((condition for condition in conditions if condition.type == "DisruptionTarget"), None)
    return target is not None and (target.status, target.reason) == ("True", "PreemptionByScheduler")


def _offset(pod: fw.Pod, attempt: int, count: int) -> int:
    """The node to begin with among `count`: different for each pod and attempt, and the same in a replay."""
    digest = blake2b(f"{pod.uid}/{attempt}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % count


def _skip(pod: fw.Pod, old: fw.Pod | None, new: fw.Pod | None) -> fw.QueueingHint:
    return fw.QueueingHint.SKIP


def _same_key(pod: fw.Pod) -> None:
    """All pods share a key: the hint looks at nothing."""
