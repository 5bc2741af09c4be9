"""The adapter of an API of shares, as `adapters.py` asks it."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from scheduler.api.importance import created
from scheduler.api.objects import ObjectMeta
from scheduler.api.pod import Pod
from scheduler.framework.shares import NodeKind, ShareRefusal
from scheduler.quota.needs import Need

if TYPE_CHECKING:  # loaded once there are shares
    from scheduler.quota.reclaim.units import Preemption
    from scheduler.quota.tree import Share, ShareTree


class Nominated(NamedTuple):
    """A pod for which others make space on a node."""

    share: str
    pod: Pod
    amounts: Mapping[str, int]
    borrows: bool
    """Whether its share used more with it than it is guaranteed, when that was asked first."""

    by_share: bool = False
    """Whether it goes before all pods of other shares, except those that are guaranteed what it would borrow."""

    is_kept: bool = False
    """Whether it goes before all others: what is freed for it is given to none."""


class Asked(NamedTuple):
    """A request for space in a share: of one pod, or of several pods of a group together."""

    need: Need
    evidence: Hashable
    nominated: Sequence[Nominated] = ()
    """All others that have shares in the same tree."""

    borrows: bool | None = None
    """As of `Nominated`, for a request that is nominated itself."""


@contextmanager
def counting_nominated(tree: "ShareTree", share: str, asked: Asked, amounts: Mapping[str, int]) -> Iterator[None]:
    """Count those as used within a `with` block for which others make space, and that go before the request.

    First go those that only take what their share is guaranteed: else one that borrows would get back at once what it
    has had to give. Then the more important go, and the older. Of two that are nominated, one goes first for as long as
    they are: they never wait for each other. `amounts`: what the request would take.
    """
    if not asked.nominated:
        yield
        return
    pod = asked.need.pod
    borrows = asked.borrows if asked.borrows is not None else is_borrowing_with(tree, share, amounts)
    own = _place(pod, borrows=borrows)
    ahead = [
        each
        for each in asked.nominated
        if each.is_kept
        or _place(each.pod, borrows=each.borrows) < own
        or (each.by_share and each.share != share and each.borrows <= borrows)
    ]
    for each in ahead:
        tree.add(each.share, each.amounts)
    try:
        yield
    finally:
        for each in ahead:
            tree.remove(each.share, each.amounts)


def is_borrowing_with(tree: "ShareTree", share: str, amounts: Mapping[str, int]) -> bool:
    """Say whether a share uses more than it is guaranteed with something that it does not use yet."""
    return share not in tree.shares or not tree.guarantees(share, amounts)


def _place(pod: Pod, *, borrows: bool) -> tuple[bool, int, int, str]:
    return borrows, -pod.priority, created(pod), pod.uid


class Adapter(Protocol):
    """Knows the shares of one API."""

    @property
    def source(self) -> str:
        """As in the shares' keys."""

    @property
    def reads(self) -> Hashable:
        """The things that `evidence` reads of pods: as long as they are the same, what was read before stands."""

    def declared(self) -> "tuple[Sequence[Share], Mapping[str, str]]":
        """Return all shares as they are now, and the problem of each that cannot be read: its name → a sentence."""

    def evidence(self, pod: Pod) -> Hashable:
        """Return what a pod says of its share, in addition to its namespace; None for nothing.

        It is kept as long as the pod has a node. It may name that node, but nothing that changes while pods run.
        """

    def find(self, namespace: str, evidence: Hashable) -> str:
        """Return the name of the share that such pods count against; empty for none.

        It may name a share that does not exist: its pods wait.
        """

    def amounts(self, evidence: Hashable, requests: Mapping[str, int], pods: int) -> Mapping[str, int]:
        """Return what pods with nodes count with that ask for this together, in the names of the tree.

        Linear: the amounts of several are the sum of those of each.
        """

    def wanted(self, tree: "ShareTree", name: str, asked: Asked) -> Mapping[str, int]:
        """Return what a request would take now of a share that is in the tree, in the names of the tree."""

    def refusal(self, tree: "ShareTree", name: str, asked: Asked) -> ShareRefusal | None:
        """Say why there is no space in a share that is in the tree; None if there is."""

    @property
    def evicts(self) -> bool:
        """Whether a policy of any share lets its pods evict others."""

    def preemption(self, name: str) -> "Preemption | None":
        """Return whom pods of a share may evict to take quota back; None: by the rule of elastic quotas."""

    def object_of(self, name: str) -> tuple[str, ObjectMeta] | None:
        """Return the object that declares a share, with its resource as in events; None if there is none."""

    def on_nodes(self, resource: str) -> str:
        """Return what nodes call a resource of the tree; empty for a part of theirs."""

    def nodes_for(self, tree: "ShareTree", name: str, asked: Asked) -> NodeKind | None:
        """Return the nodes on which a pod counts with what is `wanted`; None for all."""

    def listen(self, changed: "Callable[[Share | None], None]") -> None:
        """Call this from now on whenever shares have changed, or which pods they are for.

        With a share if only this one has another version, and its pods are the same; else with None.
        """

    def close(self) -> None:
        """Listen no more."""
