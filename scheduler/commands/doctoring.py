"""Examines an installation for `loadmaster doctor`, and prints what was found."""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from textwrap import wrap
from typing import Any, Final

from scheduler.api.labels import subdomain_problems
from scheduler.api.wording.text import counted, printable
from scheduler.commands.options import registry
from scheduler.config.load import read_config
from scheduler.doctor.checks import certificates, port
from scheduler.doctor.evidence.cluster import Cluster
from scheduler.doctor.evidence.configured import configured
from scheduler.doctor.evidence.facts import collect
from scheduler.doctor.examination import CHECKS, Check, examine
from scheduler.doctor.findings import Finding, Level
from scheduler.explain.screen import Screen, screen_of_output
from scheduler.framework.errors import ConfigError
from scheduler.kube.http.client import connected
from scheduler.process.results import results


async def run(options: argparse.Namespace) -> int:
    """Return the exit code. Raises ConfigError, ClusterError."""
    _check_names(options)
    plugins = registry(options)
    file = read_config(options.config)
    given = None if file is None else configured(file.values, plugins)
    async with connected(options.kubeconfig, options.context) as client:
        cluster = Cluster(client, options.service_namespace, options.service)
        facts = await collect(cluster, options.service_namespace, options.service, plugins, given, time.time)
        checks: list[tuple[str, Check]] = [
            *CHECKS,
            ("certificates", partial(certificates.of_the_user, credentials=client.credentials)),
        ]
        if options.metrics_reader:
            checks.append(("port", partial(port.reader, account=options.metrics_reader)))
        findings = await examine(facts, cluster, checks)
        server = client.credentials.identity.server
    _show(options, server, findings)
    return 1 if any(each.level is Level.PROBLEM for each in findings) else 0


def _show(options: argparse.Namespace, server: str, findings: list[Finding]) -> None:
    if options.output == "json":
        about = {"namespace": options.service_namespace, "service": options.service, "server": server}
        print(json.dumps({**about, "findings": document_of(findings)}, indent=2), file=results())
        return
    print(f"Loadmaster {options.service_namespace}/{options.service} at {server}\n", file=results())
    for line in lines_of(findings, screen_of_output()):
        print(line, file=results())


def _check_names(options: argparse.Namespace) -> None:
    """Raise ConfigError for what cannot be the name of anything."""
    reader = options.metrics_reader or "namespace/account"
    names = [options.service, options.service_namespace, *reader.split("/", 1)]
    problems = [f"{name[:100]!r} cannot be a name" for name in names if not name.isascii() or subdomain_problems(name)]
    if "/" not in reader:
        problems.append(f"--metrics-reader: expected NAMESPACE/ACCOUNT, got {reader[:100]!r}")
    if problems:
        raise ConfigError(problems)


MARKS: Final = {Level.OK: "OK", Level.WARNING: "WARNING", Level.PROBLEM: "PROBLEM", Level.UNKNOWN: "?"}
STYLES: Final = {Level.OK: "32", Level.WARNING: "33", Level.PROBLEM: "31", Level.UNKNOWN: "2"}

INDENT: Final = 23
"""Of messages: after the mark and the topic."""


def lines_of(findings: Sequence[Finding], screen: Screen) -> Iterator[str]:
    """Yield a line for each, longer ones wrapped, and what to do below."""
    width, advised = max(60, screen.width), set[str]()
    for each in findings:
        head = f"{MARKS[each.level]:<8} {each.topic:<13} "
        if len(head) > INDENT:
            yield screen.styled(printable(head.rstrip()), STYLES[each.level])
            head = " " * INDENT
        first, *rest = wrap(printable(each.message), width - INDENT, break_on_hyphens=False) or [""]
        yield screen.styled(head[:8], STYLES[each.level]) + head[8:] + first
        yield from (" " * INDENT + line for line in rest)
        if each.advice in advised:
            continue
        advised.add(each.advice)
        advice, *copied = each.advice.split("\n")
        for line in wrap(printable(advice), width - INDENT - 2, break_on_hyphens=False):
            yield " " * INDENT + ("→ " if advice.startswith(line) else "  ") + line
        yield from (" " * INDENT + "  " + printable(line) for line in copied)
    yield ""
    yield summary(findings)


def summary(findings: Sequence[Finding]) -> str:
    counts = Counter(each.level for each in findings)
    parts = [counted(counts[Level.PROBLEM], "problem"), counted(counts[Level.WARNING], "warning")]
    if counts[Level.UNKNOWN]:
        parts.append(f"{counts[Level.UNKNOWN]} not checked")
    return ", ".join(parts)


def document_of(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    return [
        {"level": each.level.value, "topic": each.topic, "message": each.message, "advice": each.advice}
        for each in findings
    ]
