"""Filter's answer: the feasible nodes, and the refusals of all others."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.nodes.nodes import BoolColumn, Int32Column, Rows
from scheduler.framework.status import Code, Status
from scheduler.runtime.answers.views import FeasibleNodes
from scheduler.runtime.plans import FilterStep


@dataclass(slots=True)
class FilterOutcome:
    """Filter's answer for every node that was asked about."""

    feasible: Rows
    """The feasible rows, in ascending order."""

    asked: BoolColumn
    """Which rows were looked at."""

    codes: list[tuple[FilterStep, Int32Column]]
    """Plugin → a reason code for each row, in the plugins' order. Columns without any refusal are left out."""

    overrides: dict[int, Status] = field(default_factory=dict)
    """Rows that are refused because of the pods nominated to them."""

    view: FeasibleNodes | None = None
    """The stored view with the same rows as `feasible`, if there is one."""

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

    def refusals(self, state: CycleState, pod: Pod) -> Iterator[tuple[Status, Rows]]:
        """Yield each reason, and the rows that it refuses."""
        left = self.asked.copy()
        for row, status in self.overrides.items():
            left[row] = False
            yield status, np.array([row], np.intp)
        for step, codes in self.codes:
            refused = np.where(left, codes, 0)
            for code in np.unique(refused[refused != 0]).tolist():
                yield step.status(state, pod, code), np.flatnonzero(refused == code)
            left &= codes == 0

    def count_into(self, diagnosis: Diagnosis, state: CycleState, pod: Pod) -> None:
        """Count the refusals by reason."""
        left = self.asked.copy()
        if self.overrides:
            left[list(self.overrides)] = False
            statuses = {id(status): status for status in self.overrides.values()}  # a status is slow to hash
            for each, nodes in Counter(map(id, self.overrides.values())).items():
                diagnosis.add(statuses[each], nodes)
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
        if self.overrides:
            left[list(self.overrides)] = False
            found[[row for row, status in self.overrides.items() if status.code is code]] = True
        for step, codes in self.codes:
            for reason in np.unique(codes[left]).tolist():
                if reason and step.status(state, pod, reason).code is code:
                    found |= left & (codes == reason)
            left &= codes == 0
        return found
