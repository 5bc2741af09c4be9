"""Decides on the live table about members of a group, with some pods off their nodes, as in kube-scheduler.

For alike members, `counting.py` answers the same questions without decisions.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Final, NamedTuple, TypeVar

from scheduler.api.pods.pod import Pod
from scheduler.cycle.steps import Overtaken, Steps, in_one_go
from scheduler.framework.status import Status
from scheduler.groups.decision import GroupDecision, MemberOutcome
from scheduler.state.cache import Cache

AT_ONCE: Final = 100
"""Pods that are decided about before others have their turn: 15 ms."""

T = TypeVar("T")


class Trials(NamedTuple):
    """Decisions about a group with pods gone from their nodes."""

    again: Callable[..., Steps[GroupDecision]]
    """Decides about it once more, without preemption; `is_charged`: whether its share has space for it is not asked."""

    there: Callable[[Sequence[MemberOutcome]], bool]
    """Whether members fit the nodes that an earlier decision gave them."""


class DecidedWhatIf:
    """Implements framework.group_preemption.GroupWhatIf on the live table."""

    def __init__(self, cache: Cache, trials: Trials, decisions: int) -> None:
        self.decisions: Final = decisions
        self.placed: Sequence[MemberOutcome] = ()
        """The members that have a node by the last decision in which the group fits."""
        self._cache = cache
        self._table = cache.table
        self._trials = trials
        self._removed: dict[str, Pod] = {}
        self._orders: dict[str, tuple[str, ...]] = {}
        """Node → the UIDs of its pods, in their order."""
        self._decided = 0
        """How many pods were decided about since others had their turn."""

    def in_steps(self, steps: Steps[T], decided: int = 0) -> Steps[T]:
        """Take these steps, in each of which so many pods are decided about apart from the questions of a plugin.

        Whenever others have their turn, all pods are on their nodes. Raises Overtaken.
        """
        with closing(steps):
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    outcome: T = end.value
                    return outcome
                self._decided += decided
                if self._decided >= max(AT_ONCE, len(self._removed) // 4):  # letting them come and go takes time, too
                    yield from self._give_way()

    def _give_way(self) -> Steps[None]:
        gone, layouts = tuple(self._removed.values()), self._cache.layouts
        self.undo()
        yield
        if layouts != self._cache.layouts:
            raise Overtaken
        self.remove(gone)
        self._decided = 0

    def pods_by_node(self) -> Iterable[Collection[Pod]]:
        return [tuple(self._table.pods_on(name)) for name in self._table.node_names()]

    def remove(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            name, now = pod.node_name, self._cache.get(pod.uid)
            if now is None or now.node_name != name:
                continue  # it has left while others had their turn
            if name not in self._orders:
                self._orders[name] = self._table.order_on(self._table.row_of(name) or 0)
            self._table.remove_pod(name, now)
            self._removed[pod.uid] = now

    def put_back(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            now = self._removed.pop(pod.uid, None)
            if now is not None:
                self._table.add_pod(now.node_name, now)

    def refusal(self) -> Status | None:
        self._decided += self.decisions
        found = in_one_go(self._trials.again())
        if found.status is None:
            self.placed = list(found.bound())
        return found.status

    def keeps_its_nodes(self) -> bool:
        self._decided += len(self.placed)
        return self._trials.there(self.placed)

    def has_other_nodes(self) -> bool:
        before, refusal = self.placed, self.refusal()
        if refusal is None and len(self.placed) < len(before):
            self.placed = before
            return False
        return refusal is None

    def undo(self) -> None:
        """Put back all that are removed, and each node's pods in their order."""
        table = self._table
        for pod in tuple(self._removed.values()):
            row = table.row_of(pod.node_name)
            if row is None or not table.has_pod(row, pod.uid):  # it is there if the table was rebuilt meanwhile
                table.add_pod(pod.node_name, pod)
        for name, order in self._orders.items():
            row = table.row_of(name)
            if row is not None:
                table.restore_order(row, order)
        self._removed, self._orders = {}, {}


@contextmanager
def deciding(cache: Cache, trials: Trials, decisions: int) -> Iterator[DecidedWhatIf]:
    """Let pods leave and come back; all are there again at the end, in their order."""
    what_if = DecidedWhatIf(cache, trials, decisions)
    try:
        try:
            yield what_if
        finally:
            what_if.undo()
    except (Overtaken, GeneratorExit):
        raise  # between two steps
    except BaseException:
        cache.table.is_broken = True  # a pod may be half gone: the table is made again before the next decision
        raise
