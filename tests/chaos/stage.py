"""What all rounds share: the control plane, and the replicas behind their proxies."""

import asyncio
import json
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trustme

from tests.chaos.clock import Clock, build
from tests.chaos.load import HOSTILE, NAMESPACE, PRIORITIES
from tests.chaos.plan import Fault
from tests.chaos.proxy import Proxy
from tests.chaos.replica import START_SECONDS, Replica
from tests.chaos.trouble import Trouble
from tests.cluster import loadmaster
from tests.cluster.replicas import Timing
from tests.controlplane import AsyncClient, ControlPlane, ProcessError
from tests.controlplane.client import Object
from tests.controlplane.credentials import kubeconfig, write_private
from tests.controlplane.definitions import BUDGET
from tests.controlplane.kubeconfig import Connection
from tests.controlplane.processes import free_port

TIMING: Final = Timing(lease=4.0, renew=2.5, retry=0.5)
"""Of the election: a leader that cannot renew for 2.5 s ends."""

REPLICAS: Final = 2

CONFIGURATION: Final[Object] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 2,
    "profiles": [
        {"schedulerName": "loadmaster"},
        {"schedulerName": "budgeted", "plugins": {"multiPoint": {"enabled": [{"name": "TeamBudget"}]}}},
    ],
    "loadmaster": {"bindTimeoutSeconds": 2},
}

RULES: Final[tuple[Object, ...]] = (
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "chaos-budgets"},
        "rules": [{"apiGroups": ["example.com"], "resources": ["budgets"], "verbs": ["list", "watch"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "chaos-budgets"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "chaos-budgets"},
        "subjects": [
            {"kind": "ServiceAccount", "namespace": loadmaster.NAMESPACE, "name": loadmaster.ACCOUNT},
        ],
    },
)


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that is there before the first round."""

    cluster: ControlPlane
    api: AsyncClient
    """The tests' own way to the API server, not through a proxy."""
    replicas: tuple[Replica, ...]
    clock: Clock

    def victim(self, fault: Fault) -> Replica:
        """The replica that a fault hits, by who leads now; the only one plays both roles."""
        *standbys, leader = sorted(self.replicas, key=lambda replica: replica.proxy.renewed)
        return leader if fault.role == "leader" or not standbys else standbys[fault.dice % len(standbys)]


@asynccontextmanager
async def a_stage() -> AsyncIterator[Stage]:
    """Start everything and wait until the scheduler is ready. Raises ProcessError or BuildError."""
    async with AsyncExitStack() as stack:
        cluster = ControlPlane()
        await asyncio.to_thread(cluster.__enter__)
        stack.push_async_callback(asyncio.to_thread, cluster.close)
        api = await stack.enter_async_context(cluster.async_client())
        await asyncio.to_thread(loadmaster.install_rbac, cluster)
        for obj in prerequisites():
            await api.create(obj)
        clock = Clock(cluster.directory, await asyncio.to_thread(build, cluster.directory))
        options = [f"--config={written(cluster.directory / 'chaos-config.json', CONFIGURATION)}", *TIMING.flags]
        started = []
        for number in range(REPLICAS):
            name = f"loadmaster-{number}"
            proxy, through = a_proxy(cluster, name)
            await stack.enter_async_context(proxy)
            started.append(Replica(cluster, name, proxy, [*options, f"--kubeconfig={through}"], clock.env))
        for replica in started:
            replica.start()
        for replica in started:
            await ready(replica)
        yield Stage(cluster, api, tuple(started), clock)


async def ready(replica: Replica) -> None:
    """Wait until it has begun for the first time. Raises ProcessError: one that ends at once would end again."""
    try:
        async with asyncio.timeout(START_SECONDS):
            await replica.started()
    except TimeoutError:
        raise ProcessError("\n".join([f"{replica.name} does not become ready", *replica.problems[:1]])) from None


def prerequisites() -> list[Object]:
    """Namespaces, priorities, the custom resource and the right to read it."""
    classes: list[Object] = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in PRIORITIES.items()
    ]
    namespaces: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (NAMESPACE, HOSTILE)
    ]
    return [*namespaces, *classes, BUDGET, *RULES]


def a_proxy(cluster: ControlPlane, name: str) -> tuple[Proxy, Path]:
    """A proxy to the API server, and the kubeconfig of the scheduler's account that leads through it."""
    ca = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("localhost", "127.0.0.1").configure_cert(tls)
    upstream = ssl.create_default_context(cafile=str(cluster.credentials.ca))
    proxy = Proxy(free_port(), cluster.apiserver.port, tls, upstream, Trouble(random.Random()))
    account = cluster.service_account_kubeconfig(loadmaster.NAMESPACE, loadmaster.ACCOUNT)
    token = Connection.load(account).token
    path = cluster.directory / f"{name}.kubeconfig"
    text = kubeconfig(f"https://127.0.0.1:{proxy.port}", ca.cert_pem.bytes(), token, name)
    write_private(path, text.encode())
    return proxy, path


def written(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path
