"""An engine whose profile has the plugin CapacityScheduling, with elastic quotas or shares that are declared."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from scheduler import framework as fw
from scheduler.api.groups import coscheduling
from scheduler.api.objects import GroupedMeta, ObjectMeta, PodCondition, PodStatus
from scheduler.api.quota.elastic_quotas import ElasticQuota, ElasticQuotaSpec, ElasticQuotaStatus
from scheduler.api.read_only import NOTHING
from scheduler.framework.events import COSCHEDULING_POD_GROUP, ELASTIC_QUOTA
from scheduler.framework.queued import Entry
from scheduler.framework.shares import DeclaredShare
from scheduler.testing import a_node, a_pod, an_object
from tests.fakes.world import Unschedulable
from tests.unit.cycle.fakes import PROFILE, EngineUnderTest, an_engine, newer

START = datetime(2026, 1, 1, tzinfo=UTC)
LEAVING = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


def declaring(*shares: DeclaredShare, elastic_quotas: bool = True, **arguments: Any) -> type[fw.Plugin]:
    """The plugin with these arguments, whatever the configuration says."""

    class Declaring(CapacityScheduling):
        def __init__(self) -> None:
            super().__init__(elastic_quotas, shares, **arguments)

    return Declaring


class WithShares:
    """An engine with these plugins."""

    def __init__(self, *plugins: type[fw.Plugin], **options: Any) -> None:
        self.under_test: EngineUnderTest = an_engine(*plugins, **options)
        self.engine = self.under_test.engine
        self.shares = self.engine.shares
        self.clock = self.under_test.clock
        self._versions = 0

    # What the watch shows.

    def group(self, name: str, minimum: int, namespace: str = "a") -> dict[str, str]:
        """Let the watch show a group of pods; return the labels of its pods."""
        self._versions += 1
        metadata = GroupedMeta(
            name=name, namespace=namespace, uid=f"uid of {name}", resource_version=str(self._versions)
        )
        group = coscheduling.PodGroup(metadata=metadata, spec=coscheduling.PodGroupSpec(min_member=minimum))
        self.engine.object_handlers.object_changed(COSCHEDULING_POD_GROUP, group)
        return {coscheduling.POD_GROUP_LABEL: name}

    def delete(self, *pods: fw.Pod | str) -> None:
        """Let the watch show that pods are gone, or running ones with these names."""
        for pod in pods:
            known = self.running(pod) if isinstance(pod, str) else self.engine.pods.get(pod.uid, pod)
            self.under_test.handlers.pod_deleted(known)

    def leave(self, name: str) -> fw.Pod:
        """Let the watch show that a pod is being deleted because it was preempted; return it."""
        pod = self.running(name)
        self.under_test.see(newer(pod, deletion_timestamp="2026-01-01T00:00:00Z", conditions=(LEAVING,)))
        return pod

    def confirm(self) -> None:
        """Let the watch show what was bound."""
        for uid, node in self.under_test.world.bound.items():
            pod = self.engine.pods.get(uid)
            if pod is not None and not pod.node_name:
                self.under_test.see(newer(pod, node_name=node))

    # What becomes of it.

    async def schedule(self, seconds: float = 60.0) -> int:
        """Let backoffs end, then try pods as long as there is one to try; return how often one was tried."""
        self.clock.advance(seconds)
        self.under_test.queue.flush_backoff_completed()
        return await self.under_test.try_all()

    def begin(self, pod: fw.Pod) -> Entry:
        """Pop a pod that is to be tried next: `finish` tries it."""
        popped = self.engine.queue.pop_nowait()
        assert popped is not None
        assert popped.pod.uid == pod.uid
        return popped

    async def finish(self, popped: Entry) -> int:
        self.engine.loop.schedule_one(popped)
        return 1 + await self.schedule()

    async def end(self, *pods: fw.Pod | str) -> int:
        """Let pods be gone, as `delete` does, then try all that may be tried."""
        self.delete(*pods)
        return await self.schedule()

    async def after_a_look(self) -> int:
        """Let a second pass; return how often a pod was tried."""
        self.engine.share_parts.catch_up()
        return await self.schedule(11.0)

    def running(self, name: str) -> fw.Pod:
        """The pod with this name, or namespace and name, that has a node."""
        return next(pod for pod in self.engine.cache.counted_pods() if name in (pod.name, str(pod)))

    @property
    def placed(self) -> list[str]:
        """The names of the pods that have a node, sorted."""
        return sorted(pod.name for pod in self.engine.cache.counted_pods())

    @property
    def evicted(self) -> list[str]:
        return self.under_test.evicted

    def where(self, pod: fw.Pod) -> str:
        return self.under_test.where(pod.uid)

    def note(self, pod: fw.Pod) -> str:
        """The text of a pod's last Event."""
        return [event.note for event in self.under_test.world.events if event.pod == str(pod)][-1]


