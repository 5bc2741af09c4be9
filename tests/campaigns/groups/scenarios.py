"""Random lives of groups, as plain data: the same seed, the same scenario, and any step can be left out.

A step names what it is about by a group, or by a share from 0 to 1 that picks one of the things there are by then. So a
scenario from which steps were removed is a scenario, too.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.campaigns.groups.stories import BLOCK, HOSTNAME, RACK, STORIES, Story


@dataclass(frozen=True)
class Settings:
    """The configuration."""

    preempts: bool
    """Whether DefaultPreemption is enabled."""
    levels: tuple[str, ...]
    reservation_seconds: int
    """0: nothing is reserved."""
    backfill: str
    damaged_seconds: int
    """0: nothing is given up."""
    has_budgets: bool = False
    """Whether PodDisruptionBudgets protect some pods that are in no group."""
    has_trees: bool = False
    """Whether the feature gates for CompositePodGroups are on."""
    has_quota: bool = False
    """Whether all pods count in a quota that is never short, so that it changes nothing."""
    reloads: bool = False
    """Whether the configuration is loaded again and again, so that all plugins are made anew. It changes nothing."""


@dataclass(frozen=True)
class NodePlan:
    name: str
    cpu: int
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PartPlan:
    """A PodGroup that is part of a CompositePodGroup."""

    size: int
    minimum: int
    required: str


@dataclass(frozen=True)
class GroupPlan:
    name: str
    has_object: bool
    """Whether it is a PodGroup of scheduling.x-k8s.io; otherwise its pods are annotated."""
    cpus: tuple[int, ...]
    """What each of its pods asks for."""
    minimum: int
    priority: int
    required: str = ""
    preferred: str = ""
    seconds: int = 0
    """How long each pod runs; 0: until it is deleted."""
    announces: str = ""
    """Says so: "deadline" or "expected"."""
    is_replaced: bool = True
    """Whether a controller replaces pods that are gone."""
    grace: int = 0
    """Seconds that its pods take to end."""
    needs_license: bool = False
    """Whether a plugin refuses its pods on all nodes while there is no license."""
    least: int = 0
    """The cores of `minResources`."""
    parts: tuple[PartPlan, ...] = ()
    """If it is a CompositePodGroup: the groups that it consists of."""
    needs: int = 0
    """How many of these."""
    leaves_whole: bool = False
    """Whether it is evicted as a whole."""

    def part_of(self, index: int) -> int:
        """The part that its pod of an index belongs to."""
        owners = [part for part, plan in enumerate(self.parts) for _ in range(plan.size)]
        return owners[index % len(owners)] if owners else 0


@dataclass(frozen=True)
class Step:
    kind: str
    wait: float
    """Seconds that pass after it."""
    group: str = ""
    pick: float = 0.0
    number: int = 0
    other: int = 0
    how: str = ""

    def __str__(self) -> str:
        given = [self.group, self.how, *(str(each) for each in (self.number, self.other) if each)]
        return " ".join([self.kind, *filter(None, given)])


@dataclass(frozen=True)
class Scenario:
    settings: Settings
    nodes: tuple[NodePlan, ...]
    groups: tuple[GroupPlan, ...]
    steps: tuple[Step, ...]


class Draw(random.Random):
    """Random choices."""

    def chance(self, share: float) -> bool:
        return self.random() < share


OBJECT_FIRST: Final = ("object first", "object first", "pods first")
WAITS: Final = (0, 0, 0.5, 1, 2, 5, 5, 10, 20, 40, 90)

QUICK: Final = (0, 0.5, 1, 1, 2, 5, 20, 60)

KINDS: Final = {
    "group": 14,
    "some members": 4,
    "lone": 12,
    "crowd": 3,
    "fill": 1,
    "daemon": 1,
    "succeed": 8,
    "fail": 3,
    "delete member": 6,
    "delete lone": 6,
    "delete group": 3,
    "delete part": 3,
    "restart group": 4,
    "cordon": 3,
    "uncordon": 3,
    "lose node": 3,
    "kill node": 2,
    "return node": 5,
    "new minimum": 2,
    "new template": 2,
    "drop object": 1,
    "return object": 2,
    "bindings": 4,
    "gated member": 1,
    "ungate": 2,
    "odd member": 1,
    "license": 1,
    "foreign pod": 1,
    "restart": 2,
}
"""Kind of step → how often it is drawn. `world.py` has a method for each."""


def scenario(seed: int, number: int) -> Scenario:
    """Return a scenario."""
    draw = Draw(f"{seed} {number}")
    settings = replace(_settings(draw), has_budgets=number % 4 == 3, has_quota=number % 5 == 4, reloads=number % 7 == 6)
    nodes = tuple(_nodes(draw))
    largest = max(node.cpu for node in nodes)
    groups = tuple(
        _group(draw, f"g{each}", settings, largest) for each in range(1, draw.choice((2, 2, 3, 3, 4, 6, 10)) + 1)
    )
    steps = [*_opening(draw, groups), *(_step(draw, groups) for _ in range(draw.randint(2, 14)))]
    if draw.chance(0.6):
        story = draw.choice(STORIES)
        settings = replace(settings, **story.settings)
        group, other = draw.sample(groups, 2)
        groups = tuple(_changed(each, story, largest) if each in (group, other) else each for each in groups)
        place = draw.choice((0, draw.randint(0, len(steps))))
        steps[place:place] = _steps_of(draw, story, groups, group.name, other.name)
    if number % 3 == 1:
        settings = replace(settings, has_trees=True)
        groups = tuple(_as_tree(draw, plan) if draw.chance(0.6) else plan for plan in groups)
    return Scenario(settings, nodes, groups, tuple(steps))


def _changed(plan: GroupPlan, story: Story, largest: int) -> GroupPlan:
    """The group as the story wants it."""
    given = dict(story.group)
    size, cpu = given.pop("size", 0), given.pop("cpu", "")
    if size:
        given |= {"cpus": (largest if cpu else 1,) * size, "minimum": size}
    return replace(plan, **given)


def _as_tree(draw: Draw, plan: GroupPlan) -> GroupPlan:
    """A CompositePodGroup with the pods of a group, cut into parts."""
    cpus = plan.cpus * (1 if len(plan.cpus) > 1 else 2)
    cuts = sorted(draw.sample(range(1, len(cpus)), min(len(cpus) - 1, draw.choice((0, 1, 1, 2)))))
    sizes = [end - start for start, end in zip((0, *cuts), (*cuts, len(cpus)), strict=True)]
    levels = ("",) if plan.required == HOSTNAME else ("", "", RACK)
    parts = tuple(PartPlan(n, n if draw.chance(0.6) else draw.randint(1, n), draw.choice(levels)) for n in sizes)
    return replace(
        plan,
        has_object=True,
        cpus=cpus,
        minimum=sum(part.minimum for part in parts),
        preferred="",
        announces="",
        least=0,
        parts=parts,
        needs=len(parts) if draw.chance(0.6) else draw.randint(1, len(parts)),
        leaves_whole=draw.chance(0.3),
    )


def _steps_of(draw: Draw, story: Story, groups: Sequence[GroupPlan], group: str, other: str) -> Iterator[Step]:
    for kind, how in story.steps:
        of_other = kind.startswith("other ")
        step = _of_kind(draw, kind.removeprefix("other "), groups, draw.choice(QUICK))
        wait = draw.choice((70, 130)) if kind == "wait" else step.wait
        yield replace(step, group=other if of_other else group, how=how or step.how, wait=wait)


def _settings(draw: Draw) -> Settings:
    levels = draw.choice(((), (RACK,), (BLOCK, RACK), (BLOCK, RACK, HOSTNAME)))
    reservation = draw.choice((0, 0, 0, 60, 120, 600))
    backfill = draw.choice(("Promised", "Enforced", "Never"))
    return Settings(draw.chance(0.6), levels, reservation, backfill, draw.choice((0, 120, 1800)))


def _nodes(draw: Draw) -> Iterator[NodePlan]:
    cpu = draw.choice((2, 3, 4))
    for number in range(1, draw.randint(2, 6) + 1):
        labels = {HOSTNAME: f"n{number}"}
        if draw.chance(0.93):
            labels |= {BLOCK: draw.choice(("b1", "b1", "b2")), RACK: draw.choice(("r1", "r2"))}
        yield NodePlan(f"n{number}", cpu if draw.chance(0.7) else draw.choice((1, 2, 4)), tuple(labels.items()))


def _group(draw: Draw, name: str, settings: Settings, largest: int) -> GroupPlan:
    size = draw.choice((1, 2, 2, 3, 3, 4, 5, 8))
    cpu = draw.choice((1, 1, 1, 2, largest))
    cpus = [cpu if draw.chance(0.93) else draw.choice((1, 2)) for _ in range(size)]
    if draw.chance(0.8):
        cpus = [cpu] * size
    required = draw.choice((RACK, RACK, BLOCK, HOSTNAME)) if draw.chance(0.3) else ""
    preferred = draw.choice((RACK, HOSTNAME, BLOCK)) if draw.chance(0.25) else ""
    seconds = draw.choice((20, 60, 200)) if draw.chance(0.35) else 0
    has_object = draw.chance(0.5)
    return GroupPlan(
        name,
        has_object,
        tuple(cpus),
        size if draw.chance(0.6) else draw.randint(1, size),
        draw.choice((0, 0, 0, 5, 10)),
        required,
        preferred,
        seconds,
        draw.choice(("", "deadline", "expected")) if seconds else "",
        draw.chance(0.75),
        draw.choice((0, 0, 5, 30)),
        draw.chance(0.1),
        sum(cpus) + draw.choice((0, 2)) if has_object and draw.chance(0.12) else 0,
    )


def _opening(draw: Draw, groups: Sequence[GroupPlan]) -> Iterator[Step]:
    """Fill a part of the cluster, and let some groups come."""
    for _ in range(draw.choice((0, 1, 3, 6))):
        yield _of_kind(draw, "lone", groups, 0.0)
    for group in draw.sample(groups, draw.randint(1, len(groups))):
        yield Step(
            "group", draw.choice(WAITS), group.name, how=draw.choice(("object first", "object first", "pods first"))
        )


def _step(draw: Draw, groups: Sequence[GroupPlan]) -> Step:
    (kind,) = draw.choices(list(KINDS), list(KINDS.values()))
    return _of_kind(draw, kind, groups, draw.choice(WAITS))


def _of_kind(draw: Draw, kind: str, groups: Sequence[GroupPlan], wait: float) -> Step:
    how = {
        "group": OBJECT_FIRST,
        "lone": ("", "", "replaced", "deadline", "expected"),
        "crowd": ("", "replaced"),
        "fill": ("", "replaced"),
        "lose node": ("pods stay", "pods go"),
        "bindings": ("conflict", "error", "slow", "lost answer"),
    }.get(kind, ("",))
    number = {
        "lone": (1, 1, 1, 2),
        "crowd": (2, 4, 6),
        "fill": (0, 0, 1),
        "bindings": (1, 1, 2, 3),
        "new minimum": (-2, -1, 1, 2),
        "new template": (-1, 1),
        "delete group": (0, 5, 30),
        "delete part": (0, 0, 5, 30),
        "restart group": (0, 5, 30, 30),
        "delete member": (0, 0, 5, 30),
        "delete lone": (0, 0, 5, 30),
    }.get(kind, (0,))
    other = {"lone": (0, 0, 0, 3, 5, 7, 20), "crowd": (0, 0, 3, 7), "fill": (0, 0, 3), "daemon": (0, 20)}.get(
        kind, (0,)
    )
    return Step(
        kind,
        wait,
        draw.choice(groups).name,
        draw.random(),
        draw.choice(number),
        draw.choice(other),
        draw.choice(how),
    )
