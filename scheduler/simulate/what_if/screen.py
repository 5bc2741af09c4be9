"""The answers as text for people."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from scheduler.api.wording.text import aligned, counted, some_of
from scheduler.explain.screen import PLAIN, explained
from scheduler.simulate.what_if.utilisation import rows

MAX_NODES: Final = 30
"""Rows in the table of nodes with copies; the JSON document has all of them."""

_MAX_NAMES: Final = 5

Document = Mapping[str, Any]


def lines_of(document: Document) -> Iterator[str]:
    if "added" in document:
        names, like, without = (document["added"][key] for key in ("nodes", "like", "without"))
        yield f"added {counted(len(names), 'node')} like {like}: {some_of(names, _MAX_NAMES)}"
        if without:
            left = ", ".join(f"{number:,} {kind}" for kind, number in sorted(without.items()))
            yield f"  without what is on {like} alone: {left}"
    if "quota" in document:
        yield from _quota(document["quota"])
    for what in ("removed", "drained"):
        for each in document.get(what, ()):
            yield from _emptied(what, each)
    if "copies" in document:
        yield ""
        yield from _copies(document["copies"])
    yield ""
    yield from aligned(list(rows(document["utilisation"]["before"], document["utilisation"]["after"])))


def _quota(document: Document) -> Iterator[str]:
    for each in document["changes"]:
        before = "nothing" if each["before"] is None else each["before"]
        yield f"{each['field']} of {each['share']}: {each['after']} {each['resource']} instead of {before}"
    outcomes = (("start", "would start"), ("wait", "would wait"), ("victims", "would be evicted"))
    for key, outcome in outcomes:
        if document[key]:
            yield f"  {counted(len(document[key]), 'pod')} {outcome}: {some_of(document[key], _MAX_NAMES)}"
    if not any(document[key] for key, _ in outcomes):
        yield "  no pod would start or wait for it"


def _emptied(what: str, document: Document) -> Iterator[str]:
    come = document["evicted"] - len(document["lost"])
    found = f", {document['placed']} of {counted(come, 'replacement')} found a node" if come else ""
    gone = "evicted" if what == "drained" else "gone with it"
    yield f"{what} {document['node']}: {counted(document['evicted'], 'pod')} {gone}{found}"
    if document["lost"]:
        yield f"  lost, as no controller makes them anew: {some_of(document['lost'], _MAX_NAMES)}"
    for each in document["refused"]:
        yield f"  cannot be evicted: {each['pod']}: {each['why']}"
    if document["stays"]:
        stays = [f"{each['pod']} ({each['why']})" for each in document["stays"]]
        yield f"  left there: {some_of(stays, _MAX_NAMES)}"
    if what == "drained":
        yield f"  {document['command']}"


def _copies(document: Document) -> Iterator[str]:
    placed, asked, size = document["placed"], document["asked"], document.get("groupSize")
    each = f", each a group of {counted(size, 'pod')}" if size else ""
    if asked is None:
        more = ", and perhaps more: a simulation stops there" if document.get("stopped") else ""
        yield f"{placed:,} {'copy' if placed == 1 else 'copies'} of {document['of']} fit{each}{more}"
    else:
        yield f"{placed:,} of {asked:,} copies of {document['of']} fit{each}"
    if placed:
        nodes = list(document["nodes"].items())
        yield from aligned(
            [("NODE", "PODS" if size else "COPIES"), *((name, f"{number:,}") for name, number in nodes[:MAX_NODES])]
        )
        if len(nodes) > MAX_NODES:
            yield f"... and {len(nodes) - MAX_NODES:,} more nodes (all of them with -o json)"
    waiting = document.get("waiting")
    if waiting is not None:
        others = f" and {waiting['number'] - 1:,} more" if waiting["number"] > 1 else ""
        yield f"on hold: {waiting['name']}{others}, {waiting['message']}"
    following = document.get("next")
    if following is not None:
        yield ""
        if "group" in following:
            group = following["group"]
            yield f"the next one, {group['namespace']}/{group['name']}: {group['text'] or group['state']}"
            if following["explanation"].nodes and following["explanation"].nodes.fitting:
                return  # by itself it fits
            yield f"  of its pods, {following['name']}:"
        else:
            yield f"the next one, {following['name']}: {_why(following)}"
        yield from explained(following["explanation"], PLAIN)


def _why(following: Document) -> str:
    parts = [following["message"]] if following["message"] else []
    if following.get("gated"):
        parts.append(f"held back by {following['gated']}")
    if following["victims"]:
        parts.append(f"would preempt {some_of(following['victims'], _MAX_NAMES)} on {following['nominatedNode']}")
    return "; ".join(parts) or "not placed"
