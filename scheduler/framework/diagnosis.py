"""The reasons why a pod fits nowhere, in kube-scheduler's words.

Rule: pkg/scheduler/framework/types.go at v1.36.3 (Diagnosis, FitError).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import MAX_MESSAGE, shortened
from scheduler.framework.nodes.nodes import NodeColumns, Rows
from scheduler.framework.status import Code, Status

NO_NODES = "no nodes available to schedule pods"


class NodeToStatus(Mapping[str, Status]):
    """Node name → refusal, worked out for each node that is asked about."""

    def __init__(
        self,
        names: Callable[[], Iterator[str]],
        status: Callable[[str], Status | None],
        rows_with: Callable[[Code], Rows],
    ) -> None:
        self._names = names
        self._status = status
        self.rows_with = rows_with
        """Code → the rows that were refused with it, in ascending order."""

    def __getitem__(self, name: str) -> Status:
        status = self._status(name)
        if status is None:
            raise KeyError(name)
        return status

    def __iter__(self) -> Iterator[str]:
        return self._names()

    def __len__(self) -> int:
        return sum(1 for _ in self._names())


def rows_with(code: Code, node_to_status: Mapping[str, Status], nodes: NodeColumns) -> Rows:
    """Return the rows of the nodes that were refused with this code."""
    if isinstance(node_to_status, NodeToStatus):
        return node_to_status.rows_with(code)
    found = (nodes.row_of(name) for name, status in node_to_status.items() if status.code is code)
    return np.array([row for row in found if row is not None], np.intp)


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """A reason for which nodes were refused."""

    plugin: str
    reason: str
    nodes: int


@dataclass(slots=True)
class Diagnosis:
    """Why one pod fits nowhere."""

    node_count: int
    """How many nodes there were: the number after `0/`."""

    reasons: Counter[str] = field(default_factory=Counter)
    """Reason → how many nodes gave it."""

    plugin_of: dict[str, str] = field(default_factory=dict)
    """Reason → the plugin that was the first to give it."""

    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    pre_filter_message: str = ""
    post_filter_message: str = ""
    victims: Sequence[Pod] = ()
    """The victims of the preemption that PostFilter has chosen."""
    node_to_status: Mapping[str, Status] = field(default_factory=dict)

    def add(self, status: Status, nodes: int) -> None:
        """Count one refusal, given by this number of nodes."""
        for reason in status.reasons:
            self.reasons[reason] += nodes
            self.plugin_of.setdefault(reason, status.plugin)
        self.add_plugin(status)

    def add_plugin(self, status: Status) -> None:
        """Remember the plugin that refused: events that it registered for bring the pod back."""
        if status.plugin:
            if status.is_rejected:
                self.unschedulable_plugins.add(status.plugin)
            if status.code is Code.PENDING:
                self.pending_plugins.add(status.plugin)

    def refusals(self) -> tuple[Refusal, ...]:
        """Return the reasons, that of the most nodes first."""
        plugin_of = self.plugin_of
        return tuple([Refusal(plugin_of[reason], reason, nodes) for reason, nodes in self.reasons.most_common()])

    @property
    def message(self) -> str:
        """The note of the FailedScheduling event, in MAX_MESSAGE characters.

        Reasons are sorted as strings, count first, as kube-scheduler does: "10 …" comes before "2 …".
        """
        text = f"0/{self.node_count} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        elif self.reasons:
            text += " " + ", ".join(sorted(f"{count} {reason}" for reason, count in self.reasons.items())) + "."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return shortened(text, MAX_MESSAGE)
