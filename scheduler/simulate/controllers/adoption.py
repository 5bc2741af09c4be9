"""Pods that ask for no scheduler in particular: a simulation is asked about them, so they are its own."""

from collections.abc import Iterable

import msgspec

from scheduler.api.pod import Pod
from scheduler.config.types import Config
from scheduler.simulate.apiserver.defaults import DEFAULT_SCHEDULER


def adopted(pods: Iterable[Pod], config: Config) -> Iterable[Pod]:
    """Give the first profile the pods that ask for no scheduler in particular."""
    names = [profile.scheduler_name for profile in config.profiles]
    for pod in pods:
        if pod.spec.scheduler_name == DEFAULT_SCHEDULER and DEFAULT_SCHEDULER not in names:
            spec = msgspec.structs.replace(pod.spec, scheduler_name=names[0])
            pod = msgspec.structs.replace(pod, spec=spec)
        yield pod
