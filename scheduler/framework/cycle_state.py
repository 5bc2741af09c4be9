"""The plugins' notes about one pod in one scheduling cycle."""

from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Cloneable(Protocol):
    """State that a plugin changes in AddPod or RemovePod has a copy of its own in each what-if."""

    def clone(self) -> "Cloneable": ...


class CycleState:
    """Values by key, usually a plugin's name; lives from PreFilter to PostBind of one attempt."""

    is_of_group_cycle: ClassVar[bool] = False
    """Whether the pod is tried together with all others of its group that may be tried now."""

    __slots__ = (
        "_values",
        "attempt",
        "known_spec",
        "pods_to_activate",
        "record_plugin_metrics",
        "reserving",
        "scored",
        "skip_filter",
        "skip_pre_bind",
        "skip_score",
    )

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self.skip_filter: frozenset[str] = frozenset()
        """Names of the plugins whose PreFilter answered Skip."""
        self.skip_score: frozenset[str] = frozenset()
        """Names of the plugins whose PreScore answered Skip."""
        self.skip_pre_bind: frozenset[str] = frozenset()
        """Names of the plugins whose PreBindPreFlight answered Skip."""
        self.attempt = 0
        """How often the pod was tried before: random choices are seeded with it, so that a replay makes the same."""
        self.record_plugin_metrics = False
        """Whether each plugin is timed in this cycle."""
        self.known_spec: Any = None
        """The engine's: what it knows of pods like this one, from the start of the decision on."""
        self.reserving: Any = None
        """The engine's: the Reserve plugins that were asked last, which are to take it back; None before."""
        self.scored: Any = None
        """The engine's: what the nodes scored, until the decision is noted."""
        self.pods_to_activate: set[str] = set()
        """UIDs of pods that plugins want retried once this pod is placed."""

    def write(self, key: str, value: object) -> None:
        self._values[key] = value

    def read(self, key: str, kind: type[T], missing: str = 'reading "{key}" from cycleState: not found') -> T:
        """Return the value under `key`. Raises LookupError if there is none, TypeError if it is of another kind.

        `missing` is the message of the LookupError, which the pod's owner reads if a profile has a plugin's Filter
        without its PreFilter, or its Score without its PreScore.
        """
        if key not in self._values:
            raise LookupError(missing.format(key=key))
        value = self._values[key]
        if not isinstance(value, kind):
            raise TypeError(f"{key!r} holds a {type(value).__name__}, not a {kind.__name__}")
        return value

    def get(self, key: str, kind: type[T]) -> T | None:
        """Like `read`, but None if there is no value."""
        return self.read(key, kind) if key in self._values else None

    def clone(self) -> "CycleState":
        """Return a copy in which cloneable values are copied and all others shared."""
        copy = CycleState()
        copy._values = {
            # Not isinstance: a check against a protocol takes 2 µs, and a preemption makes thousands of copies.
            key: value.clone() if hasattr(type(value), "clone") else value  # type: ignore[attr-defined]
            for key, value in self._values.items()
        }
        copy.skip_filter = self.skip_filter
        copy.skip_score = self.skip_score
        copy.skip_pre_bind = self.skip_pre_bind
        copy.attempt = self.attempt
        copy.known_spec = self.known_spec
        copy.record_plugin_metrics = self.record_plugin_metrics
        copy.pods_to_activate = self.pods_to_activate
        return copy


class GroupCycleState(CycleState):
    """The notes about a pod that is tried together with its group."""

    __slots__ = ()

    is_of_group_cycle: ClassVar[bool] = True
