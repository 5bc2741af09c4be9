"""The places of pods in the queue, and the events that would wake them: `a new or changed Node (label)`."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from scheduler.engine.engine import Engine
from scheduler.framework.events import ANY, ASSIGNED_POD, POD, TARGET_POD, UNSCHEDULED_POD, Action, ClusterEvent
from scheduler.framework.queued import QueuedPod
from scheduler.runtime.framework import Framework

IN_FLIGHT: Final = "in flight"

STATES: Final = {
    IN_FLIGHT: "being tried",
    "active": "queued",
    "backoff": "backing off",
    "unschedulable": "unschedulable",
    "gated": "gated",
    "incomplete": "gated",
    "pending": "queued",
}
"""Part of the queue → state of the pods there."""

_OF_KIND: Final = re.compile(r"^UPDATE_(?:NODE|POD)_")


def in_queue(engine: Engine) -> Iterator[tuple[str, QueuedPod]]:
    """Yield the pods without a node of our profiles, each with the part of the queue that it is in."""
    yield from ((IN_FLIGHT, each) for each in engine.queue.in_flight_pods())
    for part, pods in engine.queue.pending_pods().items():
        yield from ((part, each) for each in pods)


def refused_by(framework: Framework, plugins: Collection[str]) -> str:
    """Name the plugins that refused a pod, and the events that would wake it."""
    names, events = sorted(plugins), framework.rejector_events()
    woken = events_in_words(each.event for plugin in names for each in events.get(plugin, ()))
    return f"refused by {', '.join(names)}; may be woken by {woken or 'nothing that is known'}"


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
