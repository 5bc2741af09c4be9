"""The interface of the adapters in `apis/`, one for each API of shares; `waiting/parts.py` makes them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scheduler.api.objects import ObjectMeta
from scheduler.api.pods.pod import Pod
from scheduler.framework.shares import NodeKind, ShareRefusal
from scheduler.quota.needs import Need

if TYPE_CHECKING:  # loaded once there are shares
    from scheduler.quota.policies import Preemption
    from scheduler.quota.reservations import Rank
    from scheduler.quota.tree import Share, ShareTree


class Asked(NamedTuple):
    """A request for space in a share: of one pod, or of several pods of a group together."""

    need: Need
    said: Hashable


class Adapter(ABC):
    """The shares of one API. Overwrite the methods for what that API has in addition to amounts by namespace."""

    source: str
    """As in the shares' keys."""

    def __init__(self) -> None:
        self._ends: list[Callable[[], None]] = []
        """End its subscriptions."""

    @property
    def reads(self) -> Hashable:
        """The things that `said` reads of pods: as long as they are the same, what was read before stands."""
        return self.source

    @abstractmethod
    def declared(self) -> "tuple[Sequence[Share], Mapping[str, str]]":
        """Return all shares as they are now, and the problem of each that cannot be read: its name → a sentence."""

    def said(self, pod: Pod) -> Hashable:
        """Return what a pod says of its share, in addition to its namespace; None for nothing.

        It is kept as long as the pod has a node. It may name that node, but nothing that changes while pods run.
        """
        return None

    @abstractmethod
    def find(self, namespace: str, said: Hashable) -> str:
        """Return the name of the share that such pods count against; empty for none.

        It may name a share that does not exist: its pods wait.
        """

    @abstractmethod
    def amounts(self, said: Hashable, requests: Mapping[str, int], pods: int) -> Mapping[str, int]:
        """Return what pods with nodes count with that ask for this together, in the names of the tree.

        Linear: the amounts of several are the sum of those of each.
        """

    @abstractmethod
    def wanted(self, tree: "ShareTree", name: str, asked: Asked) -> Mapping[str, int]:
        """Return what a request would take now of a share that is in the tree, in the names of the tree."""

    def fits(self, tree: "ShareTree", name: str, requests: Mapping[str, int]) -> bool:
        """Say whether there is space for a pod, in the quick way; if not, `refusal` is to be asked."""
        return False

    @abstractmethod
    def refusal(self, tree: "ShareTree", name: str, asked: Asked) -> ShareRefusal | None:
        """Say why there is no space in a share that is in the tree; None if there is."""

    def goes_ahead(self, tree: "ShareTree", reserved: "Rank", request: "Rank") -> bool:
        """Return whether a request sees reservations."""
        return reserved.goes_ahead_of(request)

    @property
    def evicts(self) -> bool:
        """Whether a policy of any share lets its pods evict others."""
        return False

    @abstractmethod
    def preemption(self, name: str) -> "Preemption":
        """Return whom pods of a share may evict to take quota back."""

    def object_of(self, name: str) -> tuple[str, ObjectMeta] | None:
        """Return the object that declares a share, with its resource as in events; None if there is none."""
        return None

    def resource_of(self, key: str) -> str:
        """Return the resource that a name in the tree means: several flavors may have the same."""
        return key

    def on_nodes(self, resource: str) -> str:
        """Return what nodes call a resource of the tree; empty for a part of theirs."""
        return resource

    def nodes_for(self, tree: "ShareTree", name: str, asked: Asked) -> NodeKind | None:
        """Return the nodes on which a pod counts with what is `wanted`; None for all."""
        return None

    @abstractmethod
    def listen(self, changed: "Callable[[Share | None], None]") -> None:
        """Call this from now on whenever shares have changed, or which pods they are for.

        With a share if only this one has another version, and its pods are the same; else with None.
        """

    def close(self) -> None:
        """Listen no more."""
        for end in self._ends:
            end()
        self._ends = []
