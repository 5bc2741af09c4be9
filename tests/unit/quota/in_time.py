"""A whole scheduler with quotas over virtual time, where victims take a while to end."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from plugins import IN_TREE
from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from plugins.contrib.coscheduling.plugin import Coscheduling
from scheduler import framework as fw
from scheduler.api.groups import coscheduling as api
from scheduler.api.objects import GroupedMeta, ObjectMeta, PodCondition
from scheduler.api.quota.elastic_quotas import ElasticQuota, ElasticQuotaSpec, ElasticQuotaStatus
from scheduler.api.read_only import NOTHING
from scheduler.config.defaults import default_plugins
from scheduler.config.types import DEFAULT_GATES, Config
from scheduler.framework.events import COSCHEDULING_POD_GROUP, ELASTIC_QUOTA
from scheduler.framework.shares import DeclaredShare
from scheduler.runtime.profile_spec import PluginRef, PluginSet, ProfileSpec
from scheduler.runtime.registry import Registry
from scheduler.testing import a_node, a_pod
from scheduler.testing.scheduler import PROFILE, Scheduler
from tests.unit.cycle.fakes import newer

GPU = "nvidia.com/gpu"
ROOT = DeclaredShare("root")
PREEMPTED = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")


def a_team(name: str, cpu: int = 0, **fields: Any) -> DeclaredShare:
    """A share below `root`, for the namespace of its name, that is guaranteed so many cores."""
    return DeclaredShare(name, "root", minimum={"cpu": cpu} if cpu else {}, namespaces=(name,), **fields)


class Life(Scheduler):
    """Quota, with or without DefaultPreemption; an evicted pod ends after its grace period.

    `wait`: how many seconds pass after what a call does.
    """

    def __init__(
        self,
        *shares: DeclaredShare,
        grace: float = 30.0,
        longer: float = 0.0,
        default_preemption: bool = True,
        quota_first: bool = False,
        without: tuple[str, ...] = (),
        quotas: Mapping[str, int] = NOTHING,
        cpu: int = 0,
        **arguments: Any,
    ) -> None:
        """Without `shares`, ElasticQuotas count. `longer`: how much longer each victim takes than the one before.

        `quota_first`: whether CapacityScheduling is asked before DefaultPreemption. `quotas`: ElasticQuotas: team → its
        cores; `cpu`: those of the node `n`; `arguments`: further ones of CapacityScheduling.
        """

        class Declaring(CapacityScheduling):
            def __init__(self) -> None:
                super().__init__(not shares, shares, **arguments)

        default = default_plugins(DEFAULT_GATES)
        left_out = without if default_preemption else (*without, "DefaultPreemption")
        enabled = [each for each in default.multi_point.enabled if each.name not in left_out]
        own = [PluginRef(each.name) for each in (Declaring, Coscheduling) if each.name not in left_out]
        refs = (*own, *enabled) if quota_first else (*enabled, *own)
        plugins = replace(default, multi_point=PluginSet(refs))
        registry: Registry = {**IN_TREE, Declaring.name: Declaring, Coscheduling.name: Coscheduling}
        super().__init__(Config((ProfileSpec(PROFILE, plugins),)), registry)
        self._grace, self._longer = grace, longer
        self._quotas, self._cpu = quotas, cpu
        self._versions = 0
        self.victims: list[str] = []
        """The pods that were evicted, in this order."""
        self._server.evict = self._evict  # type: ignore[method-assign]

    def __enter__(self) -> Self:
        super().__enter__()
        for name, minimum in self._quotas.items():
            self.quota(name, minimum)
        if self._cpu:
            self.set_node(a_node("n", cpu=self._cpu))
        return self

    async def _start(self) -> None:
        await super()._start()
        self._tasks.start("shares", self.engine.share_parts.run())

    async def _evict(self, victim: fw.Pod, preemptor: fw.Pod, message: str) -> bool:
        pod = self.engine.pods.get(victim.uid)
        if pod is None:
            return False
        self.victims.append(str(pod))
        if not pod.is_deleting:
            self.engine.handlers.pod_changed(
                newer(pod, deletion_timestamp="2026-01-01T00:00:00Z", conditions=(PREEMPTED,))
            )
            asyncio.get_running_loop().call_later(self._grace + len(self.victims) * self._longer, self._end, pod.uid)
        return True

    def _end(self, uid: str) -> None:
        if (pod := self.engine.pods.get(uid)) is not None:
            self.engine.handlers.pod_deleted(pod)

    def _wait(self, seconds: float) -> None:
        if seconds:
            self.advance(seconds)

    def pod(
        self, name: str, team: str = "a", cpu: int = 1, gpus: int = 0, *, wait: float = 0.0, **fields: Any
    ) -> fw.Pod:
        """Let a pod come."""
        requests = {"cpu": cpu, GPU: gpus} if gpus else {"cpu": cpu}
        pod = a_pod(name, namespace=team, scheduler_name=PROFILE, requests=requests, **fields)
        self.create(pod)
        self._wait(wait)
        return pod

    def pods(self, count: int, team: str = "a", *, wait: float = 0.0, **fields: Any) -> list[fw.Pod]:
        pods = [self.pod(f"{team}{number}", team, **fields) for number in range(count)]
        self._wait(wait)
        return pods

    def group(
        self, name: str, count: int, team: str = "a", *, minimum: int | None = None, wait: float = 0.0, **fields: Any
    ) -> None:
        """Let a PodGroup come, and its pods."""
        metadata = GroupedMeta(name=name, namespace=team, uid=f"group {team}/{name}", resource_version="1")
        spec = api.PodGroupSpec(min_member=count if minimum is None else minimum)
        self.put(COSCHEDULING_POD_GROUP, api.PodGroup(metadata=metadata, spec=spec))
        for number in range(count):
            self.pod(f"{name}-{number}", team, labels={api.POD_GROUP_LABEL: name}, **fields)
        self._wait(wait)

    def quota(self, team: str, minimum: int = 0, maximum: int | None = None, gpus: int = 0) -> None:
        """Let an ElasticQuota come, or change."""
        self._versions += 1
        metadata = ObjectMeta(
            name="quota", namespace=team, uid=f"quota of {team}", resource_version=str(self._versions)
        )
        most = None if maximum is None else {"cpu": str(maximum)}
        least = {"cpu": str(minimum), GPU: str(gpus)} if gpus else {"cpu": str(minimum)}
        spec = ElasticQuotaSpec(least, most)
        self.put(ELASTIC_QUOTA, ElasticQuota(metadata, spec, ElasticQuotaStatus(None)))

    def end(self, *names: str, wait: float = 0.0) -> None:
        """Let pods be gone at once."""
        self.delete(*[pod for pod in self.engine.pods.values() if str(pod) in names])
        self._wait(wait)

    def with_node(self, team: str = "") -> list[str]:
        """The pods that have a node, sorted."""
        return sorted(str(pod) for pod in self.engine.cache.counted_pods() if not team or pod.namespace == team)

    def running(self, team: str) -> int:
        """How many of a team run and stay."""
        return sum(pod.namespace == team and not pod.is_deleting for pod in self.engine.cache.counted_pods())

    def check_invariants(self) -> None:
        super().check_invariants()
        self.engine.shares.check_invariants()
