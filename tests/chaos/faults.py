"""The faults of a plan, done and undone. After `undo` nothing of a fault is left but its consequences."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Final, TypeAlias

import aiohttp

from tests.attacks.attack import Target
from tests.attacks.catalog import ATTACKS
from tests.chaos.load import BUDGET, CORES, HOSTILE, NAMESPACE
from tests.chaos.persistence import insist, insist_on_all
from tests.chaos.plan import Fault
from tests.chaos.proxy import Proxy
from tests.chaos.rival import compete
from tests.chaos.stage import Stage
from tests.chaos.trouble import Share, Treatment
from tests.cluster import loadmaster
from tests.cluster.replicas import LEASE
from tests.controlplane import a_node, definitions
from tests.controlplane.client import Object

Work: TypeAlias = Callable[[Stage, Fault], AbstractAsyncContextManager[None]]

CLOCK_STEPS: Final = (-86400, -3600, -10, 10, 3600, 86400)
"""Seconds."""

HOSTILE_OBJECTS: Final = 8
"""Of an attack; tests.attacks has it whole, alone and measured."""

SHARES: Final = {
    "lost-answers": Share(Treatment.LOSE, 0.5, writes_only=True),
    "cut-answers": Share(Treatment.CUT, 0.3),
    "hung-answers": Share(Treatment.HANG, 0.3),
    "failed-afterwards": Share(Treatment.BROKEN, 0.5, writes_only=True),
    "throttled": Share(Treatment.THROTTLE, 0.7, retry_after="1"),
    "internal-errors": Share(Treatment.INTERNAL, 0.5),
    "denied-bindings": Share(Treatment.DENY, 0.4, bindings_only=True),
    "unavailable": Share(Treatment.UNAVAILABLE, 0.8),
}


async def strike(stage: Stage, fault: Fault) -> None:
    """Do a fault at its time and undo it after its time."""
    await asyncio.sleep(fault.at)
    async with WORKS[fault.kind](stage, fault):
        await asyncio.sleep(fault.seconds)


# The network of one replica.


def network(act: Callable[[Proxy, Fault], None]) -> Work:
    """A fault that is done to a proxy by a plain call, and healed with everything else at the end of the round."""

    @asynccontextmanager
    async def work(stage: Stage, fault: Fault) -> AsyncIterator[None]:
        act(stage.victim(fault).proxy, fault)
        yield

    return work


@asynccontextmanager
async def freeze(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    trouble = stage.victim(fault).proxy.trouble
    trouble.thawed.clear()
    yield
    trouble.thawed.set()


@asynccontextmanager
async def refuse(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    proxy = stage.victim(fault).proxy
    proxy.refuse()
    proxy.reset()
    yield
    proxy.accept()


@asynccontextmanager
async def slow(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    trouble = stage.victim(fault).proxy.trouble
    trouble.bytes_per_second = random.Random(fault.dice).choice((2e3, 2e4, 2e5))
    yield
    trouble.bytes_per_second = 0.0


@asynccontextmanager
async def answers(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    """A share of the answers is lost, cut, hung or an error."""
    shares, share = stage.victim(fault).proxy.trouble.shares, SHARES[fault.kind]
    shares.append(share)
    yield
    if share in shares:
        shares.remove(share)


def cut_watches(proxy: Proxy, fault: Fault) -> None:
    proxy.cut_watches(random.Random(fault.dice).choice(("reset", "close", "end")))


# Processes.


@asynccontextmanager
async def kill_scheduler(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    victim = stage.victim(fault)
    await victim.kill()
    yield
    victim.start()


@asynccontextmanager
async def terminate_scheduler(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    victim = stage.victim(fault)
    await victim.terminate()
    yield
    victim.start()


@asynccontextmanager
async def stop_scheduler(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    victim = stage.victim(fault)
    victim.signal(signal.SIGSTOP)
    yield
    victim.signal(signal.SIGCONT)


@asynccontextmanager
async def kill_apiserver(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    await asyncio.to_thread(stage.cluster.apiserver.kill)
    await away(stage)
    yield
    await asyncio.to_thread(stage.cluster.apiserver.start)
    await back(stage)


@asynccontextmanager
async def stop_apiserver(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    stage.cluster.apiserver.send_signal(signal.SIGSTOP)
    yield
    stage.cluster.apiserver.send_signal(signal.SIGCONT)


@asynccontextmanager
async def stop_etcd(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    stage.cluster.etcd.send_signal(signal.SIGSTOP)
    yield
    stage.cluster.etcd.send_signal(signal.SIGCONT)


@asynccontextmanager
async def compact(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    """The history is gone, in etcd and in the API server's cache: every watch has to start from a list (410)."""
    await asyncio.to_thread(stage.cluster.apiserver.kill)
    await away(stage)
    await compact_etcd(stage.cluster.etcd.port)
    yield
    await asyncio.to_thread(stage.cluster.apiserver.start)
    await compact_etcd(stage.cluster.etcd.port)
    await back(stage)


