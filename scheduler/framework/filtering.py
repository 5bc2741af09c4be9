"""Filter for all nodes at once, nominated pods included, and what it found.

Rule: pkg/scheduler/framework/runtime/framework.go at v1.36.3 (RunFilterPlugins, RunFilterPluginsWithNominatedPods).
kube-scheduler asks plugin after plugin for one node after the other; we ask node after node of one plugin after the
other. What a node is refused for is the same: the first plugin in order that refuses it.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from scheduler.api.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.errors import PluginError
from scheduler.framework.forms import PlainFilter
from scheduler.framework.memo import ChangingColumns, Column, Evaluate, Memo
from scheduler.framework.nodes import Aspect, BoolColumn, Int32Column, NodeInfo, Rows
from scheduler.framework.plugin import FilterNodesPlugin, FilterPlugin, Plugin, PreFilterExtensions, SignPlugin
from scheduler.framework.plugin_calls import PluginCalls, as_plugin_error, check_column
from scheduler.framework.status import Code, Status

FILTER: Final = "Filter"
ADD_POD: Final = "PreFilterExtensionAddPod"
REMOVE_POD: Final = "PreFilterExtensionRemovePod"


class WhatIfColumns(ChangingColumns, Protocol):
    """Nodes on which pods can be put or taken away for a moment."""

    def what_if(
        self, row: int, add: Collection[Pod] = (), remove: Collection[Pod] = ()
    ) -> AbstractContextManager[None]: ...


class FilterStep:
    """One plugin at Filter, whatever its form, with what the memo needs to know."""

    __slots__ = ("aspects", "call", "name", "plain", "sign")

    def __init__(self, plugin: Plugin) -> None:
        self.name = plugin.name
        self.plain = PlainFilter(plugin) if isinstance(plugin, FilterPlugin) else None
        self.call: PlainFilter | FilterNodesPlugin
        if self.plain is not None:
            self.call = self.plain
        elif isinstance(plugin, FilterNodesPlugin):
            self.call = plugin
        else:
            raise TypeError(f"{plugin.name} has no Filter")
        self.sign = plugin.sign if isinstance(plugin, SignPlugin) else None
        self.aspects = aspects_of(plugin)

    def status(self, state: CycleState, pod: Pod, code: int) -> Status:
        """Return the refusal behind a code. Raises PluginError."""
        try:
            return self.call.status_of(state, pod, code).by(self.name)
        except Exception as error:
            raise as_plugin_error(FILTER, self.name, error) from error


@dataclass(slots=True)
class FilterOutcome:
    """What every plugin said about every node that was asked about."""

    feasible: Rows
    """Where the pod can run, in ascending order."""

    asked: BoolColumn
    """Which rows were looked at."""

    codes: list[tuple[FilterStep, Int32Column]]
    """Plugin → a reason code for each row, in the plugins' order. Columns without any refusal are left out."""

    overrides: dict[int, Status] = field(default_factory=dict)
    """Rows that are refused for the sake of pods nominated there."""

    def status(self, state: CycleState, pod: Pod, row: int) -> Status | None:
        """Return why a row was refused; None if it is feasible or was not looked at."""
        if row in self.overrides:
            return self.overrides[row]
        if not self.asked[row]:
            return None
        for step, codes in self.codes:
            if codes[row]:
                return step.status(state, pod, int(codes[row]))
        return None

    def count_into(self, diagnosis: Diagnosis, state: CycleState, pod: Pod) -> None:
        """Count the refusals by reason."""
        left = self.asked.copy()
        for row, status in self.overrides.items():
            left[row] = False
            diagnosis.add(status, 1)
        for step, codes in self.codes:
            refused = codes[left]
            for code, nodes in zip(*np.unique(refused[refused != 0], return_counts=True), strict=True):
                status = step.status(state, pod, int(code))
                diagnosis.add(status, int(nodes))
            left &= codes == 0

    def refused_with(self, code: Code, state: CycleState, pod: Pod) -> BoolColumn:
        """Return which rows were refused with a status of this code."""
        left = self.asked.copy()
        found = np.zeros(len(left), np.bool_)
        for row, status in self.overrides.items():
            left[row] = False
            found[row] = status.code is code
        for step, codes in self.codes:
            for reason in np.unique(codes[left]).tolist():
                if reason and step.status(state, pod, reason).code is code:
                    found |= left & (codes == reason)
            left &= codes == 0
        return found


