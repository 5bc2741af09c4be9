"""Evaluates a pod on all nodes as a decision does; nothing is bound."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Algorithm
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.nodes import Rows
from scheduler.framework.status import Status
from scheduler.runtime.framework import Framework
from scheduler.runtime.scoring import Scores


class Evaluation:
    """The Filter results and scores of one pod; valid until a node changes."""

    def __init__(
        self, algorithm: Algorithm, framework: Framework, pod: Pod, attempt: int = 0, *, nominated_first: bool = True
    ) -> None:
        """Run PreFilter and Filter. Raises PluginError."""
        self.state = CycleState()
        self.state.attempt = attempt
        self.search = algorithm.search(framework, self.state, pod, nominated_first=nominated_first)
        self.feasible = self.search.feasible
        self.node_to_status = algorithm.node_to_status(self.state, pod, self.search)
        self._algorithm = algorithm
        self._framework = framework
        self._pod = pod

    @cached_property
    def scores(self) -> Scores:
        """The weighted scores of the feasible nodes. Raises PluginError."""
        if not len(self.feasible):
            return Scores(np.zeros(0, np.int64), {})
        return self._framework.run_score(self.state, self._pod, self.feasible)

    @cached_property
    def feasible_names(self) -> list[str]:
        """The names of the feasible nodes, in the order of `scores`."""
        names = self._algorithm.table.names()
        return [names[row] for row in self.feasible.tolist()]

    def scores_of(self, node_name: str) -> dict[str, int]:
        """Return plugin → weighted score of a feasible node. Raises PluginError."""
        place = self.feasible_names.index(node_name)
        return {plugin: int(column[place]) for plugin, column in self.scores.by_plugin.items()}

    @property
    def selected(self) -> str:
        """The node that a decision takes; empty if none is feasible. Raises PluginError."""
        best = self.feasible
        if len(best) > 1:
            best = best[self.scores.total == self.scores.total.max()]
        if not len(best):
            return ""
        return self._algorithm.table.names()[self._algorithm.select(best, self._pod, self.state.attempt)]

    def refusals(self) -> Iterator[tuple[Status, Rows]]:
        """Yield each reason and its rows, as `node_to_status` has them by name."""
        search, others = self.search, self._algorithm.table.in_use.copy()
        if search.outcome is not None:
            yield from search.outcome.refusals(self.state, self._pod)
            others &= ~search.outcome.asked
        for row, status in search.verdicts.items():
            if others[row]:
                others[row] = False
                yield status, np.array([row], np.intp)
        if search.absent is not None:
            yield search.absent, np.flatnonzero(others)
