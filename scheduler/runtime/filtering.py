"""Filter for all nodes at once, nominated pods included.

Rule: pkg/scheduler/framework/runtime/framework.go at v1.36.3 (RunFilterPlugins, RunFilterPluginsWithNominatedPods).
kube-scheduler asks plugin after plugin for one node after the other; we ask node after node of one plugin after the
other. What a node is refused for is the same: the first plugin in order that refuses it.
"""

import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Final, Protocol

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes.columns import locked
from scheduler.framework.nodes.nodes import Aspect, BoolColumn, Int32Column, NodeInfo, Rows
from scheduler.framework.plugin import Plugin, PreFilterExtensions
from scheduler.framework.status import Status
from scheduler.runtime.answers.pod_classes import PodClass
from scheduler.runtime.answers.store import AnswerStore, Evaluate, Values
from scheduler.runtime.answers.views import FeasibleNodes
from scheduler.runtime.filter_outcome import FilterOutcome
from scheduler.runtime.guards.return_values import check_status, disallowed
from scheduler.runtime.plans import FILTER, FilterPlan, FilterStep
from scheduler.runtime.plugin_calls import PluginCalls
from scheduler.runtime.preemption.nominated import LiveNominator, NominatedFinder

ADD_POD: Final = "PreFilterExtensionAddPod"
REMOVE_POD: Final = "PreFilterExtensionRemovePod"

FEW: Final = 4
"""Up to this many nodes with nominated pods are asked one by one: to ask all at once takes 0.1 ms at first."""


class NominatedFilter(Protocol):
    """Filters all nodes with nominated pods at once. Implemented in scheduler.runtime.preemption.dry_run."""

    def refusals_with_nominated(self, state: CycleState, pod: Pod) -> tuple[Mapping[int, Status], Rows] | None:
        """Return row → why it refuses a pod alongside the pods nominated there, and the rows that are left.

        None if all have to be asked about one at a time. Raises PluginError.
        """


