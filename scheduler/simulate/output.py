"""The result of a simulation, as text for people and as JSON for programs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile
from types import MappingProxyType
from typing import Any, Final

import orjson
from msgspec import to_builtins

from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import aligned, printable
from scheduler.simulate.node_evaluator import NodeVerdicts
from scheduler.simulate.what_if.screen import lines_of

MAX_PODS: Final = 1000
"""Rows in the table of pods; the JSON document has all of them."""

MAX_PENDING: Final = 20
"""More pods without a node are shown by workload and reason."""

MAX_NODES: Final = 30
"""Rows in the table of nodes under each pod with `--explain`; the JSON document has all of them."""

Result = Mapping[str, Any]
"""The JSON document, or one pod of it: see `scheduler.simulate.engine`."""


def as_json(document: Result) -> Iterator[str]:
    """Yield the whole document, piece by piece: what `--explain` says of thousands of nodes is long."""
    head = {key: value for key, value in document.items() if key != "pods"}
    yield "{\n" + "".join(f"  {_pretty(key)}: {_pretty(value)},\n" for key, value in head.items()) + '  "pods": ['
    for number, pod in enumerate(document["pods"]):
        yield f"{',' if number else ''}\n    {_pretty(pod, '    ')}"
    yield "\n  ]\n}\n" if document["pods"] else "]\n}\n"


def _pretty(value: Any, indentation: str = "  ") -> str:
    text = orjson.dumps(value, default=_plain, option=orjson.OPT_INDENT_2).decode()
    return text.replace("\n", f"\n{indentation}")


def _plain(value: Any) -> Any:
    return value.as_dict() if isinstance(value, NodeVerdicts) else to_builtins(value)


def workloads_of(pods: Iterable[Pod]) -> dict[tuple[str, str], str]:
    """Return namespace and name of each pod → the workload that it belongs to, or its own name."""
    found = {}
    for pod in pods:
        owner = next((each for each in pod.metadata.owner_references or () if each.controller), None)
        found[pod.namespace, pod.name] = str(pod) if owner is None else f"{owner.kind} {pod.namespace}/{owner.name}"
    return found


def as_text(document: Result, workloads: Mapping[tuple[str, str], str] = MappingProxyType({}), *, explain: bool) -> str:
    """Return how many pods were placed and a table of them, and with `explain` a table of nodes for each.

    Many pending pods are shown by workload and reason.
    """
    pods: Sequence[Result] = document["pods"]
    lines: list[str] = []
    reported = document.get("whatIf")
    if pods or reported is None:
        placed = sum(pod["node"] is not None for pod in pods)
        lines.append(f"{placed} of {len(pods)} pods placed" if pods else "nothing to place")
    listed = pods
    if explain:
        for pod in pods[:MAX_PODS]:
            name = printable(f"{_name(pod)}: {_outcome(pod)}")
            lines += ["", name, *_indented(_node_table(pod.get("nodes") or {}))]
    else:
        pending = [pod for pod in pods if pod["node"] is None]
        if len(pending) > MAX_PENDING:
            lines += ["", *_pending_table(pending, workloads)]
            listed = [pod for pod in pods if pod["node"] is not None]
        lines += ["", *aligned([("POD", "NODE", "MESSAGE"), *map(_row, listed[:MAX_PODS])])] if listed else []
    if len(listed) > MAX_PODS:
        lines.append(f"... and {len(listed) - MAX_PODS} more pods (all of them with -o json)")
    lines += _group_table(document.get("groups", ()))
    lines += _faults(pods)
    if reported is not None:
        below = dropwhile(lambda line: not line, map(printable, lines_of(reported)))
        lines += ["", *below] if pods else below
    return "\n".join(lines)


def _pending_table(pods: Iterable[Result], workloads: Mapping[tuple[str, str], str]) -> list[str]:
    """The pods that found no node, by workload and reason."""
    alike: dict[tuple[str, str], list[Result]] = {}
    for pod in pods:
        workload = workloads.get((pod["namespace"], pod["name"]), _name(pod))
        alike.setdefault((workload, pod["message"] or _message(pod)), []).append(pod)
    rows = [("PENDING", "OF", "MESSAGE")]
    for (workload, message), of_it in list(alike.items())[:MAX_PODS]:
        makers = sum(bool(pod["victims"]) for pod in of_it)
        preempts = f"; {makers} would preempt others" if makers else ""
        rows.append((f"{len(of_it)}", workload, f"{message}{preempts}"))
    more = len(alike) - MAX_PODS
    return [*aligned(rows), *([f"... and {more} more (all pods with -o json)"] if more > 0 else [])]


def _faults(pods: Iterable[Result]) -> Iterator[str]:
    """How plugins failed, once for each place in their code."""
    reported = set()
    for pod in pods:
        fault = pod.get("fault")
        if fault is not None and (place := (fault["plugin"], fault["extensionPoint"], fault["at"])) not in reported:
            reported.add(place)
            yield f"\nplugin {fault['plugin']} failed at {fault['extensionPoint']} for {_name(pod)} ({fault['at']})"
            yield from _indented(fault["traceback"].splitlines())


def _name(pod: Result) -> str:
    return f"{pod['namespace']}/{pod['name']}"


def _row(pod: Result) -> tuple[str, str, str]:
    name = f"{_name(pod)} (for {pod['replaces']} of {pod['evictedFrom']})" if "replaces" in pod else _name(pod)
    return name, pod["node"] or "-", _message(pod)


def _group_table(groups: Sequence[Result]) -> list[str]:
    if not groups:
        return []
    rows = [
        (
            f"{each['namespace']}/{each['name']}",
            f"{each['scheduled']} of {each['members']}",
            each["fits"] or "-",
            each["text"] or each["state"],
        )
        for each in groups[:MAX_PODS]
    ]
    more = (
        [f"... and {len(groups) - MAX_PODS} more groups (all of them with -o json)"] if len(groups) > MAX_PODS else []
    )
    return ["", *aligned([("GROUP", "PODS", "FITS", "MESSAGE"), *rows]), *more]


def _outcome(pod: Result) -> str:
    return f"placed on {pod['node']}" if pod["node"] else _message(pod) or "not placed"


def _message(pod: Result) -> str:
    parts = [pod["message"]] if pod["message"] else []
    if pod.get("gated"):
        parts.append(f"held back by {pod['gated']}")
    if pod["nominatedNode"] and not pod["node"] and "permit" not in pod:
        parts.append(f"nominated to {pod['nominatedNode']}")
    if pod["victims"]:
        parts.append(f"would preempt {', '.join(pod['victims'])}")
    return "; ".join(parts)


def _node_table(nodes: Mapping[str, Result]) -> list[str]:
    """Feasible nodes first, the best on top; then the rest by name."""
    if not nodes:
        return []
    ordered = sorted(nodes.items(), key=lambda node: (node[1]["code"] != "Success", -node[1].get("total", 0), node[0]))
    plugins = list(dict.fromkeys(plugin for _, node in ordered for plugin in node.get("scores") or ()))
    rows = [("NODE", "VERDICT", "TOTAL", *plugins)]
    for name, node in ordered[:MAX_NODES]:
        if node["code"] == "Success":
            scores = node.get("scores") or {}
            rows.append((name, "fits", str(node.get("total", "")), *(str(scores.get(p, "")) for p in plugins)))
        else:
            rows.append((name, f"{node['code']} by {node['plugin']}: {', '.join(node['reasons'])}"))
    lines = aligned(rows)
    if len(nodes) > MAX_NODES:
        lines.append(f"... and {len(nodes) - MAX_NODES} more nodes (all of them with -o json)")
    return lines


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
