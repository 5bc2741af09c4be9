"""Decides about a tree of groups: each part is placed on top of those before it.

    group of groups ─► its placements ─► in each: its children, one after the other ─┬─► enough? the best placement
    group of pods ───► its placements ─► in each: its pods, as for a group by itself ─┘

The nodes of a placement are those from which placements of the parts are made. A part that fits is assumed, so that the
next one sees it; one that does not leaves nothing behind, and a group of groups without enough of them takes back all
of its parts, the last one first.

Rule: podGroupSchedulingRecursiveAlgorithm in pkg/scheduler/schedule_one_podgroup.go at v1.37.2.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from msgspec import structs

from scheduler.cycle.steps import QUICK, Steps
from scheduler.framework.groups.placements import Placement
from scheduler.framework.groups.pod_groups import GroupKey, GroupTree
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code, Status
from scheduler.groups.decision import NONE_PLACED, GroupDecision
from scheduler.groups.placements import Choice, limited
from scheduler.groups.what_if import Progress, Search, WhatIf, of_group
from scheduler.state.nodes.node_table import NodeTable


class TreeAttempt:
    """One attempt to find nodes for a tree of groups."""

    def __init__(
        self, choice: Choice, what_if: WhatIf, table: NodeTable, search: Search, members: Sequence[QueuedPod]
    ) -> None:
        self._choice = choice
        self._what_if = what_if
        self._table = table
        self._search = search
        self._assumed = what_if.assumed(search.framework, members)
        self._members: dict[GroupKey, list[QueuedPod]] = {}
        groups = search.framework.handle.pod_groups
        for queued in members:
            key = groups.key_of(queued.pod)
            if key is not None:
                self._members.setdefault(key, []).append(queued)

    def decide(self, tree: GroupTree) -> Steps[GroupDecision]:
        """Decide about the whole tree; the tables are as before afterwards. Raises Overtaken, between steps only."""
        try:
            decision = yield from self._decide(tree, None)
            is_any_placed = bool(self._assumed)
            yield from self._take_back_to(0)
        finally:
            self._assumed.take_back_all()
        is_empty = decision.status is None and not is_any_placed
        return structs.replace(decision, status=NONE_PLACED) if is_empty else decision

    def _decide(self, tree: GroupTree, placement: Placement | None) -> Steps[GroupDecision]:
        """Decide about a part within the placement of the one above it, and assume the members that have nodes."""
        before, search = len(self._assumed), replace(self._search, tree=tree)
        decision = yield from self._choice(search, partial(self._decide_there, search, tree), placement)
        if decision.status is NONE_PLACED:  # enough of its pods had a node before
            decision = structs.replace(decision, status=None)
        for outcome in decision.bound() if decision.status is None else ():
            self._assumed.add(outcome)
            if not outcome.is_placed:
                yield from self._take_back_to(before)
                return GroupDecision(status=Status(Code.ERROR, (f"failed to assume the subtree: {outcome.decision}",)))
        return decision

    def _decide_there(
        self, search: Search, tree: GroupTree, placement: Placement | None, *, leaves: bool = False
    ) -> Steps[GroupDecision]:
        """Decide about a part in one of its placements, and take back what is assumed for it."""
        before = len(self._assumed)
        if tree.is_composite:
            decision = yield from self._decide_children(search, tree, placement)
        else:
            there = replace(limited(search, placement, self._table), layout=search.layout)
            decision = yield from self._what_if.decide_onto(self._assumed, there, self._members.get(tree.key, ()))
        yield from self._take_back_to(before)
        return decision

    def _decide_children(self, search: Search, tree: GroupTree, placement: Placement | None) -> Steps[GroupDecision]:
        parts: dict[GroupKey, GroupDecision] = {}
        progress = Progress(search, len(tree.children), 0)
        for child in tree.children if progress.may_go_on() else ():
            part = parts[child.key] = yield from self._decide(child, placement)
            if part.code is Code.ERROR:
                text = f"composite pod group evaluation failed due to child error: {part.message}"
                return GroupDecision(status=Status(Code.ERROR, (text,)))
            progress.note(is_placed=part.status is None)
            if not progress.may_go_on():
                break
        status = of_group(progress.status) if progress.may_go_on() else progress.status
        return GroupDecision(status=status, parts=parts)

    def _take_back_to(self, count: int) -> Steps[None]:
        """Take back what was assumed last, until so many are left."""
        while len(self._assumed) > count:
            self._assumed.take_back()
            if not len(self._assumed) % QUICK:
                yield
                self._what_if.check(self._search)
