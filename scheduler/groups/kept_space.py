"""Space kept on nodes for the members of a group while they are tried one after the other.

A member that goes to a node where space is kept for another may have taken that space. If both ask for the same, the
other gets the space kept for the first instead. If not, no other member has precedence on that node.
"""

from collections.abc import Iterable

from scheduler.api.pods.pod import Pod
from scheduler.framework.queued import QueuedPod
from scheduler.state.nominator import Nominator


class KeptSpace:
    """Knows for which members that were not tried yet space is kept, in one what-if."""

    def __init__(self, nominator: Nominator, members: Iterable[QueuedPod]) -> None:
        self._nominator = nominator
        self._on_node: dict[str, dict[str, Pod]] = {}
        """Node → those for which space is kept there, by UID."""
        for queued in members:
            self._keep(queued.pod, nominator.kept_on(queued.pod.uid))

    def tried(self, pod: Pod, node_name: str) -> None:
        """A member was tried; `node_name`: the node that it has in the what-if, if any."""
        own = self._nominator.kept_on(pod.uid)
        self._on_node.get(own, {}).pop(pod.uid, None)
        others = self._on_node.get(node_name, {}) if node_name != own else {}
        alike = next((each for each in others.values() if each.requests == pod.requests), None)
        for each in (alike,) if alike is not None else tuple(others.values()):
            del others[each.uid]
            self._keep(each, own if alike is not None else "")

    def _keep(self, pod: Pod, node_name: str) -> None:
        if self._nominator.kept_on(pod.uid) != node_name:
            self._nominator.move(pod.uid, node_name)
        if node_name:
            self._on_node.setdefault(node_name, {})[pod.uid] = pod

    def end(self) -> None:
        """The what-if is over: all is kept as before."""
        self._nominator.move_back()
