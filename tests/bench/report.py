"""Measurements as Markdown: tables of ratios with their spread, written between two markers of a page.

python -m tests.bench.report [FILE…] [--decisions FILE] [--page docs/benchmarks.md] [--plot CASE/NAME …]

What is not given stays in the page as it is.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench.contenders import OURS, PEER
from tests.bench.decisions import read_decisions, section
from tests.bench.plot import Curve, curves
from tests.bench.results import Failure, Measurement, Results, Setting, read

WORKLOADS: Final = "workloads"
DECISIONS: Final = "decisions"
"""The generated parts of the page."""

ALL: Final = "all"

Figure = Callable[[Measurement], float]


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of a table."""

    title: str
    value: Figure
    form: str
    compared: bool = False
    """Whether the ratio is given."""


LIFTED_QPS: Final = 1000
"""Requests a second from which on the limit of a client is none."""

COLUMNS: Final = (
    Column("pods/s", lambda m: m.overall, "{:,.0f}", compared=True),
    Column("created to bound p99, ms", lambda m: 1000 * m.latency_p99, "{:,.0f}"),
    Column("CPU per pod, ms", lambda m: 1000 * m.cpu_seconds / m.pods, "{:.2f}"),
    Column("peak memory, MiB", lambda m: m.peak_memory / 2**20, "{:,.0f}"),
    Column("API calls per pod", lambda m: sum(m.requests.values()), "{:.2f}"),
)


@dataclass(slots=True)
class Group:
    """Results that may stand in one table: of the same scale, with the same limits on kube-scheduler's client."""

    lifted: bool
    """Whether that client may do as many requests as it wants."""
    scale: float
    measurements: list[Measurement] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    @property
    def title(self) -> str:
        limits = "kube-scheduler's client limits lifted" if self.lifted else "Both with their default settings"
        return f"{limits}, full size" if self.scale == 1 else f"{limits}, nodes and pods times {self.scale:g}"


def groups_of(results: Sequence[Results]) -> list[Group]:
    """The results by scale and limits, the largest with lifted limits first."""
    found: dict[tuple[bool, float], Group] = {}
    for one in results:
        key = (one.setting.qps >= LIFTED_QPS, one.setting.scale)
        group = found.setdefault(key, Group(*key))
        group.measurements += one.measurements
        group.failures += one.failures
    return sorted(found.values(), key=lambda group: (not group.lifted, -group.scale))


def tables(results: Sequence[Results]) -> str:
    """Everything but the plots, as Markdown."""
    parts = [conditions([one.setting for one in results])]
    for group in groups_of(results):
        parts.append(f"#### {group.title}")
        parts.append(table(group))
        if group.failures:
            parts.append("Runs that gave no figures:\n\n" + "\n".join(map(failure_line, group.failures)))
    return "\n\n".join(parts)


def conditions(settings: Sequence[Setting]) -> str:
    """A line for each machine: what it ran, and when and at which commits it was measured."""
    series: dict[str, list[str]] = {}
    for one in settings:
        series.setdefault(machine(one), []).append(f"{one.started.partition(' ')[0]}, commit {one.commit}")
    return "\n\n".join(f"{where}; {', and '.join(dict.fromkeys(when))}." for where, when in series.items())


def machine(one: Setting) -> str:
    return (
        f"{one.machine}, {one.cores} cores, {one.memory / 2**30:.0f} GiB, "
        f"Linux {one.kernel}; Kubernetes {one.kubernetes}, Python {one.python}, "
        f"{', '.join(f'{name} {version}' for name, version in one.packages.items())}"
    )


def table(group: Group) -> str:
    """A row a workload: of each figure Loadmaster's and kube-scheduler's median."""
    lines = [
        ["workload", "nodes", "pods", *(column.title for column in COLUMNS)],
        ["---", *("---:" for _ in range(len(COLUMNS) + 2))],
    ]
    broken = {(one.workload, one.scheduler) for one in group.failures}
    for name in dict.fromkeys([*(m.workload for m in group.measurements), *(one.workload for one in group.failures)]):
        ours, peers = of(group.measurements, name, OURS), of(group.measurements, name, PEER)
        size = next(iter([*ours, *peers]), None)
        nodes, pods = (f"{size.nodes:,}", f"{size.pods:,}") if size else ("", "")
        cells = [cell(ours, peers, column, (name, OURS) in broken, (name, PEER) in broken) for column in COLUMNS]
        lines.append([name, nodes, pods, *cells])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def cell(
    ours: Sequence[Measurement], peers: Sequence[Measurement], column: Column, ours_failed: bool, peers_failed: bool
) -> str:
    """`**1.50** (1.40 to 1.62): 900 / 600`, the ratio round by round; a scheduler that failed says so."""
    values = f"{middle(ours, column, ours_failed)} / {middle(peers, column, peers_failed)}"
    if not column.compared:
        return values
    both = {m.round for m in ours} & {m.round for m in peers}
    pairs = [
        (column.value(mine), column.value(theirs))
        for mine, theirs in zip(
            [m for m in ours if m.round in both], [m for m in peers if m.round in both], strict=True
        )
    ]
    ratio = spread([mine / theirs for mine, theirs in pairs if mine and theirs])
    return f"{ratio}: {values}" if ratio else values


