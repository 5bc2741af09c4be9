"""Runs it: a control plane with fake nodes, the scheduler as it is shipped, churn, attacks, and a look now and then."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Final

from tests.attacks.attack import Attack, Target
from tests.attacks.runner import create_all
from tests.bench import usage
from tests.bench.api import ServerApi
from tests.bench.background import Threads
from tests.bench.wire import Server
from tests.cluster.loadmaster import install_rbac, start
from tests.controlplane import ControlPlane, Settings, a_node
from tests.soak.churn import BEAT_SECONDS, Attacks, Churn
from tests.soak.samples import Sample, sample

SETTINGS: Final = Settings(kwok=True)
SAMPLE_SECONDS: Final = 5.0
SETTLE_SECONDS: Final = 30.0
CHURNED, HOSTILE = "churned", "hostile"


def run(
    nodes: int, rate: int, minutes: float, attacks: Sequence[Attack], tell: Callable[[Sample], None]
) -> list[Sample]:
    """Let pods come and go for so long; return what was seen, which `tell` is told at once.

    Raises Refused, WireError, or what the control plane raises.
    """
    with ExitStack() as stack:
        controlplane = stack.enter_context(ControlPlane(SETTINGS))
        credentials = controlplane.credentials
        server = Server(controlplane.apiserver.port, credentials.ca, credentials.tokens["admin"])
        api = stack.enter_context(ServerApi(server))
        names = [f"node-{number}" for number in range(nodes)]
        create_all(api, (a_node(name, zone=f"zone-{number % 3}") for number, name in enumerate(names)))
        for namespace in (CHURNED, HOSTILE):
            controlplane.create_namespace(namespace)
        install_rbac(controlplane)
        scheduler = stack.enter_context(start(controlplane))
        usage.wait_quiet([scheduler], SETTLE_SECONDS)
        background = Threads()
        stack.callback(background.stop)
        churn, hostile = Churn(api, CHURNED, rate), Attacks(api, attacks, Target(HOSTILE, names))
        background.every(BEAT_SECONDS, churn.beat)
        if attacks:
            # Each third of the time sees each attack once, there and gone: so the thirds can be compared.
            background.every(60 * minutes / 3 / (2 * len(attacks)), hostile.beat)
        samples: list[Sample] = []
        for seconds in moments(60 * minutes):
            samples.append(sample(scheduler, seconds, churn.made, hostile.name))
            tell(samples[-1])
            if background.error is not None:
                raise background.error
        return samples


def moments(total: float) -> Iterator[float]:
    """Yield the seconds since the first call, every `SAMPLE_SECONDS`, each when it has come."""
    began = time.monotonic()
    while (seconds := time.monotonic() - began) <= total:
        yield seconds
        time.sleep(max(0.0, SAMPLE_SECONDS - (time.monotonic() - began - seconds)))
