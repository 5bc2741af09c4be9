"""What every plugin says of every node, for one pod: a decision stops at the first refusal, an explanation does not.

Nothing is counted or timed, and PostFilter is not asked: a running scheduler goes on as if it had not been asked.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.api.pod import Pod
from scheduler.cycle.algorithm import PRE_FILTER_RESULT, cut_off_by
from scheduler.framework.columns import BoolColumn, Int32Column, Rows
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.errors import PluginError
from scheduler.framework.plugin import PreFilterPlugin, PreFilterResult
from scheduler.framework.status import Code, Status, unresolvable
from scheduler.runtime.framework import POD_LIMITS, Framework
from scheduler.runtime.guards.plugin_faults import as_plugin_error
from scheduler.runtime.guards.return_values import check_pre_filter
from scheduler.runtime.plans import FilterStep
from scheduler.state.node_table import NodeTable


@dataclass(slots=True)
class Judgement:
    """Columns have an entry for each row of the node table; valid as long as nothing there changes."""

    pod: Pod
    state: CycleState
    in_use: BoolColumn
    of_pod: list[Status] = field(default_factory=list)
    """Refusals of the pod as a whole, each with its plugin."""

    refusals: list[tuple[FilterStep, Int32Column]] = field(default_factory=list)
    """Each plugin that refuses any node, and its reason codes."""

    others: dict[int, list[Status]] = field(default_factory=dict)
    """Refusals of single nodes that are in no column: outside of PreFilter's result, or kept for nominated pods."""

    failures: list[PluginError] = field(default_factory=list)

    @property
    def passing(self) -> BoolColumn:
        """The nodes that no plugin refuses, as if nothing was said of the pod as a whole."""
        passing = self.in_use.copy()
        for _, codes in self.refusals:
            passing &= codes == 0
        passing[list(self.others)] = False
        return passing

    @property
    def fits(self) -> Rows:
        """Where the pod can run, in ascending order."""
        if self.of_pod or self.failures:
            return np.arange(0)
        return np.flatnonzero(self.passing)

    def refusals_of(self, row: int) -> Iterator[tuple[FilterStep | None, Status]]:
        """Yield what each plugin says that refuses a node. Raises PluginError."""
        for step, codes in self.refusals:
            if codes[row]:
                yield step, step.status(self.state, self.pod, int(codes[row]))
        for status in self.others.get(row, ()):
            yield None, status


def judge(framework: Framework, table: NodeTable, pod: Pod, row: int | None = None) -> Judgement:
    """Ask all PreFilter and Filter plugins about all nodes, or about the one in a row.

    One that fails is in `failures`, and has no other say. Raises PluginError if a plugin cannot say what a pod is.
    """
    state = CycleState()
    found = Judgement(pod, state, table.in_use.copy())
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
    return found


def _pre_filter(framework: Framework, table: NodeTable, found: Judgement) -> tuple[frozenset[str] | None, Diagnosis]:
    """Return the only nodes that may do, if that is said, and who says so.

    A plugin that refuses the pod has prepared nothing: its Filter is left out.
    """
    diagnosis = Diagnosis(table.count)
    names: frozenset[str] | None = None
    for plugin in framework.plugins.of("pre_filter", PreFilterPlugin):
        if plugin.name in found.state.skip_filter:
            continue
        try:
            answer: object = plugin.pre_filter(found.state, found.pod, table)
            checked = None if answer is None else check_pre_filter(plugin.name, plugin.pre_filter, answer)
        except BaseException as error:  # noqa: BLE001 - whatever a plugin raises is what it says; nothing is awaited
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


def _cut_off(table: NodeTable, found: Judgement, names: Iterable[str], by: Diagnosis) -> None:
    """Refuse all nodes but these. Where the Filter of such a plugin refuses the node as well, it says more."""
    left = found.in_use.copy()
    left[[row for name in names if (row := table.row_of(name)) is not None]] = False
    for step, codes in found.refusals:
        if step.name in by.unschedulable_plugins:
            left &= codes == 0
    status = cut_off_by(by).by(PRE_FILTER_RESULT)
    for row in np.flatnonzero(left).tolist():
        found.others[row] = [status]


def _filter(step: FilterStep, table: NodeTable, found: Judgement) -> None:
    """Ask about all nodes; if that fails, only about those of which a decision would ask."""
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


def _codes(step: FilterStep, table: NodeTable, found: Judgement, rows: Rows) -> Int32Column:
    answers = step.call.filter_nodes(found.state, found.pod, table, rows)
    codes = np.zeros(len(found.in_use), np.int32)
    if answers is not None:
        codes[rows] = answers
    return codes


def _yield_to_nominated(framework: Framework, found: Judgement) -> None:
    """Refuse the nodes on which the pod would fit only without the pods that are nominated there."""
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


def _kept_for(others: Sequence[Pod], status: Status) -> Status:
    names = ", ".join(sorted(str(other) for other in others)[:3])
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    return unresolvable(f"room is kept for {names}{more}, nominated to the node: {status.message}").by(status.plugin)