async def away(stage: Stage) -> None:
    """What clients see of an API server that has ended: resets, then refusals."""
    for replica in stage.replicas:
        replica.proxy.refuse()
        replica.proxy.reset()


async def back(stage: Stage) -> None:
    for replica in stage.replicas:
        replica.proxy.accept()


async def compact_etcd(port: int) -> None:
    """Forget every revision but the current one."""
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
        async with http.post("/v3/kv/range", json={"key": "AA==", "count_only": True}) as response:
            revision = (await response.json())["header"]["revision"]
        async with http.post("/v3/kv/compaction", json={"revision": revision, "physical": True}) as response:
            await response.read()  # an error is that somebody else has compacted it already


@asynccontextmanager
async def step_clock(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    stage.clock.step(random.Random(fault.dice).choice(CLOCK_STEPS))
    yield
    stage.clock.step(0)


# The Lease.


@asynccontextmanager
async def delete_lease(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    await insist(lambda: stage.api.delete(LEASE, loadmaster.ACCOUNT, loadmaster.NAMESPACE))
    yield


@asynccontextmanager
async def steal_lease(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    """Somebody who never renews it writes himself into the Lease: nobody may work until it is over."""
    spec = {"holderIdentity": "thief", "renewTime": datetime.now(UTC).isoformat().replace("+00:00", "Z")}
    await insist(lambda: stage.api.patch(LEASE, loadmaster.ACCOUNT, {"spec": spec}, loadmaster.NAMESPACE))
    yield


# Objects.


@asynccontextmanager
async def pods_again(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    """Some pods are deleted and made again under their names, whether bound or not."""
    pods = [pod for pod in await insist(lambda: stage.api.list("Pod", NAMESPACE)) or () if is_replaceable(pod)]
    chosen = random.Random(fault.dice).sample(pods, len(pods) // 4)
    names = [pod["metadata"]["name"] for pod in chosen]
    await insist_on_all([partial(stage.api.delete, "Pod", name, NAMESPACE, 0) for name in names])
    yield
    await insist_on_all([partial(stage.api.create, again(pod)) for pod in chosen])


@asynccontextmanager
async def nodes_again(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    """Some nodes are deleted and made again under their names, with other sizes; their pods are theirs still."""
    rng = random.Random(fault.dice)
    nodes = [node for node in await insist(lambda: stage.api.list("Node")) or () if is_ordinary(node)]
    chosen = rng.sample(nodes, len(nodes) // 5)
    names = [node["metadata"]["name"] for node in chosen]
    await insist_on_all([partial(stage.api.delete, "Node", name) for name in names])
    yield
    made = [resized(node, rng.choice(CORES)) for node in chosen]
    await insist_on_all([partial(stage.api.create, node) for node in made])


def is_replaceable(pod: Object) -> bool:
    return pod["spec"]["schedulerName"] == "loadmaster" and "pool" not in (pod["spec"].get("nodeSelector") or {})


def is_ordinary(node: Object) -> bool:
    return str(node["metadata"]["name"]).startswith("node-")


def again(pod: Object) -> Object:
    """A new pod like this one."""
    kept = ("name", "namespace", "labels", "ownerReferences")
    meta = {key: value for key, value in pod["metadata"].items() if key in kept}
    dropped = ("nodeName", "priority", "preemptionPolicy")
    spec = {key: value for key, value in pod["spec"].items() if key not in dropped}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def resized(node: Object, cpu: str) -> Object:
    """A new node like this one, of another size."""
    made = a_node(node["metadata"]["name"], cpu=cpu, memory="16Gi", pods="20")
    made["metadata"]["labels"] = node["metadata"]["labels"]
    if taints := [taint for taint in node["spec"].get("taints") or () if not taint["key"].startswith("node.")]:
        made["spec"]["taints"] = taints
    return made


@asynccontextmanager
async def withdraw_resource(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    """A custom resource is no longer served, with all its objects, and comes back."""
    name = definitions.BUDGET["metadata"]["name"]
    kind = "apiextensions.k8s.io/v1/CustomResourceDefinition"
    await insist(lambda: stage.api.delete(kind, name))
    yield
    async with asyncio.timeout(60):
        while await insist(lambda: stage.api.get(kind, name)) is not None:  # noqa: ASYNC110  it is another process
            await asyncio.sleep(0.05)
    await insist(lambda: stage.api.create(definitions.BUDGET))
    await make_budget(stage)


async def make_budget(stage: Stage) -> None:
    """Make the teams' budget, as soon as the API server serves such objects."""
    async with asyncio.timeout(60):
        while await insist(lambda: stage.api.create(BUDGET)) is None:
            if await insist(lambda: stage.api.get("example.com/v1/Budget", BUDGET["metadata"]["name"], NAMESPACE)):
                return
            await asyncio.sleep(0.1)


@asynccontextmanager
async def rival(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    await compete(stage.api, fault.seconds, random.Random(fault.dice))
    yield


@asynccontextmanager
async def hostile(stage: Stage, fault: Fault) -> AsyncIterator[None]:
    """The first objects of one attack, which anybody may create."""
    attack = ATTACKS[random.Random(fault.dice).choice(sorted(ATTACKS))]
    nodes = [node["metadata"]["name"] for node in await insist(lambda: stage.api.list("Node")) or ()]
    if nodes:
        objects = list(islice(attack.objects(Target(HOSTILE, nodes)), HOSTILE_OBJECTS))
        await insist_on_all([partial(stage.api.create, obj, HOSTILE) for obj in objects], 2)
    yield
    await clear_hostile(stage)


async def clear_hostile(stage: Stage) -> None:
    await insist(lambda: stage.api.delete_all("Pod", HOSTILE))


WORKS: Final[dict[str, Work]] = {
    "freeze": freeze,
    "half-open": network(lambda proxy, _: proxy.strand()),
    "reset": network(lambda proxy, _: proxy.reset()),
    "refuse": refuse,
    "slow": slow,
    **dict.fromkeys(SHARES, answers),
    "watch-cut": network(cut_watches),
    "watch-expired": network(lambda proxy, _: proxy.expire_watches()),
    "scheduler-kill": kill_scheduler,
    "scheduler-term": terminate_scheduler,
    "scheduler-stop": stop_scheduler,
    "apiserver-kill": kill_apiserver,
    "apiserver-stop": stop_apiserver,
    "etcd-stop": stop_etcd,
    "compaction": compact,
    "clock-step": step_clock,
    "lease-deleted": delete_lease,
    "lease-stolen": steal_lease,
    "pods-again": pods_again,
    "nodes-again": nodes_again,
    "resource-gone": withdraw_resource,
    "rival": rival,
    "hostile": hostile,
}