class Filtering:
    """The Filter plugins of one profile."""

    def __init__(
        self,
        plugins: Sequence[Plugin],
        extensions: Sequence[PreFilterExtensions],
        store: AnswerStore,
        nominator: LiveNominator,
        nominated_filter: NominatedFilter,
        calls: PluginCalls,
    ) -> None:
        self.nodes = store.nodes
        self.steps = tuple(FilterStep(plugin, store.nodes, calls) for plugin in plugins)
        self.nominated = NominatedFinder(store.nodes, nominator)
        self._nominated_nodes = nominator.nodes
        self.nominated_filter = nominated_filter
        self._per_node = tuple((step, step.per_node) for step in self.steps if step.per_node is not None)
        self._extensions = tuple(extensions)
        self._store = store
        self._calls = calls
        self._batching = calls.batching()

    def run_everywhere(self, state: CycleState, pod: Pod, pod_class: PodClass) -> FilterOutcome:
        """Return where `pod` can run; faster than `run` for a class that was seen before. Raises PluginError."""
        if self._per_node:
            self._drop_full_numberings()
        asked = self.nodes.in_use.copy()
        plan = pod_class.filter_plans.get(state.skip_filter) or self._plan(state.skip_filter, pod_class)
        if state.record_plugin_metrics:
            began = time.perf_counter()
            view = self._feasible_nodes(plan, pod_class, state, pod)
            self._batching.observe(view is not None, time.perf_counter() - began)
        else:
            view = self._feasible_nodes(plan, pod_class, state, pod)
        if view is None:
            self._batching.no_hint.value += 1
            return self._run(state, pod, asked, pod_class)
        outcome = FilterOutcome(view.rows, asked, [], view=view)
        for step, column in zip(plan.stored, view.columns, strict=True):  # hot: without a call
            if column.may_differ:
                outcome.codes.append((step, column.values))
        if plan.others or self._nominated_nodes:
            self._batching.not_used.value += 1
            return self._run(state, pod, asked, pod_class, outcome, plan.others, view.passing.copy())
        self._batching.used.value += 1
        return outcome

    def run(self, state: CycleState, pod: Pod, asked: BoolColumn, pod_class: PodClass) -> FilterOutcome:
        """Return where `pod` can run among the rows that are `asked`. Raises PluginError.

        For members of a group it is as fast as for all nodes: many alike are asked about one domain after the other.
        """
        self._drop_full_numberings()
        if not state.is_of_group_cycle:
            return self._run(state, pod, asked, pod_class)
        plan = pod_class.filter_plans.get(state.skip_filter) or self._plan(state.skip_filter, pod_class)
        view = self._feasible_nodes(plan, pod_class, state, pod)
        if view is None:
            return self._run(state, pod, asked, pod_class)
        passing = view.passing & asked
        stored = zip(plan.stored, view.columns, strict=True)
        refusals = [(step, column.values) for step, column in stored if column.may_differ]
        outcome = FilterOutcome(np.arange(0), asked, refusals)
        if plan.others or self._nominated_nodes:
            return self._run(state, pod, asked, pod_class, outcome, plan.others, passing)
        outcome.feasible = np.flatnonzero(passing)
        return outcome

    def _run(
        self,
        state: CycleState,
        pod: Pod,
        asked: BoolColumn,
        pod_class: PodClass,
        stored: FilterOutcome | None = None,
        others: Sequence[FilterStep] = (),
        left: BoolColumn | None = None,
    ) -> FilterOutcome:
        """`stored`: the outcome of the first steps, from a view, which is that of all rows if it has one.

        Then only the `others` are asked, about the rows that are `left`, which may be changed.
        """
        outcome = FilterOutcome(np.arange(0), asked, [])
        if not asked.any():
            return outcome
        view = None if stored is None else stored.view
        if stored is not None:
            outcome.codes += stored.codes
        refusing = len(outcome.codes)
        try:
            if left is not None:
                passing = self._ask_in_turn(others, outcome, left, state, pod, pod_class)
            else:
                passing = self._ask_in_turn(self.steps, outcome, asked.copy(), state, pod, pod_class)
            self._yield_to_nominated(outcome, passing, state, pod)
        except PluginError:
            # Unless it failed only for nodes that are refused alongside their nominated pods: kube-scheduler asks
            # about these first, and then no further.
            outcome = FilterOutcome(np.arange(0), asked, [])
            passing = asked.copy()
            self._yield_to_nominated(outcome, passing, state, pod)
            if not outcome.overrides:
                raise
            passing = self._ask_in_turn(self.steps, outcome, passing, state, pod, pod_class)
        if view is not None and not outcome.overrides and len(outcome.codes) == refusing:
            outcome.feasible, outcome.view = view.rows, view  # no other plugin refused any
        else:
            outcome.feasible = np.flatnonzero(passing)
        return outcome

    def _plan(self, skip: frozenset[str], pod_class: PodClass) -> FilterPlan:
        steps = [step for step in self.steps if step.name not in skip]
        stored = tuple(takewhile(lambda step: step.name in pod_class.signatures, steps))
        plan = FilterPlan(stored, tuple(steps[len(stored) :]))
        pod_class.filter_plans[skip] = plan
        return plan

    def _feasible_nodes(
        self, plan: FilterPlan, pod_class: PodClass, state: CycleState, pod: Pod
    ) -> FeasibleNodes | None:
        """Return where the stored steps let the pod pass; None if all plugins are to be asked in the ordinary way."""
        if not plan.stored:
            return None
        if not plan.was_used:
            plan.was_used = True
            return None
        if plan.feasible is None:
            began = time.perf_counter()
            plan.feasible = self._view(plan, pod_class)
            self._batching.stored.observe(time.perf_counter() - began)
        try:
            plan.feasible.refresh(plan.stored, state, pod)
        except PluginError:
            return None  # the plugin is asked again, and the error may not even matter
        return plan.feasible

    def _view(self, plan: FilterPlan, pod_class: PodClass) -> FeasibleNodes:
        keys = [step.key(pod_class.signatures[step.name]) for step in plan.stored]
        view = self._store.find(("feasible", *keys), FeasibleNodes)
        if view is None:
            columns = [
                self._store.column_of(key, step.aspects, np.int32) for step, key in zip(plan.stored, keys, strict=True)
            ]
            aspects = {aspect for step in plan.stored for aspect in step.aspects}
            view = self._store.add(FeasibleNodes(("feasible", *keys), columns, aspects, self._store))
        self._store.link(pod_class, view)
        return view

    def _ask_in_turn(
        self,
        steps: Sequence[FilterStep],
        outcome: FilterOutcome,
        passing: BoolColumn,
        state: CycleState,
        pod: Pod,
        pod_class: PodClass,
    ) -> BoolColumn:
        """Ask the plugins in turn about the rows that pass so far; return which pass all. Raises PluginError."""
        if not passing.any():
            return passing
        for step in steps:
            if step.name in state.skip_filter:
                continue
            codes = self._codes(step, state, pod, passing, pod_class)
            if codes is not None:
                outcome.codes.append((step, codes))
                passing &= codes == 0
                if not passing.any():
                    break  # every node has its answer: the others are not asked, as in kube-scheduler
        return passing

    def run_one(self, state: CycleState, pod: Pod, row: int, only: Collection[str] | None = None) -> Status | None:
        """Return what the first plugin that refuses one row says, from the live table. Raises PluginError.

        `only`: names of the plugins to ask; None for all.
        """
        rows: Rows = locked(np.array([row]))
        for step in self.steps:
            if step.name in state.skip_filter or (only is not None and step.name not in only):
                continue
            codes = step.ask(state, pod, rows)
            if codes is not None and codes[0]:
                return step.status(state, pod, int(codes[0]))
        return None

    def run_one_with_nominated(self, others: Collection[Pod], state: CycleState, pod: Pod, row: int) -> Status | None:
        """Like `run_one`, first with pods that are nominated to the node as if they ran there, then without them."""
        status = self._refused_with(others, state, pod, row) if others else None
        return self.run_one(state, pod, row) if status is None else status

    def notify_added(self, state: CycleState, pod: Pod, other: Pod, row: int) -> None:
        """Notify the plugins that count pods that `other` is on the row now. Raises PluginError."""
        for plugin in self._extensions:
            self._notify(ADD_POD, plugin, plugin.add_pod, state, pod, other, row)

    def notify_removed(self, state: CycleState, pod: Pod, other: Pod, row: int) -> None:
        """Notify the plugins that count pods that `other` is not on the row any more. Raises PluginError."""
        for plugin in self._extensions:
            self._notify(REMOVE_POD, plugin, plugin.remove_pod, state, pod, other, row)

    def is_extended(self, plugin: str) -> bool:
        """Return whether a plugin's answers depend on counts that `notify_added` and `notify_removed` change."""
        return any(each.name == plugin for each in self._extensions)

    def stored(
        self, key: tuple[Hashable, Hashable], aspects: tuple[Aspect, ...], dtype: type[np.generic], evaluate: Evaluate
    ) -> Values:
        """Return the column stored under `key`, brought up to date."""
        return self._store.column(key, aspects, dtype, evaluate).shown

    def stored_codes(self, step: FilterStep, state: CycleState, pod: Pod, signature: Hashable) -> Int32Column | None:
        """Return a stored code for each row, brought up to date; None if there is no refusal. Raises PluginError."""
        column = self._store.column(step.key(signature), step.aspects, np.int32, partial(step.ask, state, pod))
        return column.shown if column.may_differ else None

    def _drop_full_numberings(self) -> None:
        """Restart the numberings with too many refusals, and drop stored answers, before any of these is used."""
        for step, numbering in self._per_node:
            if numbering.is_full:
                numbering.clear()
                self._store.drop_columns((FILTER, step.name))

    def _codes(
        self, step: FilterStep, state: CycleState, pod: Pod, passing: BoolColumn, pod_class: PodClass
    ) -> Int32Column | None:
        """A code for each row, or None if there is no refusal."""
        signature = pod_class.signatures.get(step.name)
        if signature is not None:
            return self.stored_codes(step, state, pod, signature)
        # Nothing will be stored: only the nodes that passed so far need an answer.
        everything = passing.all()
        rows = self._store.all_rows() if everything else locked(np.flatnonzero(passing))
        answers = step.ask(state, pod, rows)
        if answers is None or not answers.any():
            return None
        if everything and answers.dtype == np.int32:
            return answers
        codes = np.zeros(len(passing), np.int32)
        codes[rows] = answers
        return codes

    def _yield_to_nominated(self, outcome: FilterOutcome, passing: BoolColumn, state: CycleState, pod: Pod) -> None:
        """Refuse nodes on which the pod would take the place of pods nominated there.

        Only pods of the same or a higher priority count: space that was freed for lower ones may be taken. A node that
        is refused anyway is asked again too: with the nominated pods it may have more reasons, or other ones.
        """
        if not self._nominated_nodes:
            return
        asked = outcome.asked
        found: tuple[Mapping[int, Status], Rows] | None = None
        if np.count_nonzero(asked) > FEW:
            by_row = self.nominated.of(state, pod).by_row
            if len(by_row) > FEW:
                found = self.nominated_filter.refusals_with_nominated(state, pod)
        else:
            by_row = self.nominated.on(asked, pod)
        refusals, left = ({}, by_row) if found is None else (found[0], {row: by_row[row] for row in found[1].tolist()})
        if not asked.all():
            refusals = {row: status for row, status in refusals.items() if asked[row]}
        outcome.overrides |= {**refusals, **self._refusals_one_by_one(left, asked, state, pod)}
        passing[list(outcome.overrides)] = False

    def _refusals_one_by_one(
        self, by_row: Mapping[int, Sequence[Pod]], asked: BoolColumn, state: CycleState, pod: Pod
    ) -> dict[int, Status]:
        refusals: dict[int, Status] = {}
        for row, others in by_row.items():
            status = self._refused_with(others, state, pod, row) if asked[row] else None
            if status is not None:
                refusals[row] = status
        return refusals

    def _refused_with(self, others: Collection[Pod], state: CycleState, pod: Pod, row: int) -> Status | None:
        # A pod whose nomination ended without our hearing of it may be on the node already.
        others = [other for other in others if not self.nodes.has_pod(row, other.uid)]
        if not others:
            return None
        state = state.clone()
        with self.nodes.what_if(row, add=others):
            for other in others:
                self.notify_added(state, pod, other, row)
            return self.run_one(state, pod, row)

    def _notify(
        self,
        point: str,
        plugin: PreFilterExtensions,
        call: Callable[[CycleState, Pod, Pod, NodeInfo], Status | None],
        state: CycleState,
        *about: *tuple[Pod, Pod, int],
    ) -> None:
        if plugin.name in state.skip_filter:
            return
        pod, other, row = about
        status = self._calls.run(point, plugin.name, call, state, pod, other, self.nodes.info(row))
        if status is not None:
            status = check_status(plugin.name, point, call, status)
            raise disallowed(plugin.name, point, call, status)
