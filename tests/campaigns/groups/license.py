"""A plugin of somebody's own: it refuses the pods that need a license on all nodes, while there is none."""

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from scheduler import framework as fw
from scheduler.framework.nodes.nodes import Int32Column, Rows

LICENSES: Final = "licenses.v1.example.com"
LABEL: Final = "example.com/license"
MISSING: Final = fw.unschedulable("there is no license")


class License(fw.FilterNodesPlugin):
    name: ClassVar[str] = "License"

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        return (fw.on(LICENSES, fw.Action.ADD | fw.Action.UPDATE),)

    def filter_nodes(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: Rows) -> Int32Column | None:
        is_there = LABEL not in pod.labels or self.handle.objects.get(LICENSES, "site", "") is not None
        return None if is_there else np.ones(len(rows), np.int32)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return MISSING
