"""Reads the objects of a cluster, for commands that decide without its scheduler: at once, or later from a snapshot."""

import argparse
from collections.abc import Iterator
from typing import Final

from scheduler.config.documents import Document
from scheduler.config.types import Config
from scheduler.framework.errors import ClusterError
from scheduler.framework.nodes.resources import NODES, PODS, ApiResource
from scheduler.kube.http.client import BadStatus, Client, connected
from scheduler.kube.informers.listing import Lister
from scheduler.process.progress import Progress, on_stderr
from scheduler.runtime.registry import Registry
from scheduler.simulate.cluster import STORED, SimulatedCluster
from scheduler.simulate.engine import engine_of
from scheduler.snapshots.kept_fields import KINDS, Kind

MAKES: Final = {"Deployment": "ReplicaSet"}
"""Kind → the kind that it makes, which alone shows which pods it has already."""

_OF_PLUGINS: Final = "the plugin that reads it gives other answers than in the cluster"

_AGGREGATED: Final = frozenset({"metrics.k8s.io", "topology.node.k8s.io"})
"""Groups of which others than the API server answer: they may be out of order for long."""


def further_kinds(config: Config, registry: Registry) -> Iterator[Kind]:
    """Yield those that only plugins of this configuration look at. The name of such a kind is in its lists."""
    known = {kind.resource for kind in KINDS}
    with engine_of(SimulatedCluster((), ()), config, registry) as engine:
        resources = tuple(engine.watched.values())
    for resource in resources:
        if resource not in known:
            yield Kind("", resource, _OF_PLUGINS)


def without(kind: Kind, error: BadStatus) -> str:
    """Return what it means to do without a kind that cannot be read. Raises ClusterError where that is no answer."""
    if not kind.without:
        raise ClusterError(f"{error}; a simulation needs {kind.resource.plural}") from error
    if error.status not in (403, 405) and kind.resource.group not in _AGGREGATED:
        raise error
    return f"{error}; in a simulation, {kind.without}"


async def read_for_simulation(
    options: argparse.Namespace, config: Config, registry: Registry, progress: Progress
) -> tuple[list[Document], list[str]]:
    """Read what a simulation goes by, and say what could not be read. Raises ClusterError."""
    stored, notes, refused = list[Document](), list[str](), set[str]()
    async with connected(options.kubeconfig, options.context) as client:
        lister = Lister(client, progress.say)
        for kind in (*KINDS, *further_kinds(config, registry)):
            if MAKES.get(kind.name) in refused:
                continue  # all of its pods would be created again
            progress.doing(f"reading the cluster's {kind.resource.plural}")
            try:
                stored += await _documents(lister, kind.resource, progress)
            except BadStatus as error:
                refused.add(kind.name)
                notes.append(f"left out: {kind.name or kind.resource.name}: {without(kind, error)}")
    return stored, notes


async def read_watched(client: Client, config: Config, registry: Registry) -> list[Document]:
    """Read all kinds that the plugins look at. Raises ClusterError."""
    with engine_of(SimulatedCluster((), ()), config, registry) as engine:
        resources = (NODES, PODS, *engine.watched.values())
    progress, documents = on_stderr(), list[Document]()
    lister = Lister(client, progress.say)
    with progress.shown():
        for resource in resources:
            progress.doing(f"reading the cluster's {resource.plural}")
            documents += await _documents(lister, resource, progress)
    return documents


async def _documents(lister: Lister, resource: ApiResource, progress: Progress) -> list[Document]:
    pages = await lister.whole(resource, progress.count)
    return [Document(f"{STORED}{resource.plural}", page.whole) for page in pages]
