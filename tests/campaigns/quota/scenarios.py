"""Random scenarios: each number makes one, always the same."""

import random
from dataclasses import replace
from typing import Final

from tests.campaigns.quota.world import CPU, DECLARED, ELASTIC, GPU, KUEUE, Event, Quota, Scenario, World

_NAMES: Final = "abcdef"
_GAPS: Final = (0, 0, 1, 1, 2, 5, 5, 12, 30, 50, 90, 400)
_AMPLE: Final = 1_000


def scenario(seed: int, number: int) -> Scenario:
    """Make a scenario of up to 40 events."""
    chance = random.Random(f"{seed} {number}")
    source = chance.choice((DECLARED, DECLARED, ELASTIC, KUEUE))
    has_gpus = chance.random() < 0.15
    quotas = _quotas(chance, source, (CPU, GPU) if has_gpus else (CPU,))
    if source == DECLARED and not has_gpus and chance.random() < 0.07:
        quotas += (Quota("other", maximum={GPU: 4}), Quota("e", "other", reclaim="Any"))
        has_gpus = True
    quotas = _deeper(random.Random(f"{seed} {number} deeper"), source, quotas)
    is_tight = not has_gpus and chance.random() < 0.35
    world = World(
        source,
        quotas,
        tuple(chance.choice((2, 3, 4, 6, 8)) for _ in range(chance.randint(1, 4))) if is_tight else (_AMPLE,),
        order=chance.choice(("Priority", "Priority", "DominantShare", "DecayedUsage")),
        default_preemption=chance.random() < 0.5,
        grace=chance.choice((0.0, 0.0, 5.0, 25.0)),
        replaced_after=chance.choice((None, 0.0, 2.0)),
        decisions_at_once=random.Random(f"{seed} {number} at once").choice((1, 3, 1_000)),
        has_budgets=random.Random(f"{seed} {number} budgets").random() < 0.25,
        quota_first=random.Random(f"{seed} {number} quota first").random() < 0.3,
    )
    events = _with_daemons(random.Random(f"{seed} {number} daemons"), world, _Events(chance, world, has_gpus).all())
    return Scenario(world, tuple(events))


def _with_daemons(chance: random.Random, world: World, events: list[Event]) -> list[Event]:
    """Sometimes let a pod come for each node at a moment in between."""
    if chance.random() > 0.25:
        return events
    at, quota = chance.randrange(len(events)), chance.choice(world.leaves).name
    daemons = Event(events[at].at, "daemons", quota, priority=chance.choice((0, 0, 5, 10)))
    return [*events[:at], daemons, *events[at:]]


def _quotas(chance: random.Random, source: str, resources: tuple[str, ...]) -> tuple[Quota, ...]:
    leaves = [_leaf(chance, source, name, resources) for name in _NAMES[: chance.randint(2, 4)]]
    if chance.random() < 0.1:
        leaves = [replace(leaf, reclaim="Any", lending=dict.fromkeys(resources, 0)) for leaf in leaves]
    if source == ELASTIC:
        return tuple(replace(leaf, reclaim="Never", lending={}) for leaf in leaves)
    root = Quota("root", minimum=_amounts(chance, resources, (0, 0, 2, 4, 8)))
    if source == DECLARED and chance.random() < 0.2:
        total = {r: sum(leaf.minimum.get(r, 0) for leaf in leaves) + chance.choice((1, 4)) for r in resources}
        root = Quota("root", maximum=total)
    leaves = [replace(leaf, parent="root") for leaf in leaves]
    if chance.random() < 0.3:
        middle = Quota("middle", "root", _amounts(chance, resources, (0, 1, 2, 4)), lending=_some(chance, resources))
        if root.maximum:  # a quota that is guaranteed, or keeps, more is refused
            minimum = {r: min(n, root.maximum[r]) for r, n in middle.minimum.items()}
            middle = replace(middle, minimum=minimum, lending={})
        leaves = [replace(leaf, parent="middle") if chance.random() < 0.6 else leaf for leaf in leaves]
        if source == DECLARED and chance.random() < 0.4:
            below = [leaf for leaf in leaves if leaf.parent == "middle"]
            maximum = {r: sum(leaf.minimum[r] for leaf in below) + chance.choice((1, 2, 4)) for r in resources}
            middle = replace(middle, maximum=maximum, minimum={}, lending={})
        if any(leaf.parent == "middle" for leaf in leaves):
            return (root, middle, *leaves)
    return (root, *leaves)


