"""Half an hour in which pods come and go, hostile ones among them, and nothing that the scheduler has may grow.

    python -m tests.attacks.soak [--minutes 30]

Pods are made at a steady rate and live for a while; attacks come and go beside them, one after the other. The last
third of the time is compared with the second: the first is for filling what is bounded.
"""

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from statistics import fmean
from typing import Final

import orjson

from tests.attacks.__main__ import FAILURES
from tests.attacks.affinity import HOSTNAME, ZONE, anti_affinity
from tests.attacks.attack import Attack, Object, Target
from tests.attacks.catalog import ATTACKS
from tests.attacks.runner import create_all, delete_all
from tests.bench import usage
from tests.bench.api import Api
from tests.bench.background import Threads
from tests.bench.wire import Request, Server
from tests.cluster.loadmaster import http_get, install_rbac, start, sum_of
from tests.controlplane import Component, ControlPlane, Settings, a_node, a_pod

NODES: Final = 1_000
RATE: Final = 100
"""Pods a second."""
LIFE_SECONDS: Final = 15
"""How long a pod lives."""
SELECTIVE: Final = 10
"""One of so many pods has a selector."""
CHURNED, HOSTILE = "churned", "hostile"
TAKE_TURNS: Final = (
    "running-terms",
    "resource-names",
    "tolerations",
    "pending-terms",
    "node-values",
    "host-ports",
    "large-pods",
    "containers",
    "labels",
)
"""The attacks of few objects, so that the API server keeps up."""

SAMPLE_SECONDS: Final = 5.0
ALLOWED_GROWTH: Final = 0.03
"""Of memory, from the second third to the last."""
ALLOWED_MORE: Final = 20
"""Descriptors, threads and the like that may be more: connections are opened as they are needed."""
LEAST_BOUND: Final = 0.9
"""Of the pods that came, so many must have been bound."""
MEBIBYTE: Final = 1 << 20


