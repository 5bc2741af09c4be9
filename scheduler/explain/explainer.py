"""Reports the state of a pod or group of pods, and why it has no node; and the shares of the cluster.

States:

    pending ─┬─ gated          a PreEnqueue plugin keeps it out of the queue
             ├─ queued         it is next for an attempt
             ├─ backing off    it is tried again after a while
             ├─ unschedulable  it waits for an event that may help
             └─ being tried    it is between decision and binding, or waits for a Permit or PreBind plugin
    bound, being deleted, of another scheduler
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from scheduler.api.pods.pod import Pod
from scheduler.api.wording.near_names import near_names
from scheduler.api.wording.text import timestamp
from scheduler.config.defaults import COSCHEDULING
from scheduler.engine.engine import Engine
from scheduler.engine.records import Record
from scheduler.explain.changes import WrittenPod
from scheduler.explain.documents import (
    GroupReport,
    NodeTotal,
    PermitDelay,
    PodReport,
    ReportedAttempt,
    ReportedRefusal,
    SharesReport,
    ShareWait,
)
from scheduler.explain.explanation import explain
from scheduler.explain.waiting import IN_FLIGHT, STATES, in_queue, refused_by
from scheduler.framework.queued import QueuedPod
from scheduler.process.time_slice import TimeSlice
from scheduler.state.nodes.node_table import NodeTable

MAX_NEAR: Final = 3
NEAR_AT_ONCE: Final = 5
"""Names compared before other tasks run: a comparison of two long names can take a millisecond."""

NEAR_SECONDS: Final = 1.0
"""Time for all comparisons; further names are ignored."""

MAX_SCHEDULER: Final = 253
"""Characters of a scheduler's name that are shown: the API server accepts any length."""

MAX_HISTORY: Final = 10


