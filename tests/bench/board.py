"""Which pods a workload has made, and when each was seen bound. Pure: it is given what the observer writes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.bench.observer import OPEN


@dataclass(slots=True)
class PodRecord:
    """One pod. Times are seconds, monotonic; None for what has not happened."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    gated: bool = False
    """It has scheduling gates: no scheduler will look at it."""
    created: float | None = None
    """When the request to create it was sent."""
    bound: float | None = None


class Group:
    """Pods that are waited for together."""

    def __init__(self) -> None:
        self.pods: list[PodRecord] = []
        self.bound = 0

    def __len__(self) -> int:
        return len(self.pods)

    @property
    def complete(self) -> bool:
        """Whether all were seen bound."""
        return self.bound >= len(self.pods)


class Board:
    """All pods of a workload. `read` gives what the observer has written since it was last asked."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._rest = ""
        self._pods: dict[str, tuple[PodRecord, Group]] = {}
        self.bound = 0
        """How many were seen bound, those included that nobody waits for."""

    def expect(self, record: PodRecord, group: Group) -> None:
        """Note a pod before it is created."""
        group.pods.append(record)
        self._pods[f"{record.namespace}/{record.name}"] = record, group

    def refresh(self) -> None:
        """Read on. A line that is still being written is left for the next time."""
        *lines, self._rest = (self._rest + self._read()).split("\n")
        for line in lines:
            if line and line != OPEN:
                at, *keys = line.split(" ")
                self._see(float(at), keys)

    def _see(self, at: float, keys: Iterable[str]) -> None:
        for key in keys:
            self.bound += 1
            if known := self._pods.get(key):  # those of a churn are not
                record, group = known
                if record.bound is None:
                    record.bound = at
                    group.bound += 1

    def select(self, namespaces: Iterable[str], labels: Mapping[str, str]) -> Iterator[PodRecord]:
        """The pods in these namespaces that have all these labels."""
        wanted = frozenset(namespaces)
        for record, _ in self._pods.values():
            if record.namespace in wanted and labels.items() <= record.labels.items():
                yield record
