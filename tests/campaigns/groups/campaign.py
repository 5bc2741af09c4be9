"""The campaign about groups: how a scenario is played, and what is taken away to make it shorter."""

import asyncio
import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final
from unittest.mock import patch

from scheduler.testing.api_server import BEGIN
from tests.campaigns import lives
from tests.campaigns.groups.findings import RULES, Record
from tests.campaigns.groups.life import Life
from tests.campaigns.groups.quiet import GIVEN_UP_SECONDS, QUIET_SECONDS, QuietPoint
from tests.campaigns.groups.scenarios import Scenario, scenario
from tests.campaigns.groups.world import World

END_SECONDS: Final = 95.0
"""The victims are gone within 30 seconds, and what they are evicted for starts within 60."""

RETRIED_SECONDS: Final = 400.0
"""After which a group that waits is tried again, whatever happens."""

MAX_WAITS: Final = 8
EXPECTED: Final = (
    '"DefaultBinder"',
    "other pods of its group were not bound",
    "cannot determine domain for already scheduled pods: getting node for pod",
    "all pods in a single pod group should have the same priority as the pod group's priority",
)
"""Errors that a scenario orders, and those of kube-scheduler about PodGroups."""


def play(scenario: Scenario) -> Record:
    """Play one scenario."""
    record = Record()
    try:
        with patch("time.time", _time_of_day), lives.unlogged(logging.WARNING), _errors_of(record):
            world = World(scenario, record)
            with world:
                _live(world)
    except Exception as error:  # noqa: BLE001 - whatever breaks is a finding
        record.violated("broken", type(error).__name__, repr(error)[:300])
    return record


@contextmanager
def _errors_of(record: Record) -> Iterator[None]:
    """Let each error that is logged be a finding, but for those expected."""

    class Handler(logging.Handler):
        def emit(self, logged: logging.LogRecord) -> None:
            details = getattr(logged, "err", "") or repr(logged.exc_info and logged.exc_info[1])
            if not any(text in details for text in EXPECTED):
                record.violated("broken", "an error is logged", f"{logged.getMessage()}: {details}"[:300])

    handler = Handler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _time_of_day() -> float:
    """As time.time, where the scheduler has no other clock. Modules that are loaded meanwhile may keep it."""
    with suppress(RuntimeError):
        return BEGIN.timestamp() + asyncio.get_running_loop().time()
    return BEGIN.timestamp()


def _live(world: World) -> None:
    _play_steps(world)
    world.is_calm = True
    world.server.fates = []
    world.act(lambda: None, END_SECONDS)
    for _ in range(MAX_WAITS):
        if world.record.findings or world.now() - world.last_change > QUIET_SECONDS:
            break
        world.act(lambda: None, QUIET_SECONDS)
    point = QuietPoint(world)
    point.check()
    refused = [pod.name for pod, _ in point.lone_that_fit() if point.refused_by_reservation(pod)]
    is_end_ahead = any(pod.is_announced and pod.phase == "Running" for pod in world.model.pods.values())
    if refused and not is_end_ahead:
        _check_starved(world, refused)
    if (point.lone or point.groups) and not world.record.findings:
        world.act(lambda: None, RETRIED_SECONDS)
        if world.now() - world.last_change > RETRIED_SECONDS:
            QuietPoint(world).check(is_late=True)
    pairs = list(QuietPoint(world).damaged_pairs())
    if pairs and world.scenario.settings.preempts and world.scenario.settings.damaged_seconds:
        _check_damaged(world, pairs)


def _play_steps(world: World) -> None:
    """Let everything happen that a scenario says."""
    life = Life(world)
    world.act(life.begin, 1)
    for step in world.scenario.steps:
        if step.kind == "restart":
            world.restart()
        world.act(partial(life.do, step), step.wait)
        if world.scenario.settings.reloads:
            world.reload_alike()
        if step.wait > QUIET_SECONDS and world.now() - world.last_change > QUIET_SECONDS:
            QuietPoint(world).check()


def _check_damaged(world: World, pairs: Collection[tuple[list[str], list[str]]]) -> None:
    """Let the time pass after which one of two damaged groups gives way, in which nothing changes outside."""
    seconds = world.scenario.settings.damaged_seconds + RETRIED_SECONDS
    world.record.note("damaged groups", f"nothing happens for {seconds:.0f} s")
    world.act(lambda: None, seconds)
    for first, second in QuietPoint(world).damaged_pairs():
        if (first, second) in pairs:
            text = f"{', '.join(first)} keep their nodes, and {', '.join(second)}"
            world.record.violated("damaged", "both stay", text)


def _check_starved(world: World, refused: list[str]) -> None:
    """Let the time of one reservation pass, in which nothing changes outside."""
    world.record.note("time of a reservation", f"nothing happens for {GIVEN_UP_SECONDS:.0f} s")
    before, reservations = world.record.total("pod succeeded"), world.rules.reservations
    last, now = (-1, -1), (reservations.priority, _evictions(world))
    while any(new > old for new, old in zip(now, last, strict=True)):
        # A group of higher priority may take over; and after an eviction further pods may fit.
        world.act(lambda: None, GIVEN_UP_SECONDS)
        last, now = now, (reservations.priority, _evictions(world))
    if world.record.total("pod succeeded") > before:
        return  # it may be refused a second time, as it did not fit between two reservations
    for pod, nodes in QuietPoint(world).lone_that_fit():
        if pod.name in refused:
            text = f"{pod.name} still waits, and fits on {', '.join(nodes)}: {world.message(pod)!r}"
            world.record.violated("starved", "longer than one reservation", text)


def _evictions(world: World) -> int:
    return world.record.total("evicted for a group") + world.record.total("evicted for a lone pod")


def _shortest(seed: int, number: int, kind: str) -> Record:
    def fails(candidate: Scenario) -> bool:
        return any(each.kind == kind for each in play(candidate).findings)

    return play(lives.shortest(scenario(seed, number), _smaller, fails))


def _smaller(found: Scenario) -> Iterator[Scenario]:
    """Leave out steps, then nodes."""
    for steps in lives.fewer(found.steps):
        yield replace(found, steps=steps)
    for nodes in filter(None, lives.fewer(found.nodes)):
        yield replace(found, nodes=nodes)


CAMPAIGN: Final = lives.Campaign("groups", RULES, lambda seed, number: play(scenario(seed, number)), _shortest)
