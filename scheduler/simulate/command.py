"""`loadmaster simulate`: where would these pods go?"""

import argparse
import logging
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from scheduler.api.pod import Pod
from scheduler.api.text import printable
from scheduler.config.load import load_config
from scheduler.config.types import Config
from scheduler.framework.resources import needs_of
from scheduler.logs import TextFormatter
from scheduler.runtime.registry import Registry
from scheduler.simulate.cluster import SimulatedCluster, read_cluster
from scheduler.simulate.defaults import DEFAULT_SCHEDULER
from scheduler.simulate.engine import simulate
from scheduler.simulate.output import as_json, as_text

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
    cluster = read_cluster(options.files, needs, strict=not options.allow_unknown_fields)
    pods = list(adopted(cluster.pods, config))
    document = simulate(
        cluster.nodes,
        pods,
        config,
        registry,
        cluster.others,
        each_alone=options.each_alone,
        explain=options.explain,
    )
    notes = [*_left_out(pods, config, cluster), *cluster.notes]
    for note in notes:
        print(printable(note), file=sys.stderr)
    if options.output == "json":
        sys.stdout.flush()
        sys.stdout.buffer.writelines(text.encode() for text in as_json({"notes": notes, **document}))
    else:
        print(as_text(document, explain=options.explain))
    is_pending = any(pod["node"] is None for pod in document["pods"])
    return PENDING if is_pending and options.fail_if_pending else 0


def _left_out(pods: Iterable[Pod], config: Config, cluster: SimulatedCluster) -> Iterator[str]:
    """What of the files and the configuration does not count."""
    names = {profile.scheduler_name for profile in config.profiles}
    foreign = sum(not pod.node_name and pod.spec.scheduler_name not in names for pod in pods)
    if foreign:
        yield f"left out {foreign} waiting pods of other schedulers"
    if config.extenders:
        yield f"left out {len(config.extenders)} extenders: nobody is asked in a simulation"
    left_out = cluster.others.left_out()
    if left_out:
        yield "left out objects of kinds that do not count: " + ", ".join(
            f"{count} {kind}" for kind, count in sorted(left_out.items())
        )


def adopted(pods: Iterable[Pod], config: Config) -> Iterable[Pod]:
    """Give the first profile the pods that ask for no scheduler in particular."""
    names = [profile.scheduler_name for profile in config.profiles]
    for pod in pods:
        if pod.spec.scheduler_name == DEFAULT_SCHEDULER and DEFAULT_SCHEDULER not in names:
            spec = msgspec.structs.replace(pod.spec, scheduler_name=names[0])
            pod = msgspec.structs.replace(pod, spec=spec)
        yield pod
