"""An engine with groups of groups, and such trees for it."""

from typing import Any

from scheduler import framework as fw
from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import ObjectMeta
from scheduler.config.feature_gates import FeatureGates
from scheduler.framework.events import COMPOSITE_POD_GROUP
from tests.unit.groups.groups import Groups

GATES = FeatureGates(
    generic_workload=True,
    topology_aware_workload_scheduling=True,
    composite_pod_group=True,
    given={"CompositePodGroup": True},
)


class Trees(Groups):
    """Nodes with two cores each."""

    def __init__(self, *plugins: type[fw.Plugin], nodes: int = 2, **options: Any) -> None:
        super().__init__(*plugins, nodes=nodes, gates=GATES, **options)

    def composite(self, name: str, minimum: int | None = None, parent: str = "", **fields: Any) -> None:
        """Let the watch show a group of groups; without a minimum one of them is enough."""
        gang = None if minimum is None else api.GangPolicy(min_group_count=minimum)
        self._show(COMPOSITE_POD_GROUP, name, gang, parent, fields)

    def leaf(self, name: str, minimum: int | None = None, parent: str = "root", **fields: Any) -> None:
        """Let the watch show a group of pods; without a minimum it is no gang."""
        gang = None if minimum is None else api.GangPolicy(min_count=minimum)
        self._show(fw.POD_GROUP, name, gang, parent, fields)

    def _show(self, resource: str, name: str, gang: api.GangPolicy | None, parent: str, fields: dict[str, Any]) -> None:
        created = fields.pop("created", None)
        key = fields.pop("topology", None)
        if key is not None:
            topology = (api.TopologyConstraint(key=key),)
            fields["scheduling_constraints"] = api.SchedulingConstraints(topology=topology)
        policy = api.SchedulingPolicy(gang=gang)
        spec = api.PodGroupSpec(scheduling_policy=policy, parent_composite_pod_group_name=parent or None, **fields)
        metadata = ObjectMeta(
            name=name, namespace="default", uid=f"uid of {name}", generation=1, creation_timestamp=created
        )
        self.show(resource, api.PodGroup(metadata=metadata, spec=spec))

    def remove(self, resource: str, name: str) -> None:
        """Let the watch show that a group is gone."""
        self.engine.object_handlers.object_deleted(resource, self.engine.objects.get(resource, name, "default"))

    @property
    def placed(self) -> dict[str, int]:
        """Group → how many of its pods are bound."""
        names = [name.rpartition("-")[0] for name in self.bound]
        return {name: names.count(name) for name in sorted(set(names))}
