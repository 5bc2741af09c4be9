"""Describes the events that would wake a pod: `a new or changed Node (label, taint), a deleted Pod`."""

import re
from collections.abc import Iterable
from typing import Final

from scheduler.framework.events import ANY, ASSIGNED_POD, POD, TARGET_POD, UNSCHEDULED_POD, Action, ClusterEvent

_OF_KIND: Final = re.compile(r"^UPDATE_(?:NODE|POD)_")


def events_in_words(events: Iterable[ClusterEvent]) -> str:
    """Describe events, sorted by kind."""
    by_kind: dict[str, Action] = {}
    for event in events:
        kind = event.resource.rpartition("/")[2]
        if kind.startswith("podgroups."):
            kind = "PodGroup"  # of several versions
        elif kind in (ASSIGNED_POD, UNSCHEDULED_POD):
            kind = POD
        by_kind[kind] = by_kind.get(kind, Action(0)) | event.action
    return ", ".join(_of_kind("object" if kind == ANY else kind, action) for kind, action in sorted(by_kind.items()))


def _of_kind(kind: str, action: Action) -> str:
    update = action & Action.UPDATE
    named = ((Action.ADD, "new"), (Action.UPDATE, "changed"), (Action.DELETE, "deleted"))
    *others, last = [word for mask, word in named if action & mask]
    words = f"a {', '.join(others)} or {last} {kind}" if others else f"a {last} {kind}"
    if kind == TARGET_POD:
        words = "a change of the pod itself"
    parts = [] if update == Action.UPDATE else [_part(each) for each in Action if each & update]
    return words + (f" ({', '.join(parts)})" if parts else "")


def _part(action: Action) -> str:
    return _OF_KIND.sub("", action.name or "").removeprefix("UPDATE_").lower().replace("_", " ")
