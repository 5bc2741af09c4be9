"""How a command talks to a cluster: as whoever the kubeconfig says, with credentials that are renewed meanwhile."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scheduler.kube.http.client import Client
from scheduler.kube.identity.credentials import load_credentials
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks


@asynccontextmanager
async def connected(kubeconfig: str | None, context: str | None) -> AsyncIterator[Client]:
    """Yield a client. Raises ConfigError for credentials of no use."""
    credentials = await load_credentials(kubeconfig, context)
    metrics = Metrics()
    tasks = Tasks(metrics)
    async with Client(credentials, metrics) as client:
        tasks.start("credentials", credentials.keep_fresh())
        try:
            yield client
        finally:
            await tasks.close()
