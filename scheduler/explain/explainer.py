"""What a running scheduler, or one over files, says of one pod: where it is on its way, and why it has no node.

States, in the words of a user:

    pending ─┬─ gated          a PreEnqueue plugin keeps it out of the queue
             ├─ queued         it is next in turn for an attempt
             ├─ backing off    it is tried again after a while
             ├─ unschedulable  it waits for an event that may help
             └─ being tried    it is between decision and binding, or waits for a Permit or PreBind plugin
    bound, being deleted, of another scheduler
"""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from scheduler.api.near_names import near_names
from scheduler.api.pod import Pod
from scheduler.cycle.engine import Engine
from scheduler.cycle.records import Record
from scheduler.explain.changes import WrittenPod
from scheduler.explain.explanation import Document, explain
from scheduler.explain.waking import events_in_words
from scheduler.framework.queued import QueuedPod
from scheduler.process.time_slice import TimeSlice

MAX_NEAR: Final = 3
NEAR_AT_ONCE: Final = 5
"""Names compared before other tasks run: two long ones, chosen to be slow, take a millisecond."""

NEAR_SECONDS: Final = 1.0
"""For all names; the rest is not compared."""

MAX_SCHEDULER: Final = 253
"""Characters of a scheduler's name: the API server takes any, of any length."""

MAX_HISTORY: Final = 10
MAX_BEST: Final = 5


