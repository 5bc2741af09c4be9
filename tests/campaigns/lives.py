"""What the campaigns over virtual time share: the command line, and how findings are told.

    python -m tests.campaigns.NAME --scenarios 1000 --seed 1
    python -m tests.campaigns.NAME --scenarios 500 --seed 1 --first 500     the next ones, in another process
    python -m tests.campaigns.NAME --seed 1 --scenario 17                   only this one

The first finding of each kind is told by the shortest history that leads to it. Then come which scenarios had which
kind of finding, and how many had which kind of event. Exit code 1: a rule was violated.
"""

import argparse
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeVar

from scheduler.config.types import Config
from scheduler.engine.engine import queue_settings
from scheduler.runtime.registry import Registry
from scheduler.testing import Scheduler

T = TypeVar("T")

MOST_TRIALS: Final = 400
MOST_LINES: Final = 100


class Finding(Protocol):
    """A rule that was violated."""

    @property
    def kind(self) -> str:
        """The rule, and perhaps a symptom after a colon. The history has it after an exclamation mark."""

    @property
    def text(self) -> str: ...


class Played(Protocol):
    """What came of a scenario."""

    @property
    def history(self) -> list[str]: ...

    @property
    def findings(self) -> Sequence[Finding]: ...

    @property
    def seen(self) -> Iterable[str]:
        """The kinds of events that it had."""


@dataclass(frozen=True)
class Campaign:
    name: str
    rules: Mapping[str, str]
    """Each with the sentence that it comes from."""
    play: Callable[[int, int], Played]
    """Play a scenario, by seed and number."""
    shortest: Callable[[int, int, str], Played]
    """Play the shortest variant of it that has a finding of this kind."""


@dataclass
class Figures:
    """What was found so far."""

    scenarios: int = 0
    found: dict[str, list[int]] = field(default_factory=dict)
    """Kind of finding → the scenarios that had it."""
    seen: Counter[str] = field(default_factory=Counter)
    """Kind of event → how many scenarios had it."""

    def __str__(self) -> str:
        count = len({number for numbers in self.found.values() for number in numbers})
        return f"{self.scenarios:,} scenarios, {count:,} with findings"


@contextmanager
def unlogged(level: int) -> Iterator[None]:
    """Log nothing of this level or below."""
    before = logging.root.manager.disable
    logging.disable(level)
    try:
        yield
    finally:
        logging.disable(before)


def main(campaign: Campaign) -> int:
    """Do what the command line asks for, and return the exit code."""
    form = argparse.RawDescriptionHelpFormatter
    text = (__doc__ or "").replace("NAME", campaign.name)
    parser = argparse.ArgumentParser(
        f"python -m tests.campaigns.{campaign.name}", description=text, formatter_class=form
    )
    parser.add_argument("--scenarios", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first scenario")
    parser.add_argument("--scenario", type=int, help="only this one")
    parser.add_argument("--whole", action="store_true", help="with --scenario: its whole history")
    parser.add_argument("--quiet", action="store_true", help="of each finding only its text")
    options = parser.parse_args()
    if options.scenario is not None:
        return _one(campaign, options.seed, options.scenario, is_whole=options.whole)
    began = time.process_time()
    figures = _search(campaign, options.seed, range(options.first, options.first + options.scenarios), options.quiet)
    _summarize(figures, time.process_time() - began)
    return int(bool(figures.found))


def _one(campaign: Campaign, seed: int, number: int, *, is_whole: bool) -> int:
    played = campaign.play(seed, number)
    if is_whole or not played.findings:
        print("\n".join(played.history))
    for kind in () if is_whole else _texts(played):
        print(_story(campaign, seed, number, kind))
    return int(bool(played.findings))


def _search(campaign: Campaign, seed: int, numbers: range, is_quiet: bool) -> Figures:
    figures = Figures()
    for number in numbers:
        played = campaign.play(seed, number)
        figures.scenarios += 1
        figures.seen.update(set(played.seen))
        for kind, text in _texts(played).items():
            is_known = kind in figures.found
            figures.found.setdefault(kind, []).append(number)
            is_short = is_quiet or is_known
            print(f"{number}: {kind}: {text}" if is_short else _story(campaign, seed, number, kind), flush=True)
    return figures


def _texts(played: Played) -> dict[str, str]:
    """Kind of finding → the text of the first."""
    return {finding.kind: finding.text for finding in reversed(played.findings)}


def _story(campaign: Campaign, seed: int, number: int, kind: str) -> str:
    """The shortest history that leads to a finding, and how to see it again."""
    history = campaign.shortest(seed, number, kind).history
    end = next((place for place, line in enumerate(history) if f"! {kind}" in line), len(history))
    lines = history[: end + 1]
    if len(lines) > MOST_LINES:
        lines[MOST_LINES // 2 : -MOST_LINES // 2] = [f"            … {len(lines) - MOST_LINES} lines …"]
    return "\n".join(
        (
            f"== {kind}",
            f"   the rule: {campaign.rules[kind.split(':')[0]]}",
            f"   again:    python -m tests.campaigns.{campaign.name} --seed {seed} --scenario {number}",
            *lines,
        )
    )


def _summarize(figures: Figures, seconds: float) -> None:
    for kind, count in sorted(figures.seen.items()):
        print(f"{count:7,} scenarios had: {kind}")
    for kind, numbers in sorted(figures.found.items(), key=lambda each: -len(each[1])):
        print(f"{len(numbers):7,} scenarios violate {kind}: {', '.join(map(str, numbers[:8]))}")
    print(f"{figures}; {seconds / max(1, figures.scenarios) * 1e3:.0f} ms of CPU each")


class Restartable(Scheduler):
    """A scheduler that may end, and be started anew in the same cluster, of which it is shown nothing by that."""

    def restart(self) -> None:
        async def anew() -> None:
            await self._stop()
            await self._start()

        self._runner.run(anew())

    def reload(self, config: Config, registry: Registry) -> None:
        """Put another configuration to work, as the reloader does."""
        self._do(partial(self._use, registry=registry), (config,))

    def _use(self, config: Config, registry: Registry) -> None:
        engine = self.engine
        prepared = engine.profiles.prepare(config, registry)
        engine.profiles.hand_over(prepared)
        changed = engine.profiles.swap(prepared)
        engine.use(config, queue_settings(config, engine.frameworks, engine.roster.extenders), changed)
        deque(engine.handlers.profiles_changed(), 0)
        deque(engine.queue.ask_again(changed), 0)


def shortest(found: T, smaller: Callable[[T], Iterator[T]], fails: Callable[[T], bool]) -> T:
    """Take away from a scenario what is not needed for it to fail."""
    trials, is_smaller = 0, True
    while is_smaller:
        is_smaller = False
        for candidate in smaller(found):
            trials += 1
            if trials > MOST_TRIALS:
                return found
            if fails(candidate):
                found, is_smaller = candidate, True
                break
    return found


def fewer(items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Yield the items without half of them, then without each quarter, and so on to each one."""
    size = (len(items) + 1) // 2
    while size:
        for start in range(0, len(items), size):
            yield (*items[:start], *items[start + size :])
        size = size // 2
