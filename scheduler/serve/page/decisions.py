"""The latest decisions, and how long they took, from the records of the pods that have new ones."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from scheduler.api.pods.pod import Pod
from scheduler.cycle.cycle_events import AttemptFailed, PodBound, PodPlaced
from scheduler.engine.records import DecisionRecords, Record
from scheduler.runtime.event_stream import EventStream
from scheduler.serve.page.messages import MAX_MESSAGE, cut, event

MAX_SHOWN: Final = 40
"""The number of decisions in one message; of the others only their number is sent."""

MAX_FOLLOWED: Final = 4096
"""Changes that were not looked at yet: older ones are lost."""

MAX_KEPT: Final = 60
"""For who opens the page: what was decided before."""


class Looked(NamedTuple):
    """The news since the last look."""

    message: bytes
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
        """Return the new decisions. A placed pod is reported again when its binding succeeds or fails."""
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
        shown = [self._document(record) for record in records[-MAX_SHOWN:]]
        self._latest.extend(shown)
        binding = [record.ended - record.at for record in records if record.result == "bound"]
        more = len(records) - len(shown)
        deciding = [record.seconds for record in records if record.at >= before]  # not again, once it is bound
        return Looked(_event(shown, more), deciding, binding)

    def latest(self) -> bytes:
        """Return the message for a new reader."""
        return _event(list(self._latest), 0)

    def _document(self, record: Record) -> dict[str, Any]:
        document: dict[str, Any] = {
            "uid": cut(record.uid, 64),
            "at": round(record.at, 3),
            "attempt": record.attempt,
            "result": record.result,
            "ms": round(record.seconds * 1000, 3),
        }
        pod = self._pods.get(record.uid)
        if pod is not None:
            document |= {"namespace": cut(pod.namespace), "name": cut(pod.name)}
        if record.node:
            document |= {"node": cut(record.node), "feasible": record.feasible}
        if record.ended > record.at and record.result == "bound":
            document["boundMs"] = round((record.ended - record.at) * 1000, 1)
        if record.message:
            document["message"] = cut(record.message, MAX_MESSAGE)
        return document


def _event(shown: list[dict[str, Any]], more: int) -> bytes:
    return event("decisions", {"decisions": shown, "more": more})
