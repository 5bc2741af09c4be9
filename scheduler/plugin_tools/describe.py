"""Describes a plugin in lines of text: from its class, and from an instance that is made but not started."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.framework.arguments import argument_texts, parse_arguments
from scheduler.framework.events import ALL_EVENTS, Action, ClusterEventWithHint
from scheduler.framework.plugin import NormalizeScorePlugin, Plugin, PreFilterExtensions, SignPlugin
from scheduler.plugin_loading.load import IN_TREE
from scheduler.runtime.profile import POINTS
from scheduler.testing import a_cluster, a_handle

_FURTHER = {"pre_filter_extensions": PreFilterExtensions, "normalize_score": NormalizeScorePlugin, "sign": SignPlugin}


def points_of(plugin: type[Plugin]) -> list[str]:
    """Return the extension points of a plugin, and what else it is asked, in the order in which a pod meets them."""
    points = [point for point, kinds in POINTS.items() if issubclass(plugin, kinds)]
    return [*points, *(name for name, kind in _FURTHER.items() if issubclass(plugin, kind))]


def described(plugin: type[Plugin], origin: str, profiles: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines about a plugin. `profiles`: those that enable it, with its arguments there.

    One that is in-tree is started over an empty cluster; what others do when they start is not known.
    """
    yield plugin.name
    yield from (f"  {line}".rstrip() for line in (inspect.getdoc(plugin) or "").splitlines())
    yield ""
    yield f"from              {origin}"
    yield f"extension points  {', '.join(points_of(plugin))}"
    yield f"profiles          {', '.join(profiles) or 'none enables it'}"
    yield from _section("arguments", _arguments(plugin, profiles))
    yield from _section("woken by", _events(plugin, next(iter(profiles.values()), {}), start=origin == IN_TREE))
    yield from _section("reads", [*plugin.reads, *(["raw pods"] if plugin.reads_raw_pods else [])])
    yield from _section("writes", [_written(write) for write in plugin.writes])
    if issubclass(plugin, SignPlugin):
        yield f"answers stored    until a node changes in {' or '.join(_aspects(plugin))}"


def _aspects(plugin: type[SignPlugin]) -> list[str]:
    return [each.name.lower() for each in plugin.aspects if each.name]


def _section(title: str, lines: list[str]) -> Iterator[str]:
    for index, line in enumerate(lines):
        yield f"{title if index == 0 else '':<16}  {line}"


def _arguments(plugin: type[Plugin], profiles: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = argument_texts(plugin)
    for profile, given in profiles.items():
        lines += (f"in profile {profile}: {name}: {value!r}" for name, value in given.items())
    return lines or ["none"]


def _events(plugin: type[Plugin], arguments: Mapping[str, Any], *, start: bool) -> list[str]:
    """The events that it registers for. Some plugins know them only when they are started."""
    made = parse_arguments(plugin, arguments, "", [])
    if made is None:
        return ["known once its arguments are given"]
    try:
        if start:
            made.start(a_handle(a_cluster()))
        events = made.events_to_register()
    except Exception as error:  # noqa: BLE001  the plugin's own code, asked before its time
        return [f"known once it is started ({type(error).__name__}: {error})"]
    return [_event(each) for each in events] or ["by no event"]


def _event(registered: ClusterEventWithHint) -> str:
    if registered.event == ALL_EVENTS:
        return "any event"
    hint = "" if registered.hint is None else ", as its hint says"
    return f"{registered.event.resource}: {', '.join(_actions(registered.event.action))}{hint}"


def _actions(action: Action) -> Iterator[str]:
    """A name for what is in it; all kinds of updates together are one."""
    if action & Action.UPDATE == Action.UPDATE:
        action &= ~Action.UPDATE
        yield "update"
    yield from (each.name.lower().replace("_", " ") for each in action if each.name)


def _written(write: Any) -> str:
    subresource = f"/{write.subresource}" if write.subresource else ""
    return f"{write.resource}{subresource}: {', '.join(write.verbs)}"
