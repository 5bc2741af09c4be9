"""How long it takes to be told why a pod is pending, in a large cluster: `python -m tests.bench.explain`.

A real API server has 5,000 nodes and 20,000 pods (those of `tests.bench.simulate`), and a scheduler at work behind its
Service. A user who has the Role `loadmaster-explain` asks about pods that wait for different reasons, by
`loadmaster explain`, and through the API server's proxy without the start of a process. Printed are the milliseconds of
each, the best of a few, and of the answer alone in the scheduler. Exit code 1: one is above its aim.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from scheduler.kube.http.client import Client as AsyncClient
from scheduler.kube.identity.credentials import load_credentials
from scheduler.kube.services.service_proxy import RunningScheduler
from scheduler.process.metrics import Metrics
from tests.attacks.runner import create_all
from tests.bench import simulate
from tests.bench.api import Api
from tests.bench.measure import PLAIN
from tests.bench.wire import Server
from tests.cluster.loadmaster import NAMESPACE, install_rbac, metric
from tests.cluster.proxied import asker, own_address, proxied
from tests.controlplane import ControlPlane, a_pod, wait_until

AIM: Final = 1000.0
"""Milliseconds for the command."""

SETTLED_SECONDS: Final = 300.0
ASKED: Final = "asked"
EVERYBODY: Final[Mapping[str, Any]] = {
    "labelSelector": {},
    "namespaceSelector": {},
    "topologyKey": "kubernetes.io/hostname",
}

PODS: Final[Mapping[str, Mapping[str, Any]]] = {
    "too-large": {"cpu": "64"},
    "nowhere": {"nodeSelector": {"topology.kubernetes.io/zone": "eu-west-1z"}},
    "alone": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [EVERYBODY]}}},
    "important": {"cpu": "7500m", "priority": 1000, "preemptionPolicy": "Never"},
}
"""Name → what keeps the pod waiting: everywhere the same, a label, other pods, and room that it may not make."""


def fill(controlplane: ControlPlane, api: Api) -> None:
    """Create the nodes, the pods that run, and those that are asked about. Raises Refused or WireError."""
    create_all(api, map(_new, map(simulate.a_node, range(simulate.NODES))))
    by_namespace: dict[str, list[dict[str, Any]]] = {}
    for number in range(simulate.PENDING, simulate.PODS):
        pod = _new(simulate.a_pod(number))
        by_namespace.setdefault(pod["metadata"]["namespace"], []).append(pod)
    for namespace, pods in by_namespace.items():
        controlplane.create_namespace(namespace)
        create_all(api, pods, namespace)
    controlplane.create_namespace(ASKED)
    create_all(api, [a_pod(name, ASKED, **spec) for name, spec in PODS.items()], ASKED)


def _new(obj: dict[str, Any]) -> dict[str, Any]:
    del obj["metadata"]["resourceVersion"]
    return obj


def of_command(kubeconfig: Path, name: str) -> float:
    """Milliseconds of one `loadmaster explain`. Raises CalledProcessError."""
    began = time.perf_counter()
    command = (sys.executable, "-m", "scheduler", "explain", f"{ASKED}/{name}", f"--kubeconfig={kubeconfig}")
    subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return 1000 * (time.perf_counter() - began)


async def of_requests(kubeconfig: Path, rounds: int) -> dict[str, float]:
    """Name of a pod → milliseconds of the best answer through the API server."""
    best: dict[str, float] = {}
    async with AsyncClient(await load_credentials(str(kubeconfig)), Metrics()) as client:
        scheduler = RunningScheduler(client, NAMESPACE, "loadmaster")
        for _ in range(rounds):
            for name in PODS:
                began = time.perf_counter()
                await scheduler.explain({"namespace": ASKED, "name": name})
                best[name] = min(best.get(name, 1e9), 1000 * (time.perf_counter() - began))
    return best


def measure(rounds: int) -> Iterator[tuple[str, float, float]]:
    """Yield the name of each pod, and the milliseconds of the command and of the answer alone."""
    with ExitStack() as stack:
        controlplane = stack.enter_context(ControlPlane(PLAIN))
        credentials = controlplane.credentials
        server = Server(controlplane.apiserver.port, credentials.ca, credentials.tokens["admin"])
        fill(controlplane, stack.enter_context(Api(server)))
        install_rbac(controlplane)
        user = asker(controlplane)
        admin = stack.enter_context(controlplane.client())
        process = stack.enter_context(proxied(controlplane, admin, own_address()))
        wait_until(
            lambda: metric(process.port, "scheduler_pending_pods", queue="unschedulable") == len(PODS),
            SETTLED_SECONDS,
            "the pods wait",
        )
        answers = asyncio.run(of_requests(user, rounds))
        for name in PODS:
            yield name, min(of_command(user, name) for _ in range(rounds)), answers[name]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.explain", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    is_missed = False
    for name, command, answer in measure(options.rounds):
        is_missed |= command > AIM
        print(f"{name:10} {command:6.0f} ms (aim {AIM:.0f}), the answer alone {answer:6.0f} ms", flush=True)
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())
