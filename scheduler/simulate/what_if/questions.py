"""The questions of the command line, checked: all problems at once."""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from scheduler.api.wording.near_names import near_names
from scheduler.framework.errors import ConfigError
from scheduler.simulate.apiserver.validation import short

MAX_COPIES: Final = 100_000
"""Pods or nodes: a slip of the finger must not take all memory."""

_MAX_DIGITS: Final = 20


SHARE_FIELDS: Final = ("minimum", "maximum", "borrowingLimit", "lendingLimit")


class QuotaChange(NamedTuple):
    share: str
    field: str
    """One of SHARE_FIELDS."""

    amounts: Mapping[str, str]
    """Resource → quantity."""


@dataclass(frozen=True, slots=True)
class Questions:
    """The changes before pods are placed, and the additional pods to place."""

    count: int | None = None
    """How many copies of a pod; None for none."""

    fill: bool = False
    """As many copies as fit."""

    of: str = ""
    """The name of the original; empty for the only new object."""

    drain: Sequence[str] = ()
    remove: Sequence[str] = ()
    add: int = 0
    like: str = ""
    utilisation: bool = False
    quota: Sequence[QuotaChange] = ()

    @property
    def copies(self) -> int:
        """How many copies are tried at most."""
        return MAX_COPIES if self.fill else self.count or 0

    def __bool__(self) -> bool:
        return bool(self.copies or self.drain or self.remove or self.add or self.utilisation or self.quota)


def questions_of(options: argparse.Namespace) -> Questions:
    """Read the options. Raises ConfigError with all that contradicts itself."""
    problems: list[str] = []
    count = _number(options.count, "--count", problems)
    add = _number(options.add_nodes, "--add-nodes", problems)
    quota = list(_quota_changes(options, problems))
    problems += _contradictions(options)
    if problems:
        raise ConfigError(problems)
    return Questions(
        count,
        options.fill,
        options.of or "",
        tuple(dict.fromkeys(options.drain)),
        tuple(dict.fromkeys(options.remove)),
        add or 0,
        options.like or "",
        options.utilisation,
        quota,
    )


def _number(text: str | None, option: str, problems: list[str]) -> int | None:
    if text is None:
        return None
    try:
        number = int(text[:_MAX_DIGITS])
    except ValueError:
        problems.append(f"{option} {short(text)}: expected a number")
        return None
    if number < 1:
        problems.append(f"{option} {short(text)}: must be at least 1")
    elif number > MAX_COPIES:
        problems.append(f"{option} {short(text)}: a simulation takes {MAX_COPIES:,} at most")
    return number


def _quota_changes(options: argparse.Namespace, problems: list[str]) -> Iterator[QuotaChange]:
    for share, field, text in options.quota:
        at, amounts = f"--quota {short(share)}", dict[str, str]()
        if field not in SHARE_FIELDS:
            problems.append(f"{at} {short(field)}: expected one of {', '.join(SHARE_FIELDS)}")
        for part in text.split(","):
            resource, equals, amount = part.partition("=")
            if not (resource and equals and amount):
                problems.append(f"{at} {short(text)}: expected RESOURCE=QUANTITY, such as cpu=64")
            amounts[resource] = amount
        yield QuotaChange(share, field, amounts)


def _contradictions(options: argparse.Namespace) -> Iterator[str]:
    if options.count is not None and options.fill:
        yield "--count and --fill: one says how many copies, the other as many as fit; give one of them"
    asks_for_copies = options.count is not None or options.fill
    if options.of is not None and not asks_for_copies:
        yield f"--of {options.of}: says what --count or --fill copy, and neither is given"
    if options.add_nodes is not None and not options.like:
        yield "--add-nodes: --like NODE says what they are like, and is missing"
    if options.like is not None and options.add_nodes is None:
        yield f"--like {options.like}: says what the nodes of --add-nodes are like, and that is missing"
    if options.quota and (asks_for_copies or options.drain or options.remove):
        yield "--quota: says what would change for the waiting pods; ask about copies and nodes that go by themselves"
    for name in dict.fromkeys(options.drain):
        if name in options.remove:
            yield f"--drain {name}: --remove takes the same node away"
    if options.each_alone and (asks_for_copies or options.drain):
        yield "--each-alone: judges pods on the cluster as given; it goes with neither --count, --fill nor --drain"


def node_problems(questions: Questions, names: Collection[str]) -> Iterator[str]:
    """Yield a problem for each node that does not exist; `names`: of all that do."""
    asked = (("--drain", questions.drain), ("--remove", questions.remove), ("--like", filter(None, [questions.like])))
    for option, nodes in asked:
        for name in nodes:
            if name not in names:
                yield f"{option} {name}: there is no such node{did_you_mean(name, names)}"


def did_you_mean(name: str, names: Collection[str]) -> str:
    """Return the names that may be meant, as the end of a sentence."""
    near = near_names(name, sorted(names)[:MAX_COPIES], 3)
    return f"; did you mean {' or '.join(near)}?" if near else ""
