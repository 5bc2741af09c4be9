"""The engine over virtual time, with pods that take a while to end; and quotas as objects."""

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final, Protocol

from msgspec.structs import replace

from plugins import SHIPPED
from scheduler.api.objects import (
    GroupAnnotations,
    LabelSelector,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    PodCondition,
)
from scheduler.api.pods.pod import Pod
from scheduler.api.quota import kueue
from scheduler.api.quota.elastic_quotas import ElasticQuota, ElasticQuotaSpec
from scheduler.explain.documents import ShareAmounts
from scheduler.explain.shares import report_on_shares
from scheduler.framework.errors import BindRejected
from scheduler.framework.events import (
    CLUSTER_QUEUE,
    COHORT,
    ELASTIC_QUOTA,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
)
from scheduler.framework.shares import ShareKey
from scheduler.testing import a_node, a_pod, an_object
from scheduler.testing.api_server import BEGIN, ApiServer
from tests.campaigns.lives import Restartable
from tests.campaigns.quota import model
from tests.campaigns.quota.world import DECLARED, ELASTIC, GPU, KUEUE, Amounts, Quota, World, config_of

PROFILE: Final = "default-scheduler"
FLAVOR: Final = "default"
PREEMPTED: Final = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")
BUDGET: Final = "policy/PodDisruptionBudget"
PROTECTED: Final = {"protected": "yes"}
SHOWN: Final = ("guaranteed", "used", "borrowed", "waiting")
_EPOCH: Final = 1_000.0
"""What the clock of a virtual event loop shows at its beginning."""


class Watcher(Protocol):
    """Learns what the engine does, as it is done."""

    def bound(self, now: float, name: str, node: str) -> None: ...

    def refused(self, now: float, name: str) -> None: ...

    def evicted(self, now: float, victim: str, claimant: str) -> None: ...

    def ended(self, now: float, name: str) -> None: ...


class _Server(ApiServer):
    """An API server where pods that are deleted take a while to end."""

    def __init__(self, watcher: Watcher, grace: float) -> None:
        super().__init__()
        self._watcher = watcher
        self._grace = grace
        self.refusals = 0
        """So many of the next bindings are refused."""

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        now = _now()
        if self.refusals:
            self.refusals -= 1
            self._watcher.refused(now, pod.name)
            raise BindRejected("409 Conflict: the object has been modified")
        begun = replace(pod, status=replace(pod.status, phase="Running", start_time=BEGIN + timedelta(seconds=now)))
        answer = await super().bind(begun, node_name, check)
        self._watcher.bound(now, pod.name, node_name)
        return answer

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        if victim.uid not in self.engine.pods:
            return False
        self.evicted.append(victim)
        self._watcher.evicted(_now(), victim.name, preemptor.name)
        self.end(victim.uid, conditions=(PREEMPTED,))
        return True

    def end(self, uid: str, at_once: bool = False, conditions: Sequence[PodCondition] | None = None) -> None:
        """Let a pod end, after its grace period if it runs and is deleted. `conditions`: what it has from then on."""
        pod = self.engine.pods.get(uid)
        if pod is None or (pod.is_deleting and not at_once):
            return
        if at_once or not self._grace or not pod.node_name:
            self._gone(uid)
            return
        self.engine.handlers.pod_changed(
            replace(
                pod,
                metadata=replace(pod.metadata, deletion_timestamp=_time(_now() + self._grace)),
                status=replace(pod.status, conditions=conditions),
            )
        )
        asyncio.get_running_loop().call_later(self._grace, self._gone, uid)

    def _gone(self, uid: str) -> None:
        pod = self.engine.pods.get(uid)
        if pod is not None:
            self.engine.handlers.pod_deleted(pod)
            self._watcher.ended(_now(), pod.name)


