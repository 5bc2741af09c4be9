"""What `make bench-cycle` found, as lines of JSON, and its part of docs/benchmarks.md: tables and plots."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.bench.plot import Curve, curves
from tests.bench.results import Setting, build, read_lines


class Series(StrEnum):
    """What a decision was measured for."""

    CASE = "case"
    """All that pods may ask for, on the clusters of the tables."""
    NODES = "nodes"
    """How it grows with the nodes."""
    PODS = "pods"
    """How it grows with the pods that run."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What decisions of one kind took on one cluster. Times are seconds, of the median unless said otherwise."""

    series: Series
    case: str
    nodes: int
    pods: int
    """That ran before."""
    median: float
    p99: float
    together: float
    """With the assumption that follows."""
    in_turn: float = 0.0
    """Pods of all apps in turn, where the others are of one app; 0 if that was not measured, here and below."""
    first: float = 0.0
    """The first decision of its kind."""


def read_decisions(file: Path) -> tuple[Setting, list[Decision]]:
    """The lines of a file. Raises ValueError if they are others."""
    settings: list[Setting] = []
    found: list[Decision] = []
    for kind, raw in read_lines(file):
        if kind == Setting.__name__:
            settings.append(build(Setting, raw))
        elif kind == Decision.__name__:
            found.append(build(Decision, {**raw, "series": Series(raw["series"])}))
        else:
            raise ValueError(f"{file}: not of make bench-cycle: {kind}")
    if len(settings) != 1 or not found:
        raise ValueError(f"{file}: not the whole of a make bench-cycle")
    return settings[0], found


def section(setting: Setting, found: Sequence[Decision], directory: Path) -> str:
    """The part of the page, as Markdown; its plots are written into `directory`."""
    parts = [
        f"{setting.started} UTC, commit {setting.commit}: {setting.machine}, {setting.cores} cores, Linux "
        f"{setting.kernel}; Python {setting.python}, numpy {setting.packages['numpy']}: `{setting.command}`"
    ]
    if cases := [one for one in found if one.series is Series.CASE]:
        parts += case_parts(cases)
    for series in (Series.NODES, Series.PODS):
        if grown := [one for one in found if one.series is series]:
            parts.append(growth_plot(series, grown, directory))
    return "\n\n".join(parts)


def case_parts(found: Sequence[Decision]) -> tuple[str, str]:
    """The clusters in a sentence, and a table: a row a kind of pod, three columns a cluster."""
    clusters = list(dict.fromkeys((one.nodes, one.pods) for one in found))
    (nodes, pods), *others = clusters
    said = [
        f"{nodes:,} nodes with {pods:,} pods of 50 apps",
        *(f"{nodes:,} nodes with {pods:,}" for nodes, pods in others),
    ]
    head = ["pod", *(title for nodes, _ in clusters for title in (f"{nodes:,} nodes: median", "p99", "first"))]
    rows: dict[str, list[str]] = {}
    for one in found:
        row = rows.setdefault(one.case, [one.case])
        row += [f"{1e3 * each:.3f}" for each in (one.median, one.p99, one.first)]
    return f"{', and '.join(said)}, ms:", markdown(head, rows.values(), texts=(0,))


def growth_plot(series: Series, found: Sequence[Decision], directory: Path) -> str:
    """Write the plot and return the Markdown that shows it."""
    lines = [
        Curve(
            case,
            sorted(
                (float(one.nodes if series is Series.NODES else one.pods), 1e3 * one.median)
                for one in found
                if one.case == case
            ),
        )
        for case in dict.fromkeys(one.case for one in found)
    ]
    title = f"One decision over the {series.value}"
    if series is Series.NODES:
        svg = curves(title, "nodes", "ms", lines, log_x=True, log_y=True, dots=True)
    else:
        svg = curves(title, f"pods on {found[0].nodes:,} nodes", "ms", lines, log_x=True, dots=True)
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"decision-over-{series.value}.svg"
    file.write_text(svg)
    return f"![{title}]({directory.name}/{file.name})"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], texts: Sequence[int] = ()) -> str:
    """A table; the columns of `texts` to the left, the others to the right."""
    rule = ["---" if number in texts else "---:" for number in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
