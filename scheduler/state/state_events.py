"""The changes of the state that decisions read: from these, a trace can build the state again.

Each is published once the change is made, before plugins learn of it.
"""

from typing import Any

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.runtime.event_stream import EngineEvent


class PodCounted(EngineEvent, frozen=True):
    """A pod counts on its node in this version; perhaps on another node than before."""

    pod: Pod
    is_assumed: bool
    """Whether the API server has yet to agree."""


class PodUncounted(EngineEvent, frozen=True):
    """A pod counts no more: it is gone, or it was assumed in vain."""

    uid: str


class NodeSet(EngineEvent, frozen=True):
    """A node was added, or has a new version: as it came."""

    node: Node


class NodeRemoved(EngineEvent, frozen=True):
    name: str


class NodeQuarantined(EngineEvent, frozen=True):
    """Pods avoid a node for a while, or may go there again; it is set once more after this."""

    name: str
    has_ended: bool


class TableRebuilt(EngineEvent, frozen=True):
    """The node table was made again, as a change has failed: rows are others from now on."""


class PodNominated(EngineEvent, frozen=True):
    pod: Pod
    node_name: str


class NominationEnded(EngineEvent, frozen=True):
    uid: str


class ObjectSet(EngineEvent, frozen=True):
    resource: str
    new: Any


class ObjectRemoved(EngineEvent, frozen=True):
    resource: str
    uid: str
