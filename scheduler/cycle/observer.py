"""Told of what the cycle does, besides the changes of the state: see `state/observer.py`."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from scheduler.api.pod import Pod
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.extenders.chain import FilterVerdict
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import ApiError
from scheduler.framework.extenders import Victims
from scheduler.framework.queued import QueuedPod
from scheduler.runtime.framework import Framework
from scheduler.state.observer import StateObserver

FILTER, PRIORITIZE, PREEMPT = "filter", "prioritize", "preempt"
"""What extenders are asked."""

ExtenderAnswer: TypeAlias = FilterVerdict | Mapping[str, int] | Mapping[str, Victims]
"""And what they answer, all of them together."""


class Call(NamedTuple):
    """What a plugin asks of the API server, as far as it tells an answer from another."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    """Of what is created: what its name begins with, which is the same each time; of what is read: the URL."""
    subresource: str = ""


class Observer(StateObserver, Protocol):
    """Must not raise, and must not change anything."""

    def pod_shown(self, pod: Pod) -> None:
        """The watch has shown a pod, or a new version of it; it is known, and has no effect yet."""

    def pod_gone(self, uid: str) -> None:
        """A pod was deleted, or has run to its end."""

    def deciding(self) -> None:
        """A decision begins."""

    def decided(
        self, framework: Framework, state: CycleState, queued: QueuedPod, decision: Placed | Unplaced | BaseException
    ) -> None:
        """A decision has ended, and has no effect yet."""

    def asking(self, framework: Framework, queued: QueuedPod) -> None:
        """An attempt begins in which extenders are asked; others are decided meanwhile."""

    def searching(self, pod: Pod) -> None:
        """Such an attempt searches nodes right after this, or once more among those that extenders have left."""

    def extenders_answered(self, uid: str, verb: str, answer: ExtenderAnswer | Exception) -> None:
        """Its extenders have answered: it goes on right after this. `verb`: FILTER, PRIORITIZE or PREEMPT."""

    def decided_with_extenders(
        self, framework: Framework, state: CycleState, queued: QueuedPod, decision: Placed | Unplaced | BaseException
    ) -> None:
        """Such an attempt has ended, and has no effect yet."""

    def gave_up(self, uid: str) -> None:
        """Such an attempt has ended without a decision, as its pod need not be placed any more."""

    def reconfigured(self) -> None:
        """Another configuration counts from now on: other plugins or arguments, another seed, other extenders."""

    def pre_binding(self, pod: Pod) -> None:
        """PreBind plugins begin to prepare an assumed pod."""

    def bound(self, pod: Pod) -> None: ...
    def undone(self, pod: Pod) -> None:
        """An attempt fails after its pod was assumed: Unreserve follows."""

    def answered(self, call: Call, answer: Any | ApiError) -> None:
        """A plugin's call is answered: the plugin goes on right after this."""
