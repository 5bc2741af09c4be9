"""The fate of the pods of a node that is drained, as `kubectl drain` does it, or that vanishes.

    pod of a DaemonSet, static pod ───────────► stays; gone with a node that vanishes
    a budget forbids it ──────────────────────► stays, and is tried again when others have found a node
    has a controller ───► evicted ────────────► another one comes and is scheduled
    has none ───────────► evicted ────────────► lost

Rules: k8s.io/kubectl pkg/drain (filters.go, drain.go) at v0.36.3. Evictions come in waves: all that may go now, then
their replacements, which the budgets count as ready where they find a node; until nothing more may go.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from scheduler.api.groups.owners import controller_of, is_of_daemon_set, is_static
from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.tolerations import UNSCHEDULABLE_TAINT
from scheduler.framework.events import RESOURCE_CLAIM
from scheduler.simulate.engine import Simulation
from scheduler.simulate.recording import Result
from scheduler.simulate.what_if.budgets import Budgets
from scheduler.simulate.what_if.replacements import (
    Replacements,
    claims_like,
    own_claims,
    shared_claims,
    without_user,
)


def cordoned(node: Node) -> Node:
    """Return the node after `kubectl cordon`, with the taint that its controller adds."""
    cordon = UNSCHEDULABLE_TAINT
    others = tuple(taint for taint in node.taints if (taint.key, taint.effect) != (cordon.key, cordon.effect))
    return replace(node, spec=replace(node.spec, unschedulable=True, taints=(*others, cordon)))


@dataclass(slots=True)
class Emptied:
    """The fate of the pods of one node."""

    node: str
    replaced: list[tuple[Pod, Result]] = field(default_factory=list)
    """Each pod that went, and what became of the one that came in its place."""

    lost: list[Pod] = field(default_factory=list)
    """No controller makes another one."""

    stays: list[tuple[Pod, str]] = field(default_factory=list)
    """Pods that the node keeps, and why."""

    refused: list[tuple[Pod, str]] = field(default_factory=list)
    """Pods that could not be evicted, and why: the drain goes on waiting for them."""

    flags: list[str] = field(default_factory=list)
    """Without these, `kubectl drain` does nothing."""

    def document(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "evicted": len(self.replaced) + len(self.lost),
            "placed": sum(result["node"] is not None for _, result in self.replaced),
            "lost": [str(pod) for pod in self.lost],
            "stays": [{"pod": str(pod), "why": why} for pod, why in self.stays],
            "refused": [{"pod": str(pod), "why": why} for pod, why in self.refused],
            "command": " ".join(["kubectl drain", self.node, *self.flags]),
        }


class Evictions:
    def __init__(self, simulation: Simulation, budgets: Budgets) -> None:
        self._simulation = simulation
        self._budgets = budgets
        self._replacements = Replacements(map(str, simulation.engine.pods.values()))

    async def drain(self, name: str) -> Emptied:
        """Evict the pods of a node, which is cordoned already, and schedule those that come in their place."""
        emptied, left = Emptied(name), []
        for pod in self._pods_on(name):
            if is_static(pod):
                emptied.stays.append((pod, "static pod"))
            elif is_of_daemon_set(pod):
                emptied.stays.append((pod, f"DaemonSet {_owner(pod)}"))
            else:
                left.append(pod)
        emptied.flags = list(_flags(left, emptied.stays))
        while wave := list(self._wave(left)):
            gone = {pod.uid for pod in wave}
            left = [pod for pod in left if pod.uid not in gone]
            replaced = [each for pod in wave if (each := await self._evict(pod, emptied)) is not None]
            await self._simulation.schedule_waiting()
            self._simulation.rest()
            for pod, result in replaced:
                if result["node"] is not None:
                    self._budgets.give(pod)
            emptied.replaced += replaced
        emptied.refused = [(pod, self._budgets.refusal(pod) or "") for pod in left]
        return emptied

    async def remove(self, node: Node) -> Emptied:
        """Take a node away with all its pods; let others come in their place, to be scheduled later."""
        emptied = Emptied(node.name)
        for pod in self._pods_on(node.name):
            self._budgets.take(pod)
            if is_static(pod) or is_of_daemon_set(pod):
                self._simulation.engine.handlers.pod_deleted(pod)
            else:
                replaced = await self._evict(pod, emptied)
                emptied.replaced += [] if replaced is None else [replaced]
        self._simulation.engine.handlers.node_deleted(node)
        return emptied

    def _pods_on(self, name: str) -> Sequence[Pod]:
        """Those that are bound: one that Permit plugins hold is not there yet."""
        on_hold, pods = self._simulation.on_hold, self._simulation.engine.cache.table.pods_on(name)
        return sorted((pod for pod in pods if pod.uid not in on_hold), key=str)

    def _wave(self, left: Iterable[Pod]) -> Iterator[Pod]:
        """Yield the pods that the API server evicts now, one after the other."""
        for pod in left:
            if pod.is_deleting or self._budgets.refusal(pod) is None:
                if not pod.is_deleting:
                    self._budgets.take(pod)
                yield pod

    async def _evict(self, pod: Pod, emptied: Emptied) -> tuple[Pod, Result] | None:
        engine = self._simulation.engine
        there = {key: found for key in own_claims(pod) if (found := self._find(*key, pod)) is not None}
        engine.handlers.pod_deleted(pod)
        for (resource, name), claim in there.items():
            await self._simulation.api.delete(resource, name, pod.namespace, claim.metadata.uid)
        for name in shared_claims(pod):
            claim = self._find(RESOURCE_CLAIM, name, pod)
            if claim is not None:
                await self._simulation.api.update(RESOURCE_CLAIM, without_user(claim, pod.uid))
        if pod.is_deleting:
            return None  # it was on its way, and its controller has made another one
        owner = controller_of(pod)
        if owner is None:
            emptied.lost.append(pod)
            return None
        new = self._replacements.of(pod, owner)
        self._simulation.add_objects(claims_like(pod, new, there))
        result = self._simulation.come(new)
        result |= {"replaces": str(pod), "evictedFrom": emptied.node}
        if new.spec.scheduler_name not in engine.frameworks:
            result["message"] = f"waits for another scheduler, {new.spec.scheduler_name!r}"
        return pod, result

    def _find(self, resource: str, name: str, pod: Pod) -> Any:
        """Return a claim of a pod; None also where no plugin looks at such claims."""
        engine = self._simulation.engine
        return engine.objects.get(resource, name, pod.namespace) if resource in engine.watched else None


def _owner(pod: Pod) -> str:
    owner = controller_of(pod)
    return owner.name if owner is not None else ""


def _flags(left: Sequence[Pod], stays: Sequence[tuple[Pod, str]]) -> Iterator[str]:
    if any(not is_static(pod) for pod, _ in stays):
        yield "--ignore-daemonsets"
    if any(map(has_local_data, left)):
        yield "--delete-emptydir-data"
    if any(controller_of(pod) is None for pod in left):
        yield "--force"


def has_local_data(pod: Pod) -> bool:
    """Return whether it has an emptyDir, which goes with it."""
    return any(getattr(volume, "empty_dir", None) is not None for volume in pod.spec.volumes or ())
