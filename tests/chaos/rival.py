"""A second scheduler: it binds pods of its own to the same nodes at the same time, within the room that it sees."""

import asyncio
import random
from collections.abc import Sequence
from functools import partial
from typing import Final

from tests.chaos.judge import allocatable_of, node_of, total
from tests.chaos.load import NAMESPACE, RIVAL
from tests.chaos.persistence import insist
from tests.controlplane import AsyncClient, a_pod
from tests.controlplane.client import Object

PODS: Final = 12


async def compete(api: AsyncClient, seconds: float, rng: random.Random) -> None:
    """Make pods and bind them, one after the other, to nodes chosen at random among those with room."""
    pods = [a_pod(f"rival-{i}", NAMESPACE, cpu="500m", memory="64Mi", scheduler=RIVAL) for i in range(PODS)]
    for pod in pods:
        await insist(partial(api.create, pod))
        nodes = await insist(lambda: api.list("Node"))
        others = await insist(lambda: api.list("Pod", NAMESPACE))
        if nodes and others and (room := [node for node in nodes if has_room(node, others, pod)]):
            await bind(api, pod["metadata"]["name"], rng.choice(room)["metadata"]["name"])
        await asyncio.sleep(seconds / PODS)


def has_room(node: Object, pods: Sequence[Object], pod: Object) -> bool:
    """Whether an ordinary pod may go to the node, as far as its pods are bound already."""
    name = node["metadata"]["name"]
    needed = total([*(other for other in pods if node_of(other) == name), pod])
    allocatable = allocatable_of(node)
    is_open = not node["spec"].get("unschedulable") and not node["spec"].get("taints")
    return is_open and all(needed[resource] <= allocatable[resource] for resource in needed)


async def bind(api: AsyncClient, pod: str, node: str) -> None:
    """Bind, unless the pod or the node has gone meanwhile."""
    await insist(lambda: api.bind(pod, node, NAMESPACE))
