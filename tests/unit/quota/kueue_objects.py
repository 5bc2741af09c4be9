"""Kueue's objects in few words, and the quotas that they make.

    a_queue("a", cohort="all", groups=[{"spot": {"cpu": ["4", None, "1"]}}])

A quota is a list: nominal, borrowing limit, lending limit; None or the end of the list stands for none.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from scheduler.api.decoding import convert
from scheduler.api.quota import kueue as api
from scheduler.api.unstructured import Unstructured
from scheduler.framework.events import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE, NAMESPACE, RESOURCE_FLAVOR
from scheduler.quota.apis.kueue_quotas import Quotas, quotas_of

BY_TYPE: Final[Mapping[type, str]] = {
    api.ClusterQueue: CLUSTER_QUEUE,
    api.Cohort: COHORT,
    api.LocalQueue: LOCAL_QUEUE,
    api.ResourceFlavor: RESOURCE_FLAVOR,
    Unstructured: NAMESPACE,
}

Quota = Sequence[str | None]
Group = Mapping[str, Mapping[str, Quota]]
"""Flavor → resource → quota."""


def a_queue(name: str, cohort: str = "", groups: Iterable[Group] = (), **spec: Any) -> api.ClusterQueue:
    """Return a ClusterQueue for all namespaces."""
    spec = {"namespaceSelector": {}, **spec, "resourceGroups": [_group(each) for each in groups]}
    if cohort:
        spec["cohortName"] = cohort
    return convert({"metadata": {"name": name}, "spec": _with_weight(spec)}, api.ClusterQueue)


def a_cohort(name: str, parent: str = "", groups: Iterable[Group] = (), **spec: Any) -> api.Cohort:
    spec = {**spec, "parentName": parent, "resourceGroups": [_group(each) for each in groups]}
    return convert({"metadata": {"name": name}, "spec": _with_weight(spec)}, api.Cohort)


def a_flavor(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> api.ResourceFlavor:
    return convert({"metadata": {"name": name}, "spec": {"nodeLabels": labels, **spec}}, api.ResourceFlavor)


def a_local_queue(namespace: str, name: str, cluster_queue: str, **spec: Any) -> api.LocalQueue:
    metadata = {"name": name, "namespace": namespace}
    return convert({"metadata": metadata, "spec": {"clusterQueue": cluster_queue, **spec}}, api.LocalQueue)


def a_namespace(name: str, **labels: str) -> Unstructured:
    return Unstructured.from_dict({"metadata": {"name": name, "uid": name, "labels": labels}})


def as_stored(found: Any, version: int = 1) -> tuple[str, Any]:
    """Return the resource of an object, and the object as an API server stores it."""
    if not isinstance(found, Unstructured):
        uid = f"{type(found).__name__} {found.metadata.namespace}/{found.metadata.name}"
        found = replace(found, metadata=replace(found.metadata, uid=uid, resource_version=str(version)))
    return BY_TYPE[type(found)], found


def quotas_in(case: Mapping[str, Any]) -> Quotas:
    """Return the quotas of a case of a table: `queues` and `cohorts` by name, `flavors` with their labels."""
    queues = [a_queue(name, **queue) for name, queue in case.get("queues", {}).items()]
    cohorts = [a_cohort(name, **cohort) for name, cohort in case.get("cohorts", {}).items()]
    flavors = {name: a_flavor(name, labels) for name, labels in case.get("flavors", {}).items()}
    return quotas_of(queues, cohorts, flavors)


def _with_weight(spec: dict[str, Any]) -> dict[str, Any]:
    weight = spec.pop("weight", None)
    return spec if weight is None else {**spec, "fairSharing": {"weight": weight}}


def _group(flavors: Group) -> dict[str, Any]:
    return {
        "coveredResources": list({resource: None for quotas in flavors.values() for resource in quotas}),
        "flavors": [
            {"name": name, "resources": [_quota(resource, quota) for resource, quota in quotas.items()]}
            for name, quotas in flavors.items()
        ],
    }


def _quota(resource: str, quota: Quota) -> dict[str, Any]:
    names = ("nominalQuota", "borrowingLimit", "lendingLimit")
    return {"name": resource, **{key: each for key, each in zip(names, quota, strict=False) if each is not None}}
