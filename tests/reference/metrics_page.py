"""Writes docs/operations/metrics.md: each metric as the code defines it, with its meaning from `metrics.yaml`."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from prometheus_client.metrics import MetricWrapperBase

from scheduler.process.metrics import Metrics
from scheduler.process.process_metrics import BuildInfo, ProcessMetrics, StartTime
from scheduler.serve.endpoints.pod_resources import LABELS

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "operations" / "metrics.md"
ADVICE: Final = Path(__file__).with_name("metrics.yaml")

HEAD: Final = """\
# Every metric

`make reference` writes this page from the code and `tests/reference/metrics.yaml`. [monitoring.md](monitoring.md) says
how to scrape them; [differences.md](../differences.md#metrics-that-are-not-there) lists those of kube-scheduler that
are not there.

"""
GROUPS: Final = {
    "kube-scheduler's own": (
        "Dashboards made for kube-scheduler work with them: names, types, labels and buckets are equal. Where a value\n"
        "counts something else here, [differences.md](../differences.md#output) has the reason."
    ),
    "Loadmaster's": "They begin with `loadmaster_`.",
}
PROCESS: Final = """\
## The process

Prometheus' usual metrics of a process, on `/metrics`, too. CPU, memory and descriptors are those of the scheduler
alone, bytes of the network those of its pod.

"""
PROCESS_ADVICE: Final = {
    "kubernetes_build_info": "1; the kube-scheduler that this one equals, with Python in place of Go"
}
OTHER_PATHS: Final = """\
## On other paths

| metric | type, labels | meaning |
|---|---|---|
| `kube_pod_resource_request` | gauge: {labels} | on `/metrics/resources` of the leader: what each pod requests |
| `kube_pod_resource_limit` | gauge: {labels} | the same: its limits |
"""


READ: Final = {"watch_gauge": "gauge", "watch_counter": "counter"}
"""Calls that add a metric which is read at each scrape → its type."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A metric as the code defines it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


def definitions() -> list[Definition]:
    """Every metric of a scheduler on `/metrics`, by name; not those of its process."""
    found = [*_instruments(), *_read_at_scrapes()]
    return sorted(found, key=lambda each: each.name)


def _instruments() -> Iterator[Definition]:
    metrics = Metrics()
    for each in (*vars(metrics).values(), *metrics.preemption, *metrics.add_pod_groups(), *metrics.add_placements()):
        if isinstance(each, MetricWrapperBase):
            (family,) = each.describe()
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield Definition(name, family.type, tuple(each._labelnames), family.documentation)


def _read_at_scrapes() -> Iterator[Definition]:
    """Yield those that are read at each scrape, from the calls that add them."""
    for path in sorted((ROOT / "scheduler").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(f"{call}(" in text for call in READ):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READ:
                name, help_, labels = (ast.literal_eval(each) for each in node.args[:3])
                kind = READ[node.func.attr]
                yield Definition(f"{name}_total" if kind == "counter" else name, kind, labels, help_)


def process_metrics() -> Iterator[Definition]:
    """Yield the metrics of the process, on Linux."""
    for collector in (ProcessMetrics(), StartTime(), BuildInfo()):
        for family in collector.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = tuple(family.samples[0].labels) if family.samples else ()
            yield Definition(name, family.type, labels, family.documentation)


def advice() -> dict[str, str]:
    """What it means and when to look, by the metric's name."""
    read: dict[str, str] = yaml.safe_load(ADVICE.read_text(encoding="utf-8"))
    return read


def text() -> str:
    """Return the page."""
    given = advice()
    ours: list[Definition] = []
    theirs: list[Definition] = []
    for each in definitions():
        (ours if each.name.startswith("loadmaster_") else theirs).append(each)
    parts = [HEAD]
    for (title, about), group in zip(GROUPS.items(), (theirs, ours), strict=True):
        parts.append(f"## {title}\n\n{about}\n\n{''.join(_table(group, given))}\n")
    process = "".join(_table(_once(process_metrics()), PROCESS_ADVICE))
    parts.append(f"{PROCESS}{process}\n{OTHER_PATHS.format(labels=', '.join(LABELS))}")
    return "".join(parts)


def _once(found: Iterable[Definition]) -> list[Definition]:
    return sorted({each.name: each for each in found}.values(), key=lambda each: each.name)


def _table(group: Iterable[Definition], given: dict[str, str]) -> Iterator[str]:
    """Yield the rows of a table; a metric without advice has its HELP text."""
    yield "| metric | type, labels | meaning, and when to look |\n|---|---|---|\n"
    for each in group:
        meaning = given.get(each.name) or each.help.rstrip(".").replace("|", r"\|")
        yield f"| `{each.name}` | {each.kind}: {', '.join(each.labels)} | {meaning} |\n".replace(": |", " |")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
