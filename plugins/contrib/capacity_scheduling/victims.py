"""The victims for a pod that its share, or the nodes, have no space for.

    of one node    the rule of scheduler-plugins: SelectVictimsOnNode in pkg/capacityscheduling/capacity_scheduling.go
    of several     the pod fits on one of them then, or on another: for Kueue's policies, and for elastic quotas where
                   no single node has enough of what the quota lacks

The first is asked about each node, as default preemption is, and the cheapest wins.
"""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from itertools import islice
from typing import Final, NamedTuple

from plugins.default_preemption.budgets import POD_DISRUPTION_BUDGET, Budgets
from plugins.default_preemption.candidates import Candidate, costs
from plugins.default_preemption.plugin import is_leaving_for_another
from scheduler import framework as fw
from scheduler.api.importance import importance

MAX_NAMED: Final = 10
"""Nodes of which it is said by name that they have no victims: all nodes are in one message."""

MAX_CANDIDATES: Final = 100
"""Nodes with victims of which none violates a budget, among which the cheapest is chosen."""

MAX_PODS: Final = 10_000
"""Possible victims that are looked at in one attempt, 50 µs each: meanwhile nothing else happens."""

EXCEEDED: Final = fw.unschedulable("global quota max exceeded")


class Found(NamedTuple):
    """The victims, the most important first, and the node on which the pod fits without them."""

    row: int
    victims: Sequence[fw.Pod]


