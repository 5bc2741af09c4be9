"""What is shown: a live display in the terminal's second screen, or lines where no terminal can take it."""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tests.demo.model import Model, Node, Pod

TITLE: Final = "Loadmaster on a real control plane with fake nodes"
COLOURS: Final = {"web": "cyan", "api": "green", "train": "magenta", "batch": "yellow", "huge": "bright_red"}
OTHER_COLOUR: Final = "white"
"""Of Deployments that somebody made with KEEP=1."""

MIN_COLUMNS: Final = 81
MIN_ROWS: Final = 24
NEXT: Final = (
    ("KEEP=1 make demo", "the same, and stays for you to look at it and change it"),
    (".venv/bin/loadmaster simulate --help", "where would a pod go? No cluster"),
    ("make help", "everything else there is"),
)


class Screen:
    """Shows scenes as they are played."""

    def __init__(self, console: Console) -> None:
        self.console = console
        takes_frames = console.is_terminal and not console.is_dumb_terminal and "utf" in console.encoding
        fits = console.width >= MIN_COLUMNS and console.height >= MIN_ROWS
        is_live = takes_frames and fits and not os.environ.get("CI") and not console.no_color
        self._live = Live(console=console, screen=True, auto_refresh=False) if is_live else None
        self._caption = ""
        self._footer: Sequence[str] = ()
        self._shown: set[str] = set()

    @contextmanager
    def open(self) -> Iterator[None]:
        """Show what happens within the block."""
        if self._live is None:
            yield
        else:
            with self._live:
                yield

    def begin(self, caption: str) -> None:
        """A scene begins."""
        self._caption = caption
        if self._live is None:
            self.console.print(f"* {caption}", soft_wrap=True)

    def tick(self, model: Model) -> None:
        """A moment has passed."""
        if self._live is not None:
            self._live.update(frame(model, self._caption, self._footer, self.console), refresh=True)

    def end(self, model: Model, before: int) -> None:
        """The scene had its effect: all pods after the first `before` were bound in it."""
        self.tick(model)
        if self._live is None:
            for line in outcome(model, model.bound[before:]):
                if line not in self._shown:  # why a pod waits is repeated only when it is another reason
                    self.console.print(f"  {line}", soft_wrap=True)
                self._shown.add(line)

    def stay(self, lines: Sequence[str]) -> None:
        """The play is over and everything stays: show what to try, not wrapped, to be copied."""
        self._footer = lines
        if self._live is None:
            for line in lines:
                self.console.print(f"  {line}", soft_wrap=True)


def frame(model: Model, caption: str, footer: Sequence[str], console: Console) -> RenderableType:
    """The whole screen."""
    line = Text(" bound ", style="dim")
    line.append(f"{model.rate(time.monotonic()):4}", style="bold green").append(" pods/s now")
    line.append(f"   best {model.best_rate()}/s   total {len(model.bound)}", style="green")
    return Group(
        Rule(Text(TITLE, style="bold"), style="dim"),
        Text(f" {caption}", style="bold", no_wrap=True, overflow="ellipsis"),
        legend(model),
        zones(model, console),
        line,
        refusal(model),
        *(Text(f" {each}", no_wrap=True, overflow="fold", style="bold") for each in footer),
    )


def ending(model: Model, console: Console) -> RenderableType:
    """What stays in the terminal: where the pods are, the summary, and what to try next."""
    waits = sorted(pod.bound - pod.seen for pod in model.bound if not pod.refusal) or [0.0]
    p50, p99 = (1000 * waits[int(len(waits) * part)] for part in (0.5, 0.99))
    lines = [
        f"{len(model.bound)} pods bound, at best {model.best_rate()} within a second.",
        f"From creation to bind, as a watch saw it: p50 {p50:.0f} ms, p99 {p99:.0f} ms.",
        *(f"{pod.app} {fate(model, pod)}. Why it waited: {pod.refusal}" for pod in model.pods.values() if pod.refusal),
    ]
    commands = Table.grid(padding=(0, 2))
    for command, text in NEXT:
        commands.add_row(Text(command, style="bold cyan"), Text(text, style="dim"))
    body = Group(legend(model), zones(model, console), Text(), Text("\n".join(lines)), Text(), commands)
    return Panel(body, title="Loadmaster", title_align="left", border_style="green")


