"""New pods, those written by hand and those that controllers make, on their way through the API server.

    written ─► decoded ─► defaults ─► checks ─► admission ─► claims of templates ─► as it would be stored
                ▲                                                │
    workloads ──┘                                                └─► further objects

A pod with a resource version was stored by an API server, and went this way already.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler.api.decoding import Unreadable
from scheduler.api.needs import pod_type
from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.simulate.admission import NEEDS as OF_ADMISSION
from scheduler.simulate.admission import Admission, Forbidden
from scheduler.simulate.checks import pod_problems
from scheduler.simulate.claims import NEEDS as OF_CLAIMS
from scheduler.simulate.claims import Claims, with_default_class
from scheduler.simulate.daemon_sets import LABEL as DAEMON_SET
from scheduler.simulate.daemon_sets import daemon_pods
from scheduler.simulate.defaults import completed_pod
from scheduler.simulate.missing import Missing
from scheduler.simulate.objects import OtherObject
from scheduler.simulate.validation import new_pod_problems
from scheduler.simulate.workloads import NewPod, Owned, expanded
from scheduler.simulate.written import decoded, raw_of, reworded

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
        "ResourceClaimTemplate (resource.k8s.io/v1)",
        "RuntimeClass (node.k8s.io/v1)",
    }
)
"""Kinds that count here, whether plugins look them up or not."""


@dataclass(slots=True)
class Created:
    """What came of it."""

    pods: list[tuple[str, Pod]] = field(default_factory=list)
    """With their places."""

    others: list[OtherObject] = field(default_factory=list)
    """All other objects, those that controllers make included."""


def wide_pod_type(needs: Iterable[str]) -> type[Pod]:
    """Return the struct for new pods: with what is read on this way, besides what plugins need."""
    return pod_type({*needs, *OF_ADMISSION, *OF_CLAIMS})


def create(
    written: Sequence[tuple[str, Pod]],
    stored: Sequence[Pod],
    nodes: Sequence[Node],
    others: Sequence[OtherObject],
    wide: type[Pod],
    missing: Missing,
    problems: list[str],
) -> Created:
    """Create pods: those `written`, with their places, and those of workloads. Add what is wrong to `problems`."""
    owned = Owned((*stored, *(pod for _, pod in written)), others)
    made = expanded(others, owned, problems)
    new = [*made.pods, *daemon_pods(others, nodes, owned, problems)]
    every = [*others, *_not_there(made.others, others)]
    admission, claims = Admission(every, problems), Claims(every)
    created = Created(others=every)
    for place, pod in (*written, *_decoded(new, wide, problems)):
        try:
            one, further = _created(place, pod, admission, claims, missing, problems)
        except Forbidden as error:
            problems.append(f'{place}: pods "{pod.name}" is forbidden: {error}')
        except Unreadable as error:
            problems.append(f"{place}: {reworded(error)}")
        else:
            if one is not None:
                created.pods.append((place, one))
                created.others += further
    for (kind, name), pods in admission.missing.items():
        missing.add(kind, name, pods)
    created.others = with_default_class(created.others)
    return created


def _created(
    place: str, pod: Pod, admission: Admission, claims: Claims, missing: Missing, problems: list[str]
) -> tuple[Pod | None, list[OtherObject]]:
    whole: Any = completed_pod(pod)
    wrong = [f"{place}: {path}: {message}" for path, message in pod_problems(whole)]
    # What cannot be read is told alone.
    wrong = wrong or [f"{place}: {path}: {message}" for path, message in new_pod_problems(whole)]
    problems += wrong
    if wrong:
        return None, []
    whole = admission.admitted(whole)
    of_volumes = claims.of_volumes(whole, place)
    whole, of_resources = claims.of_resources(whole, place)
    return whole, [*of_volumes, *of_resources]


def _decoded(new: Iterable[NewPod], wide: type[Pod], problems: list[str]) -> Iterable[tuple[str, Pod]]:
    for pod in new:
        try:
            yield pod.place, decoded(raw_of(pod.content), wide)
        except Unreadable as error:
            problems.append(f"{pod.place}: {reworded(error)}")


def _not_there(made: Iterable[OtherObject], others: Iterable[OtherObject]) -> Iterable[OtherObject]:
    there = {_key(obj) for obj in others}
    return (obj for obj in made if _key(obj) not in there)


def _key(obj: OtherObject) -> tuple[str, str, str]:
    metadata = obj.content.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return obj.label, str(named.get("namespace") or "default"), str(named.get("name"))
