"""The scheduler's tables, compared with the API server."""

import asyncio
from typing import Final

from scheduler.doctor.evidence.cluster import MAX_PAGES, Cluster
from scheduler.doctor.evidence.facts import Facts, known
from scheduler.doctor.evidence.objects import AnyObject
from scheduler.doctor.evidence.samples import Samples
from scheduler.doctor.findings import Finding, ok, unknown, warning

SETTLE_SECONDS: Final = 2.0
"""A list and the metrics are never of the same moment."""

TRIES: Final = 3

PLACED: Final = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="
"""The pods that count on nodes."""

COMPARE: Final = "kill -USR2 the process in the pod: its log then names each object that differs"


async def counts(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether as many nodes and placed pods are known as there are: a few times, as both change."""
    samples = known(facts.samples)
    findings = list[Finding]()
    for kind, path, pages, query in (
        ("nodes", "/api/v1/nodes", 1, {}),  # the first page says how many are left
        ("pods", "/api/v1/pods", MAX_PAGES, {"fieldSelector": PLACED}),  # no page of a selection does
    ):
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(SETTLE_SECONDS)
                samples = Samples((await cluster.page("metrics")).decode(errors="replace"))
            listed = await cluster.list(path, AnyObject, pages, **query)
            known_here = samples.total("scheduler_cache_size", type=kind)
            if listed.count is None or known_here is None or listed.count == known_here:
                break
        findings.append(_compared(kind, listed.count, known_here))
    return findings


def _compared(kind: str, there: int | None, here: float | None) -> Finding:
    if there is None or here is None:
        return unknown(f"{kind}: there are too many to count them; {COMPARE}")
    if there == here:
        return ok(f"the scheduler knows all {there:,} {'placed pods' if kind == 'pods' else kind}")
    return warning(f"the scheduler knows {here:,.0f} {kind}, and the API server has {there:,}", COMPARE)


async def repairs(facts: Facts, _: Cluster) -> list[Finding]:
    """Whether comparisons have found lost changes since the start, and objects could be read."""
    samples = known(facts.samples)
    findings = list[Finding]()
    if repaired := samples.total("loadmaster_resync_repairs_total"):
        advice = "each was a change that the watch lost: docs/runbook.md, LoadmasterChangesMissed"
        findings.append(warning(f"{repaired:,.0f} lost changes were repaired since its start", advice))
    errors = samples.of("loadmaster_watch_errors_total")
    # What is not served has a line of its own, if it should be.
    if unusable := {labels["resource"] for labels, count in errors if count and labels["reason"] != "absent"}:
        message = f"objects that could not be used: {', '.join(sorted(unusable)[:5])}"
        findings.append(warning(message, "its log names them, and what is wrong with them"))
    return findings or [ok("no change was lost since its start")]
