"""`loadmaster simulate`: where would these pods go?"""

import argparse
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from scheduler.api.pod import Pod
from scheduler.config.load import load_config
from scheduler.config.types import Config
from scheduler.framework.resources import needs_of
from scheduler.runtime.registry import Registry
from scheduler.simulate.cluster import read_cluster
from scheduler.simulate.defaults import DEFAULT_SCHEDULER
from scheduler.simulate.engine import simulate
from scheduler.simulate.output import as_json, as_text

PENDING: Final = 3
"""The exit code that says that not all pods found a node."""


def run(options: argparse.Namespace, registry: Registry) -> int:
    """Simulate, and print the result. Raises ConfigError."""
    with _ended_by_interrupt():
        return _run(options, registry)


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
    cluster = read_cluster(options.files, needs_of(registry[name] for name in enabled))
    names = {profile.scheduler_name for profile in config.profiles}
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
    foreign = sum(not pod.node_name and pod.spec.scheduler_name not in names for pod in pods)
    if foreign:
        print(f"left out {foreign} waiting pods of other schedulers", file=sys.stderr)
    if config.extenders:
        print(f"left out {len(config.extenders)} extenders: nobody is asked in a simulation", file=sys.stderr)
    left_out = cluster.others.left_out()
    if options.verbosity and left_out:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(left_out.items()))
        print(f"left out objects of other kinds: {kinds}", file=sys.stderr)
    if options.output == "json":
        sys.stdout.flush()
        sys.stdout.buffer.writelines(text.encode() for text in as_json(document))
    else:
        print(as_text(document, explain=options.explain))
    is_pending = any(pod["node"] is None for pod in document["pods"])
    return PENDING if is_pending and options.fail_if_pending else 0


def adopted(pods: Iterable[Pod], config: Config) -> Iterable[Pod]:
    """Give the first profile the pods that ask for no scheduler in particular."""
    names = [profile.scheduler_name for profile in config.profiles]
    for pod in pods:
        if pod.spec.scheduler_name == DEFAULT_SCHEDULER and DEFAULT_SCHEDULER not in names:
            spec = msgspec.structs.replace(pod.spec, scheduler_name=names[0])
            pod = msgspec.structs.replace(pod, spec=spec)
        yield pod
