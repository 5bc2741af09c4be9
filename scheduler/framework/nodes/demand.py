"""The free amounts that a pod needs on a node, to count how many members of a group fit."""

from abc import abstractmethod
from collections.abc import Mapping

from scheduler.api.pods.pod import Pod
from scheduler.framework.plugin import Plugin


class DemandPlugin(Plugin):
    """A plugin whose Filter compares a pod's requests with the free amounts of the node."""

    @abstractmethod
    def demand(self, pod: Pod) -> Mapping[str, int]:
        """Return resource → amount that must be free, more than 0, and 1 of `pods` for the pod itself."""
