"""The campaign about quota: how a scenario is played, and what is taken away to make it shorter."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tests.campaigns import lives
from tests.campaigns.quota.judge import RULES
from tests.campaigns.quota.player import Played, play
from tests.campaigns.quota.scenarios import scenario
from tests.campaigns.quota.world import Scenario, World


def _play(found: Scenario) -> Played:
    with lives.unlogged(logging.CRITICAL):
        return play(found)


def _shortest(seed: int, number: int, kind: str) -> Played:
    def fails(candidate: Scenario) -> bool:
        return any(finding.kind == kind for finding in _play(candidate).findings)

    return _play(lives.shortest(scenario(seed, number), _smaller, fails))


CAMPAIGN: Final = lives.Campaign("quota", RULES, lambda seed, number: _play(scenario(seed, number)), _shortest)


def _smaller(found: Scenario) -> Iterator[Scenario]:
    world, events = found.world, found.events
    for fewer in lives.fewer(events):
        yield Scenario(world, fewer)
    for other in _simpler(world):
        yield Scenario(other, events)
    for number, event in enumerate(events):
        if event.priority or event.never:
            yield Scenario(world, (*events[:number], replace(event, priority=0, never=False), *events[number + 1 :]))


def _simpler(world: World) -> Iterator[World]:
    plain = World(world.source, world.quotas, world.nodes)
    for name in (
        "replaced_after",
        "grace",
        "order",
        "default_preemption",
        "decisions_at_once",
        "has_budgets",
        "quota_first",
    ):
        if getattr(world, name) != getattr(plain, name):
            yield replace(world, **{name: getattr(plain, name)})
    for quota in world.quotas:
        for name in ("maximum", "borrowing", "lending", "within", "reclaim", "weight", "priority"):
            simple = replace(quota, **{name: getattr(type(quota)(""), name)})
            if simple != quota:
                yield replace(world, quotas=tuple(simple if each is quota else each for each in world.quotas))
