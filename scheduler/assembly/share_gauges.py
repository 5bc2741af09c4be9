"""Gauges of the cluster's shares, on the leading replica. Without shares there are no series, and nothing runs.

The shares are read every half a minute, in slices of a few milliseconds; a scrape would have to read them at once. With
50,000 waiting pods and 1,000 shares that takes most of a second: then the interval grows, to keep the cost low.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from scheduler.engine.engine import Engine
from scheduler.explain.documents import ShareReport, SharesSeen
from scheduler.framework.events import CLUSTER_QUEUE
from scheduler.process.metrics import Metrics, Samples

PAUSE: Final = 30.0
"""Seconds between two looks, at least."""

PART: Final = 0.005
"""Of the time of a CPU that looks may take."""

MAX_SHARES: Final = 500
MAX_RESOURCES: Final = 10
"""That are shown, so many of each share: a metric has 5,000 series at most. They are the first of the tree."""


class ShareGauges:
    """Looks at shares, and keeps what it saw."""

    def __init__(self, engine: Engine, metrics: Metrics) -> None:
        self._engine = engine
        self._shares: Sequence[ShareReport] = ()
        self._below: Counter[tuple[str, str, str]] = Counter()
        metrics.watch_gauge(
            "loadmaster_share_guaranteed",
            "What is guaranteed to a share with all below it; cpu in cores.",
            ("source", "share", "resource"),
            lambda: self._amounts("guaranteed"),
        )
        metrics.watch_gauge(
            "loadmaster_share_used",
            "What pods use of a share with all below it; cpu in cores.",
            ("source", "share", "resource"),
            lambda: self._amounts("used"),
        )
        metrics.watch_gauge(
            "loadmaster_share_borrowed",
            "What a share uses beyond what is guaranteed to it; cpu in cores.",
            ("source", "share", "resource"),
            lambda: self._amounts("borrowed"),
        )
        metrics.watch_gauge(
            "loadmaster_share_lent",
            "What others use of what is guaranteed to a share; cpu in cores.",
            ("source", "share", "resource"),
            lambda: self._amounts("lent"),
        )
        metrics.watch_gauge(
            "loadmaster_share_pending",
            "What the pods without a node ask for that count against the share itself; cpu in cores.",
            ("source", "share", "resource"),
            self._pending,
        )
        metrics.watch_gauge(
            "loadmaster_share_pending_pods",
            "Pods without a node that count against a share, or against one below it.",
            ("source", "share"),
            lambda: (((each.source, each.name), each.waiting) for each in self._shares),
        )
        metrics.watch_gauge(
            "loadmaster_share_weight",
            "The weight of a share.",
            ("source", "share"),
            lambda: (((each.source, each.name), each.weight) for each in self._shares),
        )

    async def run(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Look for ever."""
        while True:
            began = time.process_time()
            await self.look()
            await sleep(max(PAUSE, (time.process_time() - began) / PART))

    async def look(self) -> None:
        """Look at the shares as they are now, for all who listen."""
        shares: Sequence[ShareReport] = ()
        if self._engine.shares.are_on:
            from scheduler.explain.shares import report_on_shares

            await self._engine.pauses.ready()  # what is tried out for a group of pods is not there
            shares = (await report_on_shares(self._engine)).shares
        if SharesSeen in self._engine.stream.listeners and (shares or self._shares):
            self._engine.stream.publish(SharesSeen(shares))
        self._shares, self._below = shares[:MAX_SHARES], _waiting_below(shares)

    def _amounts(self, amount: str) -> Samples:
        for share in self._shares:
            for each in share.resources[:MAX_RESOURCES]:
                labels = share.source, share.name, each.resource
                yield labels, in_cores(share.source, each.resource, getattr(each, amount))

    def _pending(self) -> Samples:
        for share in self._shares:
            for each in share.resources[:MAX_RESOURCES]:
                below = self._below.get((share.source, share.name, each.resource), 0)
                labels = share.source, share.name, each.resource
                yield labels, in_cores(share.source, each.resource, each.waiting - below)


def in_cores(source: str, resource: str, amount: float) -> float:
    """Return an amount as Kubernetes' metrics have it: cpu in cores. Those of ClusterQueues are `flavor/cpu`."""
    name = resource.partition("/")[2] if source == CLUSTER_QUEUE else resource
    return amount / 1000 if name == "cpu" else amount


def _waiting_below(shares: Sequence[ShareReport]) -> Counter[tuple[str, str, str]]:
    """Return source, share and resource → what the pods of the shares right below it ask for, with all below these."""
    found: Counter[tuple[str, str, str]] = Counter()
    for share in shares:
        for each in share.resources:
            found[share.source, share.parent, each.resource] += each.waiting
    return found
