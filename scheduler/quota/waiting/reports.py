"""Says which shares cannot be used, and where more is guaranteed than the cluster has.

    shares change ─► a second later: is anything wrong with one that was not said yet? ─► Event at its object, log

A share of a plugin's arguments has no object: it is in the log alone. All of them are counted in a metric.
"""

import logging
from collections.abc import Iterator
from itertools import islice
from typing import Final

from scheduler.api.devices import IMPLICIT_PREFIX
from scheduler.api.pods.requests import PODS
from scheduler.cycle.writers import ObjectEvents
from scheduler.framework.shares import ShareKey
from scheduler.process.metrics import Samples
from scheduler.process.reporting import Said
from scheduler.quota.adapters import AdaptedShares
from scheduler.quota.ledger import Ledger
from scheduler.state.nodes.node_table import NodeTable

MAX_EVENTS: Final = 100
"""At once; the others come the next time."""

_logger = logging.getLogger(__name__)


class ShareReports:
    """Reports the problems of shares."""

    def __init__(self, shares: AdaptedShares, table: NodeTable, events: ObjectEvents) -> None:
        self._shares = shares
        self._table = table
        self._events = events
        self._said = Said[ShareKey]()
        """The problem of each share that has one."""
        self._exceeding: frozenset[tuple[str, str]] = frozenset()

    def report(self) -> None:
        """Report new problems."""
        wrong = {
            ShareKey(ledger.source, name): (ledger, problem)
            for ledger in self._shares.ledgers
            for name, problem in ledger.problems.items()
        }
        self._said.keep(wrong.keys())
        new = ((key, *found) for key, found in wrong.items() if self._said.is_new(key, found[1]))
        for key, ledger, problem in islice(new, MAX_EVENTS):
            self._report(key, ledger, problem)
        exceeding = {(source, resource): amount for (source, resource), amount in self.excess() if amount > 0}
        for (source, resource), amount in exceeding.items():
            if (source, resource) not in self._exceeding:
                fields = {"source": source, "resource": resource, "amount": amount}
                _logger.warning("More is guaranteed to shares than the cluster has", extra=fields)
        self._exceeding = frozenset(exceeding)

    def excess(self) -> Samples:
        """Yield source and resource, and how much more is guaranteed to all shares than nodes have; at least 0."""
        for ledger in self._shares.ledgers:
            roots = [name for name, share in ledger.tree.shares.items() if not share.parent]
            for resource, amount in _guaranteed(ledger, roots):
                yield (ledger.source, resource), max(0, amount - self._there(resource))

    def problems(self) -> Samples:
        """Yield each source, and how many of its shares cannot be used."""
        for ledger in self._shares.ledgers:
            yield (ledger.source,), len(ledger.problems)

    def _there(self, resource: str) -> int:
        column = self._table.allowed_pods if resource == PODS else self._table.allocatable(resource)
        return int(column[self._table.in_use].sum())

    def _report(self, key: ShareKey, ledger: Ledger, problem: str) -> None:
        _logger.warning("A share cannot be used", extra={"share": str(key), "source": key.source, "err": problem})
        found = ledger.adapter.object_of(key.name)
        if found is not None:
            resource, metadata = found
            note = f"the quota is not used: {problem}"
            self._events.object_event(resource, metadata, "InvalidQuota", note)


def _guaranteed(ledger: Ledger, roots: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the resources that nodes have, and how much of each is guaranteed to all shares together."""
    for resource in sorted(ledger.tree.resources):
        name, amount = ledger.adapter.on_nodes(resource), sum(ledger.tree.quota(root, resource) for root in roots)
        if name and amount and not name.startswith(IMPLICIT_PREFIX):  # devices are no resource of nodes
            yield name, amount
