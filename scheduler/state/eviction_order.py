"""The placed pods of each selector in the order in which they would be evicted: low priority first, then new ones.

It is kept only while there are policies that let pods of shares evict others: then a decision about victims looks at
the first pods of some selectors, and sorts none of them. New versions take their place when the order is asked for, as
most decisions have no victims. A pod that starts is usually the newest, so it is put last of those of its priority.
"""

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from scheduler.api.pods.importance import started
from scheduler.api.pods.pod import Pod

_Ranked: TypeAlias = list[tuple[int, str]]
"""When each pod started, and its UID: the oldest first."""

MAX_NEW: Final = 4_000
"""New versions that wait until the order is asked for: they take their places within a few milliseconds."""


class _Entry(NamedTuple):
    pod: Pod
    selector: Hashable
    priority: int
    rank: tuple[int, str]


class EvictionOrder:
    """Pods in the order of their eviction."""

    def __init__(self, pods: Iterable[tuple[Pod, Hashable]]) -> None:
        self._ranked: dict[Hashable, dict[int, _Ranked]] = {}
        """Selector → priority → pods; none is empty."""
        self._entries: dict[str, _Entry] = {}
        self._new: dict[str, tuple[Pod, Hashable]] = {}
        """UID → a version that has not taken its place yet."""
        for pod, selector in pods:
            entry = self._entries[pod.uid] = _entry(pod, selector)
            self._ranked_of(entry).append(entry.rank)
        for ranks in self._ranked.values():
            for ranked in ranks.values():
                ranked.sort()

    def put(self, pod: Pod, selector: Hashable) -> None:
        """Add a pod, or its new version."""
        self._new[pod.metadata.uid] = pod, selector
        if len(self._new) >= MAX_NEW:
            self._place_new()

    def remove(self, uid: str) -> None:
        """Forget a pod, if it is known."""
        self._new.pop(uid, None)
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._take_out(entry)

    def pods(self, selector: Hashable, below: float) -> Iterator[Pod]:
        """Yield the pods of a selector whose priority is `below`, the first to be evicted first; equal ones by UID."""
        self._place_new()
        ranks, entries = self._ranked.get(selector, {}), self._entries
        for priority in sorted(ranks):
            if priority >= below:
                return
            ranked = ranks[priority]
            end = len(ranked)
            while end:
                first = bisect_left(ranked, (ranked[end - 1][0], ""), 0, end)
                for _, uid in ranked[first:end]:
                    yield entries[uid].pod
                end = first

    def check_invariants(self) -> None:
        """Each pod is there once, in order. For tests and debugging."""
        assert len(self._new) < MAX_NEW
        for selector, ranks in self._ranked.items():
            assert ranks, selector
            for priority, ranked in ranks.items():
                assert ranked, priority
                assert ranked == sorted(ranked), priority
                assert all(self._entries[uid][1:] == (selector, priority, (start, uid)) for start, uid in ranked)
        assert len(self._entries) == sum(len(ranked) for ranks in self._ranked.values() for ranked in ranks.values())

    def _place_new(self) -> None:
        new, self._new = self._new, {}
        for pod, selector in new.values():
            self._place(pod, selector)

    def _place(self, pod: Pod, selector: Hashable) -> None:
        old = self._entries.get(pod.metadata.uid)
        entry = self._entries[pod.metadata.uid] = _entry(pod, selector)
        if old is not None:
            if old[1:] == entry[1:]:
                return
            self._take_out(old)
        ranked = self._ranked_of(entry)
        if not ranked or entry.rank > ranked[-1]:
            ranked.append(entry.rank)
        else:
            insort(ranked, entry.rank)

    def _ranked_of(self, entry: _Entry) -> _Ranked:
        return self._ranked.setdefault(entry.selector, {}).setdefault(entry.priority, [])

    def _take_out(self, entry: _Entry) -> None:
        ranks = self._ranked[entry.selector]
        ranked = ranks[entry.priority]
        del ranked[bisect_left(ranked, entry.rank)]
        if not ranked:
            del ranks[entry.priority]
            if not ranks:
                del self._ranked[entry.selector]


def _entry(pod: Pod, selector: Hashable) -> _Entry:
    return _Entry(pod, selector, pod.priority, (started(pod), pod.metadata.uid))
