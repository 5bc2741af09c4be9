"""The nodes on which a pod could preempt victims, and which of them costs least.

Rules: defaultpreemption/default_preemption.go (SelectVictimsOnNode) and framework/preemption/preemption.go
(DryRunPreemption, pickOneNodeForPreemption) at v1.36.3.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from plugins.shared.eviction.budgets import Budgets
from plugins.shared.eviction.units import NO_UNITS, GroupUnits, victims_among
from scheduler import framework as fw
from scheduler.api.pods.importance import importance, started

NO_VICTIMS: Final = fw.unresolvable("No preemption victims found for incoming pod")

_FEW: Final = 500
"""At least this many rows are simulated at once: it takes twice as long as for a single one."""

Costs = tuple[int, int, int, int, int]
"""The costs of evicting the victims on a node; the first figure in which two nodes differ decides.

Violated budgets, the highest priority, the sum of the priorities, the number of victims, and when the one that runs
longest among those of the highest priority started: the later, the better.
"""


Exempt = Callable[[fw.Pod], bool]
"""Says of a pod of lower priority that it may not be evicted all the same. Raises PluginError."""


def exempt_none(_: fw.Pod) -> bool:
    """Exempt no pod."""
    return False


class Candidate(NamedTuple):
    """A node on which preemption would make room."""

    costs: Costs
    row: int


@dataclass(slots=True)
class SearchResult:
    """The result of a search over nodes."""

    candidates: list[Candidate] = field(default_factory=list)
    refusals: Counter[fw.Status] = field(default_factory=Counter)
    """Why nodes are no candidates → how many are not."""
    errors: list[str] = field(default_factory=list)


class CandidateSearch:
    """Searches candidates for one pod, part by part of the nodes, until there are enough."""

    def __init__(
        self,
        run: fw.DryRun,
        pod: fw.Pod,
        nodes: fw.NodeColumns,
        budgets: Budgets,
        is_exempt: Exempt = exempt_none,
        units: GroupUnits = NO_UNITS,
    ) -> None:
        self._units = units
        self._run = run
        self._pod = pod
        self._nodes = nodes
        self._budgets = budgets
        self._is_exempt = is_exempt

    def among(self, rows: fw.Rows, wanted: int) -> SearchResult:
        """Search `rows` in their order for `wanted` candidates, one of them without a violation.

        While each violates a budget the search goes on; at the end the first `wanted` are kept.
        """
        found = SearchResult()
        free: list[Candidate] = []
        violating: list[Candidate] = []
        refused: list[fw.Status] = []
        has_victims = self._run.lowest_priorities[rows] < self._pod.priority
        if len(self._units.rows):
            has_victims |= np.isin(rows, self._units.rows)
        without = len(rows) - int(np.count_nonzero(has_victims))
        if without:
            found.refusals[NO_VICTIMS] = without
        for row, answer in self._answers(rows[has_victims], max(wanted, _FEW)):
            if isinstance(answer, str):
                found.errors.append(answer)
            elif isinstance(answer, fw.Status):
                refused.append(answer)
            else:
                (violating if answer[0] else free).append(Candidate(answer, row))
                if free and len(free) + len(violating) >= wanted:
                    break
        statuses = {id(status): status for status in refused}  # a status is slow to hash
        for each, nodes in Counter(map(id, refused)).items():
            found.refusals[statuses[each]] += nodes
        found.candidates = [*free, *violating[:wanted]]
        return found

    def victims_of(self, row: int) -> Sequence[fw.Pod]:
        """Return the victims on a node that `among` found, the most important first. Raises PluginError."""
        answer = self.victims_on(row)
        if isinstance(answer, fw.Status):
            raise LookupError(f"{self._nodes.names()[row]} is no candidate: {answer.message}")
        return answer[0]

    def _answers(self, rows: fw.Rows, first: int) -> Iterator[tuple[int, Costs | fw.Status | str]]:
        """Yield for each row what it costs, why it is no candidate, or what went wrong.

        The rows are simulated in batches, the `first` so large, each twice as large as the one before.
        """
        begin, size = 0, first
        while begin < len(rows):
            part = rows[begin : begin + size]
            begin, size = begin + size, 2 * size
            answers = self._answers_in_bulk(part)
            for row, answer in zip(part.tolist(), answers, strict=True):
                yield row, self._answer(row) if answer is None else answer

    def _answers_in_bulk(self, rows: fw.Rows) -> Sequence[Costs | fw.Status | None]:
        """The answer for each row, None for those that have to be simulated one by one."""
        of_groups = np.isin(rows, self._units.rows)
        if of_groups.any():
            of_others = iter(self._answers_in_bulk(rows[~of_groups]))
            return [None if is_of_group else next(of_others) for is_of_group in of_groups.tolist()]
        if not len(rows):
            return ()
        found = self._run.simulate_all(rows, self._budgets.violating_on_nodes)
        if found is None:
            return [None] * len(rows)
        singly = self._run.only_singly(rows) | ~found.refused & (found.victims == 0)
        if self._is_exempt is not exempt_none:
            singly |= np.fromiter(map(self._has_exempt, rows.tolist()), np.bool_, len(rows))
        columns = (found.violations, found.highest_priorities, found.priority_sums, found.victims, -found.starts)
        answers: list[Costs | fw.Status | None] = list(zip(*(column.tolist() for column in columns), strict=True))
        for place in np.flatnonzero(found.refused & ~singly).tolist():
            answers[place] = found.status(place)
        for place in np.flatnonzero(singly).tolist():
            answers[place] = None
        return answers

    def _answer(self, row: int) -> Costs | fw.Status | str:
        try:
            answer = self.victims_on(row)
        except fw.PluginError as error:
            return str(error)
        if isinstance(answer, fw.Status):
            return answer
        victims, violations = answer
        if not victims:
            return f'expected at least one victim pod on node "{self._nodes.names()[row]}"'
        return costs(victims, violations)

    def may_evict(self, pod: fw.Pod) -> bool:
        """Return whether a pod may be a victim. Raises PluginError."""
        return (pod.spec.priority or 0) < self._pod.priority and not self._is_exempt(pod)

    def _has_exempt(self, row: int) -> bool:
        """Return whether a node has a pod of lower priority that is exempt, or may be."""
        priority = self._pod.priority
        try:
            return any(pod.priority < priority and self._is_exempt(pod) for pod in self._nodes.info(row).pods)
        except fw.PluginError:
            return True

    def victims_on(self, row: int) -> tuple[Sequence[fw.Pod], int] | fw.Status:
        """Return the victims on a node, the most important first, and how many of them violate a budget.

        A status says why no victims would help. Raises PluginError.
        """
        if row in self._units.rows:
            return self._victims_by_unit(row)
        potential = [pod for pod in self._nodes.info(row).pods if self.may_evict(pod)]
        if not potential:
            return NO_VICTIMS
        with self._run.simulate(row) as node:
            node.remove(potential)
            refusal = node.refusal()
            if refusal is not None:
                return refusal
            potential.sort(key=importance)
            victims, violations = not_spared(node, self._budgets, potential)
        if violations:
            victims.sort(key=importance)
        return victims, violations

    def _victims_by_unit(self, row: int) -> tuple[Sequence[fw.Pod], int] | fw.Status:
        here = self._nodes.info(row).pods
        units = [
            unit
            for unit in self._units.on(here)
            if unit.priority < self._pod.priority and not any(map(self._is_exempt, unit.pods))
        ]
        if not units:
            return NO_VICTIMS
        with self._run.simulate(row) as node:
            return victims_among(node, units, here, self._budgets)


def not_spared(node: fw.NodeSimulation, budgets: Budgets, gone: Sequence[fw.Pod]) -> tuple[list[fw.Pod], int]:
    """Return those that have to stay away from a node, and how many of them violate a budget.

    Those that violate one come back first, then the others, in their order.
    """
    protected, others = budgets.split(gone)
    victims = node.reprieve(protected)
    violations = len(victims)
    return victims + node.reprieve(others), violations


def costs(victims: Sequence[fw.Pod], violations: int) -> Costs:
    """Return the costs of victims, the most important first.

    An extender may return them in another order; kube-scheduler takes the first for the most important one all the
    same. Rule: pickOneNodeForPreemption.
    """
    highest = max(pod.priority for pod in victims)
    start = min(started(pod) for pod in victims if pod.priority == highest)
    total = sum(pod.priority + fw.PRIORITY_OFFSET for pod in victims)
    return violations, victims[0].priority, total, len(victims), -start


def cheapest(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the lowest costs; of several, the first."""
    return min(candidates, key=lambda candidate: candidate.costs)
