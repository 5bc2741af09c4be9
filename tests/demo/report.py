"""Plain lines: what a scene came to, the summary, and what to try next. Pure."""

import shlex
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.demo.cast import BIG_NODE
from tests.demo.facts import Node
from tests.demo.model import Burst, Model, Placement, percentile

NEXT: Final = (
    ("KEEP=1 make demo", "the same, and stays for you to look at it and change it"),
    (".venv/bin/loadmaster simulate --help", "where would a pod go? No cluster"),
    ("make help", "everything else there is"),
)
BAR: Final = 20


def outcome(model: Model, before: Burst) -> list[str]:
    """What happened since the model's total was `before`, and what waits now."""
    bound, burst = model.bound_since(before), model.since(before)
    zones = Counter(model.nodes[p.pod.node].zone for p in bound if not p.refusal and p.pod.node in model.nodes)
    lines = []
    if zones:
        where = ", ".join(f"{zone} {count}" for zone, count in sorted(zones.items()))
        lines.append(f"{zones.total()} pods bound in {burst.seconds:.2f} s ({burst.rate:.0f} pods/s): {where}")
    lines += [f"{placement.pod.app} {fate(model, placement)}." for placement in bound if placement.refusal]
    return lines + [f"{placement.pod.app} waits: {placement.refusal}" for placement in model.waiting()]


def placement_table(model: Model) -> list[str]:
    """The nodes and what is on them, in ASCII."""
    placed = model.on_nodes()
    lines = []
    for zone, nodes in model.in_zones().items():
        for i, node in enumerate(nodes):
            apps = placed[node.name]
            used = sum(pod.cpu for pods in apps.values() for pod in pods)
            filled = round(BAR * used / max(1, node.cpu))
            counts = "  ".join(f"{app} {len(apps[app])}" for app in model.apps() if app in apps)
            share = f"{'#' * filled:.<{BAR}} {used / 1000:4.1f}/{node.cpu / 1000:<2g}"
            lines.append(f"{'' if i else zone:<7}{node.name:<4} {share} {counts or special(node)}".rstrip())
    return lines


def special(node: Node) -> str:
    """What is special about a node."""
    return "(cordoned)" if node.cordoned else "(GPUs)" if node.gpus else ""


def summary(model: Model, columns: int) -> list[str]:
    """What the demo came to, in lines of at most `columns`."""
    total, latencies = model.total(), model.latencies()
    p50, p99 = (1000 * percentile(latencies, percent) for percent in (50, 99))
    lines = [
        f"{total.pods} pods bound in {total.seconds:.1f} s of work: {total.rate:.0f} pods/s,"
        f" at best {model.best_rate:.0f} within a second.",
        f"From creation to bind, as a watch saw it: p50 {p50:.0f} ms, p99 {p99:.0f} ms.",
    ]
    lines += [f"{p.pod.app} {fate(model, p)}. Why it waited: {p.refusal}" for p in model.waited()]
    return [part for line in lines for part in wrap(line, columns)]


def fate(model: Model, placement: Placement) -> str:
    """What became of a pod that was refused."""
    if placement.bound is None:
        return "still waits"
    waited, node = placement.bound - placement.seen, placement.pod.node
    after = placement.bound - model.joined.get(node, placement.bound)
    return f"waited {waited:.1f} s and was bound to {node} {1000 * after:.0f} ms after that node joined"


def next_commands() -> list[str]:
    """Three things to try."""
    width = max(len(command) for command, _ in NEXT)
    return [f"{command:<{width}}   {text}" for command, text in NEXT]


def try_it(folder: Path) -> list[str]:
    """What to type in another terminal while everything runs; the folder has kubeconfig, kubectl and loadmaster."""
    quoted = shlex.quote(str(folder))
    return [
        f"export KUBECONFIG={quoted}/kubeconfig PATH={quoted}:$PATH",
        "kubectl scale deployment web --replicas=100",
        "kubectl cordon b-2; kubectl rollout restart deployment api",
        f"kubectl cordon {BIG_NODE}; kubectl delete pod -l app=huge",
        "loadmaster explain $(kubectl get pod -l app=huge -o name | cut -d/ -f2)",
        "loadmaster page",
    ]


def wrap(line: str, columns: int, indent: str = "  ") -> Sequence[str]:
    """Fold a line at spaces; the lines after the first are indented."""
    return textwrap.wrap(line, max(20, columns - 1), subsequent_indent=indent, break_on_hyphens=False)
