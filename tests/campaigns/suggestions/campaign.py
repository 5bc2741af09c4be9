"""Asks about every pending pod of random clusters, and holds what is suggested against what is so.

false       a suggestion that cannot be carried out, or after which a fresh engine places the pod elsewhere or nowhere
missed      a single change of the catalogue (`catalogue.py`) that helps, though nothing of its kind that is as small
            was suggested (`sizes.py` says what is smaller)
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
from tests.campaigns.suggestions.carrying_out import carried_out
from tests.campaigns.suggestions.catalogue import OneWorld
from tests.campaigns.suggestions.clusters import NAMESPACE, Json, cluster, shuffled
from tests.campaigns.suggestions.sizes import covers
from tests.campaigns.suggestions.worlds import CONFIG, Judge, World, pending_pod

WALL: Final = re.compile("tolerate |tolerating |remove the taint ")


@dataclass
class Figures:
    """What was found so far."""

    clusters: int = 0
    pods: int = 0
    suggestions: int = 0
    singles: int = 0
    false: Counter[str] = field(default_factory=Counter)
    """By what was suggested, and what came of it; here and below without names."""

    missed: Counter[str] = field(default_factory=Counter)
    reordered: int = 0

    def __str__(self) -> str:
        share = 100 * self.missed.total() / max(1, self.singles)
        return (
            f"{self.clusters:,} clusters, {self.pods:,} pending pods, {self.suggestions:,} suggestions carried out: "
            f"{self.false.total()} false; {self.singles:,} single changes that help, {self.missed.total()} missed "
            f"({share:.1f} %); {self.reordered} answers that depend on the order of the objects"
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
    with Judge(world) as judge, OneWorld(world, judge) as catalogue:
        for name in world.pending():
            if judge.fits(judge.pod(name)):
                continue
            figures.pods += 1
            answer = explanation(world, name)
            suggested = []
            for each in answer["suggestions"]:
                figures.suggestions += 1
                outcome = carried_out(world, name, judge.pod(name), each)
                suggested.append(outcome.sizes)
                if outcome.problem:
                    figures.false[f"{'+'.join(outcome.sizes)}: {outcome.problem.split(':')[0][:40]}"] += 1
                    yield f"{name}: FALSE {each['text']!r}: {outcome.problem}"
            if (walls := [bool(WALL.search(each["text"])) for each in answer["suggestions"]]) != sorted(walls):
                figures.false["a wall is not suggested last"] += 1
                yield f"{name}: WALL {[each['text'] for each in answer['suggestions']]}"
            for single in catalogue.that_help(name):
                figures.singles += 1
                if not any(covers(sizes, single.sizes) for sizes in suggested):
                    figures.missed["+".join(single.sizes)] += 1
                    yield f"{name}: MISSED {single.text!r} {single.sizes}; suggested {suggested}"
            if (again := explanation(other, name)) != answer:
                figures.reordered += 1
                yield f"{name}: ORDER {_difference(answer, again)}"


def _difference(one: Json, other: Json) -> str:
    for key in one:
        if one[key] != other.get(key):
            return f"{key}: {json.dumps(one[key])[:400]} / {json.dumps(other.get(key))[:400]}"
    return ""