def _deeper(chance: random.Random, source: str, quotas: tuple[Quota, ...]) -> tuple[Quota, ...]:
    """Sometimes put some leaves below one more level, or into a tree of their own."""
    if source == ELASTIC or chance.random() > 0.3 or any(quota.maximum for quota in quotas):
        return quotas
    parents = {quota.parent for quota in quotas}
    amounts = {r: chance.choice((0, 1, 2, 4)) for r in quotas[0].minimum}
    inner = Quota("inner", chance.choice(("", *sorted(parents - {""}))), amounts)
    moved = [replace(q, parent="inner") if q.name not in parents and chance.random() < 0.5 else q for q in quotas]
    return (*moved, inner) if any(quota.parent == "inner" for quota in moved) else quotas


def _leaf(chance: random.Random, source: str, name: str, resources: tuple[str, ...]) -> Quota:
    minimum = _amounts(chance, resources, (0, 1, 2, 3, 4, 6))
    maximum = {r: minimum[r] + chance.choice((0, 1, 2, 4)) for r in resources} if chance.random() < 0.25 else {}
    if source == ELASTIC:
        return Quota(name, minimum=minimum, maximum=maximum)
    return Quota(
        name,
        minimum=minimum,
        maximum=maximum if source == DECLARED else {},
        borrowing=_some(chance, resources),
        lending=_some(chance, resources),
        reclaim=chance.choice(("Never", "LowerPriority", "Any", "Any")),
        within=chance.choice(("Never", "Never", "LowerPriority", "LowerOrNewerEqualPriority")),
        weight=chance.choice((1, 1, 1, 2, 3)),
        priority=chance.choice((0, 0, 0, 0, 1)) if source == DECLARED else 0,
    )


def _amounts(chance: random.Random, resources: tuple[str, ...], among: tuple[int, ...]) -> dict[str, int]:
    return {resource: chance.choice(among) for resource in resources}


def _some(chance: random.Random, resources: tuple[str, ...]) -> dict[str, int]:
    return _amounts(chance, resources, (0, 1, 2, 4)) if chance.random() < 0.2 else {}


