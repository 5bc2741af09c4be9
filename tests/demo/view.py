"""A frame of the live display: a pure function from the model to rich renderables.

In a high terminal each node has a row; in a low one each zone has a column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tests.demo import cast, report
from tests.demo.facts import Node, Pod
from tests.demo.model import Model

COLOURS: Final = dict(
    zip(
        (deployment.name for deployment in cast.DEPLOYMENTS),
        ("cyan", "green", "magenta", "yellow", "bright_red"),
        strict=True,
    )
)
OTHER_COLOUR: Final = "white"
"""Of Deployments that somebody made with KEEP=1."""

CORDONED: Final = "cordoned"
BLOCKS: Final = " ▁▂▃▄▅▆▇█"
SPARK_SECONDS: Final = 0.5
"""The time that one bar of the rate stands for."""
AROUND_NODES: Final = 16
"""Rows of a frame that are not nodes, the two lines of a long message included."""
LONGEST_BAR: Final = 32
MIN_COLUMNS: Final = 81
MIN_ROWS: Final = 24


@dataclass(frozen=True, slots=True)
class Moment:
    """What a frame shows beside the model."""

    now: float
    """Of the model's clock."""
    title: str
    caption: str
    columns: int
    rows: int
    footer: tuple[str, ...] = ()
    """Lines to be copied: never wrapped, without a border."""


def frame(model: Model, moment: Moment) -> RenderableType:
    """The whole screen."""
    around = AROUND_NODES + len(moment.footer)
    high = len(model.nodes) + around <= moment.rows
    gap = [Text()] if max(map(len, model.in_zones().values()), default=0) + around <= moment.rows else []
    parts: list[RenderableType] = [
        Rule(Text(moment.title, style="bold"), style="dim"),
        Text(f" {moment.caption}", style="bold", no_wrap=True, overflow="ellipsis"),
        *gap,
        legend(model),
        *gap,
        node_rows(model, moment.columns) if high else zone_columns(model, moment.columns),
        *gap,
        rates(model, moment),
        *gap,
        waiting(model),
        *(Text(f" {line}", no_wrap=True, overflow="fold", style="bold") for line in moment.footer),
    ]
    return Group(*parts)


def ending(model: Model, columns: int) -> RenderableType:
    """What stays in the terminal: where the pods are, the summary, and what to try next."""
    inner = columns - 4
    summary = Text("\n".join(report.summary(model, inner)))
    commands = Table.grid(padding=(0, 2))
    for command, text in report.NEXT:
        commands.add_row(Text(command, style="bold cyan"), Text(text, style="dim"))
    body = Group(legend(model), zone_columns(model, inner), Text(), summary, Text(), commands)
    return Panel(body, title="Loadmaster", title_align="left", border_style="green")


def legend(model: Model) -> Text:
    """The Deployments with their colours and how many of their pods are bound."""
    line = Text(" ")
    for app in sorted(model.apps(), key=place):
        count, wanted = model.bound_of(app)
        line.append("■ ", style=colour(app)).append(f"{app} ", style="bold")
        line.append(f"{count}/{wanted}   ", style="" if count == wanted else "bold bright_red")
    return line if model.apps() else Text(" no pods yet", style="dim")


