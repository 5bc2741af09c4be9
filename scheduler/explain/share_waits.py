"""Why a pod or a group waits for its share: the amounts it lacks, who borrows them, and how long it may take.

A pod says how long it runs by `activeDeadlineSeconds`, or by the annotation loadmaster.dev/expected-seconds. The
estimate is the time until so many of those pods have ended that there is space; the others are taken to stay.
"""

from collections.abc import Sequence
from heapq import nsmallest
from operator import itemgetter
from typing import Any, Final, NamedTuple

from scheduler.api.pods.pod import Pod
from scheduler.api.wording.spelling import spelled_for
from scheduler.api.wording.text import shortened
from scheduler.engine.engine import Engine
from scheduler.explain.documents import ShareEstimate, ShareWait, Suggestion
from scheduler.explain.share_remedies import remedies
from scheduler.explain.share_space import Running, Space, space_for
from scheduler.framework.queued import Entry, QueuedGroup
from scheduler.framework.shares import ShareKey, ShareLack, ShareRefusal
from scheduler.groups.reservations.run_times import NEVER, RunTimes
from scheduler.process.time_slice import TimeSlice

MAX_BORROWERS: Final = 5
MAX_LACKS: Final = 20
"""That are shown."""

MAX_FIRST: Final = 3
"""That go first and are named."""

MAX_NAME: Final = 253
"""Characters of a resource's name."""

CONDITION: Final = "if the pods that say how long they run keep to it, and nobody else takes what they leave"
SILENT: Final = "say nothing of that, or run longer than they said"


async def report_on_share_of(engine: Engine, pod: Pod, now: float) -> ShareWait | None:
    """Say why a pod, or its group, waits for its share; None if it has none, or if there is space.

    `now`: seconds since 1970. Other tasks run every few milliseconds.
    """
    space = space_for(engine, pod)
    refusal = None if space is None else space.refusal()
    if space is None or refusal is None:
        return None
    time_slice = TimeSlice()
    report = ShareWait(
        name=space.ref.name,
        source=space.ref.ledger.source,
        text=refusal.message,
        lacks=[_sentence(space.ref.key, lack) for lack in refusal.lacks[:MAX_LACKS]],
    )
    if not refusal.lacks:
        return report
    report.ahead = await _ahead(space, time_slice)
    running = await _running(space, refusal, time_slice)
    report.estimate = await _estimate(space, running, now, time_slice)
    found: list[Suggestion] = []
    for step in remedies(space, refusal, running):
        if step is not None:
            found.append(step)
        await time_slice.give_way()
    report.suggestions = found
    return report


def _sentence(key: ShareKey, lack: ShareLack) -> str:
    source, name = key
    resource = shortened(lack.resource, MAX_NAME)
    missing = f"{spelled_for(source, resource, lack.missing)} {resource}"
    if lack.is_limit:
        return f"{missing} above {'its limit' if lack.share == name else f'the limit of {lack.share}'}"
    borrowers = list(lack.borrowers.items())
    amounts = [(each, spelled_for(source, resource, amount)) for each, amount in borrowers[:MAX_BORROWERS]]
    by = ", ".join(f"{each} borrows {amount}" for each, amount in amounts)
    if len(borrowers) > MAX_BORROWERS:
        by += f", and {len(borrowers) - MAX_BORROWERS:,} more borrow"
    return f"{missing} more than {'it' if lack.share == name else lack.share} has{f': {by}' if by else ''}"


async def _ahead(space: Space, time_slice: TimeSlice) -> str:
    """Name those that wait for the same share and go first."""
    engine, pending = space.engine, space.engine.queue.pending_for_quota
    keys = (space.pod.uid, engine.group_parts.groups.key_of(space.pod))
    ranked: list[tuple[Any, Entry]] = []
    for entry in tuple(pending):
        await time_slice.give_way()
        ref = engine.shares.ref(pending.request(entry.key).selector) if entry.key in pending else None
        if ref is not None and ref.key == space.ref.key:
            ranked.append((pending.rank(entry), entry))
    own = next((rank for rank, entry in ranked if entry.key in keys), None)
    first = [] if own is None else [each for each in ranked if each[0] < own]
    if not first:
        return ""
    names = ", ".join(_name(engine, entry) for _, entry in nsmallest(MAX_FIRST, first, key=itemgetter(0)))
    more = f" and {len(first) - MAX_FIRST:,} more" if len(first) > MAX_FIRST else ""
    return f"first in its share: {names}{more}"


def _name(engine: Engine, entry: Entry) -> str:
    if isinstance(entry, QueuedGroup):
        return f"the group {entry.pod.namespace}/{engine.group_parts.groups.name_of(entry.pod)}"
    return str(entry.pod)


async def _running(space: Space, refusal: ShareRefusal, time_slice: TimeSlice) -> list[Running]:
    """Return the pods with a node whose end would free some of the lacking resources where they are lacking."""
    resources = {lack.resource for lack in refusal.lacks}
    names = {name for lack in refusal.lacks for name in space.below(lack.share)}
    found = []
    for pod in tuple(space.engine.cache.counted_pods()):
        running = space.running(pod)
        if running is not None and running.share in names and any(running.amounts.get(each) for each in resources):
            found.append(running)
        await time_slice.give_way()
    return found


class _End(NamedTuple):
    left: float
    """Seconds from now on."""

    running: Running


async def _estimate(space: Space, running: Sequence[Running], now: float, time_slice: TimeSlice) -> ShareEstimate:
    known = RunTimes(space.engine.group_parts.groups, trusts_promises=True)
    ends = [_End(left, each) for each in running if (left := known.end(each.pod, now).seconds) != NEVER]
    ends.sort(key=lambda each: each.left)
    tree, silent = space.tree(), len(running) - len(ends)
    for end in ends:
        tree.remove(end.running.share, end.running.amounts)
        if space.refusal(tree) is None:
            text = f"about {_duration(end.left)}, {CONDITION}"
            if silent:
                text += f"; {silent:,} of {len(running):,} {SILENT}"
            return ShareEstimate(text, end.left, len(running), silent)
        await time_slice.give_way()
    if not running:
        return ShareEstimate("no pod that runs could leave what it lacks", None, 0, 0)
    text = f"unknown: {silent:,} of the {len(running):,} pods that could leave what it lacks {SILENT}"
    if ends:
        text += "; the others leave too little"
    return ShareEstimate(text, None, len(running), silent)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours // 24} d {hours % 24} h" if hours >= 48 else f"{hours} h {minutes} min"
