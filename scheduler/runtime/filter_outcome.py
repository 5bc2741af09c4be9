"""What is asked and said at Filter: a plugin, whom to ask about pods of one shape, and the answers for all nodes."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from scheduler.api.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.nodes import Aspect, BoolColumn, Int32Column, Rows
from scheduler.framework.plugin import FilterNodesPlugin, FilterPlugin, Plugin, SignPlugin
from scheduler.framework.status import Code, Status
from scheduler.runtime.answers.views import KeptPassing
from scheduler.runtime.per_node import PlainFilter
from scheduler.runtime.plugin_calls import as_plugin_error

FILTER: Final = "Filter"


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
class FilterPlan:
    """Who is asked about a pod of one shape, given which plugins skip it."""

    signed: tuple[tuple[FilterStep, Hashable], ...]
    """The first plugins in a row whose answers are stored, with the pod's signatures."""

    others: tuple[FilterStep, ...]
    """All after these."""

    aspects: frozenset[Aspect]
    """What the signed ones read."""

    plain: tuple[PlainFilter, ...] = ()
    """Those of the signed ones that answer node by node."""

    was_used: bool = False
    """Nothing is kept for the first pod of a shape: it may be the only one."""

    kept: KeptPassing | None = None
    """Where the signed ones let the pod pass."""

    def refusals(self) -> list[tuple[FilterStep, Int32Column]]:
        """Return what the signed plugins said, as an outcome has it, once they were asked."""
        assert self.kept is not None, "they were asked"
        answers = zip(self.signed, self.kept.columns, strict=True)
        return [(step, column.values) for (step, _), column in answers if column.may_differ]


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

    kept: KeptPassing | None = None
    """What says the same as `feasible`, if that is kept."""

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


def aspects_of(plugin: Plugin) -> tuple[Aspect, ...]:
    """What the plugin reads of a node. Even an answer that reads nothing is worked out when a node comes."""
    return tuple(plugin.aspects or Aspect.NAME) if isinstance(plugin, SignPlugin) else ()
