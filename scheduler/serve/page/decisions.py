"""The latest decisions, and how long they took, from the records of the pods that have new ones."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from scheduler.api.pod import Pod
from scheduler.cycle.cycle_events import AttemptFailed, PodBound, PodPlaced
from scheduler.cycle.records import DecisionRecords, Record
from scheduler.runtime.event_stream import EventStream
from scheduler.serve.page.messages import MAX_MESSAGE, cut, event

MAX_SHOWN: Final = 40
"""Decisions that are told at once; of the others only how many they were."""

MAX_FOLLOWED: Final = 4096
"""Changes that were not looked at yet: older ones are lost."""

MAX_KEPT: Final = 60
"""For who opens the page: what was decided before."""


class Looked(NamedTuple):
    """What is new since the last look."""

    told: bytes
    """Empty: nothing is."""

    deciding: Sequence[float]
    """Seconds that decisions took."""

    binding: Sequence[float]
    """Seconds from the decision to the end of the binding."""


class DecisionPicture:
    """Follows the events after which a pod's record is new or has changed."""

    def __init__(
        self,
        records: DecisionRecords,
        stream: EventStream,
        pods: Mapping[str, Pod],
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now`: the records' clock."""
        self._records = records
        self._pods = pods
        self._now = now
        self._looked = now()
        self._changed: deque[str] = deque(maxlen=MAX_FOLLOWED)
        self._latest: deque[dict[str, Any]] = deque(maxlen=MAX_KEPT)
        stream.subscribe({PodPlaced: self._note_attempt, AttemptFailed: self._note_attempt, PodBound: self._note_bound})

    def _note_attempt(self, event: PodPlaced | AttemptFailed) -> None:
        self._changed.append(event.queued.pod.uid)

    def _note_bound(self, event: PodBound) -> None:
        self._changed.append(event.pod.uid)

    def look(self) -> Looked:
        """Tell what is new. A pod that was placed is told again once it is bound, or has failed to be."""
        records, before = [], self._looked
        self._looked = self._now()
        while self._changed:
            record = self._records.latest(self._changed.popleft())
            if record is not None:
                records.append(record)
        if not records:
            return Looked(b"", (), ())
        # A pod that was decided and bound since the last look is there twice, with one record.
        records = list(dict.fromkeys(records))
        shown = [self._told(record) for record in records[-MAX_SHOWN:]]
        self._latest.extend(shown)
        binding = [record.ended - record.at for record in records if record.result == "bound"]
        more = len(records) - len(shown)
        deciding = [record.seconds for record in records if record.at >= before]  # not again, once it is bound
        return Looked(_event(shown, more), deciding, binding)

    def latest(self) -> bytes:
        """Tell what was told before."""
        return _event(list(self._latest), 0)

    def _told(self, record: Record) -> dict[str, Any]:
        told: dict[str, Any] = {
            "uid": cut(record.uid, 64),
            "at": round(record.at, 3),
            "attempt": record.attempt,
            "result": record.result,
            "ms": round(record.seconds * 1000, 3),
        }
        pod = self._pods.get(record.uid)
        if pod is not None:
            told |= {"namespace": cut(pod.namespace), "name": cut(pod.name)}
        if record.node:
            told |= {"node": cut(record.node), "feasible": record.feasible}
        if record.ended > record.at and record.result == "bound":
            told["boundMs"] = round((record.ended - record.at) * 1000, 1)
        if record.message:
            told["message"] = cut(record.message, MAX_MESSAGE)
        return told


def _event(shown: list[dict[str, Any]], more: int) -> bytes:
    return event("decisions", {"decisions": shown, "more": more})
