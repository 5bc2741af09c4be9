"""The templates of copies: a pod, or a workload, whose controller would make any number of its pods.

It is named `[KIND/][NAMESPACE/]NAME`; without a name it is the only pod or workload that is new.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from msgspec.structs import replace

from scheduler.api.decoding import Unreadable
from scheduler.api.groups.owners import controller_of
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import some_of
from scheduler.framework.errors import ConfigError
from scheduler.framework.events import PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM
from scheduler.simulate.apiserver.creation import Creation
from scheduler.simulate.apiserver.defaults import ServerPod
from scheduler.simulate.apiserver.validation import short
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.controllers.workloads import CONTROLLERS, Workload, more_of, part, replica_set_of
from scheduler.simulate.other_objects import OtherObject, Source
from scheduler.simulate.what_if.questions import did_you_mean
from scheduler.simulate.what_if.replacements import claims_like, own_claims, renamed

Copy = tuple[Pod, list[OtherObject]]
"""A pod as it would be stored, and the objects that come with it."""

DAEMON_SET: Final = "DaemonSet (apps/v1)"
CRON_JOB: Final = "CronJob (batch/v1)"
_SHORT: Final[Mapping[str, str]] = {
    "po": "pod",
    "deploy": "deployment",
    "rs": "replicaset",
    "sts": "statefulset",
    "rc": "replicationcontroller",
    "cj": "cronjob",
    "ds": "daemonset",
}
"""kubectl's."""

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Template:
    kind: str
    namespace: str
    name: str
    is_new: bool
    """Whether no API server has it yet: then its pods are not there either, and copies are counted from the first."""

    written: tuple[str, ServerPod] | OtherObject | Pod
    """A new pod with its place, a workload, or a pod that is there."""

    source: Source | None = None
    """The object in which it is written; None if no file has it so."""

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.namespace}/{self.name}"

    @property
    def names(self) -> tuple[str, ...]:
        own = (f"{self.namespace}/{self.name}", self.name)
        return (*own, *(f"{self.kind.lower()}/{each}" for each in own))


def template_of(cluster: SimulatedCluster, text: str) -> Template:
    """Return the object that is meant. Raises ConfigError if there is none, or several."""
    if not text:
        new = [each for each in _templates(cluster) if each.is_new and each.kind != "DaemonSet"]
        if len(new) == 1:
            return new[0]
        what = f"{len(new)} pods and workloads are new: {_listed(new)}" if new else "no pod or workload is new"
        raise ConfigError([f"--count and --fill: {what}; name one by --of [KIND/][NAMESPACE/]NAME"])
    wanted = _as_named(text)
    every = [*_templates(cluster), *_stored(cluster)]
    found = [each for each in every if text in each.names or wanted in each.names]
    if len({(each.kind, each.namespace, each.name) for each in found}) == 1 < len(found):
        # A file with another version of what the cluster has: that is what is asked about.
        found = [each for each in found if each.is_new] or found
    if len(found) > 1:
        raise ConfigError([f"--of {short(text)}: {len(found)} pods and workloads are called so: {_listed(found)}"])
    if not found:
        names = {name for each in every for name in each.names}
        raise ConfigError([f"--of {short(text)}: there is no such pod or workload{did_you_mean(wanted, names)}"])
    return found[0]


def _as_named(text: str) -> str:
    """Return the text with the kind as templates have it; kubectl also takes deploy, deployments, deployment.apps."""
    kind, slash, rest = text.partition("/")
    kind = kind.lower().partition(".")[0]
    return f"{_SHORT.get(kind, kind.removesuffix('s'))}/{rest}" if slash else text


def _listed(templates: list[Template]) -> str:
    return some_of(sorted(map(str, templates)), _SHOWN)


def _templates(cluster: SimulatedCluster) -> Iterator[Template]:
    """Yield the new pods and all workloads."""
    creation = cluster.creation
    for place, pod in creation.written if creation is not None else ():
        namespace = pod.namespace or "default"
        source = cluster.written.get((namespace, pod.name))
        yield Template("Pod", namespace, pod.name, is_new=True, written=(place, pod), source=source)
    for obj in cluster.others:
        if obj.label in CONTROLLERS or obj.label in (DAEMON_SET, CRON_JOB):
            kind = obj.label.partition(" ")[0]
            _, namespace, name = obj.key
            is_new = not obj.metadata.get("resourceVersion") and not obj.metadata.get("ownerReferences")
            yield Template(kind, namespace, name, is_new, obj, obj)


def _stored(cluster: SimulatedCluster) -> Iterator[Template]:
    for pod in cluster.pods:
        if pod.metadata.resource_version and not pod.is_terminated:
            yield Template("Pod", pod.namespace, pod.name, is_new=False, written=pod)


def own_pods(template: Template, cluster: SimulatedCluster) -> set[str]:
    """Return the UIDs of the pods that were made of something new: copies take their place."""
    if not template.is_new:
        return set()
    if template.kind == "Pod":
        name = template.name
        return {
            pod.uid
            for pod in cluster.pods
            if (pod.namespace, pod.name) == (template.namespace, name) and not pod.metadata.resource_version
        }
    assert isinstance(template.written, OtherObject)
    maker = _maker(template, template.written, cluster)
    if maker is None:
        return set()
    own = set()
    for pod in cluster.pods:
        owner = controller_of(pod)
        if owner is not None and (pod.namespace, owner.kind, owner.name) == (maker.namespace, maker.kind, maker.name):
            own.add(pod.uid)
    return own


