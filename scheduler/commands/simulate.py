"""`loadmaster simulate`: where would these pods go?"""

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from scheduler.api.text import printable
from scheduler.commands.interrupts import ended_by_interrupt
from scheduler.config.documents import Document
from scheduler.config.load import load_config
from scheduler.config.types import Config
from scheduler.framework.errors import ConfigError
from scheduler.framework.resources import read_raw_pods
from scheduler.process.logs import TextFormatter
from scheduler.process.progress import Progress, on_stderr
from scheduler.process.results import results
from scheduler.runtime.registry import Registry
from scheduler.simulate.cluster import SimulatedCluster, read_cluster
from scheduler.simulate.controllers.adoption import adopted
from scheduler.simulate.engine import simulate
from scheduler.simulate.output import as_json, as_text
from scheduler.simulate.what_if.answers import answered, is_short
from scheduler.simulate.what_if.questions import questions_of

PENDING: Final = 3
"""The exit code that says that not all pods found a node."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The objects of a running cluster, and what could not be read."""

    documents: list[Document]
    notes: list[str]


ReadCluster = Callable[[Config, Registry, Progress], Stored]
"""Reads them. Raises ConfigError."""


def run(options: argparse.Namespace, registry: Registry, read_stored: ReadCluster | None = None) -> int:
    """Simulate, and print the result. `read_stored`: for --from-cluster. Raises ConfigError."""
    progress = on_stderr()
    _log_as_run_does(progress)
    with ended_by_interrupt():
        with progress.shown():
            document = _document(options, registry, read_stored, progress)
        return _show(options, document)


def _log_as_run_does(progress: Progress) -> None:
    """Show warnings on standard error with all that they say, unless somebody has set up logging already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter())
    handler.addFilter(_clearing(progress))
    logging.basicConfig(handlers=[handler])


def _clearing(progress: Progress) -> Callable[[logging.LogRecord], bool]:
    def is_shown(_: logging.LogRecord) -> bool:
        progress.clear()
        return True

    return is_shown


def _document(
    options: argparse.Namespace, registry: Registry, read_stored: ReadCluster | None, progress: Progress
) -> dict[str, Any]:
    _check_sources(options)
    config = load_config(options.config, registry)
    questions = questions_of(options)
    enabled = {name for profile in config.profiles for name in profile.enabled}
    raw_pods = read_raw_pods(registry[name] for name in enabled)
    stored = read_stored(config, registry, progress) if read_stored is not None else Stored([], [])
    strict = not options.allow_unknown_fields
    cluster = read_cluster(options.files, raw_pods=raw_pods, strict=strict, stored=stored.documents, progress=progress)
    cluster = replace(cluster, pods=tuple(adopted(cluster.pods, config)))
    explain, each_alone = options.explain, options.each_alone
    document: dict[str, Any]
    if questions:
        document = answered(
            cluster, questions, config, registry, each_alone=each_alone, explain=explain, progress=progress
        )
    else:
        document = simulate(
            cluster.nodes,
            cluster.pods,
            config,
            registry,
            cluster.others,
            each_alone=each_alone,
            explain=explain,
            progress=progress,
        )
        document = {"notes": _quota_notes(cluster), **document}
    return {**document, "notes": [*stored.notes, *_left_out(cluster, config), *cluster.notes, *document["notes"]]}


def _quota_notes(cluster: SimulatedCluster) -> list[str]:
    creation = cluster.creation
    return [] if creation is None else creation.quotas.notes((pod, 1) for _, pod in creation.pods)


def _check_sources(options: argparse.Namespace) -> None:
    if options.from_cluster:
        return
    problems = [] if options.files else ["there is nothing to simulate: give files, or --from-cluster"]
    problems += (
        f"--{option}: says how to reach a cluster, and --from-cluster is missing"
        for option in ("kubeconfig", "context")
        if getattr(options, option) is not None
    )
    if problems:
        raise ConfigError(problems)


def _show(options: argparse.Namespace, document: dict[str, Any]) -> int:
    for note in document["notes"]:
        print(printable(note), file=sys.stderr)
    if options.output == "json":
        results().flush()
        results().buffer.writelines(text.encode() for text in as_json(document))
    else:
        print(as_text(document, explain=options.explain), file=results())
    is_pending = any(pod["node"] is None for pod in document["pods"]) or is_short(document)
    return PENDING if is_pending and options.fail_if_pending else 0


def _left_out(cluster: SimulatedCluster, config: Config) -> Iterator[str]:
    """What of the files and the configuration does not count."""
    names = {profile.scheduler_name for profile in config.profiles}
    foreign = sum(not pod.node_name and pod.spec.scheduler_name not in names for pod in cluster.pods)
    if foreign:
        yield f"left out {foreign} waiting pods of other schedulers"
    if config.extenders:
        yield f"left out {len(config.extenders)} extenders: nobody is asked in a simulation"
    left_out = cluster.others.left_out()
    if left_out:
        yield "left out objects of kinds that do not count: " + ", ".join(
            f"{count} {kind}" for kind, count in sorted(left_out.items())
        )
