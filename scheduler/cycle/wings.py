"""Groups and extenders as the loop sees them, since their packages are above it; and a null object for no extenders."""

from typing import Final, Protocol

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Placed
from scheduler.cycle.steps import Steps
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.queued import QueuedGroup, QueuedPod
from scheduler.runtime.framework import Framework


class Loop(Protocol):
    """The steps of the scheduling loop that all attempts share."""

    def should_skip(self, pod: Pod) -> bool:
        """Return whether to skip a pod that is being deleted, which is reported to its owner, or that has its node."""

    def place(
        self,
        framework: Framework,
        state: CycleState,
        queued: QueuedPod,
        placed: Placed,
        started: float,
        since: int | None = None,
    ) -> None:
        """Assume a pod on the node that was chosen, and begin to bind it.

        `since`: the last change of nodes, as the cache numbers them, that is known to it; None if it was made just now.
        """

    def settle(self, queued: QueuedPod) -> None:
        """Clean up after an attempt that failed unexpectedly."""


class GroupWing(Protocol):
    """Takes over the groups of pods."""

    def steps(self, group: QueuedGroup, loop: Loop) -> Steps[None]:
        """Decide about a popped group. No other decision may be made between the steps."""

    def is_used(self, framework: Framework) -> bool:
        """Return whether a group is being scheduled with the plugins of this profile."""


class ExtenderWing(Protocol):
    """Takes over attempts about which extenders are asked."""

    @property
    def has_extenders(self) -> bool:
        """Whether there are extenders at all."""
        return False

    def take(self, framework: Framework, queued: QueuedPod, started: float, loop: Loop) -> bool:
        """Take over the attempt for a popped pod if extenders are interested in it; return whether."""
        return False

    def is_used(self, framework: Framework) -> bool:
        """Return whether an attempt uses the plugins of this profile."""
        return False

    @property
    def has_binder(self) -> bool:
        """Whether an extender binds pods."""
        return False

    async def bind(self, pod: Pod, node_name: str) -> bool:
        """Return True once an extender has bound the pod; False if none binds it. Raises if it is not bound."""
        return False

    async def finish(self) -> None:
        """Cancel all attempts; the next start tries their pods again."""
        return


class _NoExtenders(ExtenderWing):
    """There are none."""


NO_EXTENDERS: Final[ExtenderWing] = _NoExtenders()
