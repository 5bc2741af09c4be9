"""New pods, those written by hand and those that controllers make, on their way through the API server.

    written ─► decoded ─► defaults ─► validation ─► admission ─► claims of templates ─► as it would be stored
                ▲                                                │
    workloads ──┘                                                └─► further objects

A pod with a resource version was stored by an API server, and went this way already.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from scheduler.api.decoding import Unreadable
from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import counted
from scheduler.framework.errors import ConfigError
from scheduler.simulate.apiserver.admission import Admission, Forbidden
from scheduler.simulate.apiserver.defaults import ServerPod, completed_pod, server_pod
from scheduler.simulate.apiserver.validation import pod_problems
from scheduler.simulate.controllers.claims import Claims, default_class, with_class
from scheduler.simulate.controllers.daemon_sets import LABEL as DAEMON_SET
from scheduler.simulate.controllers.daemon_sets import daemon_pods
from scheduler.simulate.controllers.operators import operated
from scheduler.simulate.controllers.volumes import Volumes
from scheduler.simulate.controllers.workloads import (
    Allowance,
    Expansion,
    NewPod,
    Owned,
    expanded,
    path_of_template,
)
from scheduler.simulate.files.objects import raw_of, report, reworded
from scheduler.simulate.missing import Missing
from scheduler.simulate.other_objects import OtherObject, named

QUOTA: Final = "ResourceQuota"

MAX_NAMED: Final = 10
"""Namespaces that are named in a note."""

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
        QUOTA,
        "ResourceClaimTemplate (resource.k8s.io/v1)",
        "RuntimeClass (node.k8s.io/v1)",
    }
)
"""Kinds that count here, whether plugins look them up or not."""


class Creation:
    """Creates pods from the objects in the files."""

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
        """Create those `written`, with their places, and those of workloads. Add errors to `problems`.

        `raw_pods`: pods are kept as JSON, too.
        """
        self.written: Final = written
        self.pods: Final[list[tuple[str, Pod]]] = []
        """With their places."""

        owned, allowance = Owned((*stored, *(pod for _, pod in written)), others), Allowance()
        made = expanded(others, owned, allowance, problems)
        of_operators = operated(others, owned, allowance, problems)
        new = [*made.pods, *of_operators.pods, *daemon_pods(others, nodes, owned, allowance, problems)]
        self.notes: Final = [*made.notes, *_on_nodes(new)]
        self.sources: Final = {_named(each): each.source for each in new}
        """Namespace and name of a pod that a controller makes → the workload, as it is written."""
        every = [*others, *_not_there((*made.others, *of_operators.others), others)]
        self._raw_pods = raw_pods
        self._admission, self._claims = Admission(every, problems), Claims(every)
        self._class = default_class(every)
        self._with_quotas = {each.key[1] for each in every if each.label == QUOTA}
        further: list[OtherObject] = []
        by_hand = [(_Origin(place), pod) for place, pod in written]
        for origin, pod in (*by_hand, *self._decoded(new, problems)):
            one, its_objects = self._created(origin, pod, problems)
            if one is not None:
                self.pods.append((origin.place, one))
                further += its_objects
        every = [self._admission.with_group_priority(obj) for obj in every]
        self.volumes: Final = Volumes(every)
        self.others: Final = self.volumes.bound(with_class((*every, *further), self._class))
        """All other objects, those that controllers make included."""

    def missing(self, missing: Missing) -> None:
        """Note what pods name and the files do not have."""
        for (kind, name), pods in self._admission.missing.items():
            missing.add(kind, name, pods)
        for name, claims in self.volumes.missing.items():
            missing.add("StorageClass", name, claims)

    def quota_notes(self, new: Iterable[tuple[str, int]]) -> list[str]:
        """Return a line if new pods, given as their namespaces with numbers of pods, are subject to ResourceQuotas.

        These refuse nothing here, since the order in which pods are created is not known.
        """
        pods = Counter[str]()
        for namespace, number in new if self._with_quotas else ():
            if namespace in self._with_quotas:
                pods[namespace] += number
        if not pods:
            return []
        named = [*sorted(pods)[:MAX_NAMED], *(["…"] if len(pods) > MAX_NAMED else [])]
        return [
            f"ResourceQuotas of {', '.join(named)} are not applied to {counted(pods.total(), 'new pod')}: "
            "`kubectl create --dry-run=server` of a pod says what they refuse"
        ]

    def of_controller(self, made: Expansion) -> tuple[Pod, list[OtherObject]]:
        """Create one more pod as a controller makes it, and its claims that are not there. Raises ConfigError."""
        problems: list[str] = []
        decoded_pods = self._decoded(made.pods, problems)
        if problems:
            raise ConfigError(problems)
        one, further = self._one(*decoded_pods[0])
        claims = [obj for obj in made.others if not self._claims.has(*obj.key)]
        return one, [*self.volumes.bound(with_class(claims, self._class)), *further]

    def one_more(self, place: str, pod: ServerPod) -> tuple[Pod, list[OtherObject]]:
        """Create one more pod, and its claims. Raises ConfigError."""
        return self._one(_Origin(place), pod)

    def _one(self, origin: "_Origin", pod: ServerPod) -> tuple[Pod, list[OtherObject]]:
        problems: list[str] = []
        one, further = self._created(origin, pod, problems)
        if one is None:
            raise ConfigError(problems)
        return one, self.volumes.bound(with_class(further, self._class))

    def _created(self, origin: "_Origin", pod: ServerPod, problems: list[str]) -> tuple[Pod | None, list[OtherObject]]:
        whole: Any = completed_pod(pod)
        wrong = list(pod_problems(whole))
        for path, message in wrong:
            origin.report(problems, f"{path}: {message}")
        if wrong:
            return None, []
        try:
            whole = self._admission.admitted(whole)
            of_volumes = self._claims.of_volumes(whole, origin.place)
            whole, of_resources = self._claims.of_resources(whole, origin.place)
        except Forbidden as error:
            report(problems, origin.place, f"{origin.of_pods(pod)} forbidden: {error}")
        except Unreadable as error:
            report(problems, origin.place, reworded(error))
        else:
            return whole, [*of_volumes, *of_resources]
        return None, []

    def _decoded(self, new: Iterable[NewPod], problems: list[str]) -> list[tuple["_Origin", ServerPod]]:
        pods = []
        for pod in new:
            origin = _Origin(pod.place, pod.source)
            try:
                pods.append((origin, server_pod(raw_of(pod.content), keeps_raw=self._raw_pods)))
            except Unreadable as error:
                origin.report(problems, reworded(error))
        return pods


class _Origin(NamedTuple):
    """The object from which a pod comes, as the user has written it: problems are reported there, and once."""

    place: str
    workload: OtherObject | None = None
    """None if it is the pod itself."""

    def report(self, problems: list[str], problem: str) -> None:
        """Add a problem that begins with a path within the pod."""
        template = "" if self.workload is None else path_of_template(self.workload)
        report(problems, self.place, f"{template}{problem}")

    def of_pods(self, pod: Pod) -> str:
        if self.workload is None:
            return f'pods "{pod.name}" is'
        return f"{named(self.workload)}: its pods are"


def _named(pod: NewPod) -> tuple[str, str]:
    metadata = pod.content["metadata"]
    return metadata["namespace"], metadata["name"]


def _on_nodes(new: Iterable[NewPod]) -> Iterator[str]:
    """Yield a note for each workload whose template names a node."""
    counts = Counter(
        (pod.source.place, named(pod.source), node)
        for pod in new
        if (node := pod.content["spec"].get("nodeName")) and isinstance(node, str)
    )
    for (place, workload, node), number in counts.items():
        yield (
            f"{place}: {workload}: its template names the node {node}: no scheduler places its {number} pods, and they "
            "count as running there"
        )


def _not_there(made: Iterable[OtherObject], others: Iterable[OtherObject]) -> Iterable[OtherObject]:
    there = {obj.key for obj in others}
    return (obj for obj in made if obj.key not in there)
