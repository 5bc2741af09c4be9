"""Nodes with the same obstacles, the nearest miss first.

3 nodes: taint dedicated=gpu:NoSchedule; and 0.4 to 3 cpu short of 2
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import numpy as np

from scheduler.api.wording.text import MAX_REASON, MAX_REASONS, encodable, shortened
from scheduler.explain.full_evaluation import FullEvaluation
from scheduler.framework.errors import PluginError
from scheduler.framework.obstacles import ExplainPlugin, Obstacle, PodInTheWay, Remedy, Shortage
from scheduler.framework.status import Status
from scheduler.process.time_slice import TimeSlice
from scheduler.runtime.guards.plugin_faults import as_plugin_error
from scheduler.runtime.profile import ProfilePlugins
from scheduler.state.nodes.node_table import NodeTable

MAX_IN_DETAIL: Final = 10_000
"""Nodes whose obstacles plugins describe; for the rest there are only reasons."""

MAX_NAMES: Final = 100
"""Names of nodes that are listed for a group."""

MAX_IN_THE_WAY: Final = 16
"""Pods in the way of a group of nodes."""

EVEN_EMPTY: Final = "even without any pod there"

Range = tuple[int, int]
"""Minimum and maximum."""


@dataclass(frozen=True, slots=True)
class NamedObstacle:
    plugin: str
    code: str
    """The label of the refusal's code, such as `Unschedulable`."""

    obstacle: Obstacle

    @property
    def key(self) -> tuple[str, str, str]:
        """Identifies the obstacle, whatever the amounts."""
        shortage = self.obstacle.shortage
        if shortage is None:
            return self.plugin, self.code, self.obstacle.fact
        return self.plugin, self.code, f"short of {shortage.resource}{EVEN_EMPTY if shortage.when_empty else ''}"


@dataclass(slots=True)
class NodeGroup:
    nodes: list[str]
    """The nearest miss first, then by name."""

    obstacles: Sequence[NamedObstacle]
    """The obstacles of the first node."""

    ranges: dict[str, Range]
    """Resource → the least and the most that is missing on any of the nodes."""

    empty_ranges: dict[str, Range] = field(default_factory=dict)
    """The same without any pod there."""

    in_the_way: Sequence[PodInTheWay] = ()
    """Of the obstacles of all its nodes, those of the first."""

    @property
    def distance(self) -> tuple[int, float]:
        """Sorts the nearest miss first: the first node's number of obstacles, then the share of resources it lacks."""
        return len(self.obstacles), _missing(self.obstacles)


async def group_nodes(
    plugins: ProfilePlugins, table: NodeTable, evaluation: FullEvaluation, time_slice: TimeSlice
) -> list[NodeGroup]:
    """Return the nodes that refuse the pod, in groups. Nodes deleted meanwhile are left out."""
    by_key: dict[tuple[tuple[str, str, str], ...], _Members] = {}
    refused = np.flatnonzero(evaluation.in_use & ~evaluation.passing).tolist()
    names = tuple(table.names())
    if len(refused) > MAX_IN_DETAIL:
        refused.sort(key=names.__getitem__)  # the order of the table must not decide which are left out
    for place, row in enumerate(refused):
        await time_slice.give_way()
        if table.names()[row] != names[row]:
            continue
        found = list(_obstacles_on(plugins if place < MAX_IN_DETAIL else None, table, evaluation, row))
        by_key.setdefault(tuple(each.key for each in found), _Members()).add(names[row], found)
    groups = []
    for members in by_key.values():
        groups.append(members.group())
        await time_slice.give_way()
    groups.sort(key=lambda group: (group.distance, -len(group.nodes), group.nodes[0]))
    return groups


class _Members:
    """Nodes of one group, in any order."""

    __slots__ = ("_empty_ranges", "_first", "_in_the_way", "_nodes", "_ranges")

    def __init__(self) -> None:
        self._nodes: list[tuple[float, str]] = []
        self._in_the_way: dict[tuple[float, str], list[PodInTheWay]] = {}
        self._first: tuple[tuple[float, str], Sequence[NamedObstacle]] | None = None
        self._ranges: dict[str, Range] = {}
        self._empty_ranges: dict[str, Range] = {}

    def add(self, name: str, obstacles: Sequence[NamedObstacle]) -> None:
        place = _missing(obstacles), name
        self._nodes.append(place)
        if self._first is None or place < self._first[0]:
            self._first = place, obstacles
        if pods := [pod for each in obstacles for pod in each.obstacle.in_the_way]:
            self._in_the_way[place] = pods
        for shortage in _shortages(obstacles):
            _widen(self._ranges, shortage.resource, shortage.missing)
            _widen(self._empty_ranges, shortage.resource, shortage.when_empty)

    def group(self) -> NodeGroup:
        assert self._first is not None, "a group has nodes"
        names = [name for _, name in sorted(self._nodes)]
        nearest = (each for place in sorted(self._in_the_way) for each in self._in_the_way[place])
        in_the_way: dict[str, PodInTheWay] = {}
        for each in islice(nearest, MAX_IN_THE_WAY):
            in_the_way.setdefault(each.pod.uid, each)
        return NodeGroup(names, self._first[1], self._ranges, self._empty_ranges, tuple(in_the_way.values()))


