"""metrics.k8s.io: the latest measurements of metrics-server, or of any other server of that API.

It has one value for each node. Mean and deviation over a longer time are computed from earlier readings.
"""

import asyncio
import math
from array import array
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from plugins.contrib.load_aware.measurements import AHEAD, Faults, Measurement, Measurements, Usage, is_amount
from scheduler import framework as fw
from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.quantities.quantity import NANO, parse_quantity

PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"

MAX_VALUES: Final = 120
"""Kept of each node, whatever the window: 24 bytes each."""

AT_ONCE: Final = 200
"""Nodes read between two turns of the event loop: less than a millisecond."""


class _Metadata(msgspec.Struct, gc=False):
    name: str


class _NodeMetrics(msgspec.Struct, gc=False):
    metadata: _Metadata
    timestamp: datetime
    usage: dict[str, str]


class _List(msgspec.Struct, gc=False):
    items: list[msgspec.Raw]


_list: Decoder[_List] = Decoder(_List)
_node_metrics: Decoder[_NodeMetrics] = Decoder(_NodeMetrics)


class MetricsApi:
    """Implements measurements.Provider."""

    def __init__(self, reader: fw.Reader, seconds: float, window: timedelta) -> None:
        """`seconds`: for one answer; `window`: how far back mean and deviation look, 0 for the last value alone."""
        self._reader = reader
        self._seconds = seconds
        self._window = window
        self._histories: dict[str, _History] = {}

    async def read(self, nodes: Collection[str], now: datetime, faults: Faults) -> Measurements:
        answer = _list.decode(await self._reader.read(PATH, self._seconds))
        found: dict[str, Measurement] = {}
        for position, item in enumerate(answer.items):
            if position % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
            try:
                metrics = _node_metrics.decode(item)
            except Unreadable as error:
                faults.add("unreadable node", error)
                continue
            if metrics.metadata.name not in nodes:
                continue
            if metrics.timestamp.tzinfo is None:
                faults.add("unreadable node", f"{metrics.metadata.name}: a time without its zone")
                continue
            found[metrics.metadata.name] = self._measurement(metrics, now, faults)
        for name in [each for each in self._histories if each not in found]:
            del self._histories[name]
        return found

    def _measurement(self, metrics: _NodeMetrics, now: datetime, faults: Faults) -> Measurement:
        name = metrics.metadata.name
        cpu = _amount(name, metrics.usage, "cpu", 1000, faults)
        memory = _amount(name, metrics.usage, "memory", 1, faults)
        is_ahead = metrics.timestamp > now + AHEAD  # no later value would ever replace it
        if not self._window or is_ahead or cpu is None or memory is None:
            return Measurement(
                metrics.timestamp, None if cpu is None else Usage(cpu), None if memory is None else Usage(memory)
            )
        history = self._histories.setdefault(name, _History())
        history.add(metrics.timestamp.timestamp(), cpu, memory, self._window.total_seconds())
        return Measurement(metrics.timestamp, _over_time(history.cpu), _over_time(history.memory))


class _History:
    """The values of one node, oldest first."""

    __slots__ = ("cpu", "memory", "times")

    def __init__(self) -> None:
        self.times, self.cpu, self.memory = array("d"), array("d"), array("d")

    def add(self, time: float, cpu: float, memory: float, window: float) -> None:
        """Add a value, unless it was there already, and forget those older than the window."""
        if not self.times or time > self.times[-1]:
            self.times.append(time)
            self.cpu.append(cpu)
            self.memory.append(memory)
        old = max(sum(each <= self.times[-1] - window for each in self.times), len(self.times) - MAX_VALUES)
        for values in (self.times, self.cpu, self.memory):
            del values[:old]


def _amount(name: str, usage: Mapping[str, str], resource: str, unit: int, faults: Faults) -> float | None:
    """The usage of a resource, in parts of a unit; None if it is missing or impossible."""
    if resource not in usage:
        return None
    try:
        amount = parse_quantity(usage[resource]) * unit / NANO
    except (ValueError, OverflowError) as error:
        faults.add("unusable value", f"{name}: {resource}: {error}")
        return None
    if not is_amount(amount):
        faults.add("unusable value", f"{name}: {resource}: {usage[resource]}")
        return None
    return amount


def _over_time(values: "array[float]") -> Usage:
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values)
    return Usage(mean, math.sqrt(variance))
