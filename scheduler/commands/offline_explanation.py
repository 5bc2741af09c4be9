"""Decides here, by what a cluster has now or by what is in files, as the scheduler there would."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from scheduler.api.pod import Pod
from scheduler.config.documents import Document
from scheduler.config.load import load_config
from scheduler.config.types import Config
from scheduler.explain.changes import WrittenPod
from scheduler.explain.explainer import Explainer
from scheduler.framework.resources import NODES, PODS, read_raw_pods
from scheduler.kube.http.client import Client
from scheduler.kube.informers.listing import Lister
from scheduler.process.progress import on_stderr
from scheduler.runtime.registry import Registry
from scheduler.simulate.cluster import STORED, SimulatedCluster, cluster_of, read_cluster
from scheduler.simulate.controllers.adoption import adopted
from scheduler.simulate.engine import engine_of
from scheduler.simulate.written_pods import written_pod


async def decided_by_files(
    paths: Iterable[str], config_path: str | None, registry: Registry, namespace: str, name: str
) -> dict[str, Any]:
    """Read files as `simulate` does, and explain a pod. Raises ConfigError."""
    config = load_config(config_path, registry)
    cluster = read_cluster(paths, raw_pods=_raw_pods(config, registry))
    cluster = replace(cluster, pods=tuple(adopted(cluster.pods, config)))
    return await decided(cluster, config, registry, namespace, name)


async def decided_by_cluster(
    client: Client, config_path: str | None, registry: Registry, namespace: str, name: str
) -> dict[str, Any]:
    """Read all kinds that the plugins look at, and explain a pod. Raises ConfigError, ClusterError."""
    config = load_config(config_path, registry)
    with engine_of(SimulatedCluster((), ()), config, registry) as engine:
        resources = (NODES, PODS, *engine.watched.values())
    progress, documents = on_stderr(), list[Document]()
    lister = Lister(client, progress.say)
    with progress.shown():
        for resource in resources:
            progress.doing(f"reading the cluster's {resource.plural}")
            pages = await lister.whole(resource, progress.count)
            documents += (Document(f"{STORED}{resource.plural}", page.whole) for page in pages)
    problems: list[str] = []
    cluster = cluster_of((), problems, raw_pods=_raw_pods(config, registry), stored=documents)
    # What the API server has accepted is not to be judged: an object that we cannot read costs itself only.
    return await decided(cluster, config, registry, namespace, name)


async def decided(
    cluster: SimulatedCluster, config: Config, registry: Registry, namespace: str, name: str
) -> dict[str, Any]:
    """Explain a pod of a cluster. Raises ConfigError."""

    def written(pod: Pod) -> WrittenPod | None:
        return written_pod(pod, cluster.written.get((pod.namespace, pod.name)))

    with engine_of(cluster, config, registry) as engine:
        report = await Explainer(engine, lambda: 0.0, written=written).about(namespace, name)
        document: dict[str, Any] = msgspec.to_builtins(report)
        return document


def _raw_pods(config: Config, registry: Registry) -> bool:
    return read_raw_pods(registry[plugin] for profile in config.profiles for plugin in profile.enabled)