class _Events:
    """What happens in a scenario."""

    def __init__(self, chance: random.Random, world: World, has_gpus: bool) -> None:
        self._chance = chance
        self._world = world
        self._has_gpus = has_gpus
        self._names = [leaf.name for leaf in world.leaves]
        self._priorities = chance.choice(((0,), (0,), (0, 5), (0, 0, 5, 10)))
        self._sizes = chance.choice(((1,), (1, 1, 2), (1, 2, 3, 4)))
        self._has_groups = chance.random() < 0.35
        self._at = 1.0

    def all(self) -> list[Event]:
        chance = self._chance
        events: list[Event] = []
        for _ in range(chance.randint(1, 4)):
            events += self._arrivals(chance.randint(1, 6))
        if chance.random() < 0.3:
            events += chance.choice((self._taken_back, self._group_that_waits))()
        for _ in range(chance.randint(3, 14)):
            self._at += chance.choice(_GAPS)
            events += self._one()
        return events

    def _one(self) -> list[Event]:
        chance = self._chance
        kind = chance.choices(
            ("arrive", "end", "stop", "delete", "touch", "foreign", "quota", "node", "churn", "restart", "refuse"),
            (40, 22, 5, 5, 4, 4, 6, 5, 3, 2, 2),
        )[0]
        if kind == "arrive":
            return self._arrivals(1)
        if kind == "churn":
            return self._churn()
        if kind == "quota":
            return self._quota()
        if kind == "refuse":
            return [self._event(kind, count=chance.choice((1, 1, 2)))]
        if kind == "node":
            return [self._event(chance.choice(("add node", "cordon", "cordon", "lose node")), cpu=self._node_size())]
        name = "" if kind in ("delete", "touch") or chance.random() < 0.6 else chance.choice(self._names)
        if kind == "foreign":
            return [self._event(kind, quota=chance.choice(self._names), priority=chance.choice(self._priorities))]
        return [self._event(kind, quota=name) for _ in range(chance.choice((1, 1, 1, 2, 3)) if kind == "end" else 1)]

    def _taken_back(self) -> list[Event]:
        """One quota borrows all that there is, and another takes back all that it is guaranteed."""
        chance, total = self._chance, sum(quota.minimum.get(CPU, 0) for quota in self._world.quotas)
        owner = max(self._world.leaves, key=lambda leaf: (leaf.minimum.get(CPU, 0), chance.random()))
        borrower = chance.choice([name for name in self._names if name != owner.name])
        filled = [self._event("arrive", borrower, priority=chance.choice((0, 0, 5))) for _ in range(min(total, 12))]
        self._at += 5
        claims = [self._event("arrive", owner.name, max(1, owner.minimum.get(CPU, 0)), count=1)]
        return [*filled, *claims, *self._churn()]

    def _group_that_waits(self) -> list[Event]:
        """A group waits behind large pods until several of them end at once."""
        chance, total = self._chance, sum(quota.minimum.get(CPU, 0) for quota in self._world.quotas)
        owner = chance.choice(self._names)
        filled = [self._event("arrive", chance.choice(self._names), cpu=2) for _ in range(min(total, 12) // 2)]
        size = chance.randint(2, 4)
        group = replace(self._event("arrive", owner), count=size, minimum=size)
        self._at += chance.choice((5, 60, 400))
        touched = [self._event("touch", owner) for _ in range(chance.choice((0, 0, 1)))]
        self._at += chance.choice((1, 30))
        ended = [self._event("end") for _ in range(chance.randint(1, 4))]
        return [*filled, group, *touched, *ended, *self._arrivals(2)]

    def _arrivals(self, count: int) -> list[Event]:
        chance = self._chance
        apart, name = chance.choice((0, 0, 1, 10)), chance.choice(self._names)
        alike = self._arrival(name)
        events = []
        for _ in range(count):
            event = alike if chance.random() < 0.6 else self._arrival(name if chance.random() < 0.5 else "")
            self._at += apart
            events.append(replace(event, at=self._at))
        return events

    def _arrival(self, name: str = "") -> Event:
        chance = self._chance
        event = self._event(
            "arrive",
            quota=name or chance.choice(self._names),
            cpu=chance.choice(self._sizes),
            gpu=chance.choice((0, 1, 2)) if self._has_gpus else 0,
            priority=chance.choice(self._priorities),
            never=chance.random() < 0.05,
        )
        if self._has_groups and chance.random() < 0.3:
            count = chance.randint(2, 4)
            return replace(event, count=count, minimum=chance.choice((count, count, max(2, count - 1))), cpu=1)
        return event

    def _churn(self) -> list[Event]:
        """Jobs of one quota that end one after the other, each with one that follows."""
        chance = self._chance
        name, every, arrival = chance.choice(self._names), chance.choice((7, 20, 60)), self._arrival()
        events = []
        for _ in range(chance.randint(4, 10)):
            self._at += every
            events += [self._event("end", quota=name), replace(arrival, quota=name, at=self._at, count=1, minimum=0)]
        return events

    def _quota(self) -> list[Event]:
        chance, world = self._chance, self._world
        quota = chance.choice([each for each in world.quotas if each.name in self._names])
        if world.source == DECLARED and any(each.maximum for each in world.quotas if each is not quota):
            return []  # a minimum above the maximum of one above it is refused
        if world.source == ELASTIC and chance.random() < 0.2:
            return [self._event("quota gone", quota=quota.name)]
        minimum = {r: max(0, amount + chance.choice((-2, -1, 1, 2))) for r, amount in quota.minimum.items()}
        maximum = {r: max(minimum[r], amount) for r, amount in quota.maximum.items()}
        return [self._event("quota", spec=replace(quota, minimum=minimum, maximum=maximum))]

    def _node_size(self) -> int:
        return _AMPLE if self._world.has_ample_nodes else self._chance.choice((2, 4))

    def _event(
        self,
        kind: str,
        quota: str = "",
        cpu: int = 1,
        gpu: int = 0,
        count: int = 1,
        priority: int = 0,
        never: bool = False,
        spec: Quota | None = None,
    ) -> Event:
        pick = self._chance.randrange(1_000)
        return Event(self._at, kind, quota, cpu, gpu, count, priority=priority, never=never, pick=pick, spec=spec)
