"""Runs all checks, each with a time limit: one that fails costs only its own line."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from scheduler.doctor.checks import (
    certificates,
    leases,
    pending,
    plugins,
    port,
    replicas,
    rights,
    tables,
    versions,
)
from scheduler.doctor.evidence.cluster import Cluster, NotAllowed
from scheduler.doctor.evidence.facts import Facts
from scheduler.doctor.findings import Finding, Level, unknown
from scheduler.framework.awaited import together
from scheduler.framework.errors import ClusterError
from scheduler.kube.services.service_proxy import Refused

SECONDS: Final = 60.0
"""For one check."""

READER: Final = "docs/examples/doctor-reader.yaml has a role for it"

Check: TypeAlias = Callable[[Facts, Cluster], Awaitable[list[Finding]]]

CHECKS: Final[Sequence[tuple[str, Check]]] = (
    ("installation", replicas.service),
    ("versions", versions.of_the_api_server),
    ("versions", versions.of_loadmaster),
    ("versions", versions.of_the_replicas),
    ("versions", versions.of_kube_scheduler),
    ("replicas", replicas.creation),
    ("replicas", replicas.pods),
    ("replicas", replicas.budget),
    ("replicas", replicas.architectures),
    ("port", port.health),
    ("port", port.metrics),
    ("rights", rights.of_the_account),
    ("rights", rights.of_the_port),
    ("rights", rights.of_the_user),
    ("served", rights.resources),
    ("leader", leases.leader),
    ("leader", leases.others),
    ("clock", leases.of_this_machine),
    ("clock", leases.of_the_leader),
    ("tables", tables.counts),
    ("tables", tables.repairs),
    ("plugins", plugins.configuration),
    ("plugins", plugins.faults),
    ("certificates", certificates.of_the_scheduler),
    ("pods", pending.pods),
)
"""Topic, check; in the order of the screen."""


async def examine(facts: Facts, cluster: Cluster, checks: Sequence[tuple[str, Check]] = CHECKS) -> list[Finding]:
    """The findings of all checks, by topic."""
    found = await together(*(_checked(topic, check, facts, cluster) for topic, check in checks))
    order = list(dict.fromkeys(topic for topic, _ in checks))
    findings = [finding for each in found for finding in each]
    return _merged(sorted(findings, key=lambda each: order.index(each.topic)))


async def _checked(topic: str, check: Check, facts: Facts, cluster: Cluster) -> list[Finding]:
    try:
        async with asyncio.timeout(SECONDS):
            findings = await check(facts, cluster)
    except TimeoutError:
        findings = [unknown(f"no answer within {SECONDS:g} s")]
    except NotAllowed as error:
        findings = [unknown(str(error), READER)]
    except Refused as error:
        findings = [unknown(str(error), facts.role_binding)]
    except ClusterError as error:
        findings = [unknown(str(error))]
    return [replace(each, topic=topic) for each in findings]


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Make one line of all that could not be checked for one reason, at the place of the first."""
    topics: dict[str, list[str]] = {}
    for each in findings:
        if each.level is Level.UNKNOWN:
            topics.setdefault(each.message, []).append(each.topic)
    merged = list[Finding]()
    for each in findings:
        if each.level is not Level.UNKNOWN:
            merged.append(each)
        elif each.message in topics:
            merged.append(replace(each, topic=", ".join(dict.fromkeys(topics.pop(each.message)))))
    return merged
