"""The kinds of a cluster that are read for a simulation, now or later, and what it means to do without one."""

from collections.abc import Iterator
from typing import Final

from scheduler.config.types import Config
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import BadStatus
from scheduler.runtime.registry import Registry
from scheduler.simulate.cluster import SimulatedCluster
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
