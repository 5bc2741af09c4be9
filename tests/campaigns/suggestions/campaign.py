"""Asks about every pending pod of random clusters, and holds what is suggested against what is so.

false       a suggestion that cannot be carried out, or after which a fresh engine places the pod elsewhere or nowhere
wall        a taint that is tolerated or removed is not suggested last
order       an answer that is another one for the same cluster with its objects in another order
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import plugins
from scheduler.commands.explaining import Asked, decided
from tests.campaigns.suggestions.carrying_out import problem_of
from tests.campaigns.suggestions.clusters import NAMESPACE, Json, cluster, shuffled
from tests.campaigns.suggestions.worlds import CONFIG, Judge, World, pending_pod

WALL: Final = re.compile("tolerate |tolerating |remove the taint ")


@dataclass
class Figures:
    """What was found so far."""

    clusters: int = 0
    pods: int = 0
    suggestions: int = 0
    false: Counter[str] = field(default_factory=Counter)
    """By what came of the suggestion, without names."""

    reordered: int = 0

    def __str__(self) -> str:
        return (
            f"{self.clusters:,} clusters, {self.pods:,} pending pods, {self.suggestions:,} suggestions carried out: "
            f"{self.false.total()} false; {self.reordered} answers that depend on the order of the objects"
        )


def search(seed: int, clusters: int, say: Callable[[str], None]) -> Figures:
    """Search so many clusters, and `say` each failure as it is found."""
    figures = Figures()
    for each in range(seed, seed + clusters):
        figures.clusters += 1
        for failure in _search_one(each, figures):
            say(f"cluster {each}: {failure}")
    return figures


def explanation(world: World, name: str) -> Json:
    """What `explain --from` says of the pod of this name."""
    cluster = world.read()
    pod = pending_pod(cluster, name)
    document = asyncio.run(decided(cluster, CONFIG, plugins.IN_TREE, Asked(NAMESPACE, pod.name)))
    found: Json = document["explanation"]
    return found


def _search_one(seed: int, figures: Figures) -> Iterator[str]:
    world = World(cluster(seed))
    other = World(shuffled(world.objects, seed))
    with Judge(world) as judge:
        for name in world.pending():
            if judge.fits(judge.pod(name)):
                continue
            figures.pods += 1
            answer = explanation(world, name)
            for each in answer["suggestions"]:
                figures.suggestions += 1
                if problem := problem_of(world, name, judge.pod(name), each):
                    figures.false[problem.split(":")[0][:40]] += 1
                    yield f"{name}: FALSE {each['text']!r}: {problem}"
            if (walls := [bool(WALL.search(each["text"])) for each in answer["suggestions"]]) != sorted(walls):
                figures.false["a wall is not suggested last"] += 1
                yield f"{name}: WALL {[each['text'] for each in answer['suggestions']]}"
            if (again := explanation(other, name)) != answer:
                figures.reordered += 1
                yield f"{name}: ORDER {_difference(answer, again)}"


def _difference(one: Json, other: Json) -> str:
    for key in one:
        if one[key] != other.get(key):
            return f"{key}: {json.dumps(one[key])[:400]} / {json.dumps(other.get(key))[:400]}"
    return ""
