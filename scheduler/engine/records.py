"""Records of attempts to place pods, small enough to keep thousands.

    decided ─┬─ placed ──► bound                               the score of its node by plugin, and how others did
             │        └──► failed: permit, pre-bind, bind      what went wrong
             └─ failed: unschedulable, error                   the reasons, and what preemption said

Texts are only those of the Event; readers format the rest. The record of a placed pod has a copy of the total scores of
all nodes while there is memory for it.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np

from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.cycle_events import AttemptFailed, BindingRetried, PermitWaited, PodBound, PodPlaced
from scheduler.framework.diagnosis import Refusal
from scheduler.framework.nodes.columns import Int64Column
from scheduler.framework.nodes.nodes import Aspect
from scheduler.runtime.event_stream import EventStream
from scheduler.state.nodes.node_table import NodeTable

MAX_BYTES: Final = 16 << 20
"""Limit for all records together."""

_BYTES: Final = 700
"""Approximate size of a record without texts and scores."""

_LISTED_BYTES: Final = 110
"""Approximate size of a reason or a name without its characters."""

MAX_LISTED: Final = 10
"""Reasons and victims that are kept for an attempt."""


class Record(msgspec.Struct, eq=False, gc=False):
    """One attempt. Not tracked by the garbage collector, as there are thousands."""

    uid: str
    profile: str
    attempt: int
    at: float
    """Time of the decision, in seconds since 1970."""

    seconds: float
    """Duration of the decision."""

    node: str = ""
    """The node of a placed pod; empty otherwise."""

    message: str = ""
    """Why it was not placed, or not bound."""

    result: str = "placed"
    """placed, bound, unschedulable or error."""

    ended: float = 0.0
    """Time of the binding, or of the failure after the placement, in seconds since 1970."""

    plugins: tuple[str, ...] = ()
    """The plugins that refused the pod."""

    refusals: tuple[Refusal, ...] = ()
    """The most frequent reasons, at most `MAX_LISTED`."""

    nominated: str = ""
    """The node on which preemption makes room."""

    victims: tuple[str, ...] = ()
    """The victims, as namespace/name; at most `MAX_LISTED`."""

    victim_count: int = 0
    permit: tuple[str, ...] = ()
    """The Permit plugins that made the pod wait."""

    permit_seconds: float = 0.0
    retried: str = ""
    """The last failure before the API server accepted the binding."""

    evaluated: int = 0
    feasible: int = 0
    scored_by: tuple[str, ...] = ()
    scores: tuple[int, ...] = ()
    """The node's weighted score by each of these plugins."""

    totals: "Totals | None" = None

    @property
    def bytes(self) -> int:
        """Approximate size in memory."""
        size = _BYTES + len(self.message) + len(self.retried)
        if self.refusals:
            size += sum(len(each.reason) + _LISTED_BYTES for each in self.refusals)
        if self.victims:
            size += sum(len(name) + _LISTED_BYTES for name in self.victims)
        return size if self.totals is None else size + self.totals.bytes


