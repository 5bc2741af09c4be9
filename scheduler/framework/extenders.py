"""The request of a PostFilter plugin to extenders: which candidates for a preemption they accept, with which victims.

Rule: callExtenders in pkg/scheduler/framework/preemption/preemption.go at v1.36.3.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import SchedulerError
from scheduler.framework.plugin import Plugin, PostFilterResult
from scheduler.framework.preemption.dry_run import Victims
from scheduler.framework.status import Status


class ExtenderError(SchedulerError):
    """An extender failed, or answered what it must not: worded as kube-scheduler words it."""


class Overtaken(SchedulerError):
    """The cluster changed while extenders were asked, and their answer is of no use any more: they are asked again."""


class PreemptionExtenders(Protocol):
    """The extenders of one attempt, as PostFilter sees them."""

    async def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """Ask each extender that knows preemption, one after the other, about the candidates: node → victims.

        Return those that are left, with the victims that the last extender wants. The cluster may have changed
        meanwhile: victims that are gone are left out, and so are nodes that are. Raises ExtenderError, and Overtaken if
        nothing is left for that reason alone.
        """


class ExtendedPostFilterPlugin(Plugin):
    """A PostFilter plugin that asks extenders, where there are some for the pod. Elsewhere `post_filter` is called."""

    @abstractmethod
    async def post_filter_with_extenders(
        self, state: CycleState, pod: Pod, node_to_status: Mapping[str, Status], extenders: PreemptionExtenders
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Do what `post_filter` does, if the extenders agree. Raises Overtaken.

        `state` is right until they are asked.
        """