class Cluster(Restartable):
    """A scheduler with the quotas of a world."""

    def __init__(self, world: World, watcher: Watcher) -> None:
        self._world = world
        self._pods = _Server(watcher, world.grace)
        self._version = 0
        super().__init__(config_of(world), SHIPPED, server=self._pods, decisions_at_once=world.decisions_at_once)

    def begin(self) -> None:
        """Create the objects that the quotas are."""
        if self._world.source == KUEUE:
            self.put(RESOURCE_FLAVOR, kueue.ResourceFlavor(self._meta(FLAVOR)))
            for quota in self._world.leaves:
                self.put(NAMESPACE, an_object(quota.name))
                self.put(
                    LOCAL_QUEUE, kueue.LocalQueue(self._meta("default", quota.name), kueue.LocalQueueSpec(quota.name))
                )
        for quota in self._world.leaves if self._world.has_budgets and self._world.evicts else ():
            spec = {"selector": {"matchLabels": PROTECTED}}
            status = {"disruptionsAllowed": 0, "disruptedPods": {}}
            self.put(BUDGET, an_object("budget", namespace=quota.name, version=1, spec=spec, status=status))
        for quota in () if self._world.source == DECLARED else self._world.quotas:
            self.set_quota(quota)

    def set_quota(self, quota: Quota) -> None:
        """Let a quota come or change."""
        quotas = {each.name: each for each in self._world.quotas} | {quota.name: quota}
        self._world = dataclasses.replace(self._world, quotas=tuple(quotas.values()))
        if self._world.source == DECLARED:
            self.reload(config_of(self._world), SHIPPED)
        elif self._world.source == ELASTIC:
            spec = ElasticQuotaSpec(_written(quota.minimum), _written(quota.maximum) or None)
            self.put(ELASTIC_QUOTA, ElasticQuota(self._meta("quota", quota.name), spec))
        elif self._world.source == KUEUE and quota in self._leaves(quota):
            self.put(CLUSTER_QUEUE, kueue.ClusterQueue(self._meta(quota.name), _queue(quota)))
        elif self._world.source == KUEUE:
            spec_of = kueue.CohortSpec(quota.parent, _groups(quota), kueue.FairSharing(quota.weight))
            self.put(COHORT, kueue.Cohort(self._meta(quota.name), spec_of))

    def start_anew(self, nodes: Sequence[Node]) -> None:
        """Let the scheduler end, and start in the same cluster."""
        pods = sorted(self.engine.pods.values(), key=lambda pod: not pod.node_name)
        self.restart()
        if self._world.source == DECLARED:
            self.reload(config_of(self._world), SHIPPED)
        self.set_node(*nodes)
        self.begin()
        self.create(*pods)

    def refuse_bindings(self, count: int) -> None:
        self._pods.refusals = count

    def remove_quota(self, name: str) -> None:
        quotas = tuple(each for each in self._world.quotas if each.name != name)
        self._world = dataclasses.replace(self._world, quotas=quotas)
        self.remove(ELASTIC_QUOTA, ElasticQuota(self._meta("quota", name)))

    def end(self, name: str, at_once: bool = False) -> None:
        """Let a pod end: it is deleted, or `at_once` it has run to its end."""
        self._do(partial(self._pods.end, at_once=at_once), self._named(name))

    def label(self, name: str, value: str) -> None:
        """Let a pod have another label."""
        for uid in self._named(name):
            pod = self.engine.pods[uid]
            self.update(replace(pod, metadata=replace(pod.metadata, labels={**pod.labels, "changed": value})))

    def _named(self, name: str) -> list[str]:
        return [uid for uid, pod in self.engine.pods.items() if pod.name == name]

    def nominations(self) -> dict[str, str]:
        """Pod → node, of those that the engine expects on a node."""
        return {pod.name: node for node, pods in self.engine.nominator.by_node() for pod in pods}

    def used(self) -> dict[str, dict[str, int]]:
        """What the engine counts as used of each leaf when it decides, in whole units."""
        shares = self.engine.frameworks[PROFILE].handle.shares
        states = {leaf.name: shares.state_of(self._key(leaf.name)) for leaf in self._world.leaves}
        return {
            name: {_plain(r): amount // _unit(r) for r, amount in state.used.items()}
            for name, state in states.items()
            if state is not None
        }

    def reported(self) -> dict[str, dict[str, ShareAmounts]]:
        """What `loadmaster quota` shows of leaves and all above, by resource, in whole units."""
        report = self._runner.run(report_on_shares(self.engine))
        return {
            share.name.rpartition("/")[2] if self._world.source == KUEUE else share.name.partition("/")[0]: {
                _plain(each.resource): replace(
                    each, **{name: getattr(each, name) // _unit(each.resource) for name in SHOWN}
                )
                for each in share.resources
            }
            for share in report.shares
            if not share.problem
        }

    def _key(self, name: str) -> ShareKey:
        if self._world.source == ELASTIC:
            return ShareKey(ELASTIC_QUOTA, f"{name}/quota")
        if self._world.source == KUEUE:
            return ShareKey(CLUSTER_QUEUE, f"ClusterQueue/{name}")
        return ShareKey("shares", name)

    def end_all(self) -> None:
        """Let all pods be deleted at once, those that wait first."""
        self._do(self._pods.end, sorted(self.engine.pods, key=lambda uid: bool(self.engine.pods[uid].node_name)))

    def _leaves(self, quota: Quota) -> list[Quota]:
        return [quota] if quota.name in {leaf.name for leaf in self._world.leaves} else []

    def _meta(self, name: str, namespace: str = "") -> ObjectMeta:
        self._version += 1
        return ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"{namespace}/{name}",
            resource_version=str(self._version),
            creation_timestamp=_time(0),
        )


def node_of(name: str, cores: int, is_cordoned: bool = False) -> Node:
    return a_node(name, cpu=cores, memory="1Ti", pods=1000, allocatable={GPU: cores}, unschedulable=is_cordoned)


def pod_of(pod: model.Pod) -> Pod:
    """The pod as its creator writes it, or as it runs."""
    made = a_pod(
        pod.name,
        namespace=pod.quota,
        labels=PROTECTED if pod.is_protected else None,
        requests={resource: amount for resource, amount in pod.asks.items() if amount},
        priority=pod.priority,
        node_name=pod.node,
        node_affinity=NodeAffinity(required=_only(pod.pinned_to)) if pod.pinned_to else None,
        scheduler_name="other" if pod.is_foreign else PROFILE,
    )
    group = GroupAnnotations(pod.group, str(pod.minimum)) if pod.group else None
    return replace(
        made,
        metadata=replace(made.metadata, creation_timestamp=_time(pod.came), group_annotations=group),
        spec=replace(made.spec, preemption_policy="Never" if pod.never else None),
        status=replace(
            made.status,
            phase="Running" if pod.node else "Pending",
            start_time=BEGIN + timedelta(seconds=pod.started) if pod.node else None,
        ),
    )


def _queue(quota: Quota) -> kueue.ClusterQueueSpec:
    return kueue.ClusterQueueSpec(
        resource_groups=_groups(quota),
        cohort_name=quota.parent,
        namespace_selector=LabelSelector(),
        preemption=kueue.Preemption(reclaim_within_cohort=quota.reclaim, within_cluster_queue=quota.within),
        fair_sharing=kueue.FairSharing(quota.weight),
    )


def _groups(quota: Quota) -> tuple[kueue.ResourceGroup, ...] | None:
    if not quota.minimum:
        return None
    amounts = tuple(
        kueue.ResourceQuota(resource, amount, quota.borrowing.get(resource), quota.lending.get(resource))
        for resource, amount in quota.minimum.items()
    )
    return (kueue.ResourceGroup(tuple(quota.minimum), (kueue.FlavorQuotas(FLAVOR, amounts),)),)


def _only(node: str) -> NodeSelector:
    name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))


def _written(amounts: Amounts) -> dict[str, Any]:
    return dict(amounts)


def _plain(resource: str) -> str:
    return resource.removeprefix(f"{FLAVOR}/")


def _unit(resource: str) -> int:
    return 1_000 if _plain(resource) == "cpu" else 1


def _now() -> float:
    return asyncio.get_running_loop().time() - _EPOCH


def _time(seconds: float) -> str:
    return (BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
