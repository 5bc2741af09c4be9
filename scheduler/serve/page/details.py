"""Details that the page requests: a node with its pods; the configuration and the costs of plugins."""

from collections.abc import Callable, Iterator, Mapping
from heapq import nlargest
from typing import Any, Final

from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import CPU, MEMORY, PODS
from scheduler.api.wording.text import to_json
from scheduler.engine.engine import Engine
from scheduler.process.metrics import Metrics
from scheduler.runtime.framework import Framework
from scheduler.runtime.profile import POINTS
from scheduler.serve.page.about import About
from scheduler.serve.page.figures import quantile
from scheduler.serve.page.messages import cut
from scheduler.serve.page.nodes import ZONE
from scheduler.serve.port.answers import JSON, TEXT, Answer

MAX_PODS: Final = 100
MAX_LABELS: Final = 50
MAX_TAINTS: Final = 20
MAX_AMOUNTS: Final = 20
MAX_COSTS: Final = 300


class NodeDetails:
    """One node: amounts in the units of scheduling (thousandths of a cpu, bytes), and the pods that ask for most."""

    def __init__(self, engine: Engine, about: About) -> None:
        self._table, self._about = engine.cache.table, about

    async def __call__(self, query: Mapping[str, str]) -> Answer:
        name = query.get("name", "")
        row = self._table.row_of(name)
        if row is None:
            return Answer(404, b"there is no such node\n", TEXT, headers=self._about.headers)
        node = self._table.info(row)
        requested = node.requested
        amounts = [
            {"resource": cut(resource), "offered": offered, "asked": requested.get(resource, 0)}
            for resource, offered in node.allocatable.items()
            if resource != PODS
        ]
        shown = nlargest(MAX_PODS, node.pods, key=_size)
        labels = sorted((node.labels or {}).items())
        document = {
            "name": cut(name),
            "zone": cut((node.labels or {}).get(ZONE, "")),
            "unschedulable": node.unschedulable,
            "taints": [cut(f"{each.key}={each.value}:{each.effect}") for each in node.taints[:MAX_TAINTS]],
            "labels": {cut(key): cut(value) for key, value in labels[:MAX_LABELS]},
            "amounts": sorted(amounts, key=_order)[:MAX_AMOUNTS],
            "podCount": len(node.pods),
            "podsAllowed": int(self._table.allowed_pods[row]),
            "pods": [_pod(each) for each in shown],
        }
        return Answer(200, to_json(document) + b"\n", JSON, headers=self._about.headers)


class ConfigurationDetails:
    """The profiles with their plugins, what these cost, and the configuration in effect."""

    def __init__(self, engine: Engine, metrics: Metrics, about: About, config: Callable[[], Mapping[str, Any]]) -> None:
        self._engine, self._metrics, self._about, self._config = engine, metrics, about, config

    async def __call__(self, _query: Mapping[str, str]) -> Answer:
        document = {
            "version": self._about.version,
            "profiles": [
                {"name": cut(name), "points": dict(_points(each))} for name, each in self._engine.frameworks.items()
            ],
            "costs": plugin_costs(self._metrics),
            "config": self._config(),
        }
        return Answer(200, to_json(document) + b"\n", JSON, headers=self._about.headers)


def _points(framework: Framework) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    plugins = framework.plugins
    weighted = {"score": plugins.weights, "placement_score": plugins.placement_weights}
    for point in POINTS:
        weights = weighted.get(point, {})
        document = [
            {"name": cut(each.name)} | ({"weight": weights[each.name]} if each.name in weights else {})
            for each in plugins.at[point]
        ]
        if document:
            yield point, document


def _size(pod: Pod) -> tuple[int, int]:
    requests = pod.requests
    return requests.get(CPU, 0), requests.get(MEMORY, 0)


def _pod(pod: Pod) -> dict[str, Any]:
    cpu, memory = _size(pod)
    document = {"namespace": cut(pod.namespace), "name": cut(pod.name), "cpu": cpu, "memory": memory}
    return document | {"priority": pod.priority, "deleting": pod.is_deleting}


def _order(amount: Mapping[str, Any]) -> tuple[int, str]:
    first = {CPU: 0, MEMORY: 1}
    return first.get(amount["resource"], 2), amount["resource"]


def plugin_costs(metrics: Metrics) -> list[dict[str, Any]]:
    """[{"plugin", "point", "calls", "mean", "slow", "isMore"}], in seconds, what took most time first.

    A tenth of the calls is timed, as in kube-scheduler. With `isMore`, the slowest are in the last bucket, which has no
    end: `slow` is its beginning.
    """
    counts: dict[tuple[str, str], list[float]] = {}
    totals: dict[tuple[str, str], float] = {}
    bounds: tuple[float, ...] = ()
    for (plugin, point, _status), child in metrics.plugin_execution_duration.children():
        key = plugin, point
        bounds = tuple(child.bounds)
        before = counts.get(key, [0.0] * len(bounds))
        counts[key] = [a + b for a, b in zip(before, child.counts, strict=True)]
        totals[key] = totals.get(key, 0.0) + child.total
    costs = []
    for plugin, point in sorted(totals, key=lambda key: -totals[key])[:MAX_COSTS]:
        of = counts[plugin, point]
        calls = sum(of)
        if calls:
            document = {
                "plugin": cut(plugin),
                "point": point,
                "calls": int(calls),
                "mean": totals[plugin, point] / calls,
            }
            is_more = calls - of[-1] < 0.99 * calls
            costs.append({**document, "slow": quantile(bounds, of, 0.99), "isMore": is_more})
    return costs
