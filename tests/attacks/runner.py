"""Runs one attack: a new control plane, the scheduler as it is shipped, and plain pods before, during and after."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Final

from tests.attacks.attack import Attack, Object, Target
from tests.attacks.load import Figures, MemoryMeter, PlainLoad
from tests.bench import usage
from tests.bench.api import Api, create, kind_of
from tests.bench.background import Threads
from tests.bench.board import Board
from tests.bench.measure import PLAIN, start_observer
from tests.bench.wire import Request, Server
from tests.cluster.loadmaster import install_rbac, start
from tests.controlplane import ControlPlane, a_node

WANTED_RATE: Final = 0.8
"""Of the rate before the attack."""
ALLOWED_GROWTH: Final = 100 << 20
"""Bytes, while the attack goes on."""
ALLOWED_REST: Final = 30 << 20
"""Bytes that may be left of it: allocators give back whole pages only."""

HOSTILE: Final = "hostile"
SETTLE_SECONDS: Final = 20.0
"""So long at most is waited until the scheduler is quiet: before the attack, and after."""
ARRIVAL_SECONDS: Final = 3.0
"""From the last hostile object to the first plain pod: an attack that stops everything must have begun."""
GIVE_BACK_SECONDS: Final = 35.0
"""From the end of the attack to the last phase: what was made for pods is given back 15 to 30 s after the last one."""
RECREATE_SECONDS: Final = 10.0
"""Between two deletions of the objects of an attack that lets them come and go: the API server has to keep up."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of the three phases."""

    before: Figures
    during: Figures
    after: Figures

    @property
    def rate(self) -> float:
        """The rate during the attack as a share of the one before it."""
        return self.during.rate / self.before.rate if self.before.pods else 0.0

    @property
    def growth(self) -> int:
        """How much more memory the scheduler took during the attack, in bytes."""
        return self.during.peak_memory - self.before.peak_memory

    @property
    def rest(self) -> int:
        """How much of it was left afterwards, in bytes."""
        return self.after.peak_memory - self.before.peak_memory

    @property
    def problems(self) -> list[str]:
        """In what the scheduler falls short; none if it does not."""
        found = []
        if self.rate < WANTED_RATE:
            found.append(f"the rate fell to {self.rate:.1%}, {WANTED_RATE:.0%} are wanted")
        if self.growth > ALLOWED_GROWTH:
            found.append(f"memory grew by {mebibytes(self.growth)}, {mebibytes(ALLOWED_GROWTH)} are allowed")
        if self.rest > ALLOWED_REST:
            found.append(f"{mebibytes(self.rest)} of memory stayed, {mebibytes(ALLOWED_REST)} are allowed")
        return found


def run(attack: Attack, nodes: int, seconds: float, tell: Callable[[str, Figures], None]) -> Outcome:
    """Run an attack; `tell` gets each phase's name and figures.

    Raises Refused if the API server does not take the objects, WireError, or what the control plane raises.
    """
    with ExitStack() as stack:
        controlplane = stack.enter_context(ControlPlane(PLAIN))
        credentials = controlplane.credentials
        server = Server(controlplane.apiserver.port, credentials.ca, credentials.tokens["admin"])
        api = stack.enter_context(Api(server))
        names = [f"node-{number}" for number in range(nodes)]
        create_all(api, (a_node(name, zone=f"zone-{number % 3}") for number, name in enumerate(names)))
        for namespace in (HOSTILE, "warm-up", "before", "during", "after"):
            controlplane.create_namespace(namespace)
        install_rbac(controlplane)
        scheduler = start(controlplane)
        log = stack.enter_context(start_observer(controlplane).log.open())
        load = PlainLoad(server, api, scheduler, Board(log.read))

        def phase(name: str) -> Figures:
            figures = load.run(name, seconds)
            tell(name, figures)
            return figures

        load.run("warm-up", seconds / 2)
        usage.wait_quiet([scheduler], SETTLE_SECONDS)
        before = phase("before")
        usage.wait_quiet([scheduler], SETTLE_SECONDS)
        target = Target(HOSTILE, names)
        with MemoryMeter(scheduler.pid) as memory, under_attack(api, attack, target):
            time.sleep(ARRIVAL_SECONDS)
            during = phase("during")
        time.sleep(GIVE_BACK_SECONDS)
        usage.wait_quiet([scheduler], SETTLE_SECONDS)
        after = phase("after")
        return Outcome(before, replace(during, peak_memory=max(during.peak_memory, memory.peak)), after)


@contextmanager
def under_attack(api: Api, attack: Attack, target: Target) -> Iterator[None]:
    """Create the objects of an attack, for the length of a `with` block. Raises Refused or WireError."""
    objects = list(attack.objects(target))
    background = Threads()
    try:
        create_all(api, objects, target.namespace)
        if attack.recreated:
            background.every(RECREATE_SECONDS, lambda: recreate(api, objects, target.namespace))
        yield
    finally:
        background.stop()
        delete_all(api, objects, target.namespace)
    if background.error is not None:
        raise background.error


def create_all(api: Api, objects: Iterable[Object], namespace: str = "") -> None:
    """Create objects, those that are in namespaces in this one. Raises Refused or WireError."""
    api.bulk([[create(api, obj, namespace)] for obj in objects], nobody)


def delete_all(api: Api, objects: Sequence[Object], namespace: str) -> None:
    """Delete objects at once; of kinds that are in namespaces, everything in this one. Raises WireError."""
    for kind in dict.fromkeys(map(kind_of, objects)):
        names = (
            [""] if api.is_namespaced(kind) else [obj["metadata"]["name"] for obj in objects if kind_of(obj) == kind]
        )
        for name in names:
            path, what = api.path(kind, namespace, name)
            api.send(Request("DELETE", f"{path}?gracePeriodSeconds=0", what))


def recreate(api: Api, objects: Sequence[Object], namespace: str) -> bool:
    delete_all(api, objects, namespace)
    create_all(api, objects, namespace)
    return True


def nobody(number: int, sent: float) -> None:
    """Nobody wants to know of each request."""


def line(phase: str, figures: Figures) -> str:
    """The figures of a phase in a line."""
    return (
        f"  {phase:<7}{figures.rate:8,.0f} pods/s{1000 * figures.cpu_per_pod:10.2f} ms CPU per pod"
        f"{mebibytes(figures.peak_memory):>12}   longest pause {figures.longest_pause:5.1f} s"
    )


def mebibytes(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"