class Churn:
    """`beat` once a second: makes pods, and deletes those whose time is over."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._alive: deque[Sequence[Object]] = deque()
        self.made = 0
        """Pods so far."""

    def beat(self) -> bool:
        """Always True. Raises Refused or WireError."""
        pods = [churned_pod(number) for number in range(self.made, self.made + RATE)]
        over = self._alive.popleft() if len(self._alive) >= LIFE_SECONDS else ()
        self._api.bulk([*map(self._deletion, over), *map(self._creation, pods)], lambda *_: None)
        self._alive.append(pods)
        self.made += len(pods)
        return True

    def _creation(self, pod: Object) -> Sequence[Request]:
        path, what = self._api.path("v1/Pod", CHURNED)
        return [Request("POST", path, what, orjson.dumps(pod))]

    def _deletion(self, pod: Object) -> Sequence[Request]:
        path, what = self._api.path("v1/Pod", CHURNED, pod["metadata"]["name"])
        return [Request("DELETE", f"{path}?gracePeriodSeconds=0", what)]


def churned_pod(number: int) -> Object:
    """The pod of that number; no other number has its labels or its selector."""
    app = f"app-{number}"
    pod = a_pod(f"churned-{number}", cpu="10m", memory="16Mi", labels={"app": app})
    if number % SELECTIVE == 0:
        pod["spec"].update(selective(number // SELECTIVE, {"matchLabels": {"app": app}}))
    return pod


def selective(number: int, selector: Object) -> Object:
    """What a pod's spec says with that selector: each kind of selector in its turn."""
    towards_host, towards_zone = ({"labelSelector": selector, "topologyKey": key} for key in (HOSTNAME, ZONE))
    preferred = [{"weight": 1, "podAffinityTerm": towards_host}]
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    kinds: tuple[Object, ...] = (
        {"affinity": anti_affinity([towards_host])},
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}},
        {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}},
        {"affinity": anti_affinity([towards_zone])},
        {"topologySpreadConstraints": [spread]},
        {"topologySpreadConstraints": [{**spread, "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"nodeSelector": {HOSTNAME: f"node-{number % 100}"}},
        {"tolerations": [{"key": f"example.com/{number}", "operator": "Exists"}]},
    )
    return kinds[number % len(kinds)]


class Attacks:
    """`beat` now and then: the objects of one attack come, or go."""

    def __init__(self, api: Api, nodes: Sequence[str]) -> None:
        self._api = api
        self._attacks: Iterator[Attack] = cycle(ATTACKS[name] for name in TAKE_TURNS)
        self._target = Target(HOSTILE, nodes)
        self._there: Sequence[Object] = ()

    def beat(self) -> bool:
        """Always True. Raises Refused or WireError."""
        if self._there:
            delete_all(self._api, self._there, HOSTILE)
            self._there = ()
        else:
            self._there = list(next(self._attacks).objects(self._target))
            create_all(self._api, self._there, HOSTILE)
        return True


@dataclass(frozen=True, slots=True)
class Sample:
    """What the scheduler has at one moment."""

    made: int
    """Pods so far."""
    bound: float
    memory: int
    """Resident, in bytes."""
    counted: dict[str, float]
    """What may not grow either, by name."""


def sample(scheduler: Component, made: int) -> Sample:
    """Look at the scheduler. Raises OSError or ValueError if it has ended, or does not answer."""
    status, text = http_get(scheduler.port, "/metrics")
    if status != 200:
        raise OSError(f"{scheduler.name} does not answer a scrape: its status is {status}")
    counted = {
        "descriptors": len(os.listdir(f"/proc/{scheduler.pid}/fd")),
        "threads": len(os.listdir(f"/proc/{scheduler.pid}/task")),
        "events in flight": sum_of(text, "scheduler_inflight_events"),
        "tasks": sum_of(text, "scheduler_goroutines"),
    }
    bound = sum_of(text, "scheduler_schedule_attempts_total", result="scheduled")
    return Sample(made, bound, usage.resident_memory(scheduler.pid), counted)


def run(minutes: float) -> list[Sample]:
    """Let pods come and go for so long. Raises Refused, WireError, or what the control plane raises."""
    with ExitStack() as stack:
        controlplane = stack.enter_context(ControlPlane(Settings(kwok=True)))
        credentials = controlplane.credentials
        server = Server(controlplane.apiserver.port, credentials.ca, credentials.tokens["admin"])
        api = stack.enter_context(Api(server))
        nodes = [f"node-{number}" for number in range(NODES)]
        create_all(api, (a_node(name, zone=f"zone-{number % 3}") for number, name in enumerate(nodes)))
        for namespace in (CHURNED, HOSTILE):
            controlplane.create_namespace(namespace)
        install_rbac(controlplane)
        scheduler = stack.enter_context(start(controlplane))
        usage.wait_quiet([scheduler], 30.0)
        background = Threads()
        stack.callback(background.stop)
        churn = Churn(api)
        background.every(1.0, churn.beat)
        # Each third of the time sees each attack once, there and gone: so the thirds can be compared.
        background.every(60 * minutes / 3 / (2 * len(TAKE_TURNS)), Attacks(api, nodes).beat)
        samples: list[Sample] = []
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            samples.append(sample(scheduler, churn.made))
            print(told(samples[-1]), flush=True)
            if background.error is not None:
                raise background.error
            time.sleep(SAMPLE_SECONDS)
        return samples


def told(found: Sample) -> str:
    counted = ", ".join(f"{value:,.0f} {name}" for name, value in found.counted.items())
    return f"{found.memory / MEBIBYTE:8.1f} MiB, {found.bound:,.0f} of {found.made:,} pods bound, {counted}"


def problems(samples: Sequence[Sample]) -> list[str]:
    """What grew that should not have; nothing if all is well."""
    found = []
    second, last = thirds(samples, lambda each: each.memory / MEBIBYTE)
    print(f"memory: {second:.1f} MiB in the second third, {last:.1f} in the last, {last / second - 1:+.1%}")
    if last > second * (1 + ALLOWED_GROWTH):
        found.append(f"memory grew by more than {ALLOWED_GROWTH:.0%}")
    for name in samples[0].counted:
        second, last = thirds(samples, lambda each, name=name: each.counted[name])  # type: ignore[misc]
        if last > second + ALLOWED_MORE:
            found.append(f"{name}: {second:.0f} became {last:.0f}")
    if samples[-1].bound < LEAST_BOUND * samples[-1].made:
        found.append(f"{samples[-1].bound:,.0f} of {samples[-1].made:,} pods were bound")
    return found


def thirds(samples: Sequence[Sample], value: Callable[[Sample], float]) -> tuple[float, float]:
    """The mean of a value in the second and in the last third."""
    size = len(samples) // 3
    return fmean(map(value, samples[-2 * size : -size])), fmean(map(value, samples[-size:]))


def main() -> int:
    """Returns 1 if something grew."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30, help="(default: %(default)s)")
    options = parser.parse_args()
    try:
        found = problems(run(options.minutes))
    except FAILURES as error:
        print(f"FAILED: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print("\n".join(f"NOT WELL: {each}" for each in found) or "nothing grew")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
