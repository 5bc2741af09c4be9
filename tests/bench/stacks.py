"""Folded stacks, and which part of the scheduler each belongs to. Pure.

A stack is judged from its innermost frame outwards: the first frame that a rule knows says the part. So time in
prometheus_client counts as metrics, whoever called it, and time in numpy as that of the plugin that called it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

Stack = tuple[str, ...]
"""Frames from the outermost: `function (path/of/file.py:line)`, without file and line where that is not known."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the scheduler, and what of it."""

    group: str
    detail: str


INTERPRETER: Final = "interpreter and event loop"

RULES: Final[Sequence[tuple[str, str, str]]] = (
    # A frame's regular expression, group, detail.
    (r"gc_collect|_PyGC_|\bdeduce_unreachable|\bsubtract_refs", "garbage collector", ""),
    (r"prometheus_client/|scheduler/process/(metrics|instruments)\.py", "metrics", "counters and histograms"),
    (r"scheduler/runtime/plugin_calls\.py", "metrics", "times of plugins and extension points"),
    (r"scheduler/serve/", "metrics", "serving them"),
    (
        r"\b_(send|try)\b.*scheduler/kube/writes/events\.py|\b_send_from\b.*scheduler/kube/writes/events\.py",
        "client",
        "Events",
    ),
    (r"scheduler/kube/writes/(events|adapters)\.py", "events", ""),
    (r"scheduler/kube/informers/watch(_stream)?\.py|[(/]kopf/", "watch", "the stream"),
    (r"scheduler/kube/informers/intake\.py", "watch", "decoding"),
    (r"scheduler/cycle/handlers\.py|scheduler/cycle/object_handlers\.py", "watch", "what a change means"),
    (r"scheduler/kube/informers/(relister|comparer)\.py", "watch", "lists"),
    (r"scheduler/queue/", "queue", ""),
    (r"scheduler/runtime/answers/|scheduler/framework/change_log\.py", "decision", "memo"),
    (r"\brun_pre_filter\b", "decision", "PreFilter"),
    (r"\brun_filter\b|scheduler/runtime/filtering\.py", "decision", "Filter"),
    (r"\brun_post_filter\b", "decision", "PostFilter"),
    (r"\brun_(score|best)\b|scheduler/runtime/scoring\.py", "decision", "PreScore and Score"),
    (r"\b_select\b.*scheduler/cycle/algorithm\.py", "decision", "choosing"),
    (r"scheduler/cycle/algorithm\.py", "decision", "everything else"),
    (r"\brun_(un)?reserve\b|\brun_permit\b", "binding", "Reserve and Permit"),
    (r"scheduler/state/", "cache", ""),
    (r"scheduler/kube/writes/status\.py", "client", "status patches"),
    (r"scheduler/kube/writes/binder\.py", "client", "bindings"),
    (r"scheduler/kube/writes/(api_writer|evictor)\.py", "client", "what plugins write"),
    (r"\brun_(pre_bind|bind|post_bind|pre_bind_pre_flight)\b", "binding", "PreBind, Bind and PostBind"),
    (r"scheduler/cycle/failure\.py", "binding", "refused pods"),
    (r"scheduler/cycle/loop\.py", "binding", "the loop itself"),
)
"""In the order in which a frame is compared."""

FALLBACK: Final[Sequence[tuple[str, str, str]]] = (
    (r"scheduler/kube/", "client", "answers, sockets and TLS"),
    (
        r"[(/]aiohttp/|[(/]aiohappyeyeballs/|sslproto\.py|[(/]ssl\.py|SSL_|libssl|libcrypto",
        "client",
        "answers, sockets and TLS",
    ),
    (r"[(/]asyncio/|uvloop", INTERPRETER, "event loop"),
)
"""For stacks in which no frame is known by `RULES`: what the event loop calls."""

WAITING: Final = re.compile(r"epoll_p?wait|__?poll\b|poll \(|futex|sem_(timed)?wait|pthread_cond")
"""What runs while a thread waits. py-spy leaves such samples out itself, unless it looks at C functions."""

NAME: Final = 72
"""Characters for a name in the table."""

_COMPILED: Final = [[(re.compile(pattern), Part(*part)) for pattern, *part in each] for each in (RULES, FALLBACK)]


def parse(folded: str) -> Iterator[tuple[Stack, int]]:
    """The stacks of a text in folded form, paths from the package on, with their numbers of samples; none idle.

    Raises ValueError.
    """
    for line in folded.splitlines():
        frames, space, count = line.rpartition(" ")
        if not (space and count.isdecimal()):
            raise ValueError(f"not a folded stack: {line[:80]!r}")
        stack = tuple(map(shorten, frames.split(";")))
        if not WAITING.match(stack[-1]):
            yield stack, int(count)


def part_of(stack: Stack) -> Part:
    """Which part of the scheduler a stack is in."""
    for rules in _COMPILED:
        for frame in reversed(stack):
            for pattern, part in rules:
                if pattern.search(frame):
                    return part
    return Part(INTERPRETER, "")


def shorten(frame: str) -> str:
    """A frame with the path from the package on: `run (scheduler/runtime/scoring.py:74)`."""
    return re.sub(r"\((?:[^()]*/)?(?:site-packages/|lib/python[\d.]+/|(?=(?:scheduler|plugins)/))", "(", frame)


def parts(stacks: Sequence[tuple[Stack, int]]) -> Counter[Part]:
    """Samples by part."""
    found: Counter[Part] = Counter()
    for stack, count in stacks:
        found[part_of(stack)] += count
    return found


def hottest(stacks: Sequence[tuple[Stack, int]]) -> Counter[str]:
    """Samples by the function that was running, the innermost frame."""
    found: Counter[str] = Counter()
    for stack, count in stacks:
        found[stack[-1]] += count
    return found


def table(stacks: Sequence[tuple[Stack, int]], micros_a_pod: float, functions: int = 15) -> str:
    """Groups with their parts, then the functions themselves: share of the samples, and CPU µs a pod.

    `micros_a_pod`: what the process took for a pod in all.
    """
    by_part = parts(stacks)
    total = by_part.total()
    groups: Counter[str] = Counter()
    for part, count in by_part.items():
        groups[part.group] += count

    def row(name: str, count: int) -> str:
        return f"{name[:NAME]:<{NAME}}{100 * count / total:>7.1f} %{micros_a_pod * count / total:>9.0f}"

    lines = [f"{f'{total:,} samples':<{NAME}}{'share':>9}{'µs a pod':>9}"]
    for group, count in groups.most_common():
        lines.append(row(group, count))
        inner = [(part, each) for part, each in by_part.most_common() if part.group == group]
        if len(inner) > 1:
            lines += [row(f"    {part.detail or 'everything else'}", each) for part, each in inner]
    lines += [row("all", total), "", "functions, without what they call"]
    lines += [row(f"    {name}", count) for name, count in hottest(stacks).most_common(functions)]
    return "\n".join(lines)