def outcome(model: Model, bound: Sequence[Pod]) -> Iterator[str]:
    """What a scene came to, and what waits now."""
    at_once = [pod for pod in bound if not pod.refusal and pod.node in model.nodes]
    if at_once:
        places = Counter(model.nodes[pod.node].zone for pod in at_once)
        where = ", ".join(f"{zone} {count}" for zone, count in sorted(places.items()))
        seconds = max(pod.bound for pod in at_once) - min(pod.seen for pod in at_once)
        yield f"{len(at_once)} pods bound in {seconds:.2f} s ({len(at_once) / max(seconds, 0.001):.0f} pods/s): {where}"
    yield from (f"{pod.app} {fate(model, pod)}." for pod in bound if pod.refusal)
    yield from (f"{pod.app} waits: {pod.refusal}" for pod in model.waiting())


def fate(model: Model, pod: Pod) -> str:
    """What became of a pod that was refused."""
    if pod.node not in model.nodes:
        return "still waits"
    after = 1000 * (pod.bound - model.nodes[pod.node].joined)
    return f"waited {pod.bound - pod.seen:.1f} s and was bound to {pod.node} {after:.0f} ms after that node joined"


def legend(model: Model) -> Text:
    """The Deployments with their colours and how many of their pods are bound."""
    line = Text(" ")
    for app in apps_of(model):
        count, wanted = model.bound_of(app)
        line.append(f"{app} ", style=f"bold {COLOURS.get(app, OTHER_COLOUR)}")
        line.append(f"{count}/{wanted}   ", style="" if count == wanted else "bold bright_red")
    return line


def apps_of(model: Model) -> list[str]:
    """The Deployments that have pods: ours in their order, then others."""
    apps = {pod.app for pod in model.pods.values()}
    return [*(app for app in COLOURS if app in apps), *sorted(apps - COLOURS.keys())]


def zones(model: Model, console: Console) -> Table:
    """A column for each zone, with a bar for each node and its pods in the order of the legend."""
    by_zone = model.in_zones()
    table = Table.grid(padding=(0, 1), expand=True)
    cells: list[RenderableType] = []
    length = max(4, min(32, console.width // max(1, len(by_zone)) - 18))
    for zone, nodes in by_zone.items():
        table.add_column(ratio=1)
        rows = Table.grid(padding=(0, 1, 0, 0))
        for node in nodes:
            apps = model.on_node(node.name)
            counts = Text(" ").join(
                Text(f"{len(apps[app])}", style=COLOURS.get(app, OTHER_COLOUR)) for app in apps_of(model) if app in apps
            )
            cordoned = Text("cordoned", style="dim") if node.cordoned else counts
            rows.add_row(
                "", node.name, bar(node, apps, length, *("#." if console.options.ascii_only else "█░")), cordoned
            )
        cells.append(Group(Text(f" {zone}", style="bold"), rows))
    table.add_row(*cells)
    return table


def bar(node: Node, apps: dict[str, list[Pod]], length: int, full: str, empty: str) -> Text:
    """The node's cpu as `length` cells, each in the colour of the Deployment that requests it."""
    text, filled, requested = Text(), 0, 0
    for app, pods in sorted(apps.items(), key=lambda item: [*COLOURS, item[0]].index(item[0])):
        requested += sum(pod.cpu for pod in pods)
        end = min(length, round(length * requested / max(1, node.cpu)))
        text.append(full * (end - filled), style=COLOURS.get(app, OTHER_COLOUR))
        filled = max(filled, end)
    return text.append(empty * (length - filled), style="bright_black")


def refusal(model: Model) -> RenderableType:
    """The message of a pod that was refused and waits."""
    pods = model.waiting()
    if not pods:
        return Padding(Text("No pod waits for room.", style="dim"), (0, 1))
    more = f" (and {len(pods) - 1} more)" if len(pods) > 1 else ""
    return Panel(pods[0].refusal, title=f"{pods[0].app} waits{more}: FailedScheduling", title_align="left")
