"""The nodes as the page draws them: columns, and after these only the rows that changed.

    {"resources": [name], "size": rows}                            what follows is all of it
    {"rows": [row], "names": [name or null], "zones": [zone], "zone": [index of it], "flags": [bits],
     "use": {resource: [thousandths, -1: none is offered]}}        facts and use of these rows; null: no longer a node
    {"rows": [row], "use": {resource: […]}}                        their use alone

Messages have the rows as they are at that moment, so the later of two messages is right.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from scheduler.api.pods.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from scheduler.framework.nodes.change_log import LogReader
from scheduler.framework.nodes.nodes import Aspect, Rows
from scheduler.serve.page.messages import cut, event
from scheduler.state.nodes.node_table import NodeTable

ROWS_AT_ONCE: Final = 500
"""The number of nodes in one message: a millisecond of work."""

USES_AT_ONCE: Final = 2000
"""The same where their use is all that changed."""

MAX_FURTHER: Final = 5
"""Resources in addition to cpu, memory and pods: those that most nodes offer."""

MAX_USE: Final = 9999
ZONE: Final = "topology.kubernetes.io/zone"

CORDONED: Final = 1
TAINTED: Final = 2
"""With a taint that keeps pods away."""
NOT_READY: Final = 4

_NOT_READY: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_FACTS: Final = (Aspect.NAME, Aspect.ALLOCATABLE, Aspect.LABELS, Aspect.TAINTS)


class NodeReader:
    """The nodes as one reader has seen them."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._facts = LogReader([table.change_log(aspect) for aspect in _FACTS])
        self._use = LogReader([table.change_log(Aspect.REQUESTED)])
        self._resources = shown_resources(table)

    def whole(self) -> Iterator[bytes]:
        """Yield everything, in messages; between two of them anything may change."""
        self._resources = shown_resources(self._table)
        size = self._table.size
        yield event("reset", {"resources": self._resources, "size": size})
        for first in range(0, size, ROWS_AT_ONCE):
            yield self._message(range(first, min(first + ROWS_AT_ONCE, size)))

    def changes(self) -> Iterator[bytes] | None:
        """Return the rows that changed since the last call; None if it could be any: `whole` is due.

        Anything may change between two messages; the next call reports it.
        """
        facts, use = self._facts.stale_rows(), self._use.stale_rows()
        if facts is None or use is None or (facts and shown_resources(self._table) != self._resources):
            return None
        return self._changed(sorted(facts), sorted(set(use).difference(facts)))

    def _changed(self, facts: Sequence[int], use: Sequence[int]) -> Iterator[bytes]:
        for first in range(0, len(facts), ROWS_AT_ONCE):
            yield self._message(facts[first : first + ROWS_AT_ONCE])
        for first in range(0, len(use), USES_AT_ONCE):
            rows = use[first : first + USES_AT_ONCE]
            yield event("use", {"rows": rows, "use": self._used(rows)})

    def _message(self, rows: Sequence[int]) -> bytes:
        table = self._table
        names, in_use = table.names(), table.in_use
        zones: dict[str, int] = {}
        shown: list[str | None] = []
        zone_of, flags = [], []
        for row in rows:
            if not in_use[row]:
                shown.append(None)
                zone_of.append(0)
                flags.append(0)
                continue
            node = table.info(row)
            zone = cut((node.labels or {}).get(ZONE, ""))
            shown.append(cut(names[row]))
            zone_of.append(zones.setdefault(zone, len(zones)))
            bits = CORDONED if node.unschedulable else 0
            for taint in node.taints:
                if taint.effect != "PreferNoSchedule":
                    bits |= NOT_READY if taint.key in _NOT_READY else TAINTED
            flags.append(bits)
        facts: dict[str, Any] = {"rows": list(rows), "names": shown, "zones": list(zones), "zone": zone_of}
        return event("nodes", {**facts, "flags": flags, "use": self._used(rows)})

    def _used(self, rows: Sequence[int]) -> dict[str, list[int]]:
        return {resource: _use(self._table, resource, np.asarray(rows, np.intp)) for resource in self._resources}


def shown_resources(table: NodeTable) -> list[str]:
    """cpu, memory, pods, and a few of the others that nodes offer, the most common first."""
    others = {name: count for name, count in table.offered.items() if name not in _COMMON}
    further = sorted(others, key=lambda name: (-others[name], name))
    return [CPU, MEMORY, PODS, *further[:MAX_FURTHER]]


def _use(table: NodeTable, resource: str, rows: Rows) -> list[int]:
    """The requested part of the amounts of these rows, in thousandths."""
    if resource == PODS:
        offered, asked = table.allowed_pods[rows], table.pod_count[rows]
    else:
        offered, asked = table.allocatable(resource)[rows], table.requested(resource)[rows]
    share = np.divide(asked, offered, out=np.full(len(rows), -0.001), where=offered > 0)
    found: list[int] = (share * 1000).clip(-1, MAX_USE).astype(np.int64).tolist()
    return found


_COMMON: Final = frozenset({CPU, MEMORY, PODS, EPHEMERAL_STORAGE, "hugepages-2Mi", "hugepages-1Gi"})