def copies_of(template: Template, cluster: SimulatedCluster) -> Iterator[Copy]:
    """Yield copies without end, none of which has the name of a pod that is there. Raises ConfigError.

    What it reads of `cluster.others` it reads at once: a simulation takes the objects.
    """
    creation = cluster.creation
    assert creation is not None, "a cluster that was read has one"
    own = own_pods(template, cluster)
    taken = {str(pod) for pod in cluster.pods if pod.uid not in own}
    match template.written:
        case Pod() as pod:
            copies = _of_stored_pod(pod, _claims_of(pod, cluster))
        case OtherObject() as obj:
            maker = _maker(template, obj, cluster)
            if maker is None:
                raise ConfigError([f"{template}: a DaemonSet has one pod for each node, which makes no copies"])
            copies = _of_workload(maker, creation)
        case (place, pod):
            copies = _of_new_pod(place, pod, creation)
    return (each for each in copies if str(each[0]) not in taken)


def _of_stored_pod(pod: Pod, claims: Mapping[tuple[str, str], Any]) -> Iterator[Copy]:
    for number in count(1):
        copy = renamed(pod, f"{pod.name}-{number}")
        yield copy, claims_like(pod, copy, claims)


def _claims_of(pod: Pod, cluster: SimulatedCluster) -> dict[tuple[str, str], Any]:
    wanted = {(_LABELS[resource], name): (resource, name) for resource, name in own_claims(pod)}
    found = {}
    for obj in cluster.others if wanted else ():
        label, namespace, name = obj.key
        key = wanted.get((label, name))
        if key is not None and namespace == pod.namespace:
            found[key] = obj.content
    return found


_LABELS: Final = {
    PERSISTENT_VOLUME_CLAIM: "PersistentVolumeClaim",
    RESOURCE_CLAIM: "ResourceClaim (resource.k8s.io/v1)",
}


def _of_new_pod(place: str, pod: ServerPod, creation: Creation) -> Iterator[Copy]:
    for number in count(1):
        name = f"{pod.name}-{number}"
        metadata = replace(pod.metadata, name=name, uid="")
        yield creation.one_more(place, replace(pod, metadata=metadata))


def _of_workload(maker: Workload, creation: Creation) -> Iterator[Copy]:
    try:
        for made in more_of(maker):
            yield creation.of_controller(made)
    except Unreadable as error:
        raise ConfigError([f"{maker.place}: {error}"]) from error


def _maker(template: Template, obj: OtherObject, cluster: SimulatedCluster) -> Workload | None:
    """Return what makes the pods of a workload: of a Deployment its ReplicaSet, of a CronJob its Job; None if none."""
    try:
        match obj.label:
            case label if label == DAEMON_SET:
                return None
            case label if label == CRON_JOB:
                return Workload("Job", "batch/v1", _job_of(template, obj))
            case "Deployment (apps/v1)":
                found = _newest_set(template, cluster) or replica_set_of(Workload("Deployment", "apps/v1", obj))
                return Workload("ReplicaSet", "apps/v1", found)
            case label:
                kind, version, _ = CONTROLLERS[label]
                return Workload(kind, version, obj)
    except Unreadable as error:
        raise ConfigError([f"{obj.place}: {error}"]) from error


def _job_of(template: Template, obj: OtherObject) -> OtherObject:
    inner = part(part(obj.content, "spec"), "jobTemplate")
    metadata = {**part(inner, "metadata"), "name": f"{template.name}-next", "namespace": template.namespace}
    content = {**inner, "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
    return OtherObject(obj.place, "Job (batch/v1)", content)


def _newest_set(template: Template, cluster: SimulatedCluster) -> OtherObject | None:
    """The ReplicaSet that has the Deployment's newest template; of a new one, the one made for it."""
    found = [
        (_revision(obj.metadata), obj)
        for obj in cluster.others
        if obj.label == "ReplicaSet (apps/v1)"
        and obj.key[1] == template.namespace
        and bool(obj.metadata.get("resourceVersion")) != template.is_new
        and _is_owned(obj.metadata, template.name)
    ]
    return max(found, key=lambda each: each[0])[1] if found else None


def _is_owned(metadata: Mapping[str, Any], deployment: str) -> bool:
    owners = metadata.get("ownerReferences")
    return any(
        isinstance(each, Mapping) and (each.get("kind"), each.get("name")) == ("Deployment", deployment)
        for each in (owners if isinstance(owners, list) else ())
    )


def _revision(metadata: Mapping[str, Any]) -> int:
    annotations = metadata.get("annotations")
    written = annotations.get("deployment.kubernetes.io/revision") if isinstance(annotations, Mapping) else None
    return int(written) if isinstance(written, str) and written.isdecimal() and len(written) < 19 else 0
