"""Pods that were refused and wait for the cluster, or themselves, to change."""

import itertools
from collections.abc import Iterator

from scheduler.framework.queued import QueuedPod


class UnschedulablePods:
    """Refused pods, those that a PreEnqueue plugin gates apart from those that an attempt found no node for."""

    __slots__ = ("_gated", "_refused")

    def __init__(self) -> None:
        self._gated: dict[str, QueuedPod] = {}
        self._refused: dict[str, QueuedPod] = {}

    def __len__(self) -> int:
        return len(self._gated) + len(self._refused)

    def __contains__(self, uid: str) -> bool:
        return uid in self._gated or uid in self._refused

    def __iter__(self) -> Iterator[QueuedPod]:
        return itertools.chain(self._refused.values(), self._gated.values())

    @property
    def gated(self) -> tuple[QueuedPod, ...]:
        return tuple(self._gated.values())

    @property
    def gated_count(self) -> int:
        return len(self._gated)

    def get(self, uid: str) -> QueuedPod | None:
        return self._refused.get(uid) or self._gated.get(uid)

    def add(self, queued: QueuedPod) -> None:
        """Keep a pod; one that is here already and was gated or ungated changes sides."""
        uid = queued.pod.uid
        here, there = (self._gated, self._refused) if queued.gated else (self._refused, self._gated)
        there.pop(uid, None)
        here[uid] = queued

    def remove(self, uid: str) -> QueuedPod | None:
        return self._refused.pop(uid, None) or self._gated.pop(uid, None)

    def check_invariants(self) -> None:
        """Gated pods are where they are counted, and every pod has somebody who refused it."""
        assert all(queued.gated for queued in self._gated.values())
        assert not any(queued.gated for queued in self._refused.values())
        assert all(queued.unschedulable_plugins or queued.pending_plugins for queued in self)
        assert all(queued.pod.uid == uid for uid, queued in (self._gated | self._refused).items())