class Sharing(WithShares):
    """An engine with one large node, or with this one."""

    def __init__(
        self,
        *shares: DeclaredShare,
        also: tuple[type[fw.Plugin], ...] = (),
        node: fw.Node | None = None,
        arguments: Mapping[str, Any] = NOTHING,
        **options: Any,
    ) -> None:
        """`arguments`: further ones of the plugin."""
        super().__init__(declaring(*shares, **arguments), *also, **options)
        self.under_test.see(node or a_node("n", cpu="64", memory="64Gi"))

    def quota(
        self,
        namespace: str = "a",
        *,
        minimum: dict[str, str] | None = None,
        maximum: dict[str, str] | None = None,
        name: str = "quota",
        source: str = ELASTIC_QUOTA,
        created: str = "2026-01-01T00:00:00Z",
        used: dict[str, str] | None = None,
    ) -> ElasticQuota:
        """Let the watch show a quota, or its new version."""
        self._versions += 1
        uid = f"{source} {namespace}/{name}"
        version = str(self._versions)
        metadata = ObjectMeta(
            name=name, namespace=namespace, uid=uid, resource_version=version, creation_timestamp=created
        )
        quota = ElasticQuota(metadata, ElasticQuotaSpec(minimum, maximum), ElasticQuotaStatus(used))
        self.engine.object_handlers.object_changed(source, quota)
        return quota

    def drop(self, namespace: str = "a", name: str = "quota", source: str = ELASTIC_QUOTA) -> None:
        """Let the watch show that a quota is deleted."""
        gone = self.engine.objects.get(source, name, namespace)
        self.engine.object_handlers.object_deleted(source, gone)

    def pods(self, count: int, namespace: str = "a", first: int = 0, **fields: Any) -> list[fw.Pod]:
        """Let the watch show pods of one core each."""
        names = [f"{namespace}-{number}" for number in range(first, first + count)]
        return [self.pod(name, namespace=namespace, **fields) for name in names]

    def run(self, namespace: str, count: int, nodes: Sequence[str] = ("n",), **fields: Any) -> None:
        """Let the watch show running pods, the last of which started last."""
        for number in range(count):
            started = PodStatus(start_time=START + timedelta(seconds=number))
            node = nodes[number % len(nodes)]
            self.pod(f"{namespace}-{number}", namespace=namespace, node_name=node, status=started, **fields)

    def pod(self, name: str, **fields: Any) -> fw.Pod:
        """Let the watch show a pod of one core."""
        fields = {"requests": {"cpu": "1"}, "namespace": "a", "scheduler_name": PROFILE, **fields}
        pod = a_pod(name, **fields)
        self.under_test.see(pod)
        return pod

    async def try_pods(self, count: int, namespace: str = "a", first: int = 0, **fields: Any) -> list[fw.Pod]:
        """Let the watch show pods of one core each, then try all that may be tried."""
        pods = self.pods(count, namespace, first, **fields)
        await self.schedule()
        return pods

    async def try_pod(self, name: str, **fields: Any) -> fw.Pod:
        """Let the watch show a pod of one core, then try all that may be tried."""
        pod = self.pod(name, **fields)
        await self.schedule()
        return pod

    @property
    def reasons(self) -> dict[str, str]:
        """Pod → the reason that its condition PodScheduled gives."""
        return {each.pod: each.reason for each in self.under_test.world.writes if isinstance(each, Unschedulable)}

    def protect(self, pod: str, namespace: str) -> None:
        """Let a PodDisruptionBudget that allows nothing cover a running pod."""
        budget = an_object(
            "budget",
            namespace=namespace,
            spec={"selector": {"matchLabels": {"app": "x"}}},
            status={"disruptionsAllowed": 0, "disruptedPods": {}},
        )
        self.engine.object_handlers.object_changed("policy/PodDisruptionBudget", budget)
        self.under_test.see(newer(self.running(pod), labels={"app": "x"}))

    def used(self, name: str = "a/quota", resource: str = "cpu") -> int:
        """What is used of a share."""
        ledger = next(each for each in self.shares.ledgers if name in each.tree.shares)
        return ledger.used(name)[resource]


def limited(cpu: str) -> Sharing:
    """An engine with a quota of the namespace `a` that gives so many cores and no more."""
    stage = Sharing()
    stage.quota(minimum={"cpu": cpu}, maximum={"cpu": cpu})
    return stage
