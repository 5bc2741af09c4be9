"""All extenders of a configuration; ignorable ones come last.

Rule: buildExtenders in pkg/scheduler/scheduler.go at v1.36.3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from scheduler.api.pods.pod import Pod
from scheduler.extenders.extender import Extender
from scheduler.framework.status import Status


class FoundPod(NamedTuple):
    """A pod as the API server has it."""

    json: bytes
    """Without `managedFields`, which kube-scheduler does not keep."""
    node_name: str
    """The node that it is bound to; empty if none."""


class PodSource(Protocol):
    """Reads whole pods: the cache has only the fields that scheduling reads."""

    async def read(self, pod: Pod) -> FoundPod | None:
        """Return the pod, with the node that `pod` has if it is not bound yet; None if it is gone.

        Raises ClusterError.
        """


@dataclass(slots=True)
class FilterVerdict:
    """The extenders' verdict on nodes."""

    asked: Sequence[str]
    passed: Sequence[str]
    refusals: dict[str, Status] = field(default_factory=dict)
    """Node → why not. Nodes that were left out without a word are missing here; others may be here."""


class Extenders:
    """In the order in which they are asked."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        self._all = tuple(sorted(extenders, key=lambda extender: extender.is_ignorable))

    def __iter__(self) -> Iterator[Extender]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def prioritizing(self) -> int:
        """How many calls for scores are under way."""
        return sum(extender.prioritizing for extender in self._all)

    @property
    def need_whole_nodes(self) -> bool:
        """Whether one of them is sent nodes and not just their names."""
        return any(not each.knows_nodes and (each.filters or each.prioritizes) for each in self._all)

    def interested(self, pod: Pod) -> tuple[Extender, ...]:
        """Those to which the pod is of interest."""
        return tuple(extender for extender in self._all if extender.is_interested(pod))

    def asked_about(self, pod: Pod) -> tuple[Extender, ...]:
        """Those that have a say in where the pod goes; one that only binds it has none."""
        return tuple(each for each in self.interested(pod) if each.filters or each.prioritizes or each.preempts)

    def binder_of(self, pod: Pod) -> Extender | None:
        """The one that binds the pod, if any."""
        return next((each for each in self._all if each.is_binder and each.is_interested(pod)), None)
