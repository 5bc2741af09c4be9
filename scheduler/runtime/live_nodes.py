"""Nodes as the engine sees them: as plugins do, and in addition changes, the pods there, and what-ifs."""

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Protocol

from scheduler.api.pods.pod import Pod
from scheduler.framework.nodes.change_log import ChangeLog
from scheduler.framework.nodes.nodes import Aspect, NodeColumns


class LiveNodes(NodeColumns, Protocol):
    """The node table. Implemented in scheduler.state.nodes.node_table."""

    def change_log(self, aspect: Aspect) -> ChangeLog:
        """The rows in which this aspect changed."""

    def has_pod(self, row: int, uid: str) -> bool:
        """Return whether a pod is on a row."""

    def what_if(
        self, row: int, add: Collection[Pod] = (), remove: Collection[Pod] = ()
    ) -> AbstractContextManager[None]:
        """Put pods on a row, or take them away, for the length of a `with` block."""

    def order_on(self, row: int) -> tuple[str, ...]:
        """The UIDs of a row's pods, in their order."""

    def restore_order(self, row: int, order: tuple[str, ...]) -> None:
        """Put a row's pods in this order again."""
