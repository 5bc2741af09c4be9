"""The costs of plugins, from the metrics of their calls; kube-scheduler's way of taking these counts a tenth of
them."""

from typing import Any, Final

from scheduler.process.metrics import Metrics
from scheduler.serve.page.figures import quantile
from scheduler.serve.page.messages import cut

MAX_SHOWN: Final = 300


def plugin_costs(metrics: Metrics) -> list[dict[str, Any]]:
    """[{"plugin", "point", "calls", "mean", "slow", "isMore"}], in seconds, what took most time first.

    With `isMore`, the slowest are in the last bucket, which has no end: `slow` is its beginning.
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
    for plugin, point in sorted(totals, key=lambda key: -totals[key])[:MAX_SHOWN]:
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
