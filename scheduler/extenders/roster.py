"""The extenders at work, and how those of a changed configuration take their place.

    prepare ─► PREPARED: certificates read, nothing opened ──swap──► AT WORK
                 └─ the configuration is refused ─► (dropped)
    AT WORK ──swap, and its settings are others or gone──► RETIRING ──its last attempt, binding has ended──► (closed)

An extender whose settings are as before stays as it is, with its connections. `swap` is synchronous, so it happens
between two decisions. Attempts and bindings under way end with the extenders that they began with.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from scheduler.config.extenders import Extender as Settings
from scheduler.extenders.chain import Extenders
from scheduler.extenders.extender import Extender, Transport
from scheduler.framework.errors import ConfigError
from scheduler.process.metrics import Metrics
from scheduler.runtime.event_stream import EventStream


class Connection(Transport, Protocol):
    """HTTP to one extender; nothing is open before the first call."""

    def refresh(self) -> None:
        """Read certificates again that may have changed. Raises nothing."""

    async def close(self) -> None: ...


Connect: TypeAlias = Callable[[Settings, str], Connection]
"""By settings and their path in the configuration, for messages. Raises ConfigError for certificates of no use."""


class _Member(NamedTuple):
    extender: Extender
    connection: Connection


class Prepared(NamedTuple):
    """Extenders that could be at work."""

    members: Mapping[Settings, _Member]
    extenders: Extenders


class Roster:
    """All extenders."""

    def __init__(
        self,
        connect: Connect,
        metrics: Metrics,
        settings: Sequence[Settings] = (),
        stream: EventStream | None = None,
    ) -> None:
        """`settings`: those to begin with. Raises ConfigError as `prepare` does."""
        self._connect = connect
        self._metrics = metrics
        self._stream = stream or EventStream()
        self._members: Mapping[Settings, _Member] = {}
        self._retiring: list[_Member] = []
        self.extenders = Extenders(())
        """Those at work."""
        self.swap(self.prepare(settings))

    def prepare(self, settings: Sequence[Settings]) -> Prepared:
        """Make new extenders. Raises ConfigError with the problems of all."""
        members: dict[Settings, _Member] = {}
        problems: list[str] = []
        for place, each in enumerate(settings):
            try:
                members[each] = self._members.get(each) or self._make(each, f"extenders[{place}]")
            except ConfigError as error:
                problems += error.problems
        if problems:
            raise ConfigError(problems)
        return Prepared(members, Extenders([members[each].extender for each in settings]))

    def _make(self, settings: Settings, path: str) -> _Member:
        connection = self._connect(settings, path)
        return _Member(Extender(settings, connection, self._metrics, self._stream), connection)

    def swap(self, prepared: Prepared) -> bool:
        """Put them to work; return whether they are others than before, or in another order."""
        if tuple(prepared.extenders) == tuple(self.extenders):
            return False
        self._retiring += (each for key, each in self._members.items() if key not in prepared.members)
        self._members, self.extenders = prepared
        return True

    @property
    def is_retiring(self) -> bool:
        """Whether there are extenders that only finish their calls."""
        return bool(self._retiring)

    @property
    def needs_whole_nodes(self) -> bool:
        """Whether one of them is sent nodes and not just their names, those that retire included."""
        return self.extenders.need_whole_nodes or Extenders([each.extender for each in self._retiring]).need_whole_nodes

    async def retire(self, is_busy: Callable[[Extender], bool]) -> None:
        """Close the connections to extenders that were replaced and are not waited for any more."""
        for member in tuple(self._retiring):
            if not is_busy(member.extender):
                self._retiring.remove(member)
                await member.connection.close()

    def refresh(self) -> None:
        """Read certificates again that may have changed."""
        for member in self._members.values():
            member.connection.refresh()

    async def close(self) -> None:
        """Close all connections, once no extender is called any more."""
        for member in (*self._retiring, *self._members.values()):
            await member.connection.close()


def no_extender_is_asked(settings: Settings, path: str) -> Connection:
    """Connects an engine that asks no extenders. Raises ConfigError."""
    raise ConfigError([f"{path}: no extender is asked here: {settings.name}"])
