"""Preemption for a group of pods as a whole: the framework's side of it."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from scheduler.api.pod import Pod
from scheduler.framework.plugin import Plugin
from scheduler.framework.pod_groups import PodGroup
from scheduler.framework.status import Status


class GroupWhatIf(Protocol):
    """All nodes, without the pods that were removed so far. Nothing is changed by it, and nothing may await."""

    @property
    def decisions(self) -> int:
        """How many pods are decided about for each answer of `refusal`; 0 if what fits is counted."""

    def remove(self, pods: Sequence[Pod]) -> None:
        """Go on as if these pods, which have their nodes, were not there."""

    def put_back(self, pods: Sequence[Pod]) -> None:
        """Go on with these pods, which were removed."""

    def refusal(self) -> Status | None:
        """Return why the group does not fit now; None if it does."""


class PodGroupPostFilterPlugin(Plugin):
    """Makes space for a group of pods."""

    @abstractmethod
    def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[Pod], what_if: GroupWhatIf
    ) -> tuple[Sequence[Pod], Status | None]:
        """Evict others for `group`, whose `pods` are without a node; return the victims, or why there are none."""
