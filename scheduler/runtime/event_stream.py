"""One way to watch an engine: its parts publish typed events, to which listeners subscribe.

    part ──is the kind in `listeners`?──no──► nothing is made, nothing is called
                └──yes──► publish(event) ──► each handler, in the same step, in the order in which they subscribed

A handler must not change anything that the engine reads. One that raises does no harm: it is logged, and its whole
subscription ends. Each package declares the events that it publishes: `state/state_events.py`, `cycle/cycle_events.py`,
`extenders/conversation.py`, and those of plugins' calls below. Recorder, decision records, traces, page and shadow
subscribe.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from scheduler.framework.status import Code

_logger = logging.getLogger(__name__)


class EngineEvent(msgspec.Struct, frozen=True, gc=False):
    """Something that happens in an engine."""


class PointEnded(EngineEvent, frozen=True):
    """The plugins of one extension point have been called."""

    point: str
    code: Code
    seconds: float


class PluginCalled(EngineEvent, frozen=True):
    """A method of a plugin that is not awaited was called. Of in-tree plugins, only some calls are timed."""

    point: str
    plugin: str
    uid: str
    """The pod's."""
    seconds: float


Handler: TypeAlias = Callable[[Any], None]

Handlers: TypeAlias = Mapping[type[EngineEvent], Handler]
"""Kind of event → what is called with each event of this kind."""


class EventStream:
    """The events of one engine."""

    def __init__(self) -> None:
        self.listeners: dict[type[EngineEvent], tuple[Handler, ...]] = {}
        """The kinds of events that have listeners: publishers look here before they make an event."""
        self._subscriptions: list[Handlers] = []

    def subscribe(self, handlers: Handlers) -> None:
        """Call these handlers from the next event on."""
        self._subscriptions.append(handlers)
        for kind, handler in handlers.items():
            self.listeners[kind] = (*self.listeners.get(kind, ()), handler)

    def unsubscribe(self, handlers: Handlers) -> None:
        """Call these handlers no more. No effect if they are not called."""
        if not any(each is handlers for each in self._subscriptions):
            return
        self._subscriptions = [each for each in self._subscriptions if each is not handlers]
        for kind in handlers:
            left = tuple(each[kind] for each in self._subscriptions if kind in each)
            if left:
                self.listeners[kind] = left
            else:
                del self.listeners[kind]

    def publish(self, event: EngineEvent) -> None:
        """Call all handlers of an event that has listeners. Raises nothing that they raise."""
        for handler in self.listeners[type(event)]:
            try:
                handler(event)
            except Exception:
                _logger.exception("A listener failed; it listens no more", extra={"event": type(event).__name__})
                self._drop(type(event), handler)

    def _drop(self, kind: type[EngineEvent], handler: Handler) -> None:
        for each in self._subscriptions:
            if each.get(kind) is handler:
                self.unsubscribe(each)
