"""Filter for all nodes at once, nominated pods included.

Rule: pkg/scheduler/framework/runtime/framework.go at v1.36.3 (RunFilterPlugins, RunFilterPluginsWithNominatedPods).
kube-scheduler asks plugin after plugin for one node after the other; we ask node after node of one plugin after the
other. What a node is refused for is the same: the first plugin in order that refuses it.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from scheduler.api.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes import Aspect, BoolColumn, Int32Column, NodeInfo, Rows
from scheduler.framework.plugin import Plugin, PreFilterExtensions
from scheduler.framework.status import Status
from scheduler.runtime.answers.columns import Column, Evaluate, Memo, MemoColumn
from scheduler.runtime.answers.pod_classes import Shape
from scheduler.runtime.answers.views import KeptPassing
from scheduler.runtime.filter_outcome import FILTER, FilterOutcome, FilterPlan, FilterStep
from scheduler.runtime.live_nodes import LiveNodes
from scheduler.runtime.plugin_calls import PluginCalls, check_column
from scheduler.runtime.preemption.nominated import NominatedFinder

ADD_POD: Final = "PreFilterExtensionAddPod"
REMOVE_POD: Final = "PreFilterExtensionRemovePod"

FEW: Final = 4
"""Up to so many nodes with nominated pods are asked one by one: to ask all at once takes 0.1 ms at first."""

RefusalsBeside: TypeAlias = Callable[[CycleState, Pod], Mapping[int, Status] | None]


class Filtering:
    """The Filter plugins of one profile."""

    def __init__(
        self,
        plugins: Sequence[Plugin],
        extensions: Sequence[PreFilterExtensions],
        nodes: LiveNodes,
        memo: Memo,
        nominated: Callable[[], Iterator[tuple[str, Collection[Pod]]]],
        calls: PluginCalls,
    ) -> None:
        """`nominated` yields each node that is promised to pods, with these pods."""
        self.steps = tuple(map(FilterStep, plugins))
        self.nodes = nodes
        self._extensions = tuple(extensions)
        self._memo = memo
        self.nominated = NominatedFinder(nodes, nominated)
        self._calls = calls
        self._kept: WeakValueDictionary[Hashable, KeptPassing] = WeakValueDictionary()
        self.refusals_beside: RefusalsBeside = lambda state, pod: None
        """Says of all nodes with `nominated` pods at once which refuse a pod beside these (row → why).

        None if they have to be asked one by one. Raises PluginError.
        """

    def run_everywhere(self, state: CycleState, pod: Pod, shape: Shape) -> FilterOutcome:
        """Return where `pod` can run; quicker than `run` for a shape that was seen before. Raises PluginError."""
        asked = self.nodes.in_use.copy()
        plan = self._plan(state.skip_filter, shape)
        kept = plan.kept = self._up_to_date(plan, state, pod) if plan.signed else None
        if kept is None:
            return self.run(state, pod, asked, shape.signatures)
        if plan.others or self.nominated.any():
            return self.run(state, pod, asked, shape.signatures, plan)
        return FilterOutcome(kept.feasible, asked, plan.refusals(), {}, kept)

    def run(
        self,
        state: CycleState,
        pod: Pod,
        asked: BoolColumn,
        signatures: dict[str, object],
        plan: FilterPlan | None = None,
    ) -> FilterOutcome:
        """Return where `pod` can run among the rows that are `asked`. Raises PluginError.

        With a `plan`, all rows are asked, and the first plugins in a row have answered.
        """
        outcome = FilterOutcome(np.arange(0), asked, [])
        if not asked.any():
            return outcome
        kept = plan.kept if plan is not None else None
        refusals = plan.refusals() if plan is not None else []
        try:
            if plan is not None and kept is not None:
                outcome.codes += refusals
                passing = self._ask_in_turn(plan.others, outcome, kept.passing.copy(), state, pod, signatures)
            else:
                passing = self._ask_in_turn(self.steps, outcome, asked.copy(), state, pod, signatures)
            self._yield_to_nominated(outcome, passing, state, pod)
        except PluginError:
            # Not if it failed for nodes only that are refused beside their nominated pods: kube-scheduler begins with
            # these, and asks no further.
            outcome = FilterOutcome(np.arange(0), asked, [])
            passing = asked.copy()
            self._yield_to_nominated(outcome, passing, state, pod)
            if not outcome.overrides:
                raise
            passing = self._ask_in_turn(self.steps, outcome, passing, state, pod, signatures)
        if kept is not None and not outcome.overrides and len(outcome.codes) == len(refusals):
            outcome.feasible, outcome.kept = kept.feasible, kept  # nobody else refused any
        else:
            outcome.feasible = np.flatnonzero(passing)
        return outcome

    def _plan(self, skip: set[str], shape: Shape) -> FilterPlan:
        key = frozenset(skip)
        plan = shape.filter_plans.get(key)
        if plan is None:
            steps = [step for step in self.steps if step.name not in key]
            signed = [(step, shape.signatures[step.name]) for step in takewhile(_is_signed(shape), steps)]
            aspects = frozenset(aspect for step, _ in signed for aspect in step.aspects)
            plain = tuple(step.plain for step, _ in signed if step.plain is not None)
            plan = FilterPlan(tuple(signed), tuple(steps[len(signed) :]), aspects, plain)
            shape.filter_plans[key] = plan
        return plan

    def _up_to_date(self, plan: FilterPlan, state: CycleState, pod: Pod) -> KeptPassing | None:
        """Return what is kept of the signed plugins' answers; None if all are to be asked in the ordinary way."""

        def ask(position: int, rows: Rows) -> Int32Column | None:
            return self._ask(plan.signed[position][0], state, pod, rows)

        if not plan.was_used:
            plan.was_used = True
            return None
        if plan.plain and any(plain.is_full for plain in plan.plain):
            return None
        kept = plan.kept
        try:
            if kept is not None and kept.is_usable:
                kept.refresh(ask)
                return kept
            key = tuple((step.name, signature) for step, signature in plan.signed)
            kept = self._kept.get(key)
            if kept is not None and kept.is_usable:
                kept.refresh(ask)
                return kept
            columns = [self._stored(step, state, pod, signature) for step, signature in plan.signed]
            kept = self._kept[key] = KeptPassing(columns, plan.aspects, self.nodes, self._memo)
        except PluginError:
            return None  # it is asked again, and the error may not even matter
        return kept

    def _ask_in_turn(
        self,
        steps: Sequence[FilterStep],
        outcome: FilterOutcome,
        passing: BoolColumn,
        state: CycleState,
        pod: Pod,
        signatures: dict[str, object],
    ) -> BoolColumn:
        """Ask the plugins in turn about the rows that pass so far; return which pass all. Raises PluginError."""
        if not passing.any():
            return passing
        for step in steps:
            if step.name in state.skip_filter:
                continue
            codes = self._codes(step, state, pod, passing, signatures)
            if codes is not None:
                outcome.codes.append((step, codes))
                passing &= codes == 0
                if not passing.any():
                    break  # every node has its answer: the others are not asked, as in kube-scheduler
        return passing

    def run_one(self, state: CycleState, pod: Pod, row: int) -> Status | None:
        """Return what the first plugin that refuses one row says, from the live table. Raises PluginError."""
        rows: Rows = np.array([row])
        for step in self.steps:
            if step.name in state.skip_filter:
                continue
            codes = self._ask(step, state, pod, rows)
            if codes is not None and codes[0]:
                return step.status(state, pod, int(codes[0]))
        return None

    def run_one_beside(self, others: Collection[Pod], state: CycleState, pod: Pod, row: int) -> Status | None:
        """Like `run_one`, first with pods that are nominated to the node as if they ran there, then without them."""
        status = self._refused_beside(others, state, pod, row) if others else None
        return self.run_one(state, pod, row) if status is None else status

    def tell_added(self, state: CycleState, pod: Pod, other: Pod, row: int) -> None:
        """Tell the plugins that count pods that `other` is on the row now. Raises PluginError."""
        for plugin in self._extensions:
            self._tell(ADD_POD, plugin, plugin.add_pod, state, pod, other, row)

    def tell_removed(self, state: CycleState, pod: Pod, other: Pod, row: int) -> None:
        """Tell the plugins that count pods that `other` is on the row no more. Raises PluginError."""
        for plugin in self._extensions:
            self._tell(REMOVE_POD, plugin, plugin.remove_pod, state, pod, other, row)

    def is_extended(self, plugin: str) -> bool:
        """Whether a plugin's answers depend on counts that `tell_added` and `tell_removed` change."""
        return any(each.name == plugin for each in self._extensions)

    def stored(
        self, key: tuple[Hashable, Hashable], aspects: tuple[Aspect, ...], dtype: type[np.generic], evaluate: Evaluate
    ) -> Column:
        """Return the column stored under `key`, brought up to date."""
        return self._memo.column(key, aspects, dtype, evaluate).values

    def stored_codes(self, step: FilterStep, state: CycleState, pod: Pod, signature: object) -> Int32Column | None:
        """A code for each row from the memo, or None if there is no refusal. Raises PluginError."""
        column = self._stored(step, state, pod, signature)
        return column.values if column.may_differ else None

    def _stored(self, step: FilterStep, state: CycleState, pod: Pod, signature: object) -> MemoColumn:
        return self._memo.column(
            (("filter", step.name), signature), step.aspects, np.int32, lambda rows: self._ask(step, state, pod, rows)
        )

    def _codes(
        self, step: FilterStep, state: CycleState, pod: Pod, passing: BoolColumn, signatures: dict[str, object]
    ) -> Int32Column | None:
        """A code for each row, or None if there is no refusal."""
        if step.plain is not None and step.plain.is_full:
            step.plain.clear()
            self._memo.forget(("filter", step.name))
        signature = signatures.get(step.name)
        if signature is not None:
            return self.stored_codes(step, state, pod, signature)
        # Nothing will be stored: only the nodes that passed so far need an answer.
        everything = passing.all()
        rows = self._memo.all_rows() if everything else np.flatnonzero(passing)
        answers = self._ask(step, state, pod, rows)
        if answers is None or not answers.any():
            return None
        if everything and answers.dtype == np.int32:
            return answers
        codes = np.zeros(len(passing), np.int32)
        codes[rows] = answers
        return codes

    def _yield_to_nominated(self, outcome: FilterOutcome, passing: BoolColumn, state: CycleState, pod: Pod) -> None:
        """Refuse nodes on which the pod would take the room of pods nominated there.

        Only pods of the same or a higher priority count: room that was made for lower ones may be taken. A node that
        is refused anyway is asked again too: beside the nominated pods it may have more reasons, or other ones.
        """
        if not self.nominated.any():
            return
        asked = outcome.asked
        refusals: Mapping[int, Status] | None = None
        if np.count_nonzero(asked) > FEW:
            by_row = self.nominated.of(state, pod).by_row
            if len(by_row) > FEW:
                refusals = self.refusals_beside(state, pod)
        else:
            by_row = self.nominated.on(asked, pod)
        if refusals is None:
            refusals = self._refusals_one_by_one(by_row, asked, state, pod)
        for row, status in refusals.items():
            if asked[row]:
                outcome.overrides[row] = status
                passing[row] = False

    def _refusals_one_by_one(
        self, by_row: Mapping[int, Sequence[Pod]], asked: BoolColumn, state: CycleState, pod: Pod
    ) -> dict[int, Status]:
        refusals: dict[int, Status] = {}
        for row, others in by_row.items():
            status = self._refused_beside(others, state, pod, row) if asked[row] else None
            if status is not None:
                refusals[row] = status
        return refusals

    def _refused_beside(self, others: Collection[Pod], state: CycleState, pod: Pod, row: int) -> Status | None:
        # A pod whose nomination ended without our hearing of it may be on the node already.
        others = [other for other in others if not self.nodes.has_pod(row, other.uid)]
        if not others:
            return None
        state = state.clone()
        with self.nodes.what_if(row, add=others):
            for other in others:
                self.tell_added(state, pod, other, row)
            return self.run_one(state, pod, row)

    def _tell(
        self,
        point: str,
        plugin: PreFilterExtensions,
        call: Callable[[CycleState, Pod, Pod, NodeInfo], Status | None],
        state: CycleState,
        *told: *tuple[Pod, Pod, int],
    ) -> None:
        if plugin.name in state.skip_filter:
            return
        pod, other, row = told
        status = self._calls.run(point, state, plugin.name, call, state, pod, other, self.nodes.info(row))
        if status is not None:
            raise PluginError(plugin.name, point, status.message or status.code.label)

    def _ask(self, step: FilterStep, state: CycleState, pod: Pod, rows: Rows) -> Int32Column | None:
        codes = self._calls.run(FILTER, state, step.name, step.call.filter_nodes, state, pod, self.nodes, rows)
        if codes is not None:
            check_column(FILTER, step.name, codes, rows, "iub")
        return codes


def _is_signed(shape: Shape) -> Callable[[FilterStep], bool]:
    return lambda step: step.name in shape.signatures
