"""Hands state of plugins over to their successors in a new configuration: `kept` of the old, `take_over` of the new.

    kept() ──raises──► the old plugin is named, and its successor takes over nothing
       └──► take_over(kept) ──raises─┬─ in code of a version before ──► KeptFails: as above, with a new successor
                                     └─ anywhere else ────────────────► the new configuration is refused

So a faulty version of a plugin never prevents its replacement by a corrected one.
"""

from collections.abc import Collection, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from scheduler.framework.errors import ConfigError
from scheduler.framework.plugin import Plugin
from scheduler.framework.tracebacks import described, described_with_place
from scheduler.plugin_loading.modules import PREFIX
from scheduler.runtime.framework import Framework

FAILED = "A plugin failed as it was asked what it keeps for its next version, which takes over nothing"


class Lost(NamedTuple):
    """State that a plugin kept and its successor does not take over."""

    profile: str
    plugin: str
    fault: str
    """The plugin's error, with file and line if known."""

    def __str__(self) -> str:
        return f"profile {self.profile!r}: what plugin {self.plugin!r} kept is lost: {self.fault}"


class KeptFails(Exception):
    """The kept state fails in its own code when the successor reads it. `lost`: all state lost so far."""

    def __init__(self, lost: Sequence[Lost]) -> None:
        super().__init__("\n".join(map(str, lost)))
        self.lost = lost


class _Heir(NamedTuple):
    """A new plugin and the state that it takes over."""

    of: Framework
    plugin: Plugin
    before: Framework
    """The profile of its predecessor."""
    predecessor: Plugin
    kept: Any


def hand_over(pairs: Collection[tuple[Framework, Framework]], without: Collection[Lost]) -> list[Lost]:
    """Hand state over from old to new profiles, given in pairs. Return the state that is lost, except `without`.

    Raises KeptFails; ConfigError if a new plugin fails.
    """
    known = {(each.profile, each.plugin) for each in without}
    lost: list[Lost] = []
    for heir in list(_heirs(pairs, known, lost)):
        spoils = _take_over(heir)
        if spoils is not None:
            raise KeptFails([*lost, spoils])
    return lost


def _heirs(
    pairs: Collection[tuple[Framework, Framework]], known: set[tuple[str, str]], lost: list[Lost]
) -> Iterator[_Heir]:
    for old, new in pairs:
        for name, plugin in new.plugins.by_name.items():
            predecessor = old.plugins.by_name.get(name)
            if predecessor is None or (new.name, name) in known:
                continue
            try:
                kept = predecessor.kept()
            except BaseException as error:  # noqa: BLE001 - SystemExit too
                lost.append(_lost(old, predecessor, error))
                continue
            if kept is not None:
                yield _Heir(new, plugin, old, predecessor, kept)


def _take_over(heir: _Heir) -> Lost | None:
    """Return the loss if the kept state fails. Raises ConfigError."""
    try:
        heir.plugin.take_over(heir.kept)
    except BaseException as error:  # SystemExit too
        if _is_of_a_version_before(error.__traceback__, heir.plugin):
            return _lost(heir.before, heir.predecessor, error)
        detail = f"plugin {heir.plugin.name!r} does not take over from its predecessor: {described_with_place(error)}"
        raise ConfigError([f"profile {heir.of.name!r}: {detail}"]) from error
    return None


def _lost(profile: Framework, plugin: Plugin, error: BaseException) -> Lost:
    place = profile.faults.report_outside(FAILED, plugin, "kept", error)
    return Lost(profile.name, plugin.name, f"{place}: {described(error)}" if place else described(error))


def _is_of_a_version_before(trace: TracebackType | None, plugin: Plugin) -> bool:
    """Return whether the error comes from an earlier load of the plugin's file."""
    package = ""
    while trace is not None:
        top = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
        package = top if top.startswith(PREFIX) else package
        trace = trace.tb_next
    return bool(package) and package != type(plugin).__module__.partition(".")[0]
