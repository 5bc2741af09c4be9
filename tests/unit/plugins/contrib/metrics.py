"""A provider of metrics for tests: it answers what it is told to."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from plugins.contrib.load_aware.measurements import Measurement, Usage
from plugins.contrib.load_aware.plugin import LoadAware
from scheduler import framework as fw
from scheduler.api.pods.pod import Pod
from scheduler.runtime.handle import EngineHandle
from scheduler.testing import Cluster, a_handle, a_pod, pod_from_dict

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)


class FakeReader:
    """A framework.handle.Reader."""

    def __init__(self, *answers: bytes | fw.ApiError) -> None:
        """Answers in turn; the last one again and again."""
        self.answers = list(answers)
        self.asked: list[str] = []

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def read(self, url: str, seconds: float, access: fw.Access | None = None) -> bytes:
        self.asked.append(url)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, fw.ApiError):
            raise answer
        return answer

    async def post(self, url: str, body: bytes, seconds: float, access: fw.Access | None = None) -> bytes:
        raise AssertionError("nothing is posted")


def node_metrics(name: str, cpu: Any = "1", memory: Any = "1Gi", at: datetime = NOW) -> dict[str, Any]:
    """An object of metrics.k8s.io."""
    written = at.isoformat().replace("+00:00", "Z")
    usage = {"cpu": cpu, "memory": memory}
    return {"metadata": {"name": name}, "timestamp": written, "window": "20s", "usage": usage}


def metrics_list(*items: Any) -> bytes:
    return json.dumps({"kind": "NodeMetricsList", "metadata": {}, "items": items}).encode()


def a_measurement(cpu: float | None = 0, memory: float | None = 0, *, at: datetime = NOW) -> Measurement:
    return Measurement(at, None if cpu is None else Usage(cpu), None if memory is None else Usage(memory))


def a_reading_handle(nodes: Cluster, reader: fw.Reader) -> EngineHandle:
    return replace(a_handle(nodes), reader=reader)


class Measured(LoadAware):
    """The plugin with measurements from its start on, for the kit: it starts plugins without an event loop."""

    measurements: Mapping[str, Measurement] = {}

    def start(self, handle: fw.Handle) -> None:
        super().start(handle)
        using = self.use(self.measurements)
        try:
            while True:
                using.send(None)
        except StopIteration:
            pass


def measured(measurements: Mapping[str, Measurement], **arguments: Any) -> Measured:
    plugin = Measured(**arguments)
    plugin.measurements = measurements
    return plugin


def a_started_pod(name: str, started: datetime | None, **wishes: Any) -> Pod:
    pod: Any = {
        "metadata": {"name": name, "namespace": "default", "uid": f"default/{name}"},
        "spec": {"containers": [{"name": "main", "resources": wishes}]},
        "status": {} if started is None else {"startTime": started.isoformat()},
    }
    return pod_from_dict(pod)


def a_limited_pod(name: str = "pod", **resources: Mapping[str, str]) -> Pod:
    return a_started_pod(name, None, **resources)


def scores(plugin: Any, nodes: Cluster, pod: Pod | None = None) -> dict[str, int]:
    """What a started plugin says, by node."""
    import numpy as np

    found = plugin.score_nodes(fw.CycleState(), pod or a_pod(), nodes, np.arange(nodes.size))
    names = nodes.names()
    return {name: 0 if found is None else int(found[row]) for row, name in enumerate(names) if name}
