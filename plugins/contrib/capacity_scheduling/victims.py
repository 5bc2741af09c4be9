"""The victims for a pod that its share, or the nodes, have no space for.

    of one node    the rule of scheduler-plugins: SelectVictimsOnNode in pkg/capacityscheduling/capacity_scheduling.go
    of several     the pod fits on one of them then, or on another: for Kueue's policies, and for elastic quotas where
                   no single node has enough of what the quota lacks

The first is asked about each node, as default preemption is, and the cheapest wins.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from plugins.shared.eviction.budgets import Budgets
from plugins.shared.eviction.candidates import Costs, costs
from plugins.shared.eviction.eligibility import LEAVING, SOON
from scheduler import framework as fw

MAX_NAMED: Final = 10
"""Nodes of which it is said by name that they have no victims: all nodes are in one message."""

MAX_CANDIDATES: Final = 100
"""Nodes with victims of which none violates a budget, among which the cheapest is chosen."""

MAX_PODS: Final = 1_200
"""Pods that are considered in one attempt, some 30 µs each, if the pod fits no node as it is: meanwhile nothing else
happens."""

EXCEEDED: Final = fw.unschedulable("global quota max exceeded")


class Found(NamedTuple):
    """The victims, the most important first, and the node on which the pod fits without them."""

    row: int
    victims: fw.Victims


class VictimSearch:
    """Searches for one pod, within one call of PostFilter. Methods raise PluginError."""

    def __init__(
        self,
        pod: fw.Pod,
        reclaim: fw.ShareReclaim,
        run: fw.DryRun,
        handle: fw.Handle,
        rows: fw.Rows,
        leaving: Sequence[fw.Pod],
    ) -> None:
        """`rows`: the nodes that evictions may help, in the order in which they are asked; `leaving`: pods that leave
        their node anyway, whatever has become of it: their quota comes free.
        """
        self._pod = pod
        self._reclaim = reclaim
        self._run = run
        self._nodes = nodes = handle.nodes
        self._budgets = Budgets.of(handle)
        self._rows = rows[~run.hopeless[rows]]
        self._may_help = frozenset(self._rows.tolist())
        self.refusals: Counter[fw.Status] = Counter()
        """Why nodes are no candidates → how many are not."""
        with_victims = self._rows
        if reclaim.takes_lower_only:
            with_victims = with_victims[run.lowest_priorities[with_victims] < pod.priority]
            without = len(self._rows) - len(with_victims)
            if without:
                self.refusals[self._no_victims()] = without
        self._with_victims = with_victims
        self._leaving = leaving
        self._leaving_from: dict[int, list[fw.Pod]] = {}
        uids, asked = {pod.uid for pod in leaving}, set(rows.tolist())
        for name in dict.fromkeys([pod.node_name for pod in leaving]):
            row = nodes.row_of(name)
            if row is not None and row in asked:
                self._leaving_from[row] = [each for each in nodes.info(row).pods if each.uid in uids]

    def wait(self, *, for_quota_alone: bool) -> fw.Status | None:
        """Say for whom the pod waits, if it needs no victims but those that leave already; None if it needs more.

        `for_quota_alone`: whether nodes are no reason for victims.
        """
        with self._reclaim.without(self._leaving):
            if not self._reclaim.fits():
                return SOON if self._reclaim.fits_soon() else None
            return LEAVING if self._leaving and (for_quota_alone or self._first_fitting() is not None) else None

    def search(self) -> Found | None:
        """Return the victims in addition to those that leave already; None if nothing helps, or none are needed."""
        if not len(self._rows):
            return None
        with self._reclaim.without(self._leaving):
            free = None if self._reclaim.goes_by_nodes else self._first_fitting()
            found = self._on_one_node() if free is None else None
            return self._anywhere(free) if found is None and not self._reclaim.fits() else found

    def _on_one_node(self) -> Found | None:
        """Return the cheapest victims that are all on the node where the pod fits then."""
        best: tuple[tuple[int, int], int, Costs] | None = None
        found: Found | None = None
        enough, considered = MAX_CANDIDATES, 0
        for row in self._with_victims.tolist():
            pods = self._nodes.info(row).pods
            considered += len(pods)
            answer = self._victims_on(row, pods)
            if isinstance(answer, fw.Status):
                self.refusals[answer] += 1
            else:
                each = costs(answer.pods, answer.violations)
                candidate = each[:2], answer.breaking, each  # of the same priority, first those that no gang needs
                if best is None or candidate < best:
                    best, found = candidate, Found(row, fw.Victims(answer.pods, answer.violations))
                enough -= not answer.violations
            if not enough or considered >= MAX_PODS:
                break
        return found

    def _victims_on(self, row: int, pods: Collection[fw.Pod]) -> fw.ReclaimVictims | fw.Status:
        """Return the victims on a node, or why there are none."""
        if not any(map(self._reclaim.may_give, pods)):
            where = f" on node {self._nodes.names()[row]}" if len(self.refusals) < MAX_NAMED else ""
            return self._no_victims(where)
        last = EXCEEDED

        def fits(gone: Sequence[fw.Pod]) -> bool:
            nonlocal last
            refusal = self._refusal(row, gone)
            last = refusal or last
            return refusal is None

        victims = self._reclaim.fewest(pods, self._budgets.tally, fits)
        return victims if victims.pods else last

    def _anywhere(self, free: int | None) -> Found | None:
        """Return the fewest victims on any nodes without which the pod fits by quota and on one node.

        `free`: a node that has space for it already. Without any it is the first that has enough as pods are taken
        off, so that all other nodes keep the pods that quota does not need.
        """
        row = self._first_fitting() if free is None else free
        if row is not None:
            free = row
        tried: dict[int, list[fw.Pod]] = {}
        names = self._nodes.names()

        def fits(gone: Sequence[fw.Pod]) -> bool:
            nonlocal row
            if free is not None:
                return True
            if row is not None:
                name = names[row]
                return self._refusal(row, [pod for pod in gone if pod.spec.node_name == name]) is None
            by_row: dict[int, list[fw.Pod]] = {}
            for pod in gone:
                at = self._nodes.row_of(pod.node_name)
                if at is not None and at in self._may_help:
                    by_row.setdefault(at, []).append(pod)
            for at, pods in by_row.items():
                if tried.get(at) != pods:
                    tried[at] = pods
                    if self._refusal(at, pods) is None:
                        row = at
                        return True
            return False

        victims = self._reclaim.fewest(None if free is not None else self._some(), self._budgets.tally, fits)
        return None if row is None or not victims.pods else Found(row, fw.Victims(victims.pods, victims.violations))

    def _some(self) -> Iterator[fw.Pod]:
        """Yield the pods of some nodes that evictions may help: those of all nodes, one by one, free none soon."""
        pods = (pod for row in self._with_victims.tolist() for pod in self._nodes.info(row).pods)
        return islice(pods, MAX_PODS)

    def _refusal(self, row: int, gone: Sequence[fw.Pod]) -> fw.Status | None:
        """Say why the pod does not fit a node without some of its pods."""
        with self._run.simulate(row) as node:
            node.remove([*self._leaving_from.get(row, ()), *gone])
            return node.refusal()

    def _first_fitting(self) -> int | None:
        """Return a node that the pod fits as soon as those are gone that leave already."""
        for row in self._leaving_from:
            if row in self._may_help and self._refusal(row, ()) is None:
                return row
        return self._run.first_fitting(self._rows)

    def _no_victims(self, where: str = "") -> fw.Status:
        return fw.unresolvable(f"No victims found{where} for preemptor pod {self._pod.name}")
