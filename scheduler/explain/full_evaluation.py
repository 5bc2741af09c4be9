"""The answers of every plugin about every node, for one pod. A decision stops at the first refusal of a node.

Nothing is counted or timed, and PostFilter is not asked: a running scheduler goes on as if it had not been asked.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import some_of
from scheduler.cycle.algorithm import PRE_FILTER_RESULT, Algorithm, cut_off_by
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes.columns import BoolColumn, Int32Column, Rows
from scheduler.framework.plugin import PreFilterPlugin, PreFilterResult
from scheduler.framework.status import Code, Status, unresolvable
from scheduler.runtime.framework import POD_LIMITS, Framework
from scheduler.runtime.guards.plugin_faults import as_plugin_error
from scheduler.runtime.guards.return_values import check_pre_filter
from scheduler.runtime.plans import FilterStep
from scheduler.state.nodes.node_table import NodeTable


@dataclass(slots=True)
class FullEvaluation:
    """All refusals of one pod. Columns have an entry for each row of the node table; valid until a node changes."""

    pod: Pod
    state: CycleState
    in_use: BoolColumn
    of_pod: list[Status] = field(default_factory=list)
    """Refusals of the pod as a whole, each with its plugin."""

    refusals: list[tuple[FilterStep, Int32Column]] = field(default_factory=list)
    """Each plugin that refuses any node, and its reason codes."""

    others: dict[int, list[Status]] = field(default_factory=dict)
    """Row → refusals that are in no column: nodes outside a PreFilter result, or kept for nominated pods or a group."""

    failures: list[PluginError] = field(default_factory=list)

    @property
    def passing(self) -> BoolColumn:
        """The nodes that no plugin refuses, refusals of the whole pod aside."""
        passing = self.in_use.copy()
        for _, codes in self.refusals:
            passing &= codes == 0
        passing[list(self.others)] = False
        return passing

    @property
    def fits(self) -> Rows:
        """The rows where the pod can run, in ascending order."""
        if self.of_pod or self.failures:
            return np.arange(0)
        return np.flatnonzero(self.passing)

    def refusals_of(self, row: int) -> Iterator[tuple[FilterStep | None, Status]]:
        """Yield the refusal of each plugin that refuses a node. Raises PluginError."""
        for step, codes in self.refusals:
            if codes[row]:
                yield step, step.status(self.state, self.pod, int(codes[row]))
        for status in self.others.get(row, ()):
            yield None, status


def evaluate_fully(framework: Framework, algorithm: Algorithm, pod: Pod, row: int | None = None) -> FullEvaluation:
    """Run all PreFilter and Filter plugins on all nodes, or on one row.

    A plugin that fails is in `failures` and refuses nothing. Raises PluginError if one fails to classify the pod.
    """
    state, table = CycleState(), algorithm.table
    found = FullEvaluation(pod, state, table.in_use.copy())
    if row is not None:
        found.in_use[:] = False
        found.in_use[row] = True
    table.pods.decision += 1
    known = framework.classify(state, pod)
    if known.excess:
        found.of_pod.append(unresolvable(known.excess).by(POD_LIMITS))
        return found
    if framework.breaker.paused:
        state.skip_filter |= framework.breaker.off(pod.namespace)
    names, refusing = _pre_filter(framework, table, found)
    for step in framework.filtering.steps:
        if step.name not in state.skip_filter and table.count:
            _filter(step, table, found)
    if names is not None:
        _cut_off(table, found, names, refusing)
    _yield_to_nominated(framework, found)
    _keep_reserved(framework, algorithm, found)
    return found


def _pre_filter(
    framework: Framework, table: NodeTable, found: FullEvaluation
) -> tuple[frozenset[str] | None, Diagnosis]:
    """Return the node names of the PreFilter results, if any, and the plugins that gave them.

    A plugin that refuses the pod has prepared nothing: its Filter is skipped.
    """
    diagnosis = Diagnosis(table.count)
    names: frozenset[str] | None = None
    for plugin in framework.plugins.of("pre_filter", PreFilterPlugin):
        if plugin.name in found.state.skip_filter:
            continue
        try:
            answer: object = plugin.pre_filter(found.state, found.pod, table)
            checked = None if answer is None else check_pre_filter(plugin.name, plugin.pre_filter, answer)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything; nothing is awaited
            if not found.of_pod:  # a decision would have ended before
                found.failures.append(as_plugin_error("PreFilter", plugin.name, error))
            found.state.skip_filter |= {plugin.name}
            continue
        if isinstance(checked, PreFilterResult):
            diagnosis.unschedulable_plugins.add(plugin.name)
            names = checked.node_names if names is None else names & checked.node_names
        elif checked is not None:
            found.state.skip_filter |= {plugin.name}
            if checked.code is not Code.SKIP:
                found.of_pod.append(checked.by(plugin.name))
    return names, diagnosis


def _cut_off(table: NodeTable, found: FullEvaluation, names: Iterable[str], by: Diagnosis) -> None:
    """Refuse all other nodes, unless the Filter of such a plugin refuses them: its reason says more."""
    left = found.in_use.copy()
    left[[row for name in names if (row := table.row_of(name)) is not None]] = False
    for step, codes in found.refusals:
        if step.name in by.unschedulable_plugins:
            left &= codes == 0
    status = cut_off_by(by).by(PRE_FILTER_RESULT)
    for row in np.flatnonzero(left).tolist():
        found.others[row] = [status]


def _filter(step: FilterStep, table: NodeTable, found: FullEvaluation) -> None:
    """Run a Filter plugin on all nodes; if that fails, only on those that a decision would ask about."""
    try:
        codes = _codes(step, table, found, np.flatnonzero(found.in_use))
    except BaseException:  # noqa: BLE001 - as above
        passing = np.flatnonzero(found.passing)
        if found.of_pod or not len(passing):
            return
        try:
            codes = _codes(step, table, found, passing)
        except BaseException as error:  # noqa: BLE001 - as above
            found.failures.append(as_plugin_error("Filter", step.name, error))
            return
    if codes.any():
        found.refusals.append((step, codes))


def _codes(step: FilterStep, table: NodeTable, found: FullEvaluation, rows: Rows) -> Int32Column:
    answers = step.call.filter_nodes(found.state, found.pod, table, rows)
    codes = np.zeros(len(found.in_use), np.int32)
    if answers is not None:
        codes[rows] = answers
    return codes


def _yield_to_nominated(framework: Framework, found: FullEvaluation) -> None:
    """Refuse the nodes that the pod would fit only without the pods nominated to them."""
    finder = framework.filtering.nominated
    if found.of_pod or found.failures:
        return
    by_row = finder.on(found.passing, found.pod)
    for row, others in by_row.items():
        try:
            status = framework.filtering.run_one_with_nominated(others, found.state, found.pod, row)
        except PluginError as error:
            found.failures.append(error)
            return
        if status is not None:
            found.others[row] = [_kept_for(others, status)]


def _keep_reserved(framework: Framework, algorithm: Algorithm, found: FullEvaluation) -> None:
    """Refuse the nodes that are reserved for a group of pods."""
    if algorithm.kept.are_any and not found.failures:
        for row, refusal in algorithm.kept.closed_to(framework, algorithm.table, found.pod).items():
            if found.in_use[row]:
                found.others.setdefault(row, []).append(refusal)


def _kept_for(others: Sequence[Pod], status: Status) -> Status:
    names = some_of(sorted(map(str, others)), 3)
    return unresolvable(f"room is kept for {names}, nominated to the node: {status.message}").by(status.plugin)
