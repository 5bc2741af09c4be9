"""`loadmaster simulate --from-cluster`: what a cluster has now, instead of a dump of it. It is read and not written."""

import argparse
import asyncio
from functools import partial

from scheduler.commands import simulate as command
from scheduler.commands.cluster_connection import connected
from scheduler.commands.cluster_kinds import MAKES, further_kinds, without
from scheduler.config.documents import Document
from scheduler.config.types import Config
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.http.client import BadStatus
from scheduler.kube.informers.listing import Lister
from scheduler.process.progress import Progress
from scheduler.runtime.registry import Registry
from scheduler.simulate.cluster import STORED
from scheduler.snapshots.kept_fields import KINDS


def run(options: argparse.Namespace, registry: Registry) -> int:
    """Simulate by what a cluster has, and by files besides. Raises ConfigError for what cannot be read or asked."""
    return command.run(options, registry, partial(_read, options))


def _read(options: argparse.Namespace, config: Config, registry: Registry, progress: Progress) -> command.Stored:
    try:
        return asyncio.run(_documents(options, config, registry, progress))
    except ClusterError as error:
        raise ConfigError([str(error)]) from error


async def _documents(
    options: argparse.Namespace, config: Config, registry: Registry, progress: Progress
) -> command.Stored:
    stored, refused = command.Stored([], []), set[str]()
    async with connected(options.kubeconfig, options.context) as client:
        lister = Lister(client, progress.say)
        for kind in (*KINDS, *further_kinds(config, registry)):
            if MAKES.get(kind.name) in refused:
                continue  # all of its pods would be made anew
            progress.doing(f"reading the cluster's {kind.resource.plural}")
            try:
                pages = await lister.whole(kind.resource, progress.count)
            except BadStatus as error:
                refused.add(kind.name)
                stored.notes.append(f"left out: {kind.name or kind.resource.name}: {without(kind, error)}")
            else:
                stored.documents.extend(Document(f"{STORED}{kind.resource.plural}", page.whole) for page in pages)
    return stored
