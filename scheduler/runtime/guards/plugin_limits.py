"""Limits of plugins, and actions against those that fail or are late often: `loadmaster.pluginLimits` of the file.

Without any of it, budgets are as below, and faults are only reported.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from scheduler.framework.duration import Duration
from scheduler.framework.field_errors import duplicate, invalid, required

OTHERS: Final = "*"
"""The name of the limits of all plugins that are not named."""


class Action(Enum):
    """The action against a plugin with too many faults, and the pods of the namespaces in which it has them."""

    NOTHING = "None"
    SWITCH_OFF = "SwitchOff"
    """It is not asked about them for a while: they are scheduled as if it were not enabled."""

    FAIL_PODS = "FailPods"
    """It is not called for a while: what it would be asked about fails, and waits."""


@dataclass(frozen=True, slots=True)
class PluginLimits:
    """The limits of one plugin, or of all others. A fault is a failure, or a call that took longer than its budget."""

    name: str = ""
    call_budget: Duration = field(default=Duration(0.5))
    """How long a call may take that holds everything else up. In-tree plugins take milliseconds."""

    wait_budget: Duration | None = None
    """How long a call may take that is awaited: PreBind, Bind, PostBind. None: as the plugin says."""

    action: Action = Action.NOTHING
    faults: int = 5
    """How many of them there may be in one namespace `within` a time; at this number the action is taken."""

    within: Duration = field(default=Duration(60))
    pause: Duration = field(default=Duration(300))
    """For how long the action lasts."""

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.name:
            yield "name", required()
        for key, seconds in (
            ("callBudget", self.call_budget),
            ("waitBudget", self.wait_budget),
            ("within", self.within),
            ("pause", self.pause),
        ):
            if seconds is not None and seconds <= 0:
                yield key, invalid(str(seconds), "must be greater than zero")
        if not 1 <= self.faults <= MOST_FAULTS:
            yield "faults", invalid(self.faults, f"must be between 1 and {MOST_FAULTS}")


MOST_FAULTS: Final = 1_000
"""So many are remembered of one plugin in one namespace."""

DEFAULT: Final = PluginLimits(OTHERS)


class Limits:
    """The limits of all plugins of a scheduler."""

    def __init__(self, given: Iterable[PluginLimits] = ()) -> None:
        by_name: Mapping[str, PluginLimits] = {each.name: each for each in given}
        self._others = by_name.get(OTHERS, DEFAULT)
        self._by_name = by_name
        self.shortest_call = min(float(each.call_budget) for each in (self._others, *by_name.values()))
        """Seconds; the least budget for a call that holds everything else up."""

    def names(self, plugin: str) -> bool:
        """Return whether the configuration has limits for a plugin, be it as one of all others."""
        return plugin in self._by_name or OTHERS in self._by_name

    def of(self, plugin: str) -> PluginLimits:
        """Those of one plugin."""
        return self._by_name.get(plugin, self._others)


NO_LIMITS: Final = Limits()


def repetitions(limits: Sequence[PluginLimits]) -> Iterator[tuple[str, str]]:
    """Path and message of each name that is given twice."""
    seen: set[str] = set()
    for index, each in enumerate(limits):
        if each.name in seen:
            yield f"pluginLimits[{index}].name", duplicate(each.name)
        seen.add(each.name)
