"""The members of a group that are assumed on their nodes to see what fits in addition, until they are taken back.

    add: assume ─► reserve        take_back: unreserve ─► forget, the last one first
                                  leave: unreserve ─► leave in the table, to be assumed for good

To everyone else they are assumed pods as others are, which nobody publishes: see `state/cache.py`. So the watch may go
on meanwhile. A member that is deleted or that others bind is in its place then, and taking it back does no more than
Unreserve. Only a decision, which would count them, may not be made: the loop sees to that.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

from scheduler.api.pod import Pod
from scheduler.cycle.algorithm import refused_by
from scheduler.framework.errors import PluginError, SchedulerError
from scheduler.groups.decision import MemberOutcome
from scheduler.runtime.framework import Framework
from scheduler.state.cache import Cache

_logger = logging.getLogger(__name__)


class AssumedMembers:
    """Those of one what-if."""

    def __init__(self, framework: Framework, cache: Cache) -> None:
        self._framework = framework
        self._cache = cache
        self._members: list[tuple[MemberOutcome, Pod]] = []

    def __len__(self) -> int:
        return len(self._members)

    def add(self, outcome: MemberOutcome) -> None:
        """Assume a member on its node and run Reserve; take it back at once if that refuses, or raises."""
        framework, state, node_name = self._framework, outcome.state, outcome.node_name
        pod = outcome.queued.pod.bound_to(node_name)
        try:
            self._cache.assume(pod, is_what_if=True)
        except ValueError as error:
            raise SchedulerError(str(error)) from error
        self._members.append((outcome, pod))
        try:
            refusal = framework.run_reserve(state, pod, node_name)
        except BaseException:
            self.take_back()
            raise
        if refusal is not None:
            self.take_back()
            outcome.decision, outcome.node_name = refused_by(refusal), ""

    def leave(self) -> None:
        """Leave the last one in the table if nobody can see that, else take it back.

        A plugin that is asked to reserve for it, or another one than ours at Permit, sees at its real turn only those
        that come before it.
        """
        outcome, _ = self._members[-1]
        can_see = outcome.state.reserving or not self._framework.is_permit_of_tree
        self._end(self._cache.forget if can_see else self._cache.leave)

    def take_back(self) -> None:
        """Take back the last one."""
        self._end(self._cache.forget)

    def _end(self, end: Callable[[Pod], object]) -> None:
        outcome, pod = self._members.pop()
        try:
            for problem in self._framework.run_unreserve(outcome.state, pod, pod.node_name):
                _logger.error("Unreserve failed", extra={"pod": str(pod), "err": str(problem)})
                self._framework.faults.report(problem, pod)
        finally:
            end(pod)

    def take_back_all(self) -> None:
        """Take back those that are left, whatever plugins raise."""
        if self._members:
            with ExitStack() as each:
                for _ in self._members:
                    each.callback(self.take_back)


def all_fit_still(framework: Framework, cache: Cache, outcomes: Iterable[MemberOutcome], since: int) -> bool:
    """Return whether those whose nodes others have changed `since` fit them all the same, as far as a last look says.

    They are not assumed any more.
    """
    if cache.changes == since:
        return True
    cache.forget_left()
    on_node: dict[str, list[MemberOutcome]] = {}
    for outcome in outcomes:
        if outcome.is_placed:
            on_node.setdefault(outcome.node_name, []).append(outcome)
    for node_name, together in on_node.items():
        row = cache.table.row_of(node_name)
        if row is None:
            return False
        if cache.changed_by_others(node_name) > since and not _fit(framework, cache, row, together):
            return False
    return True


def _fit(framework: Framework, cache: Cache, row: int, together: Sequence[MemberOutcome]) -> bool:
    """Return whether each of these fits a node next to the others."""
    pods = [outcome.queued.pod.bound_to(outcome.node_name) for outcome in together]
    for index, outcome in enumerate(together):
        with cache.table.what_if(row, add=pods[:index] + pods[index + 1 :]):
            try:
                refusal = framework.run_filter_again(outcome.state, outcome.queued.pod, row)
            except PluginError:
                return False
        if refusal is not None:
            return False
    return True
