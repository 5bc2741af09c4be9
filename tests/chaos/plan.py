"""What a round does: a pure function of the seed and the round's number.

The kinds of faults are gone through in an order that the seed shuffles, one a round, so that as many rounds as there
are kinds see each of them; the other faults of a round, all times and all sizes are drawn.
"""

import random
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault and how long it lasts, in seconds from `least` to `most`."""

    least: float = 0.0
    most: float = 0.0
    group: str = ""
    """Of the kinds of a group a round has one at most: they stop the same process, or each other from being seen."""
    replica: bool = False
    """Whether it hits one replica, or its network, rather than the cluster."""


NETWORK: Final = {
    "freeze": Kind(0.3, 2.5, replica=True),
    "half-open": Kind(0.5, 2.5, replica=True),
    "reset": Kind(replica=True),
    "refuse": Kind(0.3, 2.0, replica=True),
    "slow": Kind(0.5, 2.5, replica=True),
    "lost-answers": Kind(0.5, 2.5, replica=True),
    "cut-answers": Kind(0.5, 2.5, replica=True),
    "hung-answers": Kind(0.3, 1.5, replica=True),
    "failed-afterwards": Kind(0.5, 2.5, replica=True),
    "throttled": Kind(0.5, 2.0, replica=True),
    "internal-errors": Kind(0.5, 2.5, replica=True),
    "unavailable": Kind(0.5, 2.5, replica=True),
    "denied-bindings": Kind(0.5, 2.5, replica=True),
    "watch-cut": Kind(0.5, 2.0, replica=True),
    "watch-expired": Kind(replica=True),
}

PROCESSES: Final = {
    "scheduler-kill": Kind(0.0, 0.5, group="scheduler", replica=True),
    "scheduler-term": Kind(0.0, 0.5, group="scheduler", replica=True),
    "scheduler-stop": Kind(1.5, 6.5, group="scheduler", replica=True),
    "apiserver-kill": Kind(0.2, 1.0, group="server"),
    "apiserver-stop": Kind(0.5, 2.0, group="server"),
    "etcd-stop": Kind(0.3, 1.5, group="server"),
    "compaction": Kind(0.2, 0.5, group="server"),
    "clock-step": Kind(0.5, 3.0),
    "lease-deleted": Kind(),
    "lease-stolen": Kind(),
}

OBJECTS: Final = {
    "pods-again": Kind(0.0, 0.3),
    "nodes-again": Kind(0.0, 1.0),
    "resource-gone": Kind(0.2, 1.5),
    "rival": Kind(1.0, 3.0),
    "hostile": Kind(0.5, 2.0),
}

KINDS: Final = {**NETWORK, **PROCESSES, **OBJECTS}

FAULT_SECONDS: Final = 2.5
"""Within this time of a round's start all its faults begin."""

LEADERS_SHARE: Final = 0.7
"""Of the faults that hit one replica: what a standby suffers, nobody's pods notice."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a round."""

    kind: str
    at: float
    """Seconds from the start of the round."""
    seconds: float
    role: str
    """Whom it hits, where it hits one replica: the `leader` or a `standby`."""
    dice: int
    """Seeds whatever else is left to chance."""

    def __str__(self) -> str:
        where = f"/{self.role}" if KINDS[self.kind].replica else ""
        return f"{self.kind}{where}@{self.at:.1f}+{self.seconds:.1f}"


@dataclass(frozen=True, slots=True)
class Plan:
    """One round."""

    seed: int
    number: int
    """From 1."""
    nodes: int
    plain: int
    """Pods of Deployments, which fit anywhere."""
    constrained: int
    """Pods with affinity, anti-affinity, spreading, selectors: of each kind as many."""
    impossible: int
    """Pods that fit nowhere, or are gated."""
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        pods = f"{self.nodes} nodes, {self.plain} plain and 5x{self.constrained} constrained pods"
        return f"{pods}; {' '.join(map(str, self.faults))}"

    def has(self, kind: str) -> bool:
        """Whether a fault of this kind is among them."""
        return any(fault.kind == kind for fault in self.faults)

    def rng(self, purpose: str) -> random.Random:
        """A generator of its own for everything else that is drawn."""
        return random.Random(f"{self.seed}/{self.number}/{purpose}")


def plan_round(seed: int, number: int) -> Plan:
    """The plan of a round, the same whenever and wherever it is asked for."""
    rng = random.Random(f"{seed}/{number}")
    order = sorted(KINDS)
    random.Random(f"{seed}/order").shuffle(order)
    kinds = [order[(number - 1) % len(order)]]
    for kind in rng.sample(sorted(KINDS), 9):
        group = KINDS[kind].group
        if kind not in kinds and len(kinds) < 5 and not (group and any(KINDS[k].group == group for k in kinds)):
            kinds.append(kind)
    faults = (_fault(kind, rng) for kind in kinds)
    return Plan(
        seed=seed,
        number=number,
        nodes=rng.randrange(50, 121),
        plain=rng.randrange(40, 121),
        constrained=rng.randrange(4, 11),
        impossible=rng.randrange(2, 6),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
    )


def _fault(kind: str, rng: random.Random) -> Fault:
    length = KINDS[kind]
    return Fault(
        kind,
        at=round(rng.uniform(0.0, FAULT_SECONDS), 2),
        seconds=round(rng.uniform(length.least, length.most), 2),
        role="leader" if rng.random() < LEADERS_SHARE else "standby",
        dice=rng.randrange(1 << 30),
    )
