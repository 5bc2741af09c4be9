"""A cluster with random demand and a clock that counts rounds, for tests of decisions about shares.

Pods of some shares come, run for a while on nodes with gpus, and end. A pod that is evicted waits again, with the age
that it had.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from scheduler.quota.order import FairOrder, Head
from scheduler.quota.policies import Preemption
from scheduler.quota.reclaim.fair_targets import Reckon
from scheduler.quota.reclaim.running import Preemptor, QuotaUnit
from scheduler.quota.tree import Share, ShareTree
from tests.unit.quota.reclaiming import Reclaiming, a_ledger

NODES, GPUS = 8, 8
COMING: Final = 0.3
"""The chance that a pod comes in a round: more than the nodes have space for."""

ROUNDS: Final = (60, 300)
"""How long a pod runs."""

SIZES: Final = (1, 1, 1, 2, 2, 4, 8)


class Decision(msgspec.Struct, frozen=True):
    """An eviction: for which pod, of which pods, and whether the pod was placed then."""

    ended: int
    """How many pods had ended by then."""

    preemptor: Preemptor
    uid: str
    gone: tuple[QuotaUnit, ...]
    is_placed: bool


Choose = Callable[["Demand", Preemptor], list[QuotaUnit]]
"""Returns who is evicted for a preemptor."""


class Demand:
    """Pods that come and go, and the decisions about them."""

    def __init__(
        self,
        shares: Sequence[Share],
        preemptions: Mapping[str, Preemption],
        choose: Choose,
        reckon: Reckon | None = None,
        seed: int = 1,
    ) -> None:
        self.tree = ShareTree(shares)
        self.running: dict[str, QuotaUnit] = {}
        self._reclaiming = Reclaiming(a_ledger(self.tree, preemptions), (), reckon)
        self.decisions: list[Decision] = []
        self.placed: set[str] = set()
        self.finished = 0
        self._has_evicted = False
        self.now = 0
        self._choose = choose
        self._chance = random.Random(seed)
        self._leaves = [name for name in self.tree.shares if not self.tree.children[name]]
        self._busy = dict.fromkeys(self._leaves, 1.0)
        self._waiting: dict[str, list[QuotaUnit]] = {name: [] for name in self._leaves}
        self._free = [GPUS] * NODES
        self._node: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._units: dict[str, QuotaUnit] = {}

    def round(self) -> None:
        """Let pods end and come, then, if any did, place what can be placed, and evict for one pod at most."""
        self.now += 1
        ended = [uid for uid, end in self._ends.items() if end <= self.now]
        for uid in ended:
            self._stop(self._units[uid])
            self.finished += 1
        if self.now % 200 == 0:
            self._busy = {name: self._chance.choice((0.0, 0.3, 1.0, 3.0)) for name in self._leaves}
        has_come = any(self._busy.values()) and self._chance.random() < COMING
        if has_come:
            share = self._chance.choices(self._leaves, [self._busy[name] for name in self._leaves])[0]
            if len(self._waiting[share]) < 20:
                self._come(share)
        if ended or has_come or self._has_evicted:
            self._has_evicted = self.decide()

    def decide(self) -> bool:
        """Place pods in fair order until one has others evicted; say whether one has."""
        order = FairOrder(self.tree)
        for waiting in self._waiting.values():
            if waiting:
                order.offer(_head(waiting[0]))
        while head := order.first():
            order.withdraw(head.share)
            unit = self._waiting[head.share][0]
            has_evicted = not self._place(unit) and self._evict_for(unit)
            if has_evicted:
                return True
            if unit.uid in self._node and self._waiting[head.share]:
                order.offer(_head(self._waiting[head.share][0]))
        return False

    def finds_node(self, gpus: int, gone: Sequence[QuotaUnit] = ()) -> int | None:
        """Return the node with the least space that suffices if some units are gone."""
        free = list(self._free)
        for unit in gone:
            free[self._node[unit.uid]] += unit.usage["gpu"]
        return min((space, node) for node, space in enumerate(free) if space >= gpus)[1] if max(free) >= gpus else None

    def reclaim(self, preemptor: Preemptor) -> list[QuotaUnit]:
        """Choose as the scheduler does."""
        return self._reclaiming.victims(
            preemptor,
            lambda gone: self.finds_node(preemptor.request["gpu"], [self.running[uid] for uid in gone]) is not None,
        )

    def _come(self, share: str) -> None:
        gpus = self._chance.choice(SIZES)
        priority = self._chance.randrange(3)
        unit = QuotaUnit(
            uid=f"{share}-{self.now}", share=share, usage={"gpu": gpus}, priority=priority, queued_at=self.now
        )
        self._wait(unit)

    def _wait(self, unit: QuotaUnit) -> None:
        waiting = self._waiting[unit.share]
        waiting.append(unit)
        waiting.sort(key=lambda each: (-each.priority, each.queued_at, each.uid))

    def _place(self, unit: QuotaUnit) -> bool:
        node = self.finds_node(unit.usage["gpu"])
        if node is None or not self.tree.fits(unit.share, unit.usage):
            return False
        self._waiting[unit.share].remove(unit)
        unit = msgspec.structs.replace(unit, started=self.now)
        self._units[unit.uid] = unit
        self._node[unit.uid] = node
        self._free[node] -= unit.usage["gpu"]
        self._ends[unit.uid] = self.now + self._chance.randint(*ROUNDS)
        self.tree.add(unit.share, unit.usage)
        self.running[unit.uid] = unit
        self._reclaiming.add(unit)
        self.placed.add(unit.uid)
        return True

    def _evict_for(self, unit: QuotaUnit) -> bool:
        preemptor = Preemptor(share=unit.share, request=unit.usage, priority=unit.priority, queued_at=unit.queued_at)
        gone = self._choose(self, preemptor)
        for each in gone:
            self._stop(each)
            self._wait(each)
        if gone:
            self.decisions.append(Decision(self.finished, preemptor, unit.uid, tuple(gone), self._place(unit)))
        return bool(gone)

    def _stop(self, unit: QuotaUnit) -> None:
        self._free[self._node.pop(unit.uid)] += unit.usage["gpu"]
        del self._ends[unit.uid], self._units[unit.uid]
        self.tree.remove(unit.share, unit.usage)
        del self.running[unit.uid]
        self._reclaiming.remove(unit)


def plain(demand: Demand, preemptor: Preemptor) -> list[QuotaUnit]:
    """Choose without looking at nodes or sparing anybody: those that borrow, until quota suffices."""
    tree, gone = demand.tree, []
    running = sorted(demand.running.values(), key=lambda each: each.order)
    others = [unit for unit in running if unit.share != preemptor.share]
    own = [unit for unit in running if unit.share == preemptor.share and unit.priority < preemptor.priority]
    borrows = any(
        tree.usage(preemptor.share, r) + amount > tree.quota(preemptor.share, r)
        for r, amount in preemptor.request.items()
    )
    for unit in own if borrows else others:
        if tree.fits(preemptor.share, preemptor.request):
            break
        if unit.share == preemptor.share or tree.usage(unit.share, "gpu") > tree.quota(unit.share, "gpu"):
            tree.remove(unit.share, unit.usage)
            gone.append(unit)
    fits = tree.fits(preemptor.share, preemptor.request)
    for unit in gone:
        tree.add(unit.share, unit.usage)
    return gone if fits else []


def _head(unit: QuotaUnit) -> Head:
    return Head(share=unit.share, uid=unit.uid, request=unit.usage, priority=unit.priority, queued_at=unit.queued_at)
