"""InterPodAffinity in the whole scheduler: a pod that it refused goes on as soon as the cluster lets it."""

from collections.abc import Callable

import pytest

from plugins import IN_TREE
from scheduler import framework as fw
from scheduler.config.load import load_config
from scheduler.engine.engine import Engine, build_engine
from scheduler.process.metrics import Metrics
from scheduler.testing import a_pod, an_object
from tests.fakes import FakeClock, FakeWorld
from tests.unit.plugins.pod_affinity import ZONE, a_selector, a_zoned_node, pods_like, with_terms

WEB = {"app": "web"}
NEAR_BLUE = pods_like(ZONE, of=a_selector(team="blue"), app="web")


class Cluster:
    """The engine with one node, and a pod that runs there."""

    def __init__(self, running: fw.Pod) -> None:
        self.world, self.clock = FakeWorld(), FakeClock()
        config = load_config(None, IN_TREE)
        self.engine: Engine = build_engine(config, IN_TREE, self.world.writers, Metrics(), self.clock)
        self.engine.handlers.node_changed(a_zoned_node("n", "z"))
        self.namespace("shop")
        self.namespace("default")
        self.engine.handlers.pod_changed(running)

    def namespace(self, name: str, version: int = 1, **labels: str) -> None:
        made = an_object(name, version=version, labels=labels)
        self.engine.object_handlers.object_changed(fw.NAMESPACE, made)

    async def attempt(self) -> None:
        """Try every pod that has waited long enough."""
        self.clock.advance(30)
        self.engine.queue.flush_backoff_completed()
        while (queued := self.engine.queue.pop_nowait()) is not None:
            self.engine.loop.schedule_one(queued)
            await self.engine.loop.finish(seconds=1)


def running(namespace: str, **labels: str) -> fw.Pod:
    return a_pod("there", namespace=namespace, labels=labels, node_name="n")


def hostile() -> fw.Pod:
    return with_terms("there", apart=[NEAR_BLUE], namespace="shop", node_name="n")


@pytest.mark.parametrize(
    ("waiting", "there", "before", "event"),
    [
        pytest.param(
            with_terms(near=[NEAR_BLUE], scheduler_name="loadmaster"),
            running("shop", app="web"),
            {},
            lambda cluster: cluster.namespace("shop", 2, team="blue"),
            id="a namespace starts to be selected",
        ),
        pytest.param(
            with_terms(apart=[NEAR_BLUE], scheduler_name="loadmaster"),
            running("shop", app="web"),
            {"shop": "blue"},
            lambda cluster: cluster.namespace("shop", 3),
            id="a namespace stops to be selected",
        ),
        pytest.param(
            a_pod(labels=WEB, scheduler_name="loadmaster"),
            hostile(),
            {"default": "blue"},
            lambda cluster: cluster.namespace("default", 3),
            id="its own namespace stops to be selected by a pod there",
        ),
        pytest.param(
            with_terms(near=[NEAR_BLUE], scheduler_name="loadmaster"),
            running("default", app="web"),
            {"shop": "blue"},
            lambda cluster: cluster.engine.handlers.pod_changed(
                a_pod("new", namespace="shop", labels=WEB, node_name="n")
            ),
            id="a pod arrives in a selected namespace",
        ),
        pytest.param(
            a_pod(labels=WEB, scheduler_name="loadmaster"),
            hostile(),
            {"default": "blue"},
            lambda cluster: cluster.engine.handlers.pod_deleted(hostile()),
            id="the pod that kept it away goes",
        ),
    ],
)
async def test_a_refused_pod_is_bound_after_the_event_that_helps(
    waiting: fw.Pod, there: fw.Pod, before: dict[str, str], event: Callable[[Cluster], None]
) -> None:
    cluster = Cluster(there)
    for name, team in before.items():
        cluster.namespace(name, 2, team=team)
    cluster.engine.handlers.pod_changed(waiting)
    await cluster.attempt()
    refused = dict(cluster.world.bound)
    event(cluster)
    await cluster.attempt()

    assert (refused, cluster.world.bound) == ({}, {"default/pod": "n"})