class Filtering:
    """The Filter plugins of one profile."""

    def __init__(
        self,
        plugins: Sequence[Plugin],
        extensions: Sequence[PreFilterExtensions],
        nodes: WhatIfColumns,
        memo: Memo,
        nominated: Callable[[], Iterator[tuple[str, Collection[Pod]]]],
        calls: PluginCalls,
    ) -> None:
        """`nominated` yields each node that is promised to pods, with these pods."""
        self.steps = tuple(map(FilterStep, plugins))
        self.nodes = nodes
        self._extensions = tuple(extensions)
        self._memo = memo
        self._nominated = nominated
        self._calls = calls

    def run(self, state: CycleState, pod: Pod, asked: BoolColumn, signatures: dict[str, object]) -> FilterOutcome:
        """Return where `pod` can run among the rows that are `asked`. Raises PluginError."""
        outcome = FilterOutcome(np.arange(0), asked, [])
        if not asked.any():
            return outcome
        try:
            passing = self._ask_all(outcome, asked.copy(), state, pod, signatures)
            self._yield_to_nominated(outcome, passing, state, pod)
        except PluginError:
            # Not if it failed for nodes only that are refused beside their nominated pods: kube-scheduler begins with
            # these, and asks no further.
            outcome = FilterOutcome(np.arange(0), asked, [])
            passing = asked.copy()
            self._yield_to_nominated(outcome, passing, state, pod)
            if not outcome.overrides:
                raise
            passing = self._ask_all(outcome, passing, state, pod, signatures)
        outcome.feasible = np.flatnonzero(passing)
        return outcome

    def _ask_all(
        self, outcome: FilterOutcome, passing: BoolColumn, state: CycleState, pod: Pod, signatures: dict[str, object]
    ) -> BoolColumn:
        """Ask the plugins in turn about the rows that pass so far; return which pass all. Raises PluginError."""
        for step in self.steps:
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
        column = self._memo.column(
            (("filter", step.name), signature), step.aspects, np.int32, lambda rows: self._ask(step, state, pod, rows)
        )
        return column.values if column.may_differ else None

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
        rows = np.flatnonzero(passing)
        answers = self._ask(step, state, pod, rows)
        if answers is None or not answers.any():
            return None
        codes = np.zeros(len(passing), np.int32)
        codes[rows] = answers
        return codes

    def _yield_to_nominated(self, outcome: FilterOutcome, passing: BoolColumn, state: CycleState, pod: Pod) -> None:
        """Refuse nodes on which the pod would take the room of pods nominated there.

        Only pods of the same or a higher priority count: room that was made for lower ones may be taken. A node that
        is refused anyway is asked again too: beside the nominated pods it may have more reasons, or other ones.
        """
        for name, nominated in self._nominated():
            row = self.nodes.row_of(name)
            if row is None or not outcome.asked[row]:
                continue
            before = [other for other in nominated if other.priority >= pod.priority and other.uid != pod.uid]
            status = self._refused_beside(before, state, pod, row) if before else None
            if status is not None:
                outcome.overrides[row] = status
                passing[row] = False

    def _refused_beside(self, others: Collection[Pod], state: CycleState, pod: Pod, row: int) -> Status | None:
        # A pod whose nomination ended without our hearing of it may be on the node already.
        here = {other.uid for other in self.nodes.info(row).pods}
        others = [other for other in others if other.uid not in here]
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


def aspects_of(plugin: Plugin) -> tuple[Aspect, ...]:
    """What the plugin reads of a node. Even an answer that reads nothing is worked out when a node comes."""
    return tuple(plugin.aspects or Aspect.NAME) if isinstance(plugin, SignPlugin) else ()
