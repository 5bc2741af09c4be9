"""Events of pods: reported, decided, bound; and the API server's answers to plugins.

PodSeen ─► AttemptStarted ─► Decided ─┬─► PodPlaced ─► BindingStarted ─► PreBindStarted ─► PodBound ─► AttemptEnded
                                      └─► AttemptFailed ◄── BindingUndone ◄──┘

With extenders, SearchStarted and ExtendersAnswered come before Decided, or before AttemptGivenUp.
"""

from typing import Any, NamedTuple

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import ApiError, SchedulerError
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code
from scheduler.runtime.event_stream import EngineEvent


class PodSeen(EngineEvent, frozen=True):
    """The watch reports a pod, or a new version of it, which has no effect yet."""

    old: Pod | None
    """The newest version that was known before."""
    pod: Pod


class PodGone(EngineEvent, frozen=True):
    """A pod was deleted, or has run to its end."""

    uid: str


class AttemptStarted(EngineEvent, frozen=True):
    """A decision begins. It is made in this step, unless extenders are asked."""

    profile: str
    queued: QueuedPod
    has_extenders: bool


class Decided(EngineEvent, frozen=True):
    """A decision has ended, and has no effect yet."""

    profile: str
    state: CycleState
    queued: QueuedPod
    decision: Placed | Unplaced | BaseException
    has_extenders: bool


class SearchStarted(EngineEvent, frozen=True):
    """An attempt with extenders searches nodes right after this, or once more among those that extenders have left."""

    pod: Pod


class AttemptGivenUp(EngineEvent, frozen=True):
    """Such an attempt has ended without a decision, as its pod need not be placed any more."""

    uid: str


class PodPlaced(EngineEvent, frozen=True):
    """A pod was assumed on the node that was chosen; Reserve and Permit follow."""

    profile: str
    state: CycleState
    queued: QueuedPod
    placed: Placed
    started: float
    """When the attempt began, in seconds of time.perf_counter."""


class AttemptFailed(EngineEvent, frozen=True):
    """An attempt has failed, before a node was chosen or after."""

    profile: str
    queued: QueuedPod
    cause: Unplaced | SchedulerError
    started: float
    """When the attempt began, in seconds of time.perf_counter."""


class BindingStarted(EngineEvent, frozen=True):
    """The plugins of Reserve and Permit have agreed, and there is a task now that binds the pod."""

    placed: Placed


class PermitWaited(EngineEvent, frozen=True):
    """These Permit plugins have kept a pod waiting."""

    uid: str
    plugins: tuple[str, ...]
    seconds: float
    code: Code


class PreBindStarted(EngineEvent, frozen=True):
    """PreBind plugins begin to prepare an assumed pod."""

    pod: Pod


class BindingRetried(EngineEvent, frozen=True):
    """A binding has succeeded after a failure."""

    uid: str
    failure: str


class PodBound(EngineEvent, frozen=True):
    """The API server has agreed; PostBind follows."""

    pod: Pod


class AttemptEnded(EngineEvent, frozen=True):
    """The task of a binding has ended, or an attempt with an unexpected error."""

    error: BaseException | None


class BindingUndone(EngineEvent, frozen=True):
    """An attempt fails after its pod was assumed: Unreserve follows."""

    pod: Pod


class Reconfigured(EngineEvent, frozen=True):
    """Another configuration counts from now on: other plugins or arguments, another seed, other extenders."""


class Call(NamedTuple):
    """The parts of a plugin's request to the API server that distinguish answers."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    """For a creation: the beginning of the name, which is the same each time; for a read: the URL."""
    subresource: str = ""


class CallAnswered(EngineEvent, frozen=True):
    """A plugin's call is answered: the plugin goes on right after this."""

    call: Call
    answer: Any | ApiError
