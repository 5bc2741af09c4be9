"""The claims that controllers make for new pods: of generic ephemeral volumes, and of ResourceClaimTemplates.

Rules: pkg/controller/volume/ephemeral/controller.go and pkg/controller/resourceclaim/controller.go at v1.36.3; for
the class of a claim that names none, plugin/pkg/admission/storage/storageclass/setdefault.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from scheduler.api.decoding import Unreadable, reread
from scheduler.api.objects import PodResourceClaimStatus
from scheduler.simulate.controllers.generated_names import claim_name
from scheduler.simulate.controllers.workloads import part
from scheduler.simulate.other_objects import OtherObject

_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_TEMPLATE: Final = "ResourceClaimTemplate (resource.k8s.io/v1)"


class Claims:
    """Makes claims from the objects in the files."""

    def __init__(self, others: Iterable[OtherObject]) -> None:
        self._templates: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._there: set[tuple[str, str, str]] = set()
        for obj in others:
            self._there.add(obj.key)
            if obj.label == _TEMPLATE:
                self._templates[obj.key[1:]] = obj.content

    def has(self, label: str, namespace: str, name: str) -> bool:
        return (label, namespace, name) in self._there

    def of_volumes(self, pod: Any, place: str) -> list[OtherObject]:
        """Return the claims of a pod's ephemeral volumes that the files do not have. Raises Unreadable."""
        made = []
        for volume in pod.spec.volumes or ():
            if volume.ephemeral is None:
                continue
            name = f"{pod.name}-{volume.name}"
            if not self.has("PersistentVolumeClaim", pod.namespace, name):
                template = _plain(volume.ephemeral.volume_claim_template)
                made.append(claim_for("PersistentVolumeClaim", "v1", name, template, pod, place))
        return made

    def of_resources(self, pod: Any, place: str) -> tuple[Any, list[OtherObject]]:
        """Return the pod with the names of its claims in its status, and those claims. Raises Unreadable."""
        made, statuses = [], []
        known = {status.name for status in pod.status.resource_claim_statuses or ()}
        for claim in pod.spec.resource_claims or ():
            template = self._templates.get((pod.namespace, claim.resource_claim_template_name or ""))
            if template is None or claim.name in known:
                continue
            name = claim_name(pod.name, claim.name)
            annotations = {"resource.kubernetes.io/pod-claim-name": claim.name}
            inner = part(template, "spec")
            made.append(claim_for("ResourceClaim", "resource.k8s.io/v1", name, inner, pod, place, annotations))
            statuses.append(PodResourceClaimStatus(name=claim.name, resource_claim_name=name))
        if not made:
            return pod, []
        every = (*(pod.status.resource_claim_statuses or ()), *statuses)
        return replace(pod, status=replace(pod.status, resource_claim_statuses=every)), made


def claim_for(
    kind: str,
    version: str,
    name: str,
    template: Mapping[str, Any],
    pod: Any,
    place: str,
    annotations: Mapping[str, str] | None = None,
) -> OtherObject:
    """Return a claim that is made for a pod. Raises Unreadable."""
    metadata = part(template, "metadata")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    whole = {
        "kind": kind,
        "apiVersion": version,
        "metadata": {
            "name": name,
            "namespace": pod.namespace,
            "labels": dict(part(metadata, "labels")),
            "annotations": {**part(metadata, "annotations"), **(annotations or {})},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": template.get("spec"),
    }
    label = kind if version == "v1" else f"{kind} ({version})"
    return OtherObject(f"{place}: claim {name}", label, whole)


def default_class(others: Iterable[OtherObject]) -> Any:
    """Return the name of the class for claims without one: of several, the newest, then the first by name; or None."""
    defaults = [obj.content for obj in others if obj.label == "StorageClass (storage.k8s.io/v1)" and _is_default(obj)]
    if not defaults:
        return None
    by_name = sorted(defaults, key=lambda content: str(part(content, "metadata").get("name")))
    newest = max(by_name, key=lambda content: str(part(content, "metadata").get("creationTimestamp") or ""))
    return part(newest, "metadata").get("name")


def with_class(others: Iterable[OtherObject], name: Any) -> list[OtherObject]:
    """Give new claims without a class this one, if there is one."""
    if name is None:
        return list(others)
    return [_with_class(obj, name) if obj.label == "PersistentVolumeClaim" else obj for obj in others]


def _is_default(obj: OtherObject) -> bool:
    annotations = obj.metadata.get("annotations")
    return isinstance(annotations, Mapping) and any(annotations.get(key) == "true" for key in _DEFAULT)


def _with_class(obj: OtherObject, name: Any) -> OtherObject:
    spec, annotations = obj.content.get("spec"), obj.metadata.get("annotations")
    if not isinstance(spec, Mapping) or obj.metadata.get("resourceVersion"):
        return obj
    of_old = isinstance(annotations, Mapping) and "volume.beta.kubernetes.io/storage-class" in annotations
    if spec.get("storageClassName") is not None or of_old:
        return obj
    return obj._replace(content={**obj.content, "spec": {**spec, "storageClassName": name}})


def _plain(template: Any) -> Mapping[str, Any]:
    value: Any = reread(template, object)
    if not isinstance(value, Mapping):
        raise Unreadable("spec.volumes: ephemeral.volumeClaimTemplate: Required value")
    return value
