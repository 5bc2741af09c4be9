"""Plays many scenarios, and tells of each rule that was broken in the shortest scenario that breaks it."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tests.campaigns.quota.judge import RULES
from tests.campaigns.quota.player import Played, play
from tests.campaigns.quota.scenarios import scenario
from tests.campaigns.quota.world import Scenario, World

_MOST_TRIALS = 300


@dataclass
class Figures:
    """What was found so far."""

    scenarios: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """Kind of event → scenarios that had it."""

    found: dict[str, list[int]] = field(default_factory=dict)
    """Rule → numbers of the scenarios that broke it."""

    def __str__(self) -> str:
        count = len({number for numbers in self.found.values() for number in numbers})
        return f"{self.scenarios:,} scenarios, {count:,} with findings"


def search(seed: int, numbers: range, say: Callable[[str], None], *, shrinks: bool = False) -> Figures:
    """Play these scenarios of a seed, and `say` what is found; of each rule the first one in full if it `shrinks`."""
    figures = Figures()
    for number in numbers:
        figures.scenarios += 1
        played = play(scenario(seed, number))
        figures.kinds.update(set(played.kinds) | set(_settings(played.scenario.world)))
        for rule in sorted({finding.rule for finding in played.findings}):
            is_first = rule not in figures.found
            figures.found.setdefault(rule, []).append(number)
            if is_first and shrinks:
                say(story(shortest(played.scenario, rule), rule, seed, number))
            else:
                text = next(finding.text for finding in played.findings if finding.rule == rule)
                say(f"scenario {number}: {rule}: {text}")
    return figures


def story(played: Played, rule: str, seed: int, number: int) -> str:
    """What happened, which rule was broken, and how to play it again."""
    broken = [finding for finding in played.findings if finding.rule == rule]
    end = next((n for n, line in enumerate(played.history) if f"** {rule}" in line), len(played.history))
    return "\n".join(
        (
            "",
            f"== {rule}: {broken[0].text if broken else 'not found again'}",
            f"   {RULES[rule]}",
            f"   python -m tests.campaigns.quota --seed {seed} --scenario {number}",
            f"   {played.scenario.world}",
            *played.history[: end + 1],
        )
    )


def shortest(failing: Scenario, rule: str) -> Played:
    """Take away what is not needed to break the rule."""
    best, trials = play(failing), 0
    improved = True
    while improved and trials < _MOST_TRIALS:
        improved = False
        for candidate in _smaller(best.scenario):
            trials += 1
            played = play(candidate)
            if any(finding.rule == rule for finding in played.findings):
                best, improved = played, True
                break
            if trials >= _MOST_TRIALS:
                break
    return best


def _smaller(found: Scenario) -> Iterator[Scenario]:
    world, events = found.world, found.events
    size = len(events)
    step = max(1, size // 2)
    while step:
        for first in range(0, size, step):
            yield Scenario(world, events[:first] + events[first + step :])
        step //= 2
    for other in _simpler(world):
        yield Scenario(other, events)
    for number, event in enumerate(events):
        if event.priority or event.never:
            yield Scenario(world, (*events[:number], replace(event, priority=0, never=False), *events[number + 1 :]))


def _simpler(world: World) -> Iterator[World]:
    plain = World(world.source, world.quotas, world.nodes)
    for name in ("replaced_after", "grace", "order", "default_preemption", "decisions_at_once", "has_budgets"):
        if getattr(world, name) != getattr(plain, name):
            yield replace(world, **{name: getattr(plain, name)})
    for quota in world.quotas:
        for name in ("maximum", "borrowing", "lending", "within", "reclaim", "weight", "priority"):
            simple = replace(quota, **{name: getattr(type(quota)(""), name)})
            if simple != quota:
                yield replace(world, quotas=tuple(simple if each is quota else each for each in world.quotas))


def _settings(world: World) -> Iterator[str]:
    yield f"quotas: {world.source}"
    yield f"order: {world.order}"
    yield f"DefaultPreemption {'on' if world.default_preemption else 'off'}"
    yield "nodes enough" if world.has_ample_nodes else "nodes short"
    yield f"pods end in {world.grace:g} s"
    yield f"PodDisruptionBudgets: {'some' if world.has_budgets else 'none'}"
    yield "evicted pods are replaced" if world.replaced_after is not None else "evicted pods are not replaced"
