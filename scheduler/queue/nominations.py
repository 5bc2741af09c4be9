"""What the queue tells whoever remembers which pod was promised which node."""

from typing import Protocol

from scheduler.api.pod import Pod


class Nominations(Protocol):
    """Remembers which node a pod was promised. Implemented in scheduler.state.nominator."""

    def add(self, pod: Pod) -> None:
        """Promise the pod the node that its status names, if any."""

    def update(self, old: Pod, new: Pod) -> None:
        """Take note of a new version of a pod."""

    def delete(self, uid: str) -> None:
        """Forget what a pod was promised, if anything."""
