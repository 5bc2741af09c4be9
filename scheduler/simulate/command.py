"""`loadmaster simulate`: where would these pods go?"""

import argparse
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from scheduler.api.text import printable
from scheduler.config.load import load_config
from scheduler.config.types import Config
from scheduler.framework.resources import needs_of
from scheduler.logs import TextFormatter
from scheduler.runtime.registry import Registry
from scheduler.simulate.adoption import adopted
from scheduler.simulate.cluster import SimulatedCluster, read_cluster
from scheduler.simulate.engine import simulate
from scheduler.simulate.output import as_json, as_text
from scheduler.simulate.what_if.answers import answered, is_short
from scheduler.simulate.what_if.owners import NEEDS as OF_EVICTIONS
from scheduler.simulate.what_if.questions import Questions, questions_of

PENDING: Final = 3
"""The exit code that says that not all pods found a node."""


def run(options: argparse.Namespace, registry: Registry) -> int:
    """Simulate, and print the result. Raises ConfigError."""
    _log_as_run_does()
    with _ended_by_interrupt():
        return _run(options, registry)


def _log_as_run_does() -> None:
    """Show warnings on standard error with all that they say, unless somebody has set up logging already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter())
    logging.basicConfig(handlers=[handler])


@contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the program at once: an exception, which is what Python makes of it, is a plugin's in its call."""
    former = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def _run(options: argparse.Namespace, registry: Registry) -> int:
    config = load_config(options.config, registry)
    enabled = {name for profile in config.profiles for name in profile.enabled}
    needs = needs_of(registry[name] for name in enabled)
    questions = questions_of(options)
    cluster = read_cluster(
        options.files, {*needs, *(OF_EVICTIONS if questions else ())}, strict=not options.allow_unknown_fields
    )
    cluster = replace(cluster, pods=tuple(adopted(cluster.pods, config)))
    document = _document(cluster, questions, options, config, registry)
    notes = [*_left_out(cluster, config), *cluster.notes]
    for note in notes:
        print(printable(note), file=sys.stderr)
    if options.output == "json":
        sys.stdout.flush()
        sys.stdout.buffer.writelines(text.encode() for text in as_json({"notes": notes, **document}))
    else:
        print(as_text(document, explain=options.explain))
    is_pending = any(pod["node"] is None for pod in document["pods"]) or is_short(document)
    return PENDING if is_pending and options.fail_if_pending else 0


def _document(
    cluster: SimulatedCluster, questions: Questions, options: argparse.Namespace, config: Config, registry: Registry
) -> dict[str, Any]:
    how = {"each_alone": options.each_alone, "explain": options.explain}
    if questions:
        return answered(cluster, questions, config, registry, **how)
    return simulate(cluster.nodes, cluster.pods, config, registry, cluster.others, **how)


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
