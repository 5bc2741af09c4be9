"""The handle as the engine makes it: the plugins' handle, with the concrete types that the engine itself uses."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy.typing as npt

from scheduler.framework.handle import Handle
from scheduler.framework.nodes.change_log import LogReader
from scheduler.framework.nodes.nodes import Aspect
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.runtime.answers.store import AnswerStore, Evaluate, Values
from scheduler.runtime.live_nodes import LiveNodes
from scheduler.runtime.pre_binding import PodsInPreBind
from scheduler.runtime.preemption.dry_run import DryRuns
from scheduler.runtime.waiting import WaitingPods


@dataclass(frozen=True, slots=True)
class EngineHandle(Handle):
    """One profile's handle."""

    columns: "PluginColumns"
    waiting_pods: WaitingPods
    metrics: Metrics
    tasks: Tasks
    pods_in_pre_bind: PodsInPreBind = field(default_factory=PodsInPreBind)
    dry_runs: DryRuns = field(default_factory=DryRuns)


class PluginColumns:
    """Implements scheduler.framework.nodes.stored_columns.StoredColumns: they are in the profile's one store."""

    def __init__(self, nodes: LiveNodes) -> None:
        self.store = AnswerStore(nodes)

    def get(
        self, key: Hashable, aspects: tuple[Aspect, ...], dtype: npt.DTypeLike, evaluate: Evaluate
    ) -> Values | None:
        column = self.store.column(("plugin", key), aspects, dtype, evaluate)
        return column.shown if column.may_differ else None

    def changes(self, aspects: tuple[Aspect, ...]) -> LogReader:
        return LogReader(map(self.store.nodes.change_log, aspects))

    def mark(self, rows: Iterable[int] | None = None) -> None:
        log = self.store.nodes.change_log(Aspect.EXTERNAL)
        if rows is None:
            log.mark_all()
            return
        for row in rows:
            log.mark(row)

    def forget(self) -> None:
        self.store.clear()
