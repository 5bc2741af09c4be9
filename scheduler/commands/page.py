"""`loadmaster page`: the scheduler's page for a browser of this machine, which cannot show a token in a header.

    browser ──127.0.0.1──► LocalPage ──API server's service proxy──► the replica that leads

It stops when it is told to. Credentials are kept fresh meanwhile, as a page may be open for a day.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scheduler.commands.local_page import LocalPage
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.http.client import Client
from scheduler.kube.identity.credentials import load_credentials
from scheduler.kube.services.service_proxy import RunningScheduler
from scheduler.process.metrics import Metrics
from scheduler.process.results import results
from scheduler.process.tasks import Tasks
from scheduler.serve.port.listener import Listener


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted. Raises ConfigError for what cannot be read, asked or listened on."""
    try:
        return asyncio.run(_run(options))
    except ClusterError as error:
        raise ConfigError([str(error)]) from error


async def _run(options: argparse.Namespace) -> int:
    credentials = await load_credentials(options.kubeconfig, options.context)
    metrics, stop = Metrics(), asyncio.Event()
    tasks = Tasks(metrics, stop)
    async with Client(credentials, metrics) as client:
        scheduler = RunningScheduler(client, options.service_namespace, options.service)
        page = LocalPage(scheduler)
        await page.check()
        tasks.start("credentials", credentials.keep_fresh())
        try:
            async with served(page, options.port, metrics, tasks):
                text = f"{page.url}\n\nOpen it in a browser of this machine. Ctrl-C ends it."
                print(text, file=results(), flush=True)
                await stop.wait()
        finally:
            await tasks.close()
    return 1


@asynccontextmanager
async def served(page: LocalPage, port: int, metrics: Metrics, tasks: Tasks) -> AsyncIterator[None]:
    """Serve it on this machine meanwhile. Raises ConfigError if the port cannot be had."""
    listener = Listener(lambda: None, page.answer, page.limits, metrics, tasks)
    listener.open("127.0.0.1", port)
    page.port = listener.port
    accepting = tasks.start("page", listener.accept())
    try:
        yield
    finally:
        await tasks.cancel(accepting)
        await page.streams.finish()
        await listener.close()
