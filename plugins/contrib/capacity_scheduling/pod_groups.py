"""The victims for a group of pods that its share has no space for: chosen once for the group as a whole.

    those that leave anyway count as gone ─► is that enough? ─► wait for them
                                                  └─no─► the fewest that have to give back what the group needs, so that
                                                         there is space by quota, and nodes for all of its pods

The quota is the reclaim's question, nodes are the what-if's: see `framework/group_preemption.py`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from plugins.default_preemption.pod_groups import NEVER, NO_VICTIMS, Steps
from plugins.shared.eviction.budgets import Budgets
from scheduler import framework as fw
from scheduler.framework.sparing import needed

LEAVING: Final = fw.unschedulable("not eligible due to terminating pods that make room for it.")
TOO_LONG: Final = fw.unschedulable("reclaim takes too long for so many pods that are not alike")

MAX_DECISIONS: Final = 10_000
"""How many pods are decided about for the victims of one group, 0.15 ms each: meanwhile nothing else happens."""


def group_victims(
    begin: Callable[[], fw.ShareReclaim | None],
    pods: Sequence[fw.Pod],
    is_leaving: Callable[[fw.Pod], bool],
    budgets: Budgets,
    what_if: fw.GroupWhatIf,
) -> Steps[Sequence[fw.Pod] | fw.Status]:
    """Return the pods that give back what these lack, the most important first, or why there are none.

    `begin` begins to look for those; what it returns is good until the next step.
    """
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return NEVER
    by_node, leaving = dict[str, Collection[fw.Pod]](), list[fw.Pod]()
    for of_node in what_if.pods_by_node():
        for pod in of_node:
            by_node[pod.node_name] = of_node
            break
        leaving += filter(is_leaving, of_node)
        yield
    nodes = _Nodes(what_if, by_node)
    what_if.remove(leaving)

    def fewest(of: Iterable[fw.Pod] | None) -> Sequence[fw.Pod] | fw.Status:
        reclaim = begin()
        if reclaim is None or not reclaim.helps:
            return NO_VICTIMS
        with reclaim.without(leaving):
            if reclaim.fits() and nodes.fit(()):
                return LEAVING
            return reclaim.fewest(of, budgets.tally, nodes.fit).pods or NO_VICTIMS

    found = fewest(None)
    if found is NO_VICTIMS and nodes.have_refused and (reclaim := begin()) is not None:
        gone, giving = {pod.uid for pod in leaving}, list[Sequence[fw.Pod]]()
        for of_node in by_node.values():
            giving.append([pod for pod in of_node if pod.uid not in gone and reclaim.may_give(pod)])
            yield
        some = yield from _of_few_nodes(giving, nodes)
        found = fewest(some) if some else NO_VICTIMS
    if isinstance(found, fw.Status):
        return TOO_LONG if nodes.are_too_many else found
    nodes.let_leave(found)
    return found


def _of_few_nodes(giving: Sequence[Sequence[fw.Pod]], nodes: "_Nodes") -> Steps[list[fw.Pod]]:
    """Return the pods of some nodes on which the group fits without them; none if it does not without any.

    `giving`: those of each node that might have to go. A share gives only what it borrows: taken from all nodes, that
    might not leave enough on any.
    """
    of_nodes = [of_node for of_node in giving if of_node]
    if not nodes.fit([pod for of_node in of_nodes for pod in of_node]):
        return []
    left = yield from needed([[of_node] for of_node in of_nodes], nodes)
    return [pod for of_node in left for pod in of_node]


class _Nodes:
    """The answers of the nodes, as pods go and come back. Implements framework.sparing.WithoutSome, node by node."""

    def __init__(self, what_if: fw.GroupWhatIf, by_node: Mapping[str, Collection[fw.Pod]]) -> None:
        """`by_node`: the pods on the nodes that count."""
        self._what_if = what_if
        self._by_node = by_node
        self._known: dict[str, bool] = {}
        """UID → whether a pod is one of them, as far as it was asked."""
        self._gone: dict[str, fw.Pod] = {}
        self._decisions_left = MAX_DECISIONS
        self.have_refused = False
        """Whether there were no nodes for the group when it was asked."""
        self.are_too_many = False
        """Whether it was not asked because it would have taken too long."""

    def fit(self, gone: Sequence[fw.Pod]) -> bool:
        """Say whether there are nodes for the group without these pods."""
        self.let_leave(gone)
        return self.fits()

    def put_back(self, some: Sequence[Sequence[fw.Pod]]) -> None:
        back = [pod for of_node in some for pod in of_node if self._gone.pop(pod.uid, None)]
        self._what_if.put_back(back)

    def remove(self, some: Sequence[Sequence[fw.Pod]]) -> None:
        gone = {pod.uid: pod for of_node in some for pod in of_node if self._counts(pod)}
        self._what_if.remove(list(gone.values()))
        self._gone.update(gone)

    def fits(self) -> bool:
        self._decisions_left -= self._what_if.decisions
        self.are_too_many = self._decisions_left < 0
        if self.are_too_many or self._what_if.refusal() is None:
            return not self.are_too_many
        self.have_refused = True
        return False

    def let_leave(self, pods: Sequence[fw.Pod]) -> None:
        """Let these be gone, and none but these."""
        gone = {pod.uid: pod for pod in pods if self._counts(pod)}
        self._what_if.put_back([pod for uid, pod in self._gone.items() if uid not in gone])
        self._what_if.remove([pod for uid, pod in gone.items() if uid not in self._gone])
        self._gone = gone

    def _counts(self, pod: fw.Pod) -> bool:
        uid = pod.uid
        if uid not in self._known:
            self._known[uid] = any(each.uid == uid for each in self._by_node.get(pod.node_name, ()))
        return self._known[uid]
