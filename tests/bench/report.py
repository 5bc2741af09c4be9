"""Measurements as a table and as JSON. Pure."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from tests.bench.measure import Load, Measurement

OURS: Final = "loadmaster"
PEER: Final = "kube-scheduler"


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of the table."""

    title: str
    value: Callable[[Measurement, Load], float]
    form: str = "{:,.1f}"
    compared: bool = True
    """Whether a ratio says anything: not of what may be next to nothing."""


def until_told(measurement: Measurement, load: Load) -> float:
    """The rate over the whole work: to bind the pods, and to tell of it in Events."""
    binding = measurement.all_bound_seconds - measurement.first_bind_seconds
    return load.pods / (binding + measurement.told_seconds)


ROWS: Final = (
    Row("pods/s, first bind to last", lambda m, _: m.pods_per_second, "{:,.0f}"),
    Row("pods/s, mean of seconds", lambda m, _: m.average, "{:,.0f}"),
    Row("pods/s, p50 of seconds", lambda m, _: m.p50, "{:,.0f}"),
    Row("pods/s, p99 of seconds", lambda m, _: m.p99, "{:,.0f}"),
    Row("pods/s, first bind to last Event", until_told, "{:,.0f}"),
    Row("start to ready, s", lambda m, _: m.ready_seconds),
    Row("start to first bind, s", lambda m, _: m.first_bind_seconds),
    Row("start to last bind, s", lambda m, _: m.all_bound_seconds),
    Row("last bind to last Event, s", lambda m, _: m.told_seconds, compared=False),
    Row("CPU until ready, s", lambda m, _: m.ready_cpu_seconds),
    Row("CPU a pod, ms", lambda m, load: 1000 * m.cpu_seconds / load.pods, "{:.2f}"),
    Row("peak memory, MiB", lambda m, _: m.peak_memory / 2**20, "{:,.0f}"),
    Row("API calls a pod", lambda m, _: sum(m.requests.values()), "{:.2f}"),
    Row("API server and etcd, CPU a pod, ms", lambda m, load: 1000 * m.server_cpu_seconds / load.pods, "{:.2f}"),
    Row("observer, CPU s", lambda m, _: m.observer_cpu_seconds, "{:.2f}", compared=False),
    Row("other load, cores", lambda m, _: m.other_load, "{:.2f}", compared=False),
)


def table(measurements: Sequence[Measurement], load: Load) -> str:
    """A Markdown table: for each figure the median and the range of the runs, and the ratio taken run by run."""
    names = [name for name in (OURS, PEER) if any(m.scheduler == name for m in measurements)]
    head = ["", *names, *(["ratio"] if len(names) == 2 else [])]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for row in ROWS:
        values = {name: [row.value(m, load) for m in of(measurements, name)] for name in names}
        cells = [spread(values[name], row.form) for name in names]
        if len(names) == 2:
            cells.append(spread(ratios(values[OURS], values[PEER]), "{:.2f}") if row.compared else "")
        lines.append([row.title, *cells])
    for name in names:
        lines.append([f"API calls a pod, {name}", *[calls(measurements, name) if name == n else "" for n in names]])
        lines[-1] += [""] * (len(head) - len(lines[-1]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def of(measurements: Sequence[Measurement], name: str) -> list[Measurement]:
    """Those of one scheduler, by run."""
    return sorted((m for m in measurements if m.scheduler == name), key=lambda m: m.run)


def ratios(ours: Sequence[float], peers: Sequence[float]) -> list[float]:
    """Ours by the peer's, run by run; a run in which the peer has 0 has none."""
    return [our / peer for our, peer in zip(ours, peers, strict=True) if peer]


def spread(values: Sequence[float], form: str) -> str:
    """The median, and the range if there is more than one value."""
    if not values:
        return "-"
    median = form.format(statistics.median(values))
    if len(values) == 1:
        return median
    return f"{median} ({form.format(min(values))} to {form.format(max(values))})"


def calls(measurements: Sequence[Measurement], name: str) -> str:
    """The requests of the last run, but for rare ones."""
    requests = of(measurements, name)[-1].requests
    return ", ".join(f"{what} {share:.2f}" for what, share in requests.items() if share >= 0.01)


def as_json(measurements: Sequence[Measurement], load: Load) -> dict[str, Any]:
    """Everything measured, unrounded."""
    return {"nodes": load.nodes, "pods": load.pods, "measurements": [asdict(m) for m in measurements]}
