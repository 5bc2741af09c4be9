"""The changed rows of the node table, by aspect."""

from typing import Final

from scheduler.api.objects import Node
from scheduler.framework.nodes.change_log import ChangeLog
from scheduler.framework.nodes.nodes import Aspect

ALL_ASPECTS: Final = ~Aspect(0)

OF_PODS: Final = Aspect.REQUESTED | Aspect.PODS | Aspect.STARTS
"""Each pod that comes to a node, or goes, changes these."""


class AspectLogs:
    """One change log per aspect, each long enough for one change of every row."""

    def __init__(self, capacity: int) -> None:
        self._logs = {aspect: ChangeLog(max(4096, capacity)) for aspect in Aspect}
        self._logs_of: dict[int, tuple[ChangeLog, ...]] = {}

    def of(self, aspect: Aspect) -> ChangeLog:
        return self._logs[aspect]

    def mark(self, row: int, aspects: Aspect) -> None:
        """Say that these aspects of a row have changed."""
        logs = self._logs_of.get(aspects)
        if logs is None:  # taking flags apart costs more than all the marks, so it is done once per combination
            logs = self._logs_of[aspects] = tuple(self._logs[aspect] for aspect in aspects)
        for log in logs:
            log.mark(row)

    def grow(self, capacity: int) -> None:
        for log in self._logs.values():
            log.limit = max(log.limit, capacity)


def node_aspects(old: Node, new: Node) -> Aspect:
    """Return in which aspects two versions of a node differ, apart from the amounts and the sizes of images."""
    aspects = Aspect.NODE
    if old.spec != new.spec:
        aspects |= Aspect.TAINTS
    if old.metadata.labels != new.metadata.labels:
        aspects |= Aspect.LABELS
    if old.status.images != new.status.images:
        aspects |= Aspect.IMAGES
    return aspects