def middle(runs: Sequence[Measurement], column: Column, failed: bool) -> str:
    """The median; a dash where a figure that cannot be 0 is, since there was too little to measure."""
    if failed:
        return "failed"
    values = [column.value(m) for m in runs]
    values = [value for value in values if value]
    return column.form.format(statistics.median(values)) if values else "-"


def spread(values: Sequence[float]) -> str:
    """The median, and the range if there is more than one value; empty without any."""
    if not values:
        return ""
    text = f"**{statistics.median(values):.2f}**"
    return text if len(values) == 1 else f"{text} ({min(values):.2f} to {max(values):.2f})"


def of(measurements: Sequence[Measurement], workload: str, scheduler: str) -> list[Measurement]:
    """Those of one scheduler and workload, by round."""
    found = [m for m in measurements if m.workload == workload and m.scheduler == scheduler]
    return sorted(found, key=lambda m: m.round)


def failure_line(failure: Failure) -> str:
    first = failure.reason.splitlines()[0] if failure.reason else "no reason given"
    return f"- {failure.workload}, {failure.scheduler}, round {failure.round}: {first}"


def plots(groups: Sequence[Group], workloads: Sequence[str], directory: Path) -> str:
    """Write a plot for each workload, pods bound over time, all rounds; return the Markdown that shows them.

    Both schedulers have their colour and are named, also if one has no line since it failed. Of a workload that was
    measured in several ways, the first is shown. Raises ValueError if nothing was measured.
    """
    shown = []
    for workload in workloads:
        group = next((one for one in groups if any(m.workload == workload for m in one.measurements)), None)
        if group is None:
            raise ValueError(f"nothing was measured of {workload}")
        lines = []
        for scheduler in (OURS, PEER):
            runs = of(group.measurements, workload, scheduler)
            failed = any((one.workload, one.scheduler) == (workload, scheduler) for one in group.failures)
            name = f"{scheduler}: failed" if failed else scheduler if runs else f"{scheduler}: not run"
            lines += [Curve(name, run.timeline) for run in runs] or [Curve(name, ())]
        file = directory / f"{workload.replace('/', '-')}.svg"
        directory.mkdir(parents=True, exist_ok=True)
        file.write_text(curves(workload, "seconds", "pods bound", lines))
        shown.append(f"![{workload}: pods bound over time]({directory.name}/{file.name})")
    return "\n\n".join(shown)


def marks(part: str) -> tuple[str, str]:
    """The lines of a page between which a part is."""
    return f"<!-- {part}, generated by tests.bench.report: from here -->", f"<!-- {part}: to here -->"


def insert(page: str, part: str, generated: str) -> str:
    """The page with one of its generated parts replaced. Raises ValueError if it has no place for it."""
    begin, end = marks(part)
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise ValueError(f"the page needs the lines {begin} and {end}")
    return f"{before}{begin}\n\n{generated}\n\n{end}{after}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the report of results, or write it into a page. Returns 0, or 1 with a message."""
    options = parser().parse_args(argv)
    page: Path | None = options.page
    try:
        if page is None:
            with TemporaryDirectory() as plotted:
                print("\n\n".join(generated(options, Path(plotted)).values()))
            return 0
        text = page.read_text()
        for part, content in generated(options, page.with_suffix("")).items():
            text = insert(text, part, content)
        page.write_text(text)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def generated(options: argparse.Namespace, directory: Path) -> dict[str, str]:
    """The parts that the command line asks for; plots go into `directory`. Raises OSError or ValueError."""
    parts: dict[str, str] = {}
    if options.files:
        results = read(options.files)
        groups, text = groups_of(results), tables(results)
        shown = chosen(groups, options.plot)
        parts[WORKLOADS] = "\n\n".join([text, plots(groups, shown, directory)] if shown else [text])
    elif options.plot:
        raise ValueError("plots of workloads need their results")
    if options.decisions:
        parts[DECISIONS] = section(*read_decisions(options.decisions), directory)
    if not parts:
        raise ValueError("nothing to report: give results of tests.bench.run, or --decisions")
    return parts


def chosen(groups: Sequence[Group], wanted: Sequence[str]) -> list[str]:
    """The workloads to plot: those named, or all that were measured."""
    measured = dict.fromkeys(m.workload for group in groups for m in group.measurements)
    return list(measured) if list(wanted) == [ALL] else list(wanted)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="python -m tests.bench.report", description=__doc__.partition("\n")[0])
    result.add_argument("files", nargs="*", type=Path, metavar="FILE", help="results of tests.bench.run")
    result.add_argument("--decisions", type=Path, metavar="FILE", help="what tests.bench.cycle has written")
    result.add_argument("--page", type=Path, help="write between the markers of this page, instead of printing")
    result.add_argument("--plot", nargs="+", default=[], metavar="CASE/NAME", help=f"workloads to plot, or {ALL}")
    return result


if __name__ == "__main__":
    sys.exit(main())