class Explainer:
    """Answers about the pods of one engine, one question at a time."""

    def __init__(
        self,
        engine: Engine,
        now: Callable[[], float],
        is_leading: Callable[[], bool] = lambda: True,
        written: Callable[[Pod], WrittenPod | None] = lambda _: None,
    ) -> None:
        """`now`: the queue's clock. `written`: where a pod is written, if not as the engine has it."""
        self._engine = engine
        self._now = now
        self._is_leading = is_leading
        self._written = written
        self._turn = asyncio.Lock()

    async def about(self, namespace: str, name: str) -> Document:
        """Return {"found", "near"?, "namespace", "name", "state", "about": [line], "leading", "history",
        "explanation"?}.

        `near` has names of pods that may be meant. Others have their turn every few milliseconds.
        """
        async with self._turn:
            document: Document = {"namespace": namespace, "name": name, "leading": self._is_leading()}
            pod = self._find(namespace, name)
            if pod is None:
                return document | {"found": False, "state": "unknown", "near": await self._near(namespace, name)}
            document |= {"found": True, **self._state(pod)}
            document["history"] = [self._told(record) for record in self._engine.records.of(pod.uid)[-MAX_HISTORY:]]
            if document["state"] in _WITHOUT_A_NODE:
                document["explanation"] = await self._explain(pod)
            return document

    def _find(self, namespace: str, name: str) -> Pod | None:
        pods = self._engine.pods.values()
        return next((pod for pod in pods if pod.name == name and pod.namespace == namespace), None)

    async def _near(self, namespace: str, name: str) -> list[str]:
        names = {str(pod) for pod in self._engine.pods.values() if not pod.node_name or pod.name == name}
        own_first = sorted(names, key=lambda each: (not each.startswith(f"{namespace}/"), each))
        found: list[str] = []
        whole = TimeSlice(NEAR_SECONDS)
        for first in range(0, len(own_first), NEAR_AT_ONCE):
            some = own_first[first : first + NEAR_AT_ONCE]
            found = near_names(f"{namespace}/{name}", [*found, *some], MAX_NEAR)
            if whole.is_over:
                break
            await asyncio.sleep(0)
        return found

    async def _explain(self, pod: Pod) -> Document:
        steps = explain(self._engine, pod, self._written(pod))
        time_slice = TimeSlice()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                document: Document = end.value
                return document
            await time_slice.give_way()

    def _state(self, pod: Pod) -> Document:
        engine = self._engine
        scheduler = pod.spec.scheduler_name
        about = [f"created {pod.metadata.creation_timestamp}"] if pod.metadata.creation_timestamp else []
        if pod.priority:
            about.append(f"priority {pod.priority}")
        common: Document = {"uid": pod.uid, "scheduler": scheduler, "priority": pod.priority}
        if pod.is_deleting:
            return common | {"state": "being deleted", "about": about}
        if pod.node_name:
            return common | {"state": f"runs on {pod.node_name}", "node": pod.node_name, "about": about}
        if scheduler not in engine.frameworks:
            name = scheduler[:MAX_SCHEDULER]
            return common | {"state": f"is for another scheduler: {name!r}", "about": list(self._other(name))}
        where, queued = self._place(pod.uid)
        about += self._waiting(pod, where, queued)
        return common | {"state": where, "attempts": queued.attempts if queued is not None else 0, "about": about}

    def _told(self, record: Record) -> Document:
        """One attempt: {"at", "text", "attempt", "result", "node"?, "message"?, "plugins"?, "refusals"?, "nominated"?,
        "victims"?, "permit"?, "retried"?, "scores"?, "best"?}.
        """
        at = datetime.fromtimestamp(record.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        told: Document = {"at": at, "attempt": record.attempt, "profile": record.profile, "result": record.result}
        told["milliseconds"] = round(record.seconds * 1000, 2)
        if record.node:
            told |= {"node": record.node, "evaluated": record.evaluated, "feasible": record.feasible}
        if record.message:
            told |= {"message": record.message, "plugins": list(record.plugins)}
        if record.refusals:
            told["refusals"] = [
                {"plugin": each.plugin, "reason": each.reason, "nodes": each.nodes} for each in record.refusals
            ]
        if record.nominated:
            told |= {"nominated": record.nominated, "victims": list(record.victims), "victimCount": record.victim_count}
        if record.permit:
            told["permit"] = {"plugins": list(record.permit), "seconds": round(record.permit_seconds, 3)}
        if record.retried:
            told["retried"] = record.retried
        if record.scores:
            told["scores"] = dict(zip(record.scored_by, record.scores, strict=True))
        if record.totals is not None:
            best = record.totals.best(MAX_BEST, self._engine.cache.table)
            told["best"] = [{"node": name, "total": total} for name, total in best]
        return told | {"text": " ".join(_story(record, told))}

    def _other(self, scheduler: str) -> Iterator[str]:
        profiles = list(self._engine.frameworks)
        near = near_names(scheduler, profiles)
        if near:
            yield f"its spec.schedulerName is {scheduler!r}: did you mean {near[0]!r}?"
        yield f"this scheduler places pods of {', '.join(profiles)}"

    def _place(self, uid: str) -> tuple[str, QueuedPod | None]:
        for queued in self._engine.queue.in_flight_pods():
            if queued.pod.uid == uid:
                return "being tried", queued
        for part, pods in self._engine.queue.pending_pods().items():
            for queued in pods:
                if queued.pod.uid == uid:
                    return _STATES[part], queued
        return "pending", None

    def _waiting(self, pod: Pod, where: str, queued: QueuedPod | None) -> Iterator[str]:
        """What it waits for now, and which events would wake it."""
        framework = self._engine.frameworks[pod.spec.scheduler_name]
        if queued is not None and queued.attempts:
            yield f"tried {queued.attempts} times" if queued.attempts > 1 else "tried once"
        waiting = framework.handle.waiting_pods.get(pod.uid)
        if waiting is not None:
            yield f"waits for the Permit of {waiting}"
        if queued is None:
            return
        if where == "backing off":
            left = max(0.0, queued.backoff_expiration - self._now())
            yield f"tried again in {left:.1f} s"
        plugins = sorted(queued.unschedulable_plugins | queued.pending_plugins)
        if where == "gated":
            plugins = [queued.gating_plugin]
        if plugins and where in ("unschedulable", "gated"):
            events = framework.rejector_events()
            woken = events_in_words(each.event for plugin in plugins for each in events.get(plugin, ()))
            yield f"refused by {', '.join(plugins)}; may be woken by {woken or 'nothing that is known'}"


_STATES: Final = {
    "active": "queued",
    "backoff": "backing off",
    "unschedulable": "unschedulable",
    "gated": "gated",
}

_WITHOUT_A_NODE: Final = frozenset((*_STATES.values(), "being tried", "pending"))


def _story(record: Record, told: Document) -> Iterator[str]:
    yield f"attempt {record.attempt}:"
    if record.node:
        yield f"placed on {record.node}, the best of {record.feasible} nodes that fit"
        if "best" in told:
            others = [f"{each['node']} {each['total']}" for each in told["best"] if each["node"] != record.node]
            own = sum(told.get("scores", {}).values())
            yield f"(total score {own}; next: {', '.join(others[:3])})" if others else f"(total score {own})"
        if record.permit:
            yield f"waited {record.permit_seconds:.2f} s for the Permit of {', '.join(record.permit)},"
        if record.result == "bound":
            yield f"and bound {record.ended - record.at:.2f} s later"
            if record.retried:
                yield f"(at first the binding failed: {record.retried})"
        elif record.result != "placed":
            yield f"but {record.result} {record.ended - record.at:.2f} s later: {record.message}"
    else:
        yield f"{record.result}: {record.message}"
        if record.nominated:
            yield f"Room is being made on {record.nominated}{_by_evicting(record)}."


def _by_evicting(record: Record) -> str:
    if not record.victims:
        return ""
    unnamed = record.victim_count - len(record.victims)
    return f" by evicting {', '.join(record.victims)}" + (f" and {unnamed} more" if unnamed else "")