def obstacles_of_pod(
    plugins: ProfilePlugins, evaluation: FullEvaluation, refusals: Iterable[Status]
) -> list[NamedObstacle]:
    """Return the obstacles that concern the pod on every node."""
    found: list[NamedObstacle] = []
    for status in refusals:
        plugin = plugins.by_name.get(status.plugin)
        described: Sequence[Obstacle] = ()
        if isinstance(plugin, ExplainPlugin):
            try:
                described = plugin.obstacles_anywhere(evaluation.state, evaluation.pod, status)
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything; nothing is awaited
                evaluation.failures.append(as_plugin_error("Explain", status.plugin, error))
        found += _named(status, described)
    return found


def _obstacles_on(
    plugins: ProfilePlugins | None, table: NodeTable, evaluation: FullEvaluation, row: int
) -> Iterator[NamedObstacle]:
    seen: list[Obstacle] = []
    try:
        for step, status in evaluation.refusals_of(row):
            plugin = plugins.by_name.get(status.plugin) if plugins is not None and step is not None else None
            described: Sequence[Obstacle] = ()
            if isinstance(plugin, ExplainPlugin):
                described = plugin.obstacles(evaluation.state, evaluation.pod, table.info(row))
            for each in _named(status, described):
                if each.obstacle.remedies and each.obstacle in seen:
                    continue  # two plugins report the same, such as a cordoned node
                seen.append(each.obstacle)
                yield each
    except PluginError as error:
        yield NamedObstacle(error.plugin, "Error", Obstacle(str(error)))
    except BaseException as error:  # noqa: BLE001 - as above
        failure = as_plugin_error("Explain", status.plugin, error)
        yield NamedObstacle(failure.plugin, "Error", Obstacle(str(failure)))


def _named(status: Status, described: Sequence[Obstacle]) -> list[NamedObstacle]:
    reasons = status.reasons or (f"refused by {status.plugin}",)
    obstacles = list(map(_fit, described[:MAX_REASONS])) or list(map(Obstacle, reasons))
    return [NamedObstacle(status.plugin, status.code.label, obstacle) for obstacle in obstacles]


def _widen(ranges: dict[str, Range], resource: str, amount: int) -> None:
    low, high = ranges.get(resource, (amount, amount))
    if not low <= amount <= high or resource not in ranges:
        ranges[resource] = min(low, amount), max(high, amount)


def _fit(obstacle: Obstacle) -> Obstacle:
    """Shorten the texts of an obstacle to the length of reasons."""
    remedies = tuple(
        replace(each, text=_short(each.text), command=_short(each.command)) for each in obstacle.remedies[:MAX_REASONS]
    )
    return replace(obstacle, fact=_short(obstacle.fact), example=_short(obstacle.example), remedies=remedies)


def _short(text: str) -> str:
    return encodable(shortened(text, MAX_REASON))


def _shortages(obstacles: Sequence[NamedObstacle]) -> Iterator[Shortage]:
    return (each.obstacle.shortage for each in obstacles if each.obstacle.shortage is not None)


def _missing(obstacles: Sequence[NamedObstacle]) -> float:
    return sum(shortage.missing / max(1, shortage.wanted) for shortage in _shortages(obstacles))


def remedies_for(group: NodeGroup) -> Iterator[Sequence[Remedy]]:
    """Yield each set of remedies that together remove all obstacles of a group's first node."""
    choices = [each.obstacle.remedies for each in group.obstacles]
    if not all(choices):
        return
    yield tuple(remedies[0] for remedies in choices)
    if len(choices) <= 2:
        for place, remedies in enumerate(choices):
            for remedy in remedies[1:]:
                yield tuple(remedy if i == place else other[0] for i, other in enumerate(choices))
