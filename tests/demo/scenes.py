"""What happens, in which order, and until when."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.controlplane.sync import Client
from tests.demo import cast
from tests.demo.model import Model

GROWN_BATCH = 600
GROWN_WEB = 50


@dataclass(frozen=True, slots=True)
class Scene:
    """Something is done to the cluster, and shown until it has had its effect."""

    caption: str
    act: Callable[[Client], object]
    done: Callable[[Model], bool]
    seconds: float = 2.5
    """The least time it is shown."""


def all_scenes() -> list[Scene]:
    """The play."""
    return [
        Scene(
            "20 nodes join: 3 zones, 2 sizes, 2 with GPUs and a taint, 1 cordoned.",
            lambda api: api.create_many(cast.nodes()),
            lambda model: sum(node.ready for node in model.nodes.values()) == len(cast.nodes()),
            seconds=2.0,
        ),
        Scene("web: 30 pods. They spread to where most is free.", create(cast.WEB), bound(cast.WEB)),
        Scene("api: 20 pods that prefer zone-b.", create(cast.API), bound(cast.API)),
        Scene(
            "train: 4 pods that need a GPU. Only they tolerate the taint of the GPU nodes.",
            create(cast.TRAIN),
            bound(cast.TRAIN),
        ),
        Scene(
            "huge: 1 pod that asks for 48 cpus. No node has them: it waits, and is told why.",
            create(cast.HUGE),
            lambda model: bool(model.waiting()),
            seconds=3.5,
        ),
        Scene("batch: 60 small pods. They need not wait behind huge.", create(cast.BATCH), bound(cast.BATCH)),
        Scene(
            f"batch grows from {cast.BATCH.replicas} to {GROWN_BATCH} pods: look at the rate.",
            scale(cast.BATCH, GROWN_BATCH),
            bound(cast.BATCH, GROWN_BATCH),
            seconds=4.0,
        ),
        Scene(
            f"{cast.CORDONED} is uncordoned, web grows to {GROWN_WEB}: the empty node gets them. huge does not fit.",
            uncordon_and_grow,
            bound(cast.WEB, GROWN_WEB),
            seconds=4.0,
        ),
        Scene(
            f"{cast.BIG_NODE} joins, a node with {cast.BIG_CPUS} cpus: huge is bound at once, nobody asked for it.",
            lambda api: api.create(cast.big_node()),
            bound(cast.HUGE),
            seconds=4.0,
        ),
    ]


def create(deployment: cast.Deployment) -> Callable[[Client], object]:
    return lambda api: api.create(deployment.manifest())


def scale(deployment: cast.Deployment, replicas: int) -> Callable[[Client], object]:
    return lambda api: api.patch("apps/v1/Deployment", deployment.name, {"spec": {"replicas": replicas}}, "default")


def uncordon_and_grow(api: Client) -> None:
    api.patch("Node", cast.CORDONED, {"spec": {"unschedulable": None}})
    scale(cast.WEB, GROWN_WEB)(api)


def bound(deployment: cast.Deployment, replicas: int = 0) -> Callable[[Model], bool]:
    """Whether all pods of a Deployment have a node."""
    wanted = replicas or deployment.replicas
    return lambda model: model.bound_of(deployment.name)[0] >= wanted
