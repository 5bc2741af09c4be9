"""The preemptions under way, as plugins see them: the preemptors and their victims."""

from collections.abc import Collection, Sequence
from typing import Final, Protocol

from scheduler.api.pods.pod import Pod
from scheduler.framework.queued import EntityKey


class Preemption(Protocol):
    """Victims of one pod, or group, from the choice until the preemptor starts or is tried in vain."""

    @property
    def victims(self) -> Collection[str]:
        """The UIDs of the victims that still have their node."""

    @property
    def is_due(self) -> bool:
        """Whether all victims are gone: the preemptor is tried once, and evicts nothing then."""


class Preemptions:
    """All preemptions that are under way, of all profiles: here none."""

    def begin(self, key: EntityKey, pods: Sequence[Pod], victims: Sequence[Pod], *, keeps: bool) -> None:
        """Note that `victims` are evicted for `pods`: one pod, or those of a group that have no node.

        `keeps`: whether what they free is kept for these pods, whatever the priority of others, until they are tried
        once without the victims. If not, their nominations count as in kube-scheduler.
        """

    def withdraw(self, key: EntityKey, *, victims_stay: bool = False) -> None:
        """End the preemption of a pod or group, if there is one; `victims_stay`: evictions have failed."""

    def of(self, key: EntityKey) -> Preemption | None:
        """Return the preemption of a pod, or of its group; None if there is none, or if it keeps nothing."""
        return None

    def leaving(self) -> Collection[str]:
        """Return the UIDs of all victims that still have their node."""
        return ()

    def has_left(self, uid: str) -> bool:
        """Return whether a victim is gone, or has lost its node as its binding was refused."""
        return False


NO_PREEMPTIONS: Final = Preemptions()
