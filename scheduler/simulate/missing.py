"""Objects that pods name and the files lack: without them, the simulation may differ from the cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import some_of
from scheduler.simulate.other_objects import OtherObject

_EFFECTS: Final[Mapping[str, str]] = {
    "PriorityClass": "the priority in the pod counts, or 0",
    "RuntimeClass": "no overhead, node selector or tolerations of it are added",
    "PersistentVolumeClaim": "a pod that waits is refused for it, and of one that runs its volumes do not count",
    "StorageClass": "they stay unbound, and their pods wait",
    "ResourceClaim": "a pod that waits is refused for it, and of one that runs its devices count as free",
    "ResourceClaimTemplate": "no claim is made of it, and the pod waits for that",
    "ReplicaSet": "pods of theirs are not spread by default as in the cluster",
    "StatefulSet": "pods of theirs are not spread by default as in the cluster",
    "ReplicationController": "pods of theirs are not spread by default as in the cluster",
}
_SHOWN: Final = 3

OWNERS: Final = {
    "ReplicaSet": "ReplicaSet (apps/v1)",
    "StatefulSet": "StatefulSet (apps/v1)",
    "ReplicationController": "ReplicationController",
}


_EVERYWHERE: Final[Mapping[str, str]] = {
    "Namespace": "namespace selectors of affinity terms find no namespace",
    "PriorityClass (scheduling.k8s.io/v1)": "new pods get no default priority",
    "Service": "pods are not spread by default over the pods of their Service",
}
"""Kinds of which every cluster has objects: where a dump has none, they were left out of it."""


class Missing:
    """Collects them, and reports them in a line for each kind."""

    def __init__(self) -> None:
        self._named: dict[str, dict[str, int]] = {}
        self._left_out: list[str] = []

    def add(self, kind: str, name: str, pods: Sequence[str]) -> None:
        """Note that these pods, or claims, name an object that is not there."""
        named = self._named.setdefault(kind, {})
        named[name] = named.get(name, 0) + len(pods)

    def look(self, pods: Iterable[Pod], others: Iterable[OtherObject]) -> None:
        there = {obj.key for obj in others}
        for pod in pods:
            if pod.is_terminated:
                continue
            for label, name in _named_by(pod):
                if (label, pod.namespace, name) not in there:
                    self.add(label.partition(" ")[0], f"{pod.namespace}/{name}", [str(pod)])

    def look_for_kinds(self, others: Iterable[OtherObject]) -> None:
        there = {obj.label for obj in others}
        for label, effect in _EVERYWHERE.items():
            if label not in there:
                kind = label.partition(" ")[0]
                self._left_out.append(f"not in the files: any {kind}, which every cluster has: {effect}")

    def notes(self) -> list[str]:
        lines = list(self._left_out)
        for kind, named in sorted(self._named.items()):
            shown = some_of(sorted(named), _SHOWN)
            number, what = sum(named.values()), "claim" if kind == "StorageClass" else "pod"
            by = f"{number} {what}{'s' if number > 1 else ''}"
            lines.append(f"not in the files: {kind} {shown}, named by {by}: {_EFFECTS[kind]}")
        return lines


def _named_by(pod: Pod) -> Iterable[tuple[str, str]]:
    """Label and name of each object that a pod names."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield "PersistentVolumeClaim", volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield "PersistentVolumeClaim", f"{pod.name}-{volume.name}"
    statuses = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses or ()}
    for claim in pod.spec.resource_claims or ():
        name = claim.resource_claim_name or statuses.get(claim.name)
        if name:
            yield "ResourceClaim (resource.k8s.io/v1)", name
        elif claim.resource_claim_template_name:
            yield "ResourceClaimTemplate (resource.k8s.io/v1)", claim.resource_claim_template_name
    if not pod.node_name:
        for owner in pod.metadata.owner_references or ():
            if owner.controller and owner.kind in OWNERS:
                yield OWNERS[owner.kind], owner.name
