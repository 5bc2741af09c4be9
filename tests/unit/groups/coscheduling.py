"""An engine whose profile has the plugin Coscheduling, and groups of our own rules for it."""

from typing import Any

from plugins.contrib.coscheduling.plugin import Coscheduling
from scheduler import framework as fw
from scheduler.api.groups import coscheduling as api
from scheduler.api.objects import GroupAnnotations, GroupedMeta
from scheduler.config.feature_gates import FeatureGates
from scheduler.config.types import DEFAULT_GATES
from scheduler.framework.events import COSCHEDULING_POD_GROUP
from scheduler.testing import a_pod
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.groups.groups import Grouping


class Coscheduled(Grouping):
    """With groups of our own rules."""

    def __init__(
        self,
        *plugins: type[fw.Plugin],
        nodes: int = 2,
        gates: FeatureGates = DEFAULT_GATES,
        plugin: type[Coscheduling] = Coscheduling,
        **options: Any,
    ) -> None:
        """`plugin`: with other arguments by default."""
        super().__init__(plugin, *plugins, nodes=nodes, gates=gates, **options)
        self.statuses = self.engine.group_parts.statuses
        self.statuses._writer._writer = self  # type: ignore[assignment]
        self.statuses._now = lambda: 1_700_000_000.0

    def create(
        self, name: str = "g", minimum: int = 3, annotations: GroupAnnotations | None = None, pods: int = 0, **spec: Any
    ) -> list[fw.Pod]:
        """Let the watch show a PodGroup, or its new version, and so many pods."""
        metadata = GroupedMeta(name=name, namespace="default", uid=f"uid of {name}", group_annotations=annotations)
        spec_of_group = api.PodGroupSpec(min_member=minimum, **spec)
        self.show(COSCHEDULING_POD_GROUP, api.PodGroup(metadata=metadata, spec=spec_of_group))
        return self.pods(pods, name)

    def delete(self, name: str = "g") -> None:
        """Let the watch show that a PodGroup is deleted."""
        group = self.engine.objects.get(COSCHEDULING_POD_GROUP, name, "default")
        self.engine.object_handlers.object_deleted(COSCHEDULING_POD_GROUP, group)

    def pods(self, count: int, group: str = "g", first: int = 0, **fields: Any) -> list[fw.Pod]:
        """Let the watch show pods with the label of a group, numbered from `first` on."""
        labels = {api.POD_GROUP_LABEL: group}
        return self.see([f"{group}-{number}" for number in range(first, first + count)], labels=labels, **fields)

    def annotated(self, count: int, minimum: object, group: str = "a", first: int = 0, **fields: Any) -> list[fw.Pod]:
        """Let the watch show pods that make a group by their annotations."""
        annotations = {
            "loadmaster.dev/pod-group": group,
            "loadmaster.dev/pod-group-min-available": str(minimum),
            **fields.pop("annotations", {}),
        }
        names = [f"{group}-{number}" for number in range(first, first + count)]
        return self.see(names, annotations=annotations, **fields)

    def see(self, names: list[str], **fields: Any) -> list[fw.Pod]:
        """Let the watch show such pods of one core each."""
        fields = {"requests": {"cpu": "1"}, "scheduler_name": PROFILE, **fields}
        policy = fields.pop("preemption_policy", None)
        made = [a_pod(name, **fields) for name in names]
        if policy is not None:
            made = [newer(pod, preemption_policy=policy) for pod in made]
        self.under_test.see(*made)
        return made

    async def schedule(self) -> int:
        """Try pods as long as there is one to try; return how often one was taken out of the queue."""
        return await self.under_test.try_all()

    async def later(self, *seen: fw.Node) -> int:
        """Hear of nodes, let backoffs end, and try what is there to try."""
        self.under_test.see(*seen)
        self.under_test.clock.advance(20.0)
        self.engine.queue.flush_backoff_completed()
        return await self.schedule()

    def refusal(self, pod: fw.Pod) -> str:
        """What keeps a pod out of the queue; empty if nothing does."""
        framework = self.engine.frameworks[PROFILE]
        status = framework.plugins.by_name["Coscheduling"].pre_enqueue(pod)  # type: ignore[attr-defined]
        return "" if status is None else str(status.message)
