"""The victims for a group of pods that its share has no space for: chosen once for the group as a whole.

    those that leave anyway count as gone ─► is that enough? ─► wait for them
                                                  └─no─► the fewest that have to give back what the group needs, so that
                                                         there is space by quota, and nodes for all of its pods

The quota is the reclaim's question, nodes are the what-if's: see `framework/groups/group_preemption.py`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from plugins.default_preemption.pod_groups import NO_VICTIMS, Steps
from plugins.shared.eviction.budgets import Budgets
from plugins.shared.eviction.units import WithoutUnits
from scheduler import framework as fw
from scheduler.framework.preemption.victims import LEAVING, SOON, Unit, needed, pods_of

TOO_LONG: Final = fw.unschedulable("reclaim takes too long for so many pods that are not alike")

MAX_DECISIONS: Final = 10_000
"""For the victims of one group."""


def group_victims(
    begin: Callable[[], fw.ShareReclaim | None],
    pods: Sequence[fw.Pod],
    leaving: Sequence[fw.Pod],
    budgets: Budgets,
    what_if: fw.GroupWhatIf,
) -> Steps[fw.Victims | fw.Status]:
    """Return the pods that give back what these lack, the most important first, or why there are none.

    `begin` begins to look for those; what it returns is good until the next step. `leaving`: all pods with a node that
    leave anyway: their quota comes free, whatever has become of their node.
    """
    by_node = {next(iter(pods)).node_name: pods for pods in what_if.pods_by_node() if pods}
    yield
    nodes = _Nodes(what_if, by_node)
    what_if.remove([there for pod in leaving if (there := nodes.find(pod))])

    def fewest(of: Iterable[fw.Pod] | None) -> fw.Victims | fw.Status:
        reclaim = begin()
        if reclaim is None or not reclaim.helps:
            return NO_VICTIMS
        with reclaim.without(leaving):
            if not reclaim.fits() and reclaim.fits_soon():
                return SOON
            if reclaim.fits() and nodes.fit(()):
                return LEAVING
            victims = reclaim.fewest(of, budgets.tally, nodes.fit)
            return fw.Victims(victims.pods, victims.violations) if victims.pods else NO_VICTIMS

    found = fewest(None)
    if found is NO_VICTIMS and nodes.have_refused and (reclaim := begin()) is not None:
        some = yield from _of_few_nodes(by_node.values(), leaving, budgets, reclaim, nodes)
        found = fewest(some) if some else NO_VICTIMS
    if isinstance(found, fw.Status):
        return TOO_LONG if nodes.is_too_long else found
    nodes.let_leave(found.pods)
    return found


def _of_few_nodes(
    pods: Iterable[Collection[fw.Pod]],
    leaving: Iterable[fw.Pod],
    budgets: Budgets,
    reclaim: fw.ShareReclaim,
    nodes: "_Nodes",
) -> Steps[list[fw.Pod]]:
    """Return the pods of some nodes on which the group fits without them; none if it does not without any.

    A share gives only what it borrows: taken from all nodes, that might not leave enough on any.
    """
    gone, tally = {pod.uid for pod in leaving}, budgets.tally()
    breaking, others = list[Unit](), list[Unit]()
    for of_node in pods:
        if may_go := [pod for pod in of_node if pod.uid not in gone and reclaim.may_give(pod)]:
            units = others if tally.allow(may_go) else breaking
            units.append(Unit(uid=may_go[0].node_name, pods=may_go))
        yield
    giving = breaking + others  # those under budgets come back first
    if not nodes.fit(pods_of(giving)):
        return []
    left = yield from needed([[of_node] for of_node in giving], nodes)
    return pods_of(left)


class _Nodes(WithoutUnits):
    """The answers of the nodes, as pods go and come back."""

    def __init__(self, what_if: fw.GroupWhatIf, by_node: Mapping[str, Collection[fw.Pod]]) -> None:
        """`by_node`: the pods on the nodes that count."""
        super().__init__(what_if, MAX_DECISIONS)
        self._by_node = by_node
        self._known: dict[str, fw.Pod | None] = {}
        """UID → a pod as it was there; None if it was not."""
        self._gone: dict[str, fw.Pod] = {}
        self.have_refused = False
        """Whether there were no nodes for the group when it was asked."""

    def fit(self, gone: Sequence[fw.Pod]) -> bool:
        """Say whether there are nodes for the group without these pods."""
        self.let_leave(gone)
        return self.fits()

    def put_back(self, some: Sequence[Unit]) -> None:
        super().put_back(some)
        for pod in pods_of(some):
            del self._gone[pod.uid]

    def remove(self, some: Sequence[Unit]) -> None:
        super().remove(some)
        self._gone.update({pod.uid: pod for pod in pods_of(some)})

    def fits(self) -> bool:
        fits = super().fits()
        self.have_refused |= not fits and not self.is_too_long
        return fits

    def let_leave(self, pods: Sequence[fw.Pod]) -> None:
        """Let these be gone, and none but these."""
        gone = {pod.uid: pod for pod in pods if self.find(pod)}
        self._what_if.put_back([pod for uid, pod in self._gone.items() if uid not in gone])
        self._what_if.remove([pod for uid, pod in gone.items() if uid not in self._gone])
        self._gone = gone

    def find(self, pod: fw.Pod) -> fw.Pod | None:
        """Return a pod as it was when the nodes were read; None if it was on none of them."""
        uid = pod.uid
        if uid not in self._known:
            there = self._by_node.get(pod.node_name, ())
            self._known[uid] = next((each for each in there if each.uid == uid), None)
        return self._known[uid]
