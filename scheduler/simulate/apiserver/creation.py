"""New pods, those written by hand and those that controllers make, on their way through the API server.

    written ─► decoded ─► defaults ─► validation ─► admission ─► claims of templates ─► as it would be stored
                ▲                                                │
    workloads ──┘                                                └─► further objects

A pod with a resource version was stored by an API server, and went this way already.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from scheduler.api.decoding import Unreadable
from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.framework.errors import ConfigError
from scheduler.simulate.apiserver.admission import Admission, Forbidden
from scheduler.simulate.apiserver.defaults import completed_pod
from scheduler.simulate.apiserver.quotas import Quotas
from scheduler.simulate.apiserver.server_pod import ServerPod, server_pod
from scheduler.simulate.apiserver.validation import pod_problems
from scheduler.simulate.controllers.claims import Claims, default_class, with_class
from scheduler.simulate.controllers.daemon_sets import LABEL as DAEMON_SET
from scheduler.simulate.controllers.daemon_sets import daemon_pods
from scheduler.simulate.controllers.workloads import CONTROLLERS, Allowance, Expansion, NewPod, Owned, expanded
from scheduler.simulate.files.objects import raw_of, reworded
from scheduler.simulate.missing import Missing
from scheduler.simulate.other_objects import OtherObject

USED: Final = frozenset(
    {
        DAEMON_SET,
        "Deployment (apps/v1)",
        "ReplicaSet (apps/v1)",
        "StatefulSet (apps/v1)",
        "ReplicationController",
        "Job (batch/v1)",
        "LimitRange",
        "PriorityClass (scheduling.k8s.io/v1)",
        "ResourceQuota",
        "ResourceClaimTemplate (resource.k8s.io/v1)",
        "RuntimeClass (node.k8s.io/v1)",
    }
)
"""Kinds that count here, whether plugins look them up or not."""


class Creation:
    """Creates pods by what is in the files."""

    def __init__(
        self,
        written: Sequence[tuple[str, ServerPod]],
        stored: Sequence[Pod],
        nodes: Sequence[Node],
        others: Sequence[OtherObject],
        problems: list[str],
        *,
        raw_pods: bool,
    ) -> None:
        """Create those `written`, with their places, and those of workloads. Add what is wrong to `problems`.

        `raw_pods`: pods are kept as JSON, too.
        """
        self.written: Final = written
        self.pods: Final[list[tuple[str, Pod]]] = []
        """With their places."""

        owned, allowance = Owned((*stored, *(pod for _, pod in written)), others), Allowance()
        newest = _newest(others)
        made = expanded(newest, owned, allowance, problems)
        new = [*made.pods, *daemon_pods(newest, nodes, owned, allowance, problems)]
        self.notes: Final = made.notes
        self.sources: Final = {_named(each): each.source for each in new}
        """Namespace and name of a pod that a controller makes → the workload, as it is written."""
        every = [*others, *_not_there(made.others, others)]
        self._raw_pods = raw_pods
        self._admission, self._claims = Admission(every, problems), Claims(every)
        self._class = default_class(every)
        self.quotas: Final = Quotas(every, stored, problems)
        further: list[OtherObject] = []
        for place, pod in (*written, *self._decoded(new, problems)):
            one, its_objects = self._created(place, pod, problems)
            if one is not None:
                self.pods.append((place, one))
                further += its_objects
        every = [self._admission.with_group_priority(obj) for obj in every]
        self.others: Final = with_class((*every, *further), self._class)
        """All other objects, those that controllers make included."""

    def missing(self, missing: Missing) -> None:
        """Note what pods name and the files do not have."""
        for (kind, name), pods in self._admission.missing.items():
            missing.add(kind, name, pods)

    def of_controller(self, made: Expansion) -> tuple[Pod, list[OtherObject]]:
        """Create one more pod as a controller makes it, and its claims that are not there. Raises ConfigError."""
        problems: list[str] = []
        decoded_pods = self._decoded(made.pods, problems)
        if problems:
            raise ConfigError(problems)
        one, further = self.one_more(*decoded_pods[0])
        claims = [obj for obj in made.others if not self._claims.has(*obj.key)]
        return one, [*with_class(claims, self._class), *further]

    def one_more(self, place: str, pod: ServerPod) -> tuple[Pod, list[OtherObject]]:
        """Create one more pod, and its claims. Raises ConfigError."""
        problems: list[str] = []
        one, further = self._created(place, pod, problems)
        if one is None:
            raise ConfigError(problems)
        return one, with_class(further, self._class)

    def _created(self, place: str, pod: ServerPod, problems: list[str]) -> tuple[Pod | None, list[OtherObject]]:
        whole: Any = completed_pod(pod)
        wrong = [f"{place}: {path}: {message}" for path, message in pod_problems(whole)]
        problems += wrong
        if wrong:
            return None, []
        try:
            whole = self._admission.admitted(whole)
            of_volumes = self._claims.of_volumes(whole, place)
            whole, of_resources = self._claims.of_resources(whole, place)
        except Forbidden as error:
            problems.append(f'{place}: pods "{pod.name}" is forbidden: {error}')
        except Unreadable as error:
            problems.append(f"{place}: {reworded(error)}")
        else:
            return whole, [*of_volumes, *of_resources]
        return None, []

    def _decoded(self, new: Iterable[NewPod], problems: list[str]) -> list[tuple[str, ServerPod]]:
        pods = []
        for pod in new:
            try:
                pods.append((pod.place, server_pod(raw_of(pod.content), keeps_raw=self._raw_pods)))
            except Unreadable as error:
                problems.append(f"{pod.place}: {reworded(error)}")
        return pods


def _named(pod: NewPod) -> tuple[str, str]:
    metadata = pod.content["metadata"]
    return metadata["namespace"], metadata["name"]


def _newest(others: Sequence[OtherObject]) -> list[OtherObject]:
    """Leave out workloads that a cluster has, and of which a file has another version."""
    new = {obj.key for obj in others if _is_workload(obj) and not obj.metadata.get("resourceVersion")}
    return [obj for obj in others if not (obj.metadata.get("resourceVersion") and obj.key in new)]


def _is_workload(obj: OtherObject) -> bool:
    return obj.label in CONTROLLERS or obj.label == DAEMON_SET


def _not_there(made: Iterable[OtherObject], others: Iterable[OtherObject]) -> Iterable[OtherObject]:
    there = {obj.key for obj in others}
    return (obj for obj in made if obj.key not in there)
