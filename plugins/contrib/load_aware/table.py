"""The usage of each node, as columns: measured, plus an estimate for pods that came too late to be measured.

A pod counts as measured if it was started a while before the measurement of its node. Whether it was is read off the
pod itself, so placements need not be remembered: a pod counts no matter which scheduler placed it, before or after
our start.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from plugins.contrib.load_aware.measurements import Measurement, Measurements
from scheduler import framework as fw

FloatColumn: TypeAlias = npt.NDArray[np.float64]

Estimate: TypeAlias = Callable[[fw.Pod], tuple[float, float]]
"""The estimated usage of a pod: thousandths of a core, bytes."""

ASPECTS: Final = (fw.Aspect.NAME, fw.Aspect.STARTS)
"""The aspects that the columns depend on, in addition to the measurements; NAME covers a node that takes the row of
another one."""

AT_ONCE: Final = 50
"""Nodes looked at between two turns of the event loop, with all of their pods."""


class LoadTable:
    """One set of measurements over the rows of the node table. Follows the nodes and their pods, not the clock."""

    def __init__(self, handle: fw.Handle, measurements: Measurements, reporting: timedelta, estimate: Estimate) -> None:
        """`reporting`: how long before its measurement a pod has to be started to be in it."""
        self._nodes = handle.nodes
        self._changes = handle.columns.changes(ASPECTS)
        self._measurements = measurements
        self._reporting = reporting
        self._estimate = estimate
        self._values = np.zeros((_COLUMNS, 0))

    async def fill(self) -> None:
        """Look at all nodes, a few at a time. Those that change meanwhile are looked at again by `columns`."""
        self._changes.stale_rows()
        self._grow()
        for first in range(0, self._nodes.size, AT_ONCE):
            self._look_at(range(first, min(first + AT_ONCE, self._nodes.size)))
            await asyncio.sleep(0)

    def columns(self, rows: fw.Rows) -> "Load":
        """Return the usage of these rows, as their nodes and pods are now."""
        changed = self._changes.stale_rows()
        self._grow()
        if changed is None:
            changed = range(self._nodes.size)
        if changed:
            self._look_at(changed)
        return Load(self._values[:, rows] if len(rows) != self._values.shape[1] else self._values)

    def _grow(self) -> None:
        missing = self._nodes.size - self._values.shape[1]
        if missing > 0:
            self._values = np.hstack([self._values, np.zeros((_COLUMNS, missing))])

    def _look_at(self, rows: Iterable[int]) -> None:
        names = self._nodes.names()
        for row in rows:
            measurement = self._measurements.get(names[row])
            self._values[:, row] = 0.0 if measurement is None else self._of(row, measurement)

    def _of(self, row: int, measurement: Measurement) -> tuple[float, ...]:
        since = measurement.at - self._reporting
        more_cpu = more_memory = 0.0
        for pod in self._nodes.info(row).pods:
            started = pod.status.start_time
            if started is None or started.tzinfo is None or started > since:
                cpu, memory = self._estimate(pod)
                more_cpu += cpu
                more_memory += memory
        cpu_usage, memory_usage = measurement.cpu, measurement.memory
        return (
            *((0.0, 0.0, 0.0) if cpu_usage is None else (1.0, cpu_usage.mean + more_cpu, cpu_usage.deviation)),
            *(
                (0.0, 0.0, 0.0)
                if memory_usage is None
                else (1.0, memory_usage.mean + more_memory, memory_usage.deviation)
            ),
        )


_COLUMNS: Final = 6


class ResourceLoad:
    """The measurements of one resource; thousandths of a core or bytes."""

    __slots__ = ("deviation", "known", "mean")

    def __init__(self, values: FloatColumn) -> None:
        self.known: fw.BoolColumn = values[0] > 0
        """Whether there is a measurement that counts; the others are 0 where there is none."""
        self.mean: FloatColumn = values[1]
        self.deviation: FloatColumn = values[2]


class Load:
    """The measurements of some rows."""

    __slots__ = ("cpu", "memory")

    def __init__(self, values: FloatColumn) -> None:
        self.cpu = ResourceLoad(values[:3])
        self.memory = ResourceLoad(values[3:])
