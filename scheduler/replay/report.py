"""The result of a replay as text."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from scheduler.api.wording.text import counted, printable
from scheduler.replay.comparison import MAX_DIFFERENCES

MAX_PRINTED: Final = 20
"""Differences; -o json has MAX_DIFFERENCES."""

Document = Mapping[str, Any]


def lines_of(document: Document) -> Iterator[str]:
    """Yield the lines, without control characters."""
    return map(printable, _lines(document))


def _lines(document: Document) -> Iterator[str]:
    trace = document["trace"]
    at = datetime.fromtimestamp(trace["recordedAt"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield f"{trace['file']}: {trace['seconds']} s of Loadmaster {trace['version']}, recorded {at}"
    if trace["ended"]:
        yield f"It ended because {trace['ended']}."
    for note in document["notes"]:
        yield f"Note: {note}."
    yield f"{counted(document['nodes'], 'node')} and {counted(document['pods'], 'pod')} at its end"
    decisions = f"{counted(document['decisions'], 'decision')}, {document['perSecond']:,} a second"
    if "carriedOn" in document:
        yield from _carried_on(document["carriedOn"])
    if not document["different"]:
        yield f"{decisions}: all as recorded"
        return
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in document["kinds"].items() if kind != "same")
    different = document["different"]
    yield f"{decisions}: {different:,} {'differs' if different == 1 else 'differ'}: {kinds}"
    for difference in document["differences"][:MAX_PRINTED]:
        yield ""
        yield from _difference(difference)
    more = document["different"] - MAX_PRINTED
    if more > 0:
        yield ""
        yield f"and {more:,} more; -o json has up to {MAX_DIFFERENCES:,}"


def _carried_on(found: Document) -> Iterator[str]:
    """The cluster as recorded and as another configuration would have left it, in two columns."""
    then, now = found["then"], found["now"]
    yield "Left to itself, the configuration would have come to:"
    yield f"  {'':30}{'recorded':>12}{'now':>12}"
    for key, name in (("pods", "pods on nodes"), ("pending", "pods that wait"), ("nodesUsed", "nodes with pods")):
        yield f"  {name:30}{then[key]:>12,}{now[key]:>12,}"
    for resource in ("cpu", "memory"):
        shares = [_percent(each[resource]["requested"], each[resource]["ofUsed"]) for each in (then, now)]
        yield f"  {resource + ' of these, requested':30}{shares[0]:>12}{shares[1]:>12}"
    if found["evicted"]:
        yield f"  {counted(found['evicted'], 'pod')} would have been evicted to make room"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _difference(found: Document) -> Iterator[str]:
    yield f"{found['pod']}, attempt {found['attempt']}, at {found['seconds']} s: {found['kind']}"
    yield f"  then: {_decision(found['then'])}"
    yield f"  now:  {_decision(found['now'])}"
    why = found["why"]
    for node, refusal in why.get("refused", {}).items():
        yield f"  {node} is refused by {refusal['plugin'] or 'no plugin by name'}: {refusal['message']}"
    scores = why.get("scores", {})
    if scores:
        first, second = scores
        yield f"  scores of {first} and {second}: {sum(scores[first].values())} and {sum(scores[second].values())}"
        for plugin, of_first in scores[first].items():
            of_second = scores[second].get(plugin, 0)
            if of_first != of_second:
                yield f"    {plugin}: {of_first} and {of_second}"
    if why.get("tie"):
        yield "  both are the best: the tie is broken in another way"
    if why.get("error"):
        yield f"  {why['error']}"


def _decision(decision: Document) -> str:
    if "node" in decision:
        return f"placed on {decision['node']}"
    if "error" in decision:
        return f"error: {decision['error']}"
    nominated = f" (room is made on {decision['nominated']})" if decision.get("nominated") else ""
    return f"not placed: {decision['message']}{nominated}"
