"""The requested share of the nodes: in all, by zone, and on the fullest and the emptiest nodes."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from scheduler.api.labels import ZONES
from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import CPU, MEMORY, PODS, allocatable_of
from scheduler.api.wording.spelling import spelled

EXTREMES: Final = 10
"""The number of the fullest and of the emptiest nodes that are printed."""

_FIRST: Final = (CPU, MEMORY, PODS)
_SHOWN_ZONES: Final = 12
_SHOWN_EXTREMES: Final = 3

Amounts = dict[str, int]
Document = dict[str, Any]


def utilisation(nodes: Sequence[Node], pods: Iterable[Pod]) -> Document:
    """Return {"nodes", "cordoned", "resources": amounts, "zones": {zone: amounts}, "fullest": [node], "emptiest": …}.

    Nodes that are cordoned are counted, and that is all: nothing of theirs is to be had. amounts: {resource:
    {"requested", "allocatable"}}, in the units of `Pod.requests`; node: {"name", "resource", "requested",
    "allocatable"}, by the resource of which it has the least share left.
    """
    cordoned = sum(node.spec.unschedulable for node in nodes)
    nodes = [node for node in nodes if not node.spec.unschedulable]
    requested: dict[str, Amounts] = {node.name: defaultdict(int) for node in nodes}
    for pod in pods:
        own = requested.get(pod.node_name)
        if own is not None and not pod.is_terminated:
            for resource, amount in pod.requests.items():
                own[resource] += amount
            own[PODS] += 1
    total, zones = _Sum(), defaultdict[str, _Sum](_Sum)
    by_share = []
    for node in nodes:
        offered, taken = allocatable_of(node.status.allocatable), requested[node.name]
        total.add(offered, taken)
        zone = next((node.labels[key] for key in ZONES if key in node.labels), None)
        if zone is not None:
            zones[zone].add(offered, taken)
        share, resource = max(
            ((_share(taken.get(name, 0), amount), name) for name, amount in offered.items() if amount or name in taken),
            default=(0.0, PODS),
        )
        by_share.append((share, node.name, resource, taken.get(resource, 0), offered.get(resource, 0)))
    by_share.sort(key=lambda each: (-each[0], each[1]))
    emptiest = sorted(by_share, key=lambda each: each[:2])[:EXTREMES]
    return {
        "nodes": len(nodes),
        "cordoned": cordoned,
        "resources": total.document(),
        "zones": {zone: zones[zone].document() for zone in sorted(zones)},
        "fullest": [_node(*each[1:]) for each in by_share[:EXTREMES]],
        "emptiest": [_node(*each[1:]) for each in emptiest],
    }


def _share(requested: int, allocatable: int) -> float:
    """Of a resource that a node had once, as devices whose plugin has ended, more than all may be taken."""
    return requested / allocatable if allocatable else math.inf if requested else 0.0


def _node(name: str, resource: str, requested: int, allocatable: int) -> Document:
    return {"name": name, "resource": resource, "requested": requested, "allocatable": allocatable}


class _Sum:
    def __init__(self) -> None:
        self._offered: Amounts = defaultdict(int)
        self._taken: Amounts = defaultdict(int)

    def add(self, offered: Mapping[str, int], taken: Mapping[str, int]) -> None:
        for resource, amount in offered.items():
            self._offered[resource] += amount
            self._taken[resource] += taken.get(resource, 0)

    def document(self) -> dict[str, Document]:
        """Return the usage of each resource that nodes offer, the usual resources first."""
        names = [name for name in self._offered if self._offered[name]]
        names.sort(key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
        return {name: {"requested": self._taken[name], "allocatable": self._offered[name]} for name in names}


def rows(before: Document, after: Document) -> Iterator[tuple[str, str, str]]:
    yield "UTILISATION", "BEFORE", "AFTER"
    yield "nodes", _nodes(before), _nodes(after)
    names = dict.fromkeys((*before["resources"], *after["resources"]))
    for name in sorted(names, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)):
        yield name, _spelled(name, before["resources"].get(name)), _spelled(name, after["resources"].get(name))
    zones = sorted({*before["zones"], *after["zones"]})
    for zone in zones[:_SHOWN_ZONES]:
        yield f"zone {zone}", _of_zone(before["zones"].get(zone)), _of_zone(after["zones"].get(zone))
    if len(zones) > _SHOWN_ZONES:
        yield f"... and {len(zones) - _SHOWN_ZONES} more zones", "", "(all of them with -o json)"
    for which in ("fullest", "emptiest"):
        for place in range(min(_SHOWN_EXTREMES, max(len(before[which]), len(after[which])))):
            head = f"{which} node" if place == 0 else ""
            yield head, _extreme(before[which], place), _extreme(after[which], place)


def _nodes(document: Document) -> str:
    cordoned = f", and {document['cordoned']:,} cordoned" if document["cordoned"] else ""
    return f"{document['nodes']:,}{cordoned}"


def _spelled(resource: str, amount: Mapping[str, int] | None) -> str:
    if amount is None:
        return "-"
    requested, allocatable = amount["requested"], amount["allocatable"]
    return f"{spelled(resource, requested)} of {spelled(resource, allocatable)} ({_percent(requested, allocatable)})"


def _of_zone(amounts: Mapping[str, Mapping[str, int]] | None) -> str:
    shown = [(name, (amounts or {}).get(name)) for name in _FIRST]
    return ", ".join(f"{name} {_percent(**each)}" for name, each in shown if each is not None) or "-"


def _extreme(nodes: Sequence[Document], place: int) -> str:
    if place >= len(nodes):
        return "-"
    node = nodes[place]
    return f"{node['name']}: {node['resource']} {_percent(node['requested'], node['allocatable'])}"


def _percent(requested: int, allocatable: int) -> str:
    share = 100 * _share(requested, allocatable)
    return f"{share:.1f} %" if math.isfinite(share) else "more than all"