class Totals(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The total scores of the feasible nodes."""

    rows: "Int64Column | None"
    """The row of each entry; None if there is an entry for every row."""

    values: Int64Column
    position: int
    """Position in the change log of node names: rows that changed since are other nodes."""

    @property
    def bytes(self) -> int:
        return self.values.nbytes + (0 if self.rows is None else self.rows.nbytes)

    def best(self, count: int, table: NodeTable) -> list[tuple[str, int]]:
        """Return the names and totals of the best nodes, the best first."""
        changed = table.change_log(Aspect.NAME).since(self.position)
        if changed is None:
            return []
        places = np.argsort(-self.values, kind="stable")[: count + len(changed)].tolist()
        found = ((place if self.rows is None else int(self.rows[place]), int(self.values[place])) for place in places)
        names = table.names()
        return [(names[row], total) for row, total in found if row not in changed and total >= 0][:count]


class DecisionRecords:
    """The latest records within a limit of memory."""

    def __init__(
        self,
        table: NodeTable,
        stream: EventStream,
        now: Callable[[], float] = time.time,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`now`: seconds since 1970."""
        self._names = table.change_log(Aspect.NAME)
        self._now = now
        self._max_bytes = max_bytes
        self._all: deque[Record] = deque()
        self._of_pod: dict[str, deque[Record]] = {}
        self._with_totals: deque[Record] = deque()
        self.bytes = 0
        stream.subscribe(
            {
                PodPlaced: self._placed,
                AttemptFailed: self._failed,
                PermitWaited: self._waited,
                BindingRetried: self._retried,
                PodBound: self._bound,
            }
        )

    def __len__(self) -> int:
        return len(self._all)

    def of(self, uid: str) -> Sequence[Record]:
        """Return the records of a pod, the oldest first."""
        return tuple(self._of_pod.get(uid, ()))

    def latest(self, uid: str) -> Record | None:
        """Return the latest record of a pod."""
        records = self._of_pod.get(uid)
        return records[-1] if records else None

    def _placed(self, event: PodPlaced) -> None:
        queued, placed, scored, totals = event.queued, event.placed, event.state.scored, None
        scored_by: tuple[str, ...] = ()
        scores: tuple[int, ...] = ()
        if scored is not None and placed.row >= 0:
            scored_by, scores = scored.of(placed.row)
            rows, values = scored.totals()
            totals = Totals(rows, values, self._names.position)
        self._add(
            Record(
                queued.pod.uid,
                event.profile,
                queued.attempts,
                self._now(),
                time.perf_counter() - event.started,
                node=placed.node_name,
                evaluated=placed.evaluated_nodes,
                feasible=placed.feasible_nodes,
                scored_by=scored_by,
                scores=scores,
                totals=totals,
            )
        )

    def _failed(self, event: AttemptFailed) -> None:
        now, queued, pod, cause = self._now(), event.queued, event.queued.pod, event.cause
        unplaced = cause if isinstance(cause, Unplaced) else None
        result, message = ("error", str(cause)) if unplaced is None else ("unschedulable", unplaced.message)
        plugins = tuple(sorted(queued.unschedulable_plugins | queued.pending_plugins))
        latest = self.latest(pod.uid)
        if latest is not None and latest.attempt == queued.attempts and not latest.ended and latest.node:
            latest.result, latest.message, latest.plugins, latest.ended = result, message, plugins, now
            self._take(len(message))
            return
        record = Record(pod.uid, event.profile, queued.attempts, now, time.perf_counter() - event.started)
        record.result, record.message, record.plugins, record.ended = result, message, plugins, now
        if unplaced is not None:
            record.refusals = unplaced.refusals[:MAX_LISTED]
            record.nominated = unplaced.nominated_node_name or ""
            record.victims = tuple([str(victim) for victim in unplaced.victims[:MAX_LISTED]])
            record.victim_count = len(unplaced.victims)
        self._add(record)

    def _waited(self, event: PermitWaited) -> None:
        latest = self.latest(event.uid)
        if latest is not None:
            latest.permit, latest.permit_seconds = event.plugins, event.seconds

    def _retried(self, event: BindingRetried) -> None:
        latest = self.latest(event.uid)
        if latest is not None:
            more = len(event.failure) - len(latest.retried)  # a Bind plugin may try more than once
            latest.retried = event.failure
            self._take(more)

    def _bound(self, event: PodBound) -> None:
        latest = self.latest(event.pod.uid)
        if latest is not None and latest.node:
            latest.result, latest.ended = "bound", self._now()

    def _add(self, record: Record) -> None:
        self._all.append(record)
        records = self._of_pod.get(record.uid)
        if records is None:
            records = self._of_pod[record.uid] = deque()
        records.append(record)
        if record.totals is not None:
            self._with_totals.append(record)
        self._take(record.bytes)

    def _take(self, more: int) -> None:
        self.bytes += more
        while self.bytes > self._max_bytes and len(self._all) > 1:
            # Scores first: they take most memory and matter least for old decisions.
            if len(self._with_totals) > 1:
                old = self._with_totals.popleft()
                if old.totals is not None:
                    self.bytes -= old.totals.bytes
                    old.totals = None
            else:
                self._forget_oldest()

    def _forget_oldest(self) -> None:
        oldest = self._all.popleft()
        self.bytes -= oldest.bytes
        oldest.totals = None
        records = self._of_pod[oldest.uid]
        records.popleft()
        if not records:
            del self._of_pod[oldest.uid]
