"""Dumps the cache and the queue as lines for the log.

Rule: pkg/scheduler/backend/cache/debugger/dumper.go at v1.36.3, with one line per node and per pod instead of one line
for all of them, and with the plugins that pods wait for.

Lines are made while they are read, so that other tasks can run in between: nodes and pods are listed at the start, and
the state of each is read with its line.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from scheduler.engine.engine import Engine
from scheduler.framework.queued import QueuedPod
from scheduler.quota.adapters import AdaptedShares
from scheduler.quota.ledger import Ledger
from scheduler.state.cache import Cache
from scheduler.state.nominator import Nominator

MAX_LINES: Final = 1_000
"""Lines of one kind: nodes, counted pods, nominated pods, and pods of each part of the queue."""

_BYTES: Final = {MEMORY, EPHEMERAL_STORAGE}
_UNITS: Final = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


class Line(NamedTuple):
    message: str
    fields: Mapping[str, object]


def dump(engine: Engine, now: float, max_lines: int = MAX_LINES) -> Iterator[Line]:
    """Yield the sizes, then the nodes, the pods on them, the nominated pods and the queue. `now`: the queue's clock."""
    queue, cache, nominator = engine.queue, engine.cache, engine.nominator
    parts = {**queue.pending_pods(), "inFlight": queue.in_flight_pods()}
    node_names = sorted([*cache.table.node_names(), *cache.table.placeholder_names()])
    nominated = [(name, pod) for name, pods in nominator.by_node() for pod in pods]
    of_cache, of_queue = cache.sizes(), {name: len(pods) for name, pods in parts.items()}
    sizes = {"nodes": of_cache["nodes"], "pods": of_cache["pods"], "assumed": of_cache["assumed_pods"]}
    yield Line("Dump of the scheduler", {**sizes, "nominated": len(nominated), **of_queue})
    yield from _bounded("nodes", len(node_names), max_lines, _nodes(cache, nominator, node_names))
    yield from _bounded("pods", len(cache.uids()), max_lines, _pods(cache, node_names))
    yield from _bounded("nominated", len(nominated), max_lines, itertools.starmap(_nominated, nominated))
    for part, pods in parts.items():
        details = _DETAILS.get(part, _waiting)
        yield from _bounded(part, len(pods), max_lines, (_queued(part, queued, now, details) for queued in pods))
    yield from _shares(engine.shares, max_lines)


def readable(resource: str, amount: int) -> str:
    """Format an amount in cores, in Ki to Ti with three decimals, or in units."""
    if resource == CPU:
        return _short(amount / 1000)
    if resource in _BYTES or resource.startswith("hugepages-"):
        for unit, size in _UNITS:
            if abs(amount) >= size:
                return _short(amount / size) + unit
    return str(amount)


def _short(amount: float) -> str:
    return f"{amount:.3f}".rstrip("0").rstrip(".")


def _bounded(kind: str, count: int, limit: int, lines: Iterator[Line]) -> Iterator[Line]:
    yield from itertools.islice(lines, limit)
    if count > limit:
        yield Line("Dump leaves some out", {"kind": kind, "shown": limit, "leftOut": count - limit})


# What is in the cache.


def _nodes(cache: Cache, nominator: Nominator, names: Iterable[str]) -> Iterator[Line]:
    for name in names:
        row = cache.table.row_of(name)
        counted = {"pods": len(cache.table.pods_on(name)), "nominated": len(nominator.nominated_pods(name))}
        if row is not None:
            node = cache.table.info(row)
            amounts = {"requested": _readable(node.requested), "allocatable": _readable(node.allocatable)}
            yield Line("Dump of cached node", {"node": name, "deleted": False, **amounts, **counted})
        elif counted["pods"]:
            # The node has not come yet, or is gone, and there are pods on it.
            yield Line("Dump of cached node", {"node": name, "deleted": True, **counted})


def _shares(shares: AdaptedShares, max_lines: int) -> Iterator[Line]:
    for ledger in shares.ledgers:
        yield from _bounded("shares", len(ledger.tree.shares), max_lines, _shares_of(ledger, shares))


def _shares_of(ledger: Ledger, shares: AdaptedShares) -> Iterator[Line]:
    """Yield the usage of each share, and that by counting its pods again, if it differs."""
    again = shares.counted_again(ledger)
    for name in tuple(ledger.tree.shares):
        fields = {"share": name, "source": ledger.source, "used": _readable(ledger.used(name))}
        if ledger.used(name, again) != ledger.used(name):
            fields["countedAgain"] = _readable(ledger.used(name, again))
        yield Line("Dump of share", fields)


def _readable(amounts: Mapping[str, int]) -> dict[str, str]:
    return {resource: readable(resource, amount) for resource, amount in amounts.items()}


def _pods(cache: Cache, node_names: Iterable[str]) -> Iterator[Line]:
    """Assumed pods first: if one is stuck, it is among them."""
    assumed = tuple(cache.assumed_pods()) if cache.assumed_count else ()
    for pod in assumed:
        yield _counted(pod, "assumed" if cache.is_assumed(pod.uid) else "confirmed")
    dumped = {pod.uid for pod in assumed}
    for name in node_names:
        for pod in tuple(cache.table.pods_on(name)):
            if pod.uid not in dumped:
                yield _counted(pod, "assumed" if cache.is_assumed(pod.uid) else "confirmed")


def _counted(pod: Pod, state: str) -> Line:
    return Line("Dump of cached pod", {**_pod(pod), "node": pod.node_name, "state": state})


def _nominated(node_name: str, pod: Pod) -> Line:
    return Line("Dump of nominated pod", {**_pod(pod), "node": node_name})


def _pod(pod: Pod) -> dict[str, object]:
    return {"pod": str(pod), "uid": pod.uid, "phase": pod.status.phase}


# What is in the queue.


def _queued(part: str, queued: QueuedPod, now: float, details: Callable[[QueuedPod, float], dict[str, object]]) -> Line:
    fields = {
        "queue": part,
        **_pod(queued.pod),
        "nominatedNode": queued.pod.nominated_node_name,
        "attempts": queued.attempts,
        "ageSeconds": round(now - queued.created, 3),
        **details(queued, now),
    }
    return Line("Dump of queued pod", fields)


def _waiting(queued: QueuedPod, now: float) -> dict[str, object]:
    """The plugins that refused it last; none for a pod that waits for its first attempt, or had an error."""
    plugins = queued.unschedulable_plugins | queued.pending_plugins
    return {"plugins": sorted(plugins)} if plugins else {}


def _backing_off(queued: QueuedPod, now: float) -> dict[str, object]:
    return {"endsInSeconds": round(max(0.0, queued.entity.backoff_expiration - now), 3), **_waiting(queued, now)}


def _gated(queued: QueuedPod, now: float) -> dict[str, object]:
    return {"gatedBy": queued.gate}


def _in_flight(queued: QueuedPod, now: float) -> dict[str, object]:
    began = queued.attempt_began
    return {"forSeconds": None if began is None else round(now - began, 3)}


_DETAILS: Final[Mapping[str, Callable[[QueuedPod, float], dict[str, object]]]] = {
    "backoff": _backing_off,
    "gated": _gated,
    "incomplete": _gated,
    "inFlight": _in_flight,
}
