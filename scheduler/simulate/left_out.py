"""Input that a simulation leaves out: pods of other schedulers, and objects of kinds that do not count."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from scheduler.api.groups.workloads import WORKLOADS
from scheduler.api.wording.near_names import near_names
from scheduler.api.wording.text import counted, some_of
from scheduler.config.defaults import COSCHEDULING
from scheduler.config.types import Config
from scheduler.groups.apis.owners import named_by
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.controllers.workloads import CONTROLLERS
from scheduler.simulate.files.unknown_fields import known_fields
from scheduler.simulate.other_objects import OtherObject

MAX_DEPTH: Final = 12
"""Levels in an object at which pod templates are looked for."""

MAX_NAMED: Final = 5
"""Schedulers that are named."""

_WITH_PODS: Final = ("CronJob", "DaemonSet", "Pod", *(kind for kind, *_ in CONTROLLERS.values()), *WORKLOADS)
"""Kinds of objects of which pods come."""


class LeftOut:
    """The input that a simulation did not take, once it is over."""

    def __init__(self, cluster: SimulatedCluster, config: Config) -> None:
        self._extenders = len(config.extenders)
        names = {profile.scheduler_name for profile in config.profiles}
        foreign = [pod for pod in cluster.pods if not pod.node_name and pod.spec.scheduler_name not in names]
        takes_groups = any(COSCHEDULING in profile.enabled for profile in config.profiles)
        waiting = () if takes_groups else (pod for pod in cluster.pods if not pod.node_name)
        self._groups = {f"{pod.namespace}/{name}" for pod in waiting if (name := named_by(pod))}
        self._schedulers = Counter(pod.spec.scheduler_name for pod in foreign)
        self._kinds: Counter[tuple[str, str]] = Counter()
        """The reason, and the kind → how many objects."""
        self.has_new_pods = any(not pod.metadata.resource_version for pod in foreign)
        """Whether pods were left out that the user wants placed."""
        for obj in cluster.others.left_out():
            has_pods = not obj.metadata.get("resourceVersion") and _has_pods(obj)
            self.has_new_pods = self.has_new_pods or has_pods
            self._kinds[_why(obj, has_pods=has_pods), obj.label] += 1

    def notes(self) -> Iterator[str]:
        if self._schedulers:
            names = some_of(sorted(self._schedulers), MAX_NAMED)
            yield (
                f"left out {self._schedulers.total()} waiting pods of other schedulers: {names}; "
                "a --config with a profile of that name places them"
            )
        if self._groups:
            groups = f"{counted(len(self._groups), 'group')} of pods, as {min(self._groups)}"
            yield f"ignored {groups}: no profile enables {COSCHEDULING}, so their pods start one by one"
        if self._extenders:
            yield f"left out {self._extenders} extenders: a simulation calls none"
        for why in sorted({why for why, _ in self._kinds}):
            kinds = sorted((label, number) for (reason, label), number in self._kinds.items() if reason == why)
            yield f"left out objects {why}: " + ", ".join(f"{number} {label}" for label, number in kinds)


def _why(obj: OtherObject, *, has_pods: bool) -> str:
    kind, _, version = obj.label.partition(" ")
    version, known = version.strip("()") or "v1", known_fields()
    served = "batch/v1" if kind == "CronJob" else known[kind][0] if kind in known else None
    if served is not None and served != version and _group(version) in _BUILT_IN:
        what = "of a version that Kubernetes 1.37 does not serve" if version != "v1" else "with no apiVersion, or v1"
        return f"{what}: {kind} is {served}"
    near = near_names(kind, [each for each in _WITH_PODS if each != kind])
    if near and near[0].casefold() == kind.casefold():
        return f"of a kind that does not exist: it is {near[0]}"
    if has_pods:
        return "of kinds whose pods only their own controller could make"
    return "of kinds that do not count"


_BUILT_IN: Final = frozenset(
    (
        "",
        "apps",
        "batch",
        "extensions",
        "node.k8s.io",
        "policy",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    )
)


def _group(version: str) -> str:
    return version.rpartition("/")[0]


def _has_pods(obj: OtherObject) -> bool:
    """Return whether an object looks like a workload."""
    kind = obj.label.partition(" ")[0].casefold()
    return any(kind == each.casefold() for each in _WITH_PODS) or _has_containers(obj.content, MAX_DEPTH)


def _has_containers(value: Any, depth: int) -> bool:
    if isinstance(value, Mapping):
        if isinstance(value.get("containers"), list):
            return True
        value = list(value.values())
    return isinstance(value, list) and depth > 0 and any(_has_containers(each, depth - 1) for each in value)
