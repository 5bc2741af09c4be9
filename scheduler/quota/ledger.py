"""The tree of one adapter's shares, kept in step with the usage of pods."""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from scheduler.api.devices import IMPLICIT_PREFIX
from scheduler.api.pods.pod import Pod
from scheduler.api.read_only import NOTHING
from scheduler.framework.shares import NodeKind, ShareKey, ShareRefusal, ShareState
from scheduler.quota.adapter import Adapter, Asked
from scheduler.quota.expenses import Expenses
from scheduler.quota.reservations import GoesAhead, Rank, Reservations
from scheduler.quota.tree import Share, ShareTree
from scheduler.state.share_usage import amounts_of

if TYPE_CHECKING:
    from scheduler.state.share_usage import Usage


class Ledger:
    """The declared shares of one adapter, and their usage."""

    def __init__(self, adapter: Adapter, amounts_of: Callable[[Pod], Mapping[str, int]] = amounts_of) -> None:
        """`amounts_of` returns what a pod with a node counts with."""
        self.adapter = adapter
        self.source = adapter.source
        self.amounts = adapter.amounts
        self.resource_of = adapter.resource_of
        self.tree = ShareTree(())
        self.reservations = Reservations()
        self.expenses = Expenses()
        self.devices: frozenset[str] = frozenset()
        """The resources of DeviceClasses that its shares name, as pods have them."""
        self._amounts_of = amounts_of
        self._faults: Mapping[str, str] = {}

    def renew(self) -> None:
        """Make the tree again from the present declarations, without usage."""
        shares, self._faults = self.adapter.declared()
        self.tree = ShareTree(shares)
        self.reservations.count_in(self.tree)
        named = [each for each in self.tree.resources if IMPLICIT_PREFIX in each]
        self.devices = frozenset([each[each.index(IMPLICIT_PREFIX) :] for each in named])  # a flavor may stand before

    def count(self, usages: "Collection[tuple[str, Hashable, Usage]]") -> None:
        """Count this usage in addition: share, said, amounts."""
        self._count(usages, self.tree)

    def used_by(self, pod: Pod, said: Hashable) -> Mapping[str, int]:
        """Return what a pod with a node counts with, in the names of the tree."""
        return self.amounts(said, self._amounts_of(pod), 1)

    def add(self, name: str, amounts: Mapping[str, int], sign: int) -> None:
        """Count amounts, in the names of the tree, that pods of a share use, or stop counting them: 1 or -1."""
        if name in self.tree.shares:
            (self.tree.add if sign > 0 else self.tree.remove)(name, amounts)

    def rank_of(self, name: str, asked: Asked) -> Rank:
        """Return the rank of a request, as the tree is now."""
        amounts, tree = self.wanted(name, asked), self.tree
        borrows = name not in tree.shares or not tree.guarantees(name, amounts)
        return Rank(name, asked.need.pod.priority, borrows)

    def seen_by(
        self, asked: Asked, rank_of: Callable[[], Rank], goes_ahead: GoesAhead | None = None
    ) -> AbstractContextManager[None]:
        """Have only those reservations count within a `with` block that a request sees; `goes_ahead`: by which rule."""
        return self.reservations.seen_by(self.tree, asked.need, rank_of, goes_ahead or self.goes_ahead)

    def goes_ahead_of_pending(self, tree: ShareTree, reserved: Rank, request: Rank) -> bool:
        """Say whether a reservation goes ahead of a request that is pending: all of other shares that were woken do."""
        rule = self.goes_ahead if reserved.share == request.share else self.woken_go_ahead
        return rule(tree, reserved, request)

    def woken_go_ahead(self, tree: ShareTree, reserved: Rank, request: Rank) -> bool:
        """Say the same if those of its own share that were woken did, too."""
        return (reserved.woken > 0 and not request.kept) or self.goes_ahead(tree, reserved, request)

    def stays_ahead(self, tree: ShareTree, reserved: Rank, request: Rank) -> bool:
        """Say whether a reservation goes ahead of a request also when those were tried that were woken."""
        return not reserved.woken and self.goes_ahead(tree, reserved, request)

    def goes_ahead(self, tree: ShareTree, reserved: Rank, request: Rank) -> bool:
        """Say whether a reservation goes ahead of a request that is tried."""
        if 0 < request.kept < reserved.woken:  # it was woken for space in addition to what is kept
            return False
        if 0 < request.woken <= reserved.kept:  # victims were chosen in addition to what it has, if that was seen
            return not self.adapter.goes_ahead(tree, request, reserved)
        return self.adapter.goes_ahead(tree, reserved, request)

    @property
    def problems(self) -> Mapping[str, str]:
        """The shares that cannot be used: name → one sentence."""
        return {**self.tree.problems, **self._faults}

    def problem_of(self, name: str) -> str:
        """Say why a share cannot be used; empty if it can."""
        if name in self.tree.shares:
            return ""
        return self._faults.get(name) or self.tree.problems.get(name) or "it does not exist"

    def wanted(self, name: str, asked: Asked) -> Mapping[str, int]:
        """Return what a request would take now, in the names of the tree; nothing of a share that cannot be used."""
        return self.adapter.wanted(self.tree, name, asked) if name in self.tree.shares else NOTHING

    def nodes_for(self, name: str, asked: Asked) -> NodeKind | None:
        """Return the nodes on which a pod counts with what it would take now; None for all."""
        return self.adapter.nodes_for(self.tree, name, asked) if name in self.tree.shares else None

    def refusal(self, name: str, asked: Asked) -> ShareRefusal | None:
        """Say why there is no space in a share; None if there is."""
        if name in self.tree.shares:
            return self.adapter.refusal(self.tree, name, asked)
        return ShareRefusal(ShareKey(self.source, name), f'share "{name}" cannot be used: {self.problem_of(name)}')

    def root_of(self, name: str) -> str:
        """Return the root above a share; the share itself if it is not in the tree."""
        shares = self.tree.shares
        while name in shares and shares[name].parent:
            name = shares[name].parent
        return name

    def state_of(self, name: str) -> ShareState | None:
        """Return a share as it is now; None if there is none of that name."""
        key, share = ShareKey(self.source, name), self.tree.shares.get(name)
        if share is None:
            problem = self.problems.get(name)
            return None if problem is None else ShareState(key=key, problem=problem)
        return ShareState(
            key=key,
            parent=share.parent,
            minimum=MappingProxyType({**share.minimum}),
            maximum=MappingProxyType({**share.maximum}),
            used=MappingProxyType(self.used(name)),
            weight=share.weight,
            priority=share.priority,
        )

    def used(self, name: str, tree: ShareTree | None = None) -> dict[str, int]:
        """Return what pods with a node use of a share, by resource; `tree`: another one, in which only they count."""
        tree = tree or self.tree
        return {resource: tree.held(name, resource) for resource in sorted(tree.resources_of(name))}

    def counted(
        self, usages: "Collection[tuple[str, Hashable, Usage]]", changed: Mapping[str, Share] | None = None
    ) -> ShareTree:
        """Return the same tree with this usage and no reservations; `changed`: other versions of some shares."""
        tree = ShareTree(tuple({**self.tree.shares, **(changed or {})}.values()))
        self._count(usages, tree)
        return tree

    @contextmanager
    def held(self) -> Iterator[ShareTree]:
        """Have the tree count only what pods with a node hold within a `with` block, in which nothing may await."""
        self.reservations.count_in(self.tree, -1)
        try:
            yield self.tree
        finally:
            self.reservations.count_in(self.tree)

    @contextmanager
    def what_if(self, tree: ShareTree) -> Iterator[None]:
        """Have another tree of the same names within a `with` block, in which nothing may await."""
        before, self.tree = self.tree, tree
        try:
            yield
        finally:
            self.tree = before

    def _count(self, usages: "Collection[tuple[str, Hashable, Usage]]", tree: ShareTree) -> None:
        for name, said, usage in usages:
            if name in tree.shares:
                tree.add(name, self.amounts(said, usage.amounts, usage.pods))
