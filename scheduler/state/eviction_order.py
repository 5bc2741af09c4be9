"""The pods of each tenant with a node in the order in which they would be evicted: low priority first, then new ones.

It is kept only while there are policies that let pods of shares evict others: then a decision about victims looks at
the first pods of some tenants, and sorts none of them. A pod that starts is usually the newest, so it goes to the end
of its line.
"""

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from scheduler.api.importance import started
from scheduler.api.pod import Pod

_Line: TypeAlias = list[tuple[int, str]]
"""When each pod started, and its UID: the oldest first."""


_start = itemgetter(0)


class _Entry(NamedTuple):
    pod: Pod
    tenant: Hashable
    priority: int
    place: tuple[int, str]


class EvictionOrder:
    """Knows it."""

    def __init__(self, pods: Iterable[tuple[Pod, Hashable]]) -> None:
        self._lines: dict[Hashable, dict[int, _Line]] = {}
        """Tenant → priority → line; none is empty."""
        self._entries: dict[str, _Entry] = {}
        for pod, tenant in pods:
            entry = self._entries[pod.uid] = _entry(pod, tenant)
            self._line_of(entry).append(entry.place)
        for lines in self._lines.values():
            for line in lines.values():
                line.sort()

    def put(self, pod: Pod, tenant: Hashable) -> None:
        """Add a pod, or its new version."""
        old = self._entries.get(pod.metadata.uid)
        entry = self._entries[pod.metadata.uid] = _entry(pod, tenant)
        if old is not None:
            if old[1:] == entry[1:]:
                return
            self._take_out(old)
        line = self._line_of(entry)
        if not line or entry.place > line[-1]:
            line.append(entry.place)
        else:
            insort(line, entry.place)

    def remove(self, uid: str) -> None:
        """Forget a pod, if it is known."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._take_out(entry)

    def pods(self, tenant: Hashable, below: float) -> Iterator[Pod]:
        """Yield the pods of a tenant whose priority is `below`, the first to be evicted first; equal ones by UID."""
        lines = self._lines.get(tenant, {})
        for priority in sorted(each for each in lines if each < below):
            for _, equal in groupby(reversed(lines[priority]), key=_start):
                for _, uid in reversed(list(equal)):
                    yield self._entries[uid].pod

    def check_invariants(self) -> None:
        """Each pod is in one line, which is in order. For tests and debugging."""
        for tenant, lines in self._lines.items():
            assert lines, tenant
            for priority, line in lines.items():
                assert line, priority
                assert line == sorted(line), priority
                assert all(self._entries[uid][1:] == (tenant, priority, (start, uid)) for start, uid in line)
        assert len(self._entries) == sum(len(line) for lines in self._lines.values() for line in lines.values())

    def _line_of(self, entry: _Entry) -> _Line:
        return self._lines.setdefault(entry.tenant, {}).setdefault(entry.priority, [])

    def _take_out(self, entry: _Entry) -> None:
        lines = self._lines[entry.tenant]
        line = lines[entry.priority]
        del line[bisect_left(line, entry.place)]
        if not line:
            del lines[entry.priority]
            if not lines:
                del self._lines[entry.tenant]


def _entry(pod: Pod, tenant: Hashable) -> _Entry:
    return _Entry(pod, tenant, pod.priority, (started(pod), pod.metadata.uid))
