"""The attempts to place a pod, from the records of decisions."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import UNSET

from scheduler.api.wording.text import timestamp
from scheduler.engine.records import Record
from scheduler.explain.documents import NodeTotal, PermitDelay, ReportedAttempt, ReportedRefusal
from scheduler.state.nodes.node_table import NodeTable

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
