"""Filter's answers for a node without some of its pods. Only the caller sees the change.

    runs.begin(state, pod) ─► simulate(row) ─► remove ─► refusal ─► reprieve ─► as if nothing had been

What does not depend on the pods of a node is answered once for all nodes, from stored columns or, for plugins that do
not sign, as `IgnoresPods`; and so is a yes that fewer pods do not change (`MonotoneInPods`). If every other
plugin can simulate by itself (`DryRunFilter`), nothing is changed. Otherwise the pods are taken off the live table and
put back, and every plugin is asked again: slower, and right for any plugin.

Rule: RunFilterPluginsWithNominatedPods, RunPreFilterExtensionAddPod and …RemovePod in
pkg/scheduler/framework/runtime/framework.go at v1.36.3.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Final, Self

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.handle import PodNominator
from scheduler.framework.nodes.columns import locked
from scheduler.framework.nodes.nodes import Aspect, BoolColumn, Int32Column, Int64Column, Rows
from scheduler.framework.plugin import FilterNodesPlugin
from scheduler.framework.preemption.dry_run import Violates
from scheduler.framework.preemption.dry_run_filter import BulkSimulator, MonotoneInPods, SimulatedNode
from scheduler.framework.preemption.nominated import NominatedPods, yields_to
from scheduler.framework.status import Status
from scheduler.runtime.answers.pod_classes import KnownSpec
from scheduler.runtime.filtering import Filtering
from scheduler.runtime.guards.plugin_faults import as_plugin_error
from scheduler.runtime.plans import FILTER, FilterStep
from scheduler.runtime.preemption.ranked_pods import RankedLowerPods, RankedPods
from scheduler.runtime.preemption.reprieve import Reprieve

NO_PODS: Final = 2**31
"""The lowest priority on a node without pods: above all that there are."""

_CODE: Final = 2**32 - 1

_OF_PODS: Final = frozenset((Aspect.REQUESTED, Aspect.PORTS, Aspect.PODS))


class DryRuns:
    """Implements framework.preemption.dry_run.DryRuns.

    A handle has it before there is a profile: `attach` brings that.
    """

    def __init__(self) -> None:
        self._profile: _Profile | None = None

    def attach(self, filtering: Filtering, nominator: PodNominator) -> None:
        self._profile = _Profile(filtering, nominator)

    def begin(self, state: CycleState, pod: Pod) -> "DryRun":
        if self._profile is None:
            raise LookupError("a plugin asked for a dry run before its profile was built")
        return DryRun(self._profile, state, pod)

    def lower_pods(self, priority: int, rows: Rows) -> RankedLowerPods:
        """Return the pods of a lower priority on each of `rows`, which are nodes."""
        if self._profile is None:
            raise LookupError("there is no profile yet")
        return self._profile.ranked.below(priority, rows)

    def refusals_with_nominated(self, state: CycleState, pod: Pod) -> tuple[dict[int, Status], Rows] | None:
        """Return what `DryRun.refusals_with_nominated` does."""
        return self.begin(state, pod).refusals_with_nominated()


class _Profile:
    """The common parts of all dry runs of a profile."""

    __slots__ = ("filtering", "nodes", "nominator", "ranked")

    def __init__(self, filtering: Filtering, nominator: PodNominator) -> None:
        self.filtering = filtering
        self.nodes = filtering.nodes
        self.nominator = nominator
        self.ranked = RankedPods(filtering.nodes)


class DryRun:
    """Implements framework.preemption.dry_run.DryRun."""

    def __init__(self, profile: _Profile, state: CycleState, pod: Pod) -> None:
        self._profile = profile
        self._state = state
        self._pod = pod
        self._steps = [step for step in profile.filtering.steps if step.name not in state.skip_filter]
        self._simulators: list[tuple[int, FilterStep, Callable[[int], SimulatedNode]]] = []
        self._stored: list[tuple[int, FilterStep, Int32Column]] = []
        self._table_only: BoolColumn | None = None
        """Rows that have to be simulated on the table; None if there are none."""
        self._first_monotone = len(self._steps)
        """Before the place of this plugin such rows are answered as all others."""
        known: KnownSpec = state.known_spec
        self._class = known.pod_class
        self._quick_steps = self._sort_out(known.pod_class.signatures)
        """So many of the first steps are answered without changing the table."""
        self.is_quick = self._quick_steps == len(self._steps)
        """Whether nodes are simulated without changing the table."""
        self._first_stored = self._first_refusing()

    @property
    def holds_everywhere(self) -> bool:
        """Whether every node is simulated without changing the table: no pod is nominated to any."""
        return self.is_quick and self._table_only is None and not self._profile.nominator.nodes

    @property
    def situation(self) -> Hashable:
        if not self.is_quick or any(step.name not in self._class.signatures for step in self._steps):
            return None
        log = self._profile.nodes.change_log
        changes = tuple([log(aspect).position for aspect in Aspect])
        return self._class, self._pod.priority, self._state.skip_filter, changes, self._nominated_pods()

    @property
    def lowest_priorities(self) -> Int64Column:
        """The lowest priority of the pods on each row; NO_PODS where there are none."""
        nodes = self._profile.nodes

        def lowest(rows: Rows) -> Int64Column:
            in_use = nodes.in_use
            found = [
                min((pod.priority for pod in nodes.info(row).pods), default=NO_PODS) if in_use[row] else NO_PODS
                for row in rows.tolist()
            ]
            return np.array(found, np.int64)

        return self._profile.filtering.stored((("lowest priority",), None), (Aspect.STARTS,), np.int64, lowest)

    @property
    def hopeless(self) -> BoolColumn:
        return self._first_stored < len(self._steps) if self.is_quick else np.zeros(self._profile.nodes.size, np.bool_)

    def first_fitting(self, rows: Rows) -> int | None:
        refused = self._refused_in_bulk(rows)
        left: list[int] = (rows if refused is None else rows[~refused]).tolist()
        for row in left:
            with self.simulate(row) as node:
                if node.refusal() is None:
                    return row
        return None

    def _refused_in_bulk(self, rows: Rows) -> BoolColumn | None:
        """Say which rows refuse the pod now, except those that are simulated on the table; None: unknown."""
        simulator = self._bulk_simulator() if self.is_quick else None
        if simulator is None:
            return None
        try:
            codes = simulator.codes_with(self._nominated_pods(), rows)
        except BaseException:  # noqa: BLE001  asked about one node after the other it fails for some of them at most
            return None
        refused: BoolColumn = (codes != 0) | (self._first_stored[rows] < len(self._steps))
        return refused if self._table_only is None else refused & ~self._table_only[rows]

    def simulate(self, row: int) -> "QuickSimulation | TableSimulation":
        nominated = self._nominated(row)
        if nominated or not self.is_quick or (self._table_only is not None and self._table_only[row]):
            return TableSimulation(self._profile.filtering, self._state, self._pod, row, nominated)
        index = self._first_stored.item(row)
        asked = []
        for at, step, begin in self._simulators:
            if at < index:
                try:
                    asked.append((step, begin(row)))
                except BaseException as error:
                    raise as_plugin_error(FILTER, step.name, error) from error
        refusing = next(((step, codes.item(row)) for at, step, codes in self._stored if at == index), None)
        return QuickSimulation(self._state, self._pod, asked, refusing)

    def simulate_all(self, rows: Rows, violates: Violates) -> Reprieve | None:
        simulator = self._bulk_simulator() if self.is_quick else None
        if simulator is None:
            return None
        try:
            lower = self._profile.ranked.below(self._pod.priority, rows)
            simulated = simulator.without(lower, rows, self._nominated_pods())
            return Reprieve(lower, simulated, partial(self._simulators[0][1].status, self._state, self._pod), violates)
        except BaseException:  # noqa: BLE001  asked about one node after the other it fails for some of them at most
            return None

    def only_singly(self, rows: Rows) -> BoolColumn:
        """Which of `rows` have to be asked about by `simulate` even where the others are simulated in bulk.

        Those that a stored answer refuses in any case, and those that have to be simulated on the table.
        """
        found: BoolColumn = self._first_stored[rows] < len(self._steps)
        return found if self._table_only is None else found | self._table_only[rows]

    def refusals_with_nominated(self) -> tuple[dict[int, Status], Rows] | None:
        """Say which nodes would refuse the pod if those were there that are nominated to them, and why.

        With them the rows that have to be asked about on the table; None if all have to. Raises PluginError.
        """
        simulator = self._bulk_simulator()
        if simulator is None:
            return None
        at = self._simulators[0][0]
        nominated = self._nominated_pods()
        rows = nominated.rows()
        try:
            codes = simulator.codes_with(nominated, rows)
        except BaseException:  # noqa: BLE001  asked about one node after the other it fails for some of them at most
            return None
        places = np.minimum(self._first_stored[rows], np.where(codes != 0, at, len(self._steps)))
        quick_steps = np.full(len(rows), self._quick_steps)
        if self._table_only is not None:
            quick_steps[self._table_only[rows]] = self._first_monotone
        is_known = (places < quick_steps) | (quick_steps == len(self._steps))
        for place, _, stored in self._stored:
            codes = np.where(places == place, stored[rows], codes)
        is_refused = is_known & (places < len(self._steps))
        kinds, of_rows = np.unique(places[is_refused] << 32 | codes[is_refused], return_inverse=True)
        statuses = [self._steps[kind >> 32].status(self._state, self._pod, kind & _CODE) for kind in kinds.tolist()]
        found = [statuses[kind] for kind in of_rows.tolist()]
        return dict(zip(rows[is_refused].tolist(), found, strict=True)), rows[~is_known]

    def _bulk_simulator(self) -> BulkSimulator | None:
        """Return the plugin's simulator if only one simulates, and can do so for many nodes at once."""
        simulator = self._simulators[0][2] if len(self._simulators) == 1 else None
        return simulator if isinstance(simulator, BulkSimulator) else None

    def _nominated_pods(self) -> NominatedPods:
        return self._profile.filtering.nominated.of(self._state, self._pod)

    def _nominated(self, row: int) -> Sequence[Pod]:
        """The pods to which this one has to yield on a node."""
        nominator, name = self._profile.nominator, self._profile.nodes.names()[row]
        pods = nominator.nominated_pods(name)
        return [other for other in pods if yields_to(self._pod, other, name, nominator)] if pods else ()

    def _sort_out(self, signatures: Mapping[str, Hashable]) -> int:
        """Find how each plugin is asked; return the place of the first that needs the table changed."""
        profile = self._profile
        filtering = profile.filtering
        for at, step in enumerate(self._steps):
            signature = signatures.get(step.name)
            try:
                if step.dry_run is not None:
                    self._simulators.append((at, step, step.dry_run.simulator(self._state, self._pod, profile.nodes)))
                elif step.ignores_pods is not None:
                    self._stored.append((at, step, self._codes_now(step.ignores_pods)))
                elif step.monotone is not None:
                    self._leave_to_table(step.monotone, self._codes_now(step.monotone) != 0)
                    self._first_monotone = min(self._first_monotone, at)
                elif signature is None or not _OF_PODS.isdisjoint(step.aspects) or filtering.is_extended(step.name):
                    return at
                elif (codes := filtering.stored_codes(step, self._state, self._pod, signature)) is not None:
                    self._stored.append((at, step, codes))
            except BaseException:  # noqa: BLE001  it fails only for the nodes that it is asked about in its turn
                return at
        return len(self._steps)

    def _codes_now(self, plugin: FilterNodesPlugin) -> Int32Column:
        """A plugin's answers for all nodes with their current pods."""
        nodes = self._profile.nodes
        rows = locked(np.flatnonzero(nodes.in_use))
        codes = np.zeros(nodes.size, np.int32)
        found = plugin.filter_nodes(self._state, self._pod, nodes, rows)
        if found is not None:
            codes[rows] = found
        return codes

    def _leave_to_table(self, plugin: MonotoneInPods, refused: BoolColumn) -> None:
        """Note where the answer may change: removed pods may help where it refuses, nominated pods may harm."""
        nominated = self._nominated_pods()
        rows = nominated.rows()
        if len(rows):
            refused[rows] |= ~plugin.still_admits(self._state, self._pod, nominated, rows)
        self._table_only = refused if self._table_only is None else self._table_only | refused

    def _first_refusing(self) -> Int64Column:
        """For each row the place of the first plugin that refuses it with any pods; beyond all plugins if none does."""
        found = np.full(self._profile.nodes.size, len(self._steps), np.int64)
        for at, _, codes in reversed(self._stored):
            found[codes != 0] = at
        return found


