"""Told of every change of what decisions read, as it is made: for a trace from which they can be made again.

There is one at most, and mostly none: whoever changes something looks at an attribute, which is all that it costs.
"""

from typing import Any, Protocol

from scheduler.api.objects import Node
from scheduler.api.pod import Pod


class StateObserver(Protocol):
    """Must not raise, and must not change anything. Called once the change is made, before plugins learn of it."""

    def assumed(self, pod: Pod) -> None:
        """A pod counts on its node before the API server has agreed."""

    def confirmed(self, pod: Pod) -> None:
        """A pod counts on its node, as the watch says, in this version; perhaps on another node than before."""

    def uncounted(self, uid: str) -> None:
        """A pod counts no more: it is gone, or it was assumed in vain."""

    def node_set(self, node: Node) -> None:
        """A node was added, or has a new version: as it came."""

    def node_removed(self, name: str) -> None: ...
    def rests(self, name: str) -> None:
        """A node is to be left alone; it is set once more after this."""

    def rested(self, name: str) -> None:
        """A node is to be left alone no more; it is set once more after this."""

    def rebuilt(self) -> None:
        """The node table is made anew, as a change has failed: rows are others from now on."""

    def nominated(self, pod: Pod, node_name: str) -> None: ...
    def nomination_ended(self, uid: str) -> None: ...
    def object_set(self, resource: str, new: Any) -> None: ...
    def object_removed(self, resource: str, uid: str) -> None: ...
