"""Plugins that answer for one node at a time, made to answer for many."""

from typing import Final

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.nodes import Int32Column, Int64Column, NodeColumns, Rows
from scheduler.framework.plugin import FilterPlugin, ScorePlugin
from scheduler.framework.status import Status
from scheduler.runtime.guards.return_values import WHOLE_NUMBER, check_score, check_status, disallowed, wrong_answer

MAX_STATUSES: Final = 10_000
"""This many distinct refusals of one plugin are kept apart. More means that its reasons name the pod or the time."""


class PerNodeFilter:
    """A FilterPlugin that answers by columns. Refusals are numbered as they occur."""

    def __init__(self, plugin: FilterPlugin) -> None:
        self.plugin = plugin
        self._statuses: list[Status] = []
        self._code_of: dict[Status, int] = {}

    @property
    def is_full(self) -> bool:
        """Whether `clear` is due."""
        return len(self._statuses) >= MAX_STATUSES

    def clear(self) -> None:
        """Start numbering again; codes given before mean nothing any more."""
        self._statuses.clear()
        self._code_of.clear()

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Int32Column:
        codes = np.zeros(len(rows), np.int32)
        ask, info = self.plugin.filter, nodes.info  # looked up once: this is the loop over all nodes
        for i, (row, is_node) in enumerate(zip(rows.tolist(), nodes.in_use[rows].tolist(), strict=True)):
            if is_node and (status := ask(state, pod, info(row))) is not None:
                codes[i] = self._code(status)
        return codes

    def status_of(self, state: CycleState, pod: Pod, code: int) -> Status:
        return self._statuses[code - 1]

    def _code(self, status: Status) -> int:
        try:
            code = self._code_of.get(status)
        except TypeError:  # it cannot be hashed, so it is no Status, or its reasons are no tuple
            code = None
        if code is None:
            status = check_status(self.plugin.name, "Filter", self.plugin.filter, status)
            if not status.is_rejected:
                raise disallowed(self.plugin.name, "Filter", self.plugin.filter, status)
            code = self._code_of.get(status)  # two long ones may be cut to one
            if code is None:
                self._statuses.append(status)
                code = self._code_of[status] = len(self._statuses)
        return code


class PerNodeScore:
    """A ScorePlugin that answers by columns."""

    def __init__(self, plugin: ScorePlugin) -> None:
        self.plugin = plugin

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Int64Column:
        """Return the score of each of `rows`; rows that are not in use get 0."""
        scores = np.zeros(len(rows), np.int64)
        ask, info = self.plugin.score, nodes.info
        for i, (row, is_node) in enumerate(zip(rows.tolist(), nodes.in_use[rows].tolist(), strict=True)):
            if is_node:
                score = ask(state, pod, info(row))
                if type(score) is not int:
                    score = check_score(self.plugin.name, ask, score)
                try:
                    scores[i] = score
                except OverflowError:
                    raise wrong_answer(self.plugin.name, "Score", ask, score, WHOLE_NUMBER) from None
        return scores