class QuickSimulation:
    """A node evaluated by plugins that simulate it, and by stored answers."""

    depends_on_others: Final = False

    __slots__ = ("_asked", "_pod", "_refusing", "_state")

    def __init__(
        self,
        state: CycleState,
        pod: Pod,
        asked: Sequence[tuple[FilterStep, SimulatedNode]],
        refusing: tuple[FilterStep, int] | None,
    ) -> None:
        """`asked` come before `refusing`, the plugin and the code with which the node is refused in any case."""
        self._state = state
        self._pod = pod
        self._asked = asked
        self._refusing = refusing

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was changed."""

    def remove(self, others: Sequence[Pod]) -> None:
        for step, simulated in self._asked:
            remove = simulated.remove
            try:
                for other in others:
                    remove(other)
            except BaseException as error:
                raise as_plugin_error(FILTER, step.name, error) from error

    def refusal(self) -> Status | None:
        for step, simulated in self._asked:
            code = _code(step, simulated)
            if code:
                return step.status(self._state, self._pod, code)
        if self._refusing is None:
            return None
        step, code = self._refusing
        return step.status(self._state, self._pod, code)

    def reprieve(self, others: Sequence[Pod]) -> list[Pod]:
        if self._refusing is not None:
            return list(others)
        if len(self._asked) == 1:
            return _reprieved_by_one(others, *self._asked[0])
        return [other for other in others if not self._admits(other)]

    def takes_back(self, others: Sequence[Pod]) -> bool:
        staying_away = self.reprieve(others)
        if staying_away:
            self.remove([other for other in others if other not in staying_away])
        return not staying_away

    def _admits(self, other: Pod) -> bool:
        """Put a pod back if every plugin agrees; those that agreed before one does not let it go again."""
        for at, (step, simulated) in enumerate(self._asked):
            try:
                if not simulated.admit(other):
                    for _, before in self._asked[:at]:
                        before.remove(other)
                    return False
            except BaseException as error:
                raise as_plugin_error(FILTER, step.name, error) from error
        return True


def _reprieved_by_one(others: Sequence[Pod], step: FilterStep, simulated: SimulatedNode) -> list[Pod]:
    """A single plugin is the usual case, and half of the work of a preemption."""
    admit = simulated.admit
    try:
        return [other for other in others if not admit(other)]
    except BaseException as error:
        raise as_plugin_error(FILTER, step.name, error) from error


def _code(step: FilterStep, simulated: SimulatedNode) -> int:
    try:
        return simulated.code()
    except BaseException as error:
        raise as_plugin_error(FILTER, step.name, error) from error


class TableSimulation:
    """A node evaluated by calling every plugin, with its pods really taken off the table.

    Of pods on other nodes only plugins that count pods learn.
    """

    depends_on_others: Final = True

    def __init__(self, filtering: Filtering, state: CycleState, pod: Pod, row: int, nominated: Sequence[Pod]) -> None:
        """`nominated`: the pods to which this one has to yield on the node."""
        self._filtering = filtering
        self._state = state.clone()
        self._pod = pod
        self._row = row
        self._nominated = nominated
        self._away: dict[str, AbstractContextManager[None]] = {}
        self._order = filtering.nodes.order_on(row)
        self._here = frozenset(self._order)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for change in reversed(self._away.values()):
            change.__exit__(None, None, None)
        self._away.clear()
        self._filtering.nodes.restore_order(self._row, self._order)

    def remove(self, others: Sequence[Pod]) -> None:
        for other in others:
            row = self._row_of(other)
            if row == self._row:
                change = self._filtering.nodes.what_if(row, remove=(other,))
                change.__enter__()
                self._away[other.uid] = change
            self._filtering.notify_removed(self._state, self._pod, other, row)

    def _row_of(self, other: Pod) -> int:
        elsewhere = None if other.uid in self._here else self._filtering.nodes.row_of(other.node_name)
        return self._row if elsewhere is None else elsewhere

    def refusal(self) -> Status | None:
        return self._filtering.run_one_with_nominated(self._nominated, self._state, self._pod, self._row)

    def reprieve(self, others: Sequence[Pod]) -> list[Pod]:
        return [other for other in others if not self.takes_back((other,))]

    def takes_back(self, others: Sequence[Pod]) -> bool:
        for other in others:
            change = self._away.pop(other.uid, None)
            if change is not None:
                change.__exit__(None, None, None)
            self._filtering.notify_added(self._state, self._pod, other, self._row_of(other))
        if self.refusal() is None:
            return True
        self.remove(others)
        return False