def node_rows(model: Model, columns: int) -> Table:
    """A row for each node, by zone: how much of its cpu is requested by whom."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
    for name, width in (("", 0), ("zone", 0), ("node", 0), ("", len(CORDONED))):
        table.add_column(name, no_wrap=True, min_width=width)
    table.add_column("cpu requested", no_wrap=True)
    table.add_column("of", justify="right", no_wrap=True)
    table.add_column("pods", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, overflow="ellipsis")
    length = max(8, min(LONGEST_BAR, columns - 68))
    placed = model.on_nodes()
    for zone, nodes in model.in_zones().items():
        for i, node in enumerate(nodes):
            apps = placed[node.name]
            table.add_row(
                "",
                Text("" if i else zone, style="bold"),
                Text(node.name, style="dim" if node.cordoned else ""),
                tag(node),
                bar(node, apps, length),
                f"{node.cpu / 1000:g}",
                str(sum(map(len, apps.values())) or ""),
                counts(model, apps, names=True),
            )
    return table


def zone_columns(model: Model, columns: int) -> Table:
    """A column for each zone, with a short bar for each node."""
    zones = model.in_zones()
    table = Table.grid(padding=(0, 1), expand=True)
    if not zones:
        return table
    length = max(4, min(LONGEST_BAR, columns // len(zones) - 18))
    placed = model.on_nodes()
    cells: list[RenderableType] = []
    for zone, nodes in zones.items():
        table.add_column(ratio=1)
        rows = Table.grid(padding=(0, 1, 0, 0))
        for node in nodes:
            apps = placed[node.name]
            name = Text(node.name, style="dim strike" if node.cordoned else "bold magenta" if node.gpus else "")
            rows.add_row("", name, bar(node, apps, length), counts(model, apps, names=False))
        cells.append(Group(Text(f" {zone}", style="bold"), rows))
    table.add_row(*cells)
    return table


def bar(node: Node, apps: Mapping[str, Sequence[Pod]], length: int) -> Text:
    """The node's cpu as `length` cells, each in the colour of the Deployment that has most of it or the one before."""
    text = Text()
    filled, requested = 0, 0
    for app in sorted(apps, key=place):
        requested += sum(pod.cpu for pod in apps[app])
        end = min(length, round(length * requested / max(1, node.cpu)))
        text.append("█" * (end - filled), style=colour(app))
        filled = max(filled, end)
    return text.append("░" * (length - filled), style="bright_black")


def counts(model: Model, apps: Mapping[str, Sequence[Pod]], *, names: bool) -> Text:
    """The pods of a node, by Deployment; without names in columns that are in the order of the legend."""
    text = Text()
    for app in sorted(model.apps(), key=place):
        count = len(apps.get(app, ()))
        if names and count:
            text.append(f"{app} {count}  ", style=colour(app))
        elif not names and count:
            text.append(f"{count} ", style=colour(app))
    return text


def tag(node: Node) -> Text:
    """What is special about a node."""
    if not node.ready:
        return Text("not ready", style="dim")
    if node.cordoned:
        return Text(CORDONED, style="reverse dim")
    return Text(f"{node.gpus} GPUs" if node.gpus else "", style="magenta")


def rates(model: Model, moment: Moment) -> Text:
    """How fast pods are bound, now and in the last half minute."""
    total = model.total()
    line = Text(" bound ", style="dim")
    line.append(f"{model.rate(moment.now):4.0f}", style="bold green").append(" pods/s now ")
    history = model.history(moment.now, max(8, min(60, moment.columns - 66)), SPARK_SECONDS)
    line.append(sparkline(history), style="green")
    line.append(f"  best {model.best_rate:.0f}/s", style="green")
    line.append(f"   total {total.pods} in {total.seconds:.1f} s: {total.rate:.0f}/s")
    return line


def sparkline(values: Sequence[float]) -> str:
    """Bars as high as the values, the highest one full; every value above 0 is seen.

    >>> sparkline([0, 1, 4, 8])
    ' ▁▄█'
    """
    top = max(values, default=0) or 1
    return "".join(BLOCKS[max(round(value / top * 8), 1 if value else 0)] for value in values)


def waiting(model: Model) -> RenderableType:
    """The pods that were refused, each with its message."""
    pods = model.waiting()
    if not pods:
        return Padding(Text("No pod waits for room.", style="dim"), (0, 1))
    first, others = pods[0], len(pods) - 1
    message = Text(first.refusal)
    message.highlight_regex(r"\d+/\d+|(?<= )\d+(?= )", "bold")
    more = f" (and {others} more)" if others else ""
    title = Text(f"{first.pod.app} waits{more}: FailedScheduling", style="bold")
    return Panel(message, title=title, title_align="left", border_style=colour(first.pod.app), padding=(0, 1))


def colour(app: str) -> str:
    """The colour of a Deployment."""
    return COLOURS.get(app, OTHER_COLOUR)


def place(app: str) -> int:
    """Where a Deployment is in a bar."""
    names = list(COLOURS)
    return names.index(app) if app in COLOURS else len(names)
