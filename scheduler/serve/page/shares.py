"""The shares of the cluster as the page shows them: the tree, and for an hour its guarantee, use and wants.

The samples are those that the gauges take, so the page reads nothing for itself. Without shares there are none.

    the gauges look ─► SharesSeen ─► (the page's next second) sample ─► the message `shares`: there is something new
    a page that shows the shares asks for the rows that it shows, and for the history of the one that is chosen
"""

import math
import time
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import to_builtins

from scheduler.api.wording.text import to_json
from scheduler.explain.documents import ShareAmounts, ShareReport, SharesSeen
from scheduler.process.time_slice import TimeSlice
from scheduler.runtime.event_stream import EventStream
from scheduler.serve.page.about import About
from scheduler.serve.page.messages import MAX_MESSAGE, cut, event
from scheduler.serve.port.answers import JSON, Answer

KEPT: Final = 120
"""Samples: an hour, since the gauges look every half a minute; more where their looks are further apart."""

SLOTS: Final = KEPT + 1
"""Of a ring: the one that is being written is not read."""

MAX_SERIES: Final = 5_000
"""Resources of shares, the first of the tree, of which samples are kept: 1.5 KB each, 8 MB of all."""

MAX_RESOURCES: Final = 10
"""That are shown of a share."""

AT_ONCE: Final = 50
"""Shares in an answer."""

AMOUNTS: Final = ("guaranteed", "used", "waiting")
"""That are kept; in a ring one after the other."""


class ShareHistory:
    """The findings of all looks: the last one, and samples of those before."""

    def __init__(self, stream: EventStream, now: Callable[[], float] = time.time) -> None:
        """`now`: seconds since 1970."""
        self._now = now
        self.shares: Sequence[ShareReport] = ()
        self.message = b""
        """Empty until there are shares."""
        self._found: Sequence[ShareReport] | None = None
        self._at: deque[float] = deque(maxlen=KEPT)
        self._samples = 0
        self._rings: dict[tuple[str, str], dict[str, array[float]]] = {}
        """Source and name of a share → resource → ring."""
        stream.subscribe({SharesSeen: self._note})

    def _note(self, seen: SharesSeen) -> None:
        self._found = seen.shares

    async def look(self) -> bytes:
        """Take a sample if the gauges have looked; return the message, empty if they have not."""
        if self._found is None:
            return b""
        shares, self._found, at = self._found, None, round(self._now(), 1)
        slot, time_slice = self._samples % SLOTS, TimeSlice()
        here = {(share.source, share.name) for share in shares}
        for gone in self._rings.keys() - here:
            del self._rings[gone]
        left = MAX_SERIES - sum(map(len, self._rings.values()))
        for share in shares:
            rings = self._rings.get((share.source, share.name), {})
            for ring in rings.values():  # those of which a share has nothing are not reported
                ring[slot * len(AMOUNTS) : (slot + 1) * len(AMOUNTS)] = _NOTHING
            for each in share.resources[:MAX_RESOURCES]:
                if each.resource not in rings and left > 0 and len(rings) < MAX_RESOURCES:
                    rings[each.resource] = array("f", (math.nan,)) * (SLOTS * len(AMOUNTS))
                    left -= 1
                if (found := rings.get(each.resource)) is not None:
                    sample = array("f", (each.guaranteed, each.used, each.waiting))
                    found[slot * len(AMOUNTS) : (slot + 1) * len(AMOUNTS)] = sample
            if rings:
                self._rings[share.source, share.name] = rings
            await time_slice.give_way()
        self._samples += 1
        self._at.append(at)
        self.shares = shares
        self.message = event("shares", {"at": at, "count": len(shares)})
        return self.message

    async def rows(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return AT_ONCE shares from the `first` on, of those whose names contain `filter`."""
        wanted, first = query.get("filter", "").casefold(), query.get("first", "")
        found = [share for share in self.shares if wanted in share.name.casefold()] if wanted else self.shares
        start = int(first) if first.isdecimal() and len(first) < 7 else 0
        start = min(start, max(0, len(found) - 1)) // AT_ONCE * AT_ONCE
        shown = [_row(share) for share in found[start : start + AT_ONCE]]
        return {"count": len(found), "first": start, "atOnce": AT_ONCE, "shares": shown}

    async def past(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the samples of the share `name` of a `source`, the oldest first; none if there is no such share."""
        rings = self._rings.get((query.get("source", ""), query.get("name", "")), {})
        slots = [number % SLOTS for number in range(self._samples - len(self._at), self._samples)]
        resources = [
            {
                "resource": cut(resource),
                **{
                    name: [_known(ring[slot * len(AMOUNTS) + place]) for slot in slots]
                    for place, name in enumerate(AMOUNTS)
                },
            }
            for resource, ring in rings.items()
        ]
        return {"at": list(self._at), "resources": resources}

    def pages(self, path: str, about: About) -> dict[str, Callable[[Mapping[str, str]], Any]]:
        """Return where rows and samples are served below `path`, and what answers there."""

        def page(of: Callable[[Mapping[str, str]], Any]) -> Callable[[Mapping[str, str]], Any]:
            async def answer(query: Mapping[str, str]) -> Answer:
                return Answer(200, to_json(await of(query)) + b"\n", JSON, headers=about.headers)

            return answer

        return {f"{path}shares": page(self.rows), f"{path}share": page(self.past)}


_NOTHING: Final = array("f", (0.0,) * len(AMOUNTS))


def _known(value: float) -> int | None:
    """Return a sample; None of a time before the share had the resource."""
    return None if math.isnan(value) else int(value)


def _row(share: ShareReport) -> dict[str, Any]:
    return {
        "name": cut(share.name),
        "source": cut(share.source),
        "parent": cut(share.parent),
        "depth": share.depth,
        "waiting": share.waiting,
        "standing": to_builtins(share.standing),
        "problem": cut(share.problem, MAX_MESSAGE),
        "resources": [_amounts(each) for each in share.resources[:MAX_RESOURCES]],
    }


def _amounts(amounts: ShareAmounts) -> dict[str, Any]:
    return {**to_builtins(amounts), "resource": cut(amounts.resource)}
