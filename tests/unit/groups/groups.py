"""An engine with groups on, and groups and pods for it."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import structs

from scheduler import framework as fw
from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import ObjectMeta
from scheduler.config.feature_gates import FeatureGates
from scheduler.framework.events import POD_GROUP
from scheduler.groups.cycle import PodGroupCycle
from scheduler.testing import a_node, a_pod
from tests.fakes import settle
from tests.fakes.engine import CHECKS
from tests.unit.cycle.fakes import PROFILE, EngineUnderTest, an_engine

GATES = FeatureGates(generic_workload=True)


class Grouping:
    """An engine with groups on, whose nodes have room for two pods of one core each."""

    create: Callable[..., list[fw.Pod]]
    """Lets the watch show a group, and pods for it."""
    pods: Callable[..., list[fw.Pod]]
    """Lets the watch show pods of a group."""
    schedule: Callable[[], Awaitable[Any]]
    """Tries pods and groups."""

    def __init__(self, *plugins: type[fw.Plugin], nodes: int, **options: Any) -> None:
        self.under_test: EngineUnderTest = an_engine(*plugins, **options)
        self.engine = self.under_test.engine
        CHECKS.append(self.check)
        self._version = 0
        self.patches: list[dict[str, Any]] = []
        """Of statuses, as the API server has taken them."""
        self.errors: list[Exception] = []
        """What it answers first."""
        self.unknown: dict[str, Any] = {}
        """The fields of a status that it does not keep, with the values that they have for it."""
        self.under_test.see(*(a_node(f"n{number}", cpu="2") for number in range(nodes)))

    @property
    def cycle(self) -> PodGroupCycle:
        assert self.engine.group_parts.cycle is not None
        return self.engine.group_parts.cycle

    def show(self, resource: str, shown: Any) -> Any:
        """Let the watch show an object, in a new version."""
        self._version += 1
        metadata = structs.replace(shown.metadata, resource_version=str(self._version))
        new = structs.replace(shown, metadata=metadata)
        self.engine.object_handlers.object_changed(resource, new)
        return new

    def show_written(self, resource: str, metadata: dict[str, Any], **content: Any) -> None:
        """Let the watch show a new version of an object that is read as it is written."""
        self._version += 1
        metadata = {"uid": f"u-{metadata['name']}", "resourceVersion": str(self._version), **metadata}
        written = fw.Unstructured.from_dict({"metadata": metadata, **content})
        self.engine.object_handlers.object_changed(resource, written)

    async def patch(self, resource: str, name: str, namespace: str, patch: Any, subresource: str = "") -> Any:
        """Take the status of a group, as the API server does."""
        assert subresource == "status"
        if self.errors:
            raise self.errors.pop(0)
        found: Any = self.engine.objects.get(resource, name, namespace)
        self.patches.append(patch["status"])
        status = msgspec.convert(patch["status"] | self.unknown, type(found.status))
        return self.show(resource, structs.replace(found, status=status))

    async def try_group(self, *args: Any, **fields: Any) -> list[fw.Pod]:
        """Let a group come with its pods, as `create` does, and be tried."""
        pods = self.create(*args, **fields)
        await self.schedule()
        return pods

    async def try_pods(self, *args: Any, **fields: Any) -> list[fw.Pod]:
        """Let pods of a group come, and be tried."""
        pods = self.pods(*args, **fields)
        await self.schedule()
        return pods

    @property
    def bound(self) -> dict[str, str]:
        """Name → node of the pods that are bound."""
        return {uid.rpartition("/")[2]: node for uid, node in self.under_test.world.bound.items()}

    def where(self, name: str) -> str:
        return self.under_test.where(f"default/{name}")

    def check(self) -> None:
        """All that we believe is consistent, and nothing is assumed that is not being bound."""
        self.under_test.check()
        assert {pod.uid for pod in self.engine.cache.assumed_pods()} <= self.under_test.world.bound.keys()


class Groups(Grouping):
    """With groups of kube-scheduler's rules."""

    def __init__(self, *plugins: type[fw.Plugin], nodes: int = 2, gates: FeatureGates = GATES, **options: Any) -> None:
        super().__init__(*plugins, nodes=nodes, gates=gates, **options)
        self.cycle._conditions._writer._writer = self  # type: ignore[assignment]

    def create(
        self, name: str = "g", minimum: int | None = 3, priority: int | None = None, pods: int = 0
    ) -> list[fw.Pod]:
        """Let the watch show a group, and so many pods; without a minimum it is no gang."""
        gang = None if minimum is None else api.GangPolicy(min_count=minimum)
        spec = api.PodGroupSpec(scheduling_policy=api.SchedulingPolicy(gang=gang), priority=priority)
        self.store(api.PodGroup(metadata=ObjectMeta(name=name, namespace="default", uid=f"uid of {name}"), spec=spec))
        return self.pods(pods, name)

    def store(self, group: api.PodGroup, conditions: tuple[api.Condition, ...] = ()) -> api.PodGroup:
        shown: api.PodGroup = self.show(
            POD_GROUP, structs.replace(group, status=api.PodGroupStatus(conditions=conditions))
        )
        return shown

    def object(self, name: str = "g") -> Any:
        return self.engine.objects.get(POD_GROUP, name, "default")

    def pods(self, count: int, group: str = "g", first: int = 0, **fields: Any) -> list[fw.Pod]:
        """Let the watch show pods of a group, with its priority, numbered from `first` on."""
        found = self.object(group)
        priority = 0 if found is None else found.spec.priority or 0
        fields = {"requests": {"cpu": "1"}, "scheduler_name": PROFILE, "priority": priority, **fields}
        made = [a_pod(f"{group}-{number}", group=group, **fields) for number in range(first, first + count)]
        self.under_test.see(*made)
        return made

    async def schedule(self) -> None:
        """Try what is at the head of the queue, and let bindings go as far as they can."""
        queued = self.engine.queue.pop_nowait()
        assert queued is not None, "nothing to try"
        self.engine.loop.schedule_one(queued)
        await settle()

    def condition(self, name: str = "g") -> tuple[str, str, str] | None:
        found = [each for each in self.object(name).status.conditions or () if each.type == api.POD_GROUP_SCHEDULED]
        return (found[0].status, found[0].reason, found[0].message) if found else None

    def problem(self, reason: str = "Unschedulable", name: str = "g") -> str:
        """The message of a group's condition, which is False for this reason."""
        condition = self.condition(name)
        assert condition is not None
        assert condition[:2] == ("False", reason)
        return condition[2]