class Explainer:
    """Reports on the pods of one engine, one at a time."""

    def __init__(
        self,
        engine: Engine,
        now: Callable[[], float],
        is_leading: Callable[[], bool] = lambda: True,
        written: Callable[[Pod], WrittenPod | None] = lambda _: None,
        *,
        tries_groups: bool = False,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`now`: the queue's clock. `written`: the object that defines a pod, if not the pod itself.

        `tries_groups`: whether groups of pods are tried here, as the engine does not run. `wall_clock`: seconds since
        1970.
        """
        self._engine = engine
        self._now = now
        self._is_leading = is_leading
        self._written = written
        self._tries_groups = tries_groups
        self._wall_clock = wall_clock
        self._turn = asyncio.Lock()

    async def about_pod_or_group(self, namespace: str, name: str) -> PodReport | GroupReport:
        """Report on a pod; if there is none, on the group of this name, or that of the pods of a Job of this name."""
        group = "" if self._find(namespace, name) is not None else self._group_named(namespace, name)
        return await (self.about_group(namespace, group) if group else self.about(namespace, name))

    async def about(self, namespace: str, name: str) -> PodReport:
        """Report on a pod. Other tasks run every few milliseconds."""
        async with self._turn:
            await self._engine.pauses.ready()  # what is tried out for a group of pods is not there
            pod = self._find(namespace, name)
            if pod is None:
                names = {str(pod) for pod in self._engine.pods.values() if not pod.node_name or pod.name == name}
                near = await _near(namespace, name, names)
                return PodReport(
                    namespace=namespace, name=name, leading=self._is_leading(), found=False, state="unknown", near=near
                )
            report = self._state(pod)
            if self._engine.pod_groups is not None:
                from scheduler.explain.pod_groups import report_on_group_of

                report.group = report_on_group_of(self._engine, pod, tries=self._tries_groups) or UNSET
            if report.state in _WITHOUT_A_NODE:
                report.share = await self._share_of(pod)
                report.explanation = await explain(self._engine, pod, self._written(pod))
            return report

    async def about_group(self, namespace: str, name: str) -> GroupReport:
        async with self._turn:
            await self._engine.pauses.ready()
            report, names = None, set[str]()
            if self._engine.pod_groups is not None:
                from scheduler.explain.pod_groups import group_names, report_on

                named = self._group_named(namespace, name)
                report = report_on(self._engine, namespace, named, tries=self._tries_groups)
                names = group_names(self._engine) if report is None else names
            if report is None:
                near = await _near(namespace, name, names)
                report = GroupReport(namespace=namespace, name=name, found=False, state="unknown", near=near)
            elif report.waiting:
                waiting = self._find(namespace, report.waiting[0].name)
                report.share = UNSET if waiting is None else await self._share_of(waiting)
            report.leading = self._is_leading()
            return report

    def _group_named(self, namespace: str, name: str) -> str:
        if self._engine.pod_groups is None:
            return ""
        from scheduler.explain.pod_groups import name_of_group

        return name_of_group(self._engine, namespace, name)

    async def about_shares(self) -> SharesReport:
        async with self._turn:
            await self._engine.pauses.ready()
            report = SharesReport(found=False, state="off")
            if self._engine.shares.are_on:
                from scheduler.explain.shares import report_on_shares

                report = await report_on_shares(self._engine)
            report.leading = self._is_leading()
            return report

    async def _share_of(self, pod: Pod) -> ShareWait | UnsetType:
        if not self._engine.shares.are_on:
            return UNSET
        from scheduler.explain.share_waits import report_on_share_of

        return await report_on_share_of(self._engine, pod, self._wall_clock()) or UNSET

    def _find(self, namespace: str, name: str) -> Pod | None:
        pods = self._engine.pods.values()
        return next((pod for pod in pods if pod.name == name and pod.namespace == namespace), None)

    def _state(self, pod: Pod) -> PodReport:
        """Return all but the explanation."""
        engine = self._engine
        scheduler = pod.spec.scheduler_name
        report = PodReport(
            namespace=pod.namespace,
            name=pod.name,
            leading=self._is_leading(),
            found=True,
            uid=pod.uid,
            scheduler=scheduler,
            priority=pod.priority,
            state="",
            history=[reported(record, engine.cache.table) for record in engine.records.of(pod.uid)[-MAX_HISTORY:]],
        )
        about = [f"created {pod.metadata.creation_timestamp}"] if pod.metadata.creation_timestamp else []
        if pod.priority:
            about.append(f"priority {pod.priority}")
        if pod.is_deleting:
            report.state = "being deleted"
        elif pod.node_name:
            report.state, report.node = f"runs on {pod.node_name}", pod.node_name
        elif scheduler not in engine.frameworks:
            name = scheduler[:MAX_SCHEDULER]
            report.state, about = f"is for another scheduler: {name!r}", list(self._other(name))
        else:
            report.state, queued = self._place(pod)
            report.attempts = queued.attempts if queued is not None else 0
            about += self._waiting(pod, report.state, queued)
        report.about = about
        return report

    def _other(self, scheduler: str) -> Iterator[str]:
        profiles = list(self._engine.frameworks)
        near = near_names(scheduler, profiles)
        if near:
            yield f"its spec.schedulerName is {scheduler!r}: did you mean {near[0]!r}?"
        yield f"this scheduler places pods of {', '.join(profiles)}"

    def _place(self, pod: Pod) -> tuple[str, QueuedPod | None]:
        for part, queued in in_queue(self._engine):
            if queued.pod.uid == pod.uid:
                if part != IN_FLIGHT and queued.entity.key in self._engine.queue.pending_for_quota:
                    return FOR_QUOTA, queued
                is_free = part == "gated" and self._is_tried_with_its_group(queued)
                return STATES["active" if is_free else part], queued
        return "pending", None

    def _is_tried_with_its_group(self, queued: QueuedPod) -> bool:
        """Return whether a pod that came before its group was complete is tried with the others."""
        pod = queued.pod
        if self._engine.group_parts.groups.key_of(pod) is None:
            return False
        from scheduler.explain.pod_groups import may_be_tried

        return may_be_tried(self._engine, queued)

    def _waiting(self, pod: Pod, where: str, queued: QueuedPod | None) -> Iterator[str]:
        """Yield lines about what the pod waits for, and the events that would wake it."""
        framework = self._engine.frameworks[pod.spec.scheduler_name]
        if queued is not None and queued.attempts:
            yield f"tried {queued.attempts} times" if queued.attempts > 1 else "tried once"
        waiting = framework.handle.waiting_pods.get(pod.uid)
        if waiting is not None:
            yield f"waits for the Permit of {waiting}"
        if queued is None:
            return
        if where == "backing off":
            left = max(0.0, queued.entity.backoff_expiration - self._now())
            yield f"tried again in {left:.1f} s"
        plugins = list(queued.unschedulable_plugins | queued.pending_plugins)
        if where == "gated":
            plugins = [queued.gate]
        if where in ("unschedulable", "gated") and (COSCHEDULING in plugins or not plugins):
            plugins = [each for each in plugins if each != COSCHEDULING]
            yield "waits for the other pods of its group"
        if plugins and where in ("unschedulable", "gated"):
            yield refused_by(framework, plugins)


FOR_QUOTA: Final = "pending for quota"

_WITHOUT_A_NODE: Final = frozenset((*STATES.values(), FOR_QUOTA, "pending"))


async def _near(namespace: str, name: str, names: Collection[str]) -> list[str]:
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


MAX_BEST: Final = 5


def reported(record: Record, table: NodeTable) -> ReportedAttempt:
    best = None
    if record.totals is not None:
        best = [NodeTotal(name, total) for name, total in record.totals.best(MAX_BEST, table)]
    return ReportedAttempt(
        at=timestamp(record.at),
        attempt=record.attempt,
        profile=record.profile,
        result=record.result,
        milliseconds=round(record.seconds * 1000, 2),
        text=" ".join(_story(record, best)),
        node=record.node,
        evaluated=record.evaluated if record.node else 0,
        feasible=record.feasible if record.node else 0,
        message=record.message,
        plugins=record.plugins if record.message else UNSET,
        refusals=tuple(ReportedRefusal(each.plugin, each.reason, each.nodes) for each in record.refusals),
        nominated=record.nominated,
        victims=record.victims if record.nominated else UNSET,
        victim_count=record.victim_count if record.nominated else UNSET,
        permit=PermitDelay(record.permit, round(record.permit_seconds, 3)) if record.permit else None,
        retried=record.retried,
        scores=dict(zip(record.scored_by, record.scores, strict=True)),
        best=UNSET if best is None else best,
    )


def _story(record: Record, best: Sequence[NodeTotal] | None) -> Iterator[str]:
    yield f"attempt {record.attempt}:"
    if record.node:
        yield f"placed on {record.node}, the best of {record.feasible} nodes that fit"
        if best is not None:
            others = [f"{each.node} {each.total}" for each in best if each.node != record.node]
            own = sum(record.scores)
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
