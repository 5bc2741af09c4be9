"""What each shipped plugin needs to be allowed, from what it declares; and why.

plugins, scheduler/kube/permissions.py ─► needs ─► charts/loadmaster/files/permissions.yaml ─► the ClusterRole
                     REASONS ─────────────┘  └────► the table in docs/permissions.md
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from plugins import SHIPPED
from plugins.contrib.coscheduling.plugin import Coscheduling
from scheduler.api.groups.workloads import WORKLOADS
from scheduler.config.defaults import FOR_POD_GROUPS
from scheduler.config.feature_gates import FeatureGates
from scheduler.config.types import DEFAULT_GATES
from scheduler.framework.nodes.resources import parse_resource
from scheduler.kube.permissions import PERMISSIONS, permissions_for
from scheduler.runtime.profile_spec import PluginRef, Plugins, PluginSet
from tests.chart.helm import CHART
from tests.chart.tables import DOCS, with_part
from tests.unit.cycle.fakes import an_engine

FILE: Final = CHART / "files" / "permissions.yaml"
PAGE: Final = DOCS / "permissions.md"

Resource = tuple[str, str]
"""Group, empty for the core group, and plural with its subresource."""

WATCH: Final = ("list", "watch")
STORAGE: Final = "storage.k8s.io"
DEVICES: Final = "resource.k8s.io"
VOLCANO: Final = "scheduling.volcano.sh"
KUEUE: Final = "kueue.x-k8s.io"

COMPOSITES: Final = ("scheduling.k8s.io", "compositepodgroups")
FOR_COMPOSITES: Final = "GangScheduling/CompositePodGroup"
"""The plugin with that feature gate."""

DEFAULT_KINDS: Final = Coscheduling.workloads

OF_KINDS: Final[dict[str, Resource]] = {
    kind: (resource.group, resource.plural)
    for kind, each in WORKLOADS.items()
    if kind not in DEFAULT_KINDS
    for resource in (parse_resource(each.resource),)
}
"""The kinds of workloads that Coscheduling reads where its arguments name them → their resource."""

OF_KUEUE_STATUS: Final[dict[Resource, str]] = {
    (KUEUE, "clusterqueues"): "get",
    (KUEUE, "clusterqueues/status"): "patch",
}
"""The rules that CapacityScheduling needs with the argument `kueueStatus`."""

GANGS: Final = "gangs: how many pods of such a workload start together"

REASONS: Final[dict[tuple[Resource, tuple[str, ...]], str]] = {
    (("", "nodes"), WATCH): "the nodes on which pods can run",
    (("", "pods"), WATCH): "running and waiting pods",
    (("", "pods"), ("get",)): (
        "the outcome of a binding whose response was lost; whether a pod that changed meanwhile still waits; why a pod "
        "ended before it ran"
    ),
    (("", "pods"), ("delete",)): "preemption; always with the victim's UID as a precondition",
    (("", "pods/binding"), ("create",)): "binds a pod to its node",
    (("", "pods/status"), ("patch",)): (
        "the conditions `PodScheduled` and `DisruptionTarget`, `nominatedNodeName`, `extendedResourceClaimStatus`, "
        "`nodeAllocatableResourceClaimStatuses`"
    ),
    (("events.k8s.io", "events"), ("create",)): "Events for the pods' owners",
    (("events.k8s.io", "events"), ("patch",)): "counts a repeated Event instead of creating another",
    (("", "namespaces"), WATCH): "`namespaceSelector` of affinity and of shares; labels that make gangs of workloads",
    (("", "persistentvolumeclaims"), WATCH): "the volumes that a pod has or could get",
    (("", "persistentvolumeclaims"), ("patch",)): "binds a claim that waits for its first pod",
    (("", "persistentvolumeclaims"), ("get",)): "the outcome of such a patch whose response was lost",
    (("", "persistentvolumes"), WATCH): "the volumes that a pod has or could get",
    (("", "persistentvolumes"), ("patch",)): "binds a claim that waits for its first pod",
    (("", "persistentvolumes"), ("get",)): "the outcome of such a patch whose response was lost",
    (("", "replicationcontrollers"), WATCH): "default spreading: which pods belong together",
    (("", "services"), WATCH): "default spreading: which pods belong together",
    (("apps", "replicasets"), WATCH): "default spreading: which pods belong together",
    (("apps", "statefulsets"), WATCH): "default spreading: which pods belong together; gangs: how many start together",
    (("batch", "jobs"), WATCH): GANGS,
    (("jobset.x-k8s.io", "jobsets"), WATCH): GANGS,
    **{(resource, WATCH): GANGS for resource in OF_KINDS.values()},
    (("metrics.k8s.io", "nodes"), ("list",)): "the measured usage of nodes; a Prometheus as its source needs no rule",
    (("policy", "poddisruptionbudgets"), WATCH): "preemption respects them",
    (("scheduling.k8s.io", "priorityclasses"), WATCH): "which pods tolerate preemption, and for how long",
    ((DEVICES, "deviceclasses"), WATCH): "which devices there are, and which extended resources they stand for",
    ((DEVICES, "resourceslices"), WATCH): "the existing devices",
    ((DEVICES, "devicetaintrules"), WATCH): "taints that administrators give to devices, since Kubernetes 1.37",
    ((DEVICES, "resourceclaims"), WATCH): "the requested and allocated devices",
    ((DEVICES, "resourceclaims"), ("patch",)): "adds Loadmaster's finalizer before devices are allocated",
    ((DEVICES, "resourceclaims"), ("get",)): "the outcome of a patch or creation whose response was lost",
    ((DEVICES, "resourceclaims"), ("create",)): "a claim for extended resources that a DeviceClass provides",
    ((DEVICES, "resourceclaims"), ("delete",)): (
        "such a claim, if its pod is not bound after all; always with the UID as a precondition"
    ),
    ((DEVICES, "resourceclaims/status"), ("patch",)): "records the devices allocated to a claim, and its pods",
    ((DEVICES, "resourceclaims/binding"), ("patch",)): "required since Kubernetes 1.36, together with the status",
    ((STORAGE, "csidrivers"), WATCH): "the capabilities of the storage",
    ((STORAGE, "csinodes"), WATCH): "how many volumes a node supports",
    ((STORAGE, "csistoragecapacities"), WATCH): "how much a storage can still provision, and where",
    ((STORAGE, "storageclasses"), WATCH): "how and where a volume is provisioned",
    ((STORAGE, "volumeattachments"), WATCH): "how many volumes a node supports",
    (COMPOSITES, WATCH): "groups that consist of such groups",
    (("scheduling.k8s.io", "podgroups"), WATCH): "the groups whose pods are scheduled together",
    (("scheduling.k8s.io", "podgroups"), ("get",)): "the outcome of a patch whose response was lost",
    (("scheduling.k8s.io", "podgroups/status"), ("patch",)): "the condition `PodGroupInitiallyScheduled`",
    (("scheduling.x-k8s.io", "podgroups"), ("get",)): "the outcome of a patch whose response was lost",
    (("scheduling.x-k8s.io", "podgroups/status"), ("patch",)): "their phase, and how many of their pods run",
    (("scheduling.x-k8s.io", "podgroups"), WATCH): "the groups of scheduler-plugins whose pods are scheduled together",
    ((VOLCANO, "podgroups"), WATCH): "the groups that operators create for Volcano",
    ((VOLCANO, "podgroups"), ("get",)): "the outcome of a patch whose response was lost",
    ((VOLCANO, "podgroups/status"), ("patch",)): "their phase and conditions, and how many of their pods run",
    ((VOLCANO, "queues"), WATCH): "whether the queue of such a group exists",
    **{
        ((group, resource), verbs): reason
        for group in ("scheduling.sigs.k8s.io", "scheduling.x-k8s.io")
        for resource, verbs, reason in (
            ("elasticquotas", ("get",), "the outcome of a patch whose response was lost"),
            ("elasticquotas", WATCH, "what the pods of a namespace are guaranteed, and may use"),
            ("elasticquotas/status", ("patch",), "how much of that they use"),
        )
    },
    **{
        ((KUEUE, resource), WATCH): "quotas of pods that Kueue does not manage, with the argument `kueueQueues`"
        for resource in ("clusterqueues", "cohorts", "localqueues", "resourceflavors")
    },
    ((KUEUE, "clusterqueues"), ("get",)): "the outcome of a patch whose response was lost",
    ((KUEUE, "clusterqueues/status"), ("patch",)): "how much of a queue is used, and how many pods wait",
    (("topology.node.k8s.io", "noderesourcetopologies"), WATCH): "the NUMA zones of each node, and what is free there",
}
"""Why each verb is needed; verbs with the same reason are together."""

ASKED: Final[dict[str, dict[Resource, tuple[str, ...]]]] = {
    "LoadAware": {("metrics.k8s.io", "nodes"): ("list",)},
    "CapacityScheduling": dict.fromkeys(
        ((KUEUE, each) for each in ("clusterqueues", "cohorts", "localqueues", "resourceflavors")), WATCH
    ),
}
"""What plugins ask of the API server without watching it, or with some arguments only, so that they declare nothing."""


class Need(NamedTuple):
    """Verbs on a resource, and whom they are for."""

    resource: Resource
    verbs: tuple[str, ...]
    plugins: tuple[str, ...]
    """Shipped plugins, of which any needs this; none if the scheduler itself does. `Coscheduling/RayCluster` is the
    plugin with that kind in its arguments, `GangScheduling/CompositePodGroup` the one with that feature gate."""

    reason: str


def declared_by(plugin: str) -> dict[Resource, tuple[str, ...]]:
    """Return what a scheduler may have to be allowed for a shipped plugin: with it, less what it needs without."""
    if plugin == FOR_COMPOSITES:
        return {COMPOSITES: WATCH}
    kind = SHIPPED[plugin]
    names = dict.fromkeys(("PrioritySort", "DefaultBinder", plugin))  # no profile is without the first two
    only = Plugins(multi_point=PluginSet(tuple(PluginRef(name) for name in names)))
    gates = FeatureGates(generic_workload=True) if plugin in FOR_POD_GROUPS else DEFAULT_GATES
    resources = an_engine(kind, only=only, gates=gates).engine.profiles.resources
    own = {(each.group, each.plural): WATCH for each in resources.watched.values()}
    written = permissions_for((), resources.written)
    without = {(each.group, each.resource): frozenset(each.verbs) for each in PERMISSIONS}
    for each in written:
        key = each.group, each.resource
        verbs = (*own.get(key, ()), *(verb for verb in each.verbs if verb not in without.get(key, ())))
        if verbs:
            own[key] = verbs
    return own | ASKED.get(plugin, {})


def needs() -> list[Need]:
    """Return everything that any configuration with shipped plugins needs: the scheduler's own first, then by resource.

    Raises LookupError for verbs that `REASONS` does not explain, and for reasons of verbs that nobody needs.
    """
    users: dict[tuple[Resource, str], list[str]] = {
        ((each.group, each.resource), verb): [] for each in PERMISSIONS for verb in each.verbs
    }
    for plugin in SHIPPED:
        for resource, verbs in declared_by(plugin).items():
            for verb in verbs:
                users.setdefault((resource, verb), []).append(plugin)
    for resource, verb in OF_KUEUE_STATUS.items():
        users[resource, verb] = ["CapacityScheduling/kueueStatus"]
    for kind, resource in OF_KINDS.items():
        users.update({(resource, verb): [f"Coscheduling/{kind}"] for verb in WATCH})
    users.update({(COMPOSITES, verb): [FOR_COMPOSITES] for verb in WATCH})
    explained = {(resource, verb) for resource, verbs in REASONS for verb in verbs}
    if problems := sorted(explained ^ users.keys()):
        raise LookupError(f"REASONS and the plugins differ in {problems}")
    first = {(each.group, each.resource): place for place, each in enumerate(PERMISSIONS)}
    every = [
        Need(resource, tuple(verb for verb in verbs if users[resource, verb] == names), tuple(names), reason)
        for (resource, verbs), reason in REASONS.items()
        for names in _distinct(users[resource, verb] for verb in verbs)
    ]
    return sorted(every, key=lambda need: (first.get(need.resource, len(first)), need.resource))


def _distinct(lists: Iterable[list[str]]) -> Iterator[list[str]]:
    seen: list[list[str]] = []
    for each in lists:
        if each not in seen:
            seen.append(each)
            yield each


def file_text() -> str:
    """Return the text of the chart's file: which rules templates/rbac.yaml chooses from."""
    lines = [
        "# Which permission each plugin needs, and why. `make manifest` writes this file from the plugins.",
        "# Without `plugins`: the scheduler itself. templates/rbac.yaml grants what the enabled plugins need;",
        "# Coscheduling/RayCluster, CapacityScheduling/kueueStatus: the plugin with that in its arguments;",
        "# GangScheduling/CompositePodGroup: with the feature gate.",
        f"defaultPlugins: [{', '.join(_default_plugins())}]",
        "rules:",
    ]
    resource = None
    for need in needs():
        if need.resource != resource:
            resource = need.resource
            lines += [f'  - apiGroup: "{resource[0]}"', f"    resource: {resource[1]}", "    needs:"]
        lines.append(f"      - verbs: [{', '.join(need.verbs)}]")
        if need.plugins:
            lines.append(f"        plugins: [{', '.join(need.plugins)}]")
        lines.append(f'        reason: "{need.reason}"')
    return "\n".join(lines) + "\n"


def _default_plugins() -> list[str]:
    from scheduler.config.defaults import DEFAULT_PLUGINS

    return [each.name for each in DEFAULT_PLUGINS.multi_point.enabled]


def page_text(page: str) -> str:
    """Return the documentation's page with the table as it is now; resources with equal needs share a row."""
    resources: dict[tuple[str, str, str], list[str]] = {}
    for need in needs():
        plugins = [re.sub("^Coscheduling/.*", "Coscheduling/KIND", name) for name in need.plugins]
        row = _code(need.verbs), _code(plugins) or "always", need.reason
        resources.setdefault(row, []).append("/".join(filter(None, need.resource)))
    rows = [
        f"| {_code(names)} | {verbs} | {plugins} | {reason} |\n"
        for (verbs, plugins, reason), names in resources.items()
    ]
    table = "| resources | verbs | for the plugins | why |\n|---|---|---|---|\n"
    return with_part(page, table + "".join(rows))


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
