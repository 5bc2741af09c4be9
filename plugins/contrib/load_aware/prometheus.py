"""Prometheus, or a server with its API: two queries for the usage of each node, and their results."""

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote

import msgspec

from plugins.contrib.load_aware.measurements import Faults, Measurement, Measurements, Usage, is_amount
from scheduler import framework as fw
from scheduler.api.decoding import Decoder, Unreadable

CPU_QUERY: Final = 'sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[2m]))'
MEMORY_QUERY: Final = 'sum by (node) (container_memory_working_set_bytes{id="/"})'
"""The kubelets' metrics, with the labels of the usual scrape rules."""

STEP: Final = "30s"
"""Between the values of which mean and deviation are made."""

AT_ONCE: Final = 500
"""Series read between two turns of the event loop."""


class _Series(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, gc=False):
    result_type: str = msgspec.field(name="resultType", default="")
    result: list[msgspec.Raw] = []


class _Answer(msgspec.Struct, gc=False):
    status: str
    data: _Data = msgspec.field(default_factory=_Data)
    error: str = ""


_answer: Decoder[_Answer] = Decoder(_Answer)
_series: Decoder[_Series] = Decoder(_Series)


class Prometheus:
    """Implements measurements.Provider."""

    def __init__(
        self,
        reader: fw.Reader,
        seconds: float,
        window: timedelta,
        *,
        address: str,
        access: fw.Access,
        queries: tuple[str, str],
        label: str,
    ) -> None:
        """`queries`: of cores and of bytes; `label`: of the series, with the node's name. Else as MetricsApi."""
        self._reader = reader
        self._seconds = seconds
        self._window = int(window.total_seconds())
        self._url = f"{address.rstrip('/')}/api/v1/query?query="
        self._access = access
        self._queries = queries
        self._label = label

    async def read(self, nodes: Collection[str], now: datetime, faults: Faults) -> Measurements:
        cpu_query, memory_query = self._queries
        cpu = await self._usages(cpu_query, 1000, nodes, faults)
        memory = await self._usages(memory_query, 1, nodes, faults)
        return {
            name: Measurement(now, cpu.get(name), memory.get(name)) for name in nodes if name in cpu or name in memory
        }

    async def _usages(self, query: str, unit: int, nodes: Collection[str], faults: Faults) -> Mapping[str, Usage]:
        if not self._window:
            values = await self._values(query, nodes, faults)
            return {name: Usage(value * unit) for name, value in values.items()}
        over_time = f"_over_time(({query})[{self._window}s:{STEP}])"
        means = await self._values(f"avg{over_time}", nodes, faults)
        deviations = await self._values(f"stddev{over_time}", nodes, faults)
        return {name: Usage(mean * unit, deviations.get(name, 0.0) * unit) for name, mean in means.items()}

    async def _values(self, query: str, nodes: Collection[str], faults: Faults) -> Mapping[str, float]:
        body = await self._reader.read(self._url + quote(query), self._seconds, self._access)
        answer = _answer.decode(body)
        if answer.status != "success":
            raise Unreadable(f"Prometheus answers {answer.status!r:.100}: {answer.error:.200}")
        if answer.data.result_type != "vector":
            raise Unreadable(f"{query}: this is no vector, but {answer.data.result_type!r:.100}")
        values: dict[str, float] = {}
        ambiguous: set[str] = set()
        for position, item in enumerate(answer.data.result):
            if position % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
            try:
                series = _series.decode(item)
                name, value = series.metric.get(self._label, ""), float(series.value[1])
            except ValueError as error:
                faults.add("unreadable node", error)
                continue
            if name not in nodes:
                continue
            if name in values or name in ambiguous:
                ambiguous.add(name)
                faults.add("ambiguous node", f"{name} has several series: {query}")
            elif is_amount(value):
                values[name] = value
            else:
                faults.add("unusable value", f"{name}: {value}: {query}")
        for name in ambiguous:
            values.pop(name, None)
        return values