class VictimSearch:
    """Searches for one pod, within one call of PostFilter. Methods raise PluginError."""

    def __init__(
        self,
        pod: fw.Pod,
        reclaim: fw.ShareReclaim,
        run: fw.DryRun,
        handle: fw.Handle,
        rows: fw.Rows,
        evicting: Set[str],
    ) -> None:
        """`rows`: the nodes that evictions may help, in the order in which they are looked at; `evicting`: the UIDs of
        pods that are being evicted.
        """
        self._pod = pod
        self._reclaim = reclaim
        self._run = run
        self._nodes = handle.nodes
        self._groups = handle.pod_groups
        self._budgets = Budgets(handle.objects.list(POD_DISRUPTION_BUDGET))
        self._rows: list[int] = rows.tolist()
        self.refusals: Counter[fw.Status] = Counter()
        """Why nodes are no candidates → how many are not."""
        with_victims = rows
        if reclaim.takes_lower_only:
            with_victims = rows[run.lowest_priorities[rows] < pod.priority]
            without = len(rows) - len(with_victims)
            if without:
                self.refusals[self._no_victims()] = without
        self._with_victims: list[int] = with_victims.tolist()
        self._leaving_from: dict[int, list[fw.Pod]] = {}
        for row in self._rows:
            leaving = [
                each for each in self._nodes.info(row).pods if each.uid in evicting or is_leaving_for_another(each)
            ]
            if leaving:
                self._leaving_from[row] = leaving
        self._leaving = [each for leaving in self._leaving_from.values() for each in leaving]

    def is_enough_leaving(self) -> bool:
        """Say whether the pod fits as soon as those are gone that leave for a preemption already."""
        if not self._leaving:
            return False
        with self._reclaim.without(self._leaving):
            return self._reclaim.fits() and self._row_without(()) is not None

    def search(self) -> Found | None:
        """Return the victims in addition to those that leave already; None if nothing helps, or nobody is needed."""
        with self._reclaim.without(self._leaving):
            if not self._reclaim.goes_by_nodes:
                return self._anywhere()
            found = self._on_one_node()
            return self._anywhere() if found is None and not self._reclaim.fits() else found

    def _on_one_node(self) -> Found | None:
        """Return the cheapest victims that are all on the node where the pod fits then."""
        best: Candidate | None = None
        best_victims: Sequence[fw.Pod] = ()
        enough, looked_at = MAX_CANDIDATES, 0
        for row in self._with_victims:
            answer, pods = self._victims_on(row)
            looked_at += pods
            if isinstance(answer, fw.Status):
                self.refusals[answer] += 1
            elif answer[0]:
                candidate = Candidate(costs(*answer), row)
                if best is None or candidate.costs < best.costs:
                    best, best_victims = candidate, answer[0]
                enough -= not answer[1]
            if not enough or looked_at >= MAX_PODS:
                break
        return None if best is None else Found(best.row, best_victims)

    def _anywhere(self) -> Found | None:
        """Return the fewest victims on any nodes without which the pod fits by quota and on one node."""
        pods = [pod for row in self._with_victims for pod in self._movable(row)]
        candidates = self._reclaim.candidates(islice(filter(self._reclaim.may_give, pods), MAX_PODS))
        protected, _ = self._budgets.split(sorted(candidates, key=importance))
        free = self._row_without(())

        def fits(gone: Sequence[fw.Pod]) -> bool:
            return free is not None or self._row_without(gone) is not None

        victims = self._reclaim.fewest(candidates, {pod.uid for pod in protected}, fits)
        row = free if free is not None else self._row_without(victims)
        return Found(row, sorted(victims, key=importance)) if victims and row is not None else None

    def _victims_on(self, row: int) -> tuple[tuple[list[fw.Pod], int] | fw.Status, int]:
        """Return the victims on a node, and how many of them violate a budget; and how many pods were looked at."""
        candidates = self._reclaim.candidates(self._movable(row))
        if not candidates:
            where = f" on node {self._nodes.names()[row]}" if len(self.refusals) < MAX_NAMED else ""
            return self._no_victims(where), 0
        candidates.sort(key=importance)
        with self._reclaim.without(candidates):
            return self._victims_among(candidates, row), len(candidates)

    def _victims_among(self, candidates: Sequence[fw.Pod], row: int) -> tuple[list[fw.Pod], int] | fw.Status:
        """Return those without which the pod fits; all are counted as gone."""
        if not self._reclaim.fits():
            return EXCEEDED
        with self._run.simulate(row) as node:
            node.remove([*self._leaving_from.get(row, ()), *candidates])
            refusal = node.refusal()
            if refusal is not None:
                return refusal
            protected, others = self._budgets.split(candidates)
            victims = self._reprieve(node, protected)
            violations = len(victims)
            victims += self._reprieve(node, others)
        victims.sort(key=importance)
        return victims, violations

    def _reprieve(self, node: fw.NodeSimulation, pods: Iterable[fw.Pod]) -> list[fw.Pod]:
        """Let those stay with whom the pod fits nevertheless; return the others."""
        gone = []
        for pod in pods:
            self._reclaim.put_back(pod)
            if not self._reclaim.fits() or node.reprieve((pod,)):
                self._reclaim.take(pod)
                gone.append(pod)
        return gone

    def _no_victims(self, where: str = "") -> fw.Status:
        return fw.unresolvable(f"No victims found{where} for preemptor pod {self._pod.name}")

    def _movable(self, row: int) -> list[fw.Pod]:
        """Return the pods on a node that may go by themselves: not those of a group that is disrupted as a whole."""
        leaving = self._leaving_from.get(row, ())
        return [pod for pod in self._nodes.info(row).pods if pod not in leaving and not self._is_bound_to_others(pod)]

    def _is_bound_to_others(self, pod: fw.Pod) -> bool:
        group = self._groups.of(pod) if self._groups.name_of(pod) else None
        return group is not None and group.is_disrupted_together

    def _row_without(self, gone: Sequence[fw.Pod]) -> int | None:
        """Return the first node on which the pod fits without these pods; without any, of all nodes."""
        by_node: dict[str, list[fw.Pod]] = {}
        for pod in gone:
            by_node.setdefault(pod.node_name, []).append(pod)
        names = self._nodes.names()
        for row in self._rows:
            on_node = by_node.get(names[row], [])
            if gone and not on_node:
                continue
            with self._run.simulate(row) as node:
                node.remove([*self._leaving_from.get(row, ()), *on_node])
                if node.refusal() is None:
                    return row
        return None
