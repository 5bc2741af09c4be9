"""What the API server refuses in the containers and volumes of a new pod, in its words, as far as scheduling reads it.

Rules: validateContainers, validateInitContainers, validateResourceRequirements, ValidateVolumes and
validatePodResourceClaims in pkg/apis/core/validation/validation.go at v1.36.3. A container needs no image here, and no
name; a name that it has is looked at.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any, Final

from scheduler.api.labels import label_key_problems, label_problems, subdomain_problems
from scheduler.api.objects import Container, PodResourceClaim, ResourceRequirements
from scheduler.api.pod import Pod
from scheduler.api.quantity import NANO, parse_quantity
from scheduler.framework.field_errors import duplicate, forbidden, invalid, not_found, not_supported, required
from scheduler.simulate.apiserver.checks import Problems, invalids, shown

NEEDS: Final = tuple(
    f"spec.{containers}.{field}"
    for containers in ("containers", "initContainers")
    for field in ("resources.claims", "volumeMounts", "volumeDevices")
)
"""What it reads of pods, besides what scheduling reads."""

_HUGE: Final = "hugepages-"
_OF_CONTAINERS: Final = ("cpu", "memory", "ephemeral-storage")
_OF_QUOTAS: Final = (
    *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "storage", "services.nodeports", "services.loadbalancers"),
    *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _OF_CONTAINERS),
    "requests.storage",
)
"""Known, but of no use to a container."""

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def volumes(pod: Pod) -> Problems:
    """Yield what is wrong with a pod's volumes."""
    created = {f"{pod.name}-{each.name}" for each in pod.spec.volumes or () if each.ephemeral is not None}
    seen = set()
    for index, volume in enumerate(pod.spec.volumes or ()):
        path = f"spec.volumes[{index}]"
        claim = volume.persistent_volume_claim
        if claim is not None and not claim.claim_name:
            yield f"{path}.persistentVolumeClaim.claimName", required()
        yield from _name(f"{path}.name", volume.name)
        if volume.name in seen:
            yield f"{path}.name", duplicate(shown(volume.name))
        seen.add(volume.name)
        if claim is not None and claim.claim_name in created:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            yield f"{path}.persistentVolumeClaim.claimName", invalid(shown(claim.claim_name), detail)


def resource_claims(claims: Sequence[PodResourceClaim]) -> Problems:
    """Yield what is wrong with the claims for devices."""
    seen = set()
    for index, claim in enumerate(claims):
        path = f"spec.resourceClaims[{index}]"
        if claim.name in seen:
            yield f"{path}.name", duplicate(shown(claim.name))
        else:
            yield from _name(f"{path}.name", claim.name)
        seen.add(claim.name)
        own, template = claim.resource_claim_name, claim.resource_claim_template_name
        if (own is None) == (template is None):
            fields = {"Name": claim.name, "ResourceClaimName": own, "ResourceClaimTemplateName": template}
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            if own is not None:
                detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield path, f"Invalid value: {shown(json.dumps(fields, separators=(',', ':')))}: {detail}"
        for name, value in (("resourceClaimName", own), ("resourceClaimTemplateName", template)):
            if value is not None:
                yield from invalids(f"{path}.{name}", value, subdomain_problems(value))


def containers(pod: Pod) -> Problems:
    """Yield what is wrong with containers, init containers included."""
    known_volumes = {volume.name for volume in pod.spec.volumes or ()}
    known_claims = {claim.name for claim in pod.spec.resource_claims or () if claim.name}
    names: set[str] = set()
    ports: set[str] = set()
    for key, written in (("containers", pod.spec.containers), ("initContainers", pod.spec.init_containers)):
        of_ports: list[tuple[str, str]] = []
        for index, container in enumerate(written or ()):
            path = f"spec.{key}[{index}]"
            if container.name:
                yield from _name(f"{path}.name", container.name)
            yield from _ports(path, container)
            yield from _mounts(path, container, known_volumes)
            if container.resources is not None:
                yield from resources(f"{path}.resources", container.resources)
                yield from _claims(f"{path}.resources.claims", container.resources, known_claims)
            if container.name in names:
                yield f"{path}.name", duplicate(shown(container.name))
            names |= {container.name} if container.name else set()
            if key == "initContainers":  # they run one by one
                yield from _host_ports(f"spec.{key}[0]", container, set())
            else:
                of_ports += _host_ports(path, container, ports)
        yield from of_ports


def _name(path: str, name: str) -> Problems:
    if not name:
        yield path, required()
    else:
        yield from invalids(path, name, label_problems(name))


def _ports(path: str, container: Container) -> Problems:
    for index, port in enumerate(container.ports or ()):
        at = f"{path}.ports[{index}]"
        for name, number in (("containerPort", port.container_port), ("hostPort", port.host_port)):
            if number and not 1 <= number <= 65535:
                yield f"{at}.{name}", invalid(number, "must be between 1 and 65535, inclusive")
        if port.protocol not in _PROTOCOLS:
            yield f"{at}.protocol", not_supported(shown(port.protocol), _PROTOCOLS)


def _host_ports(path: str, container: Container, taken: set[str]) -> Problems:
    for index, port in enumerate(container.ports or ()):
        one = f"{port.protocol}/{port.host_ip}/{port.host_port}"
        if port.host_port and one in taken:
            yield f"{path}.ports[{index}].hostPort", duplicate(shown(one))
        taken |= {one} if port.host_port else set()


def _mounts(path: str, container: Any, known: Collection[str]) -> Problems:
    for field, attribute in (("volumeMounts", "volume_mounts"), ("volumeDevices", "volume_devices")):
        for index, mount in enumerate(getattr(container, attribute) or ()):
            if not mount.name:
                yield f"{path}.{field}[{index}].name", required()
            if mount.name not in known:
                yield f"{path}.{field}[{index}].name", not_found(shown(mount.name or ""))


def _claims(path: str, written: Any, known: Collection[str]) -> Problems:
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(written.claims or ()):
        at, name, request = f"{path}[{index}]", claim.name or "", claim.request or ""
        if not name:
            yield at, required()
            continue
        if (name, "") in seen or (not request and any(other == name for other, _ in seen)):
            yield at, duplicate(shown(name))
        elif (name, request) in seen:
            yield at, duplicate(shown(f"{name}/{request}"))
        else:
            yield from invalids(f"{at}.request", request, label_problems(request) if request else ())
        seen.add((name, request))
        if name not in known:
            rest = f": {', '.join(sorted(known))}" if known else " which is empty"
            yield at, not_found(shown(name), f"must be one of the names in pod.spec.resourceClaims{shown(rest)}")


def resources(path: str, written: ResourceRequirements) -> Problems:
    """Yield what is wrong with requests and limits of a container, whose amounts can be read."""
    limits = {name: (parse_quantity(text), text) for name, text in (written.limits or {}).items()}
    for name, (amount, text) in limits.items():
        yield from _amount(f"{path}.limits[{shown(name)}]", name, amount, text)
    for name, text in (written.requests or {}).items():
        amount = parse_quantity(text)
        limit = limits.get(name)
        may_differ = ("/" not in name or "kubernetes.io/" in name) and not name.startswith(_HUGE)
        yield from _amount(f"{path}.requests[{shown(name)}]", name, amount, text, is_huge_checked=False)
        if limit is None:
            if not may_differ:
                yield f"{path}.limits", required("Limit must be set for non overcommitable resources")
        elif amount != limit[0] and not may_differ:
            yield f"{path}.requests", invalid(_text(text), f"must be equal to {shown(name)} limit of {_text(limit[1])}")
        elif amount > limit[0]:
            detail = f"must be less than or equal to {shown(name)} limit of {_text(limit[1])}"
            yield f"{path}.requests", invalid(_text(text), detail)
        yield from _pages(f"{path}.requests[{shown(name)}]", name, amount, text)
    names = {*limits, *(written.requests or {})}
    if any(name.startswith(_HUGE) for name in names) and not names & {"cpu", "memory"}:
        yield path, forbidden("HugePages require cpu or memory")


def _text(amount: Any) -> str:
    text: str = shown(f"{amount}")
    return text


def _amount(path: str, name: str, amount: int, text: Any, *, is_huge_checked: bool = True) -> Problems:
    wrong = label_key_problems(name)
    yield from invalids(path, name, wrong)
    if "/" not in name and name not in _OF_CONTAINERS and not name.startswith(_HUGE):
        if not wrong and name not in _OF_QUOTAS:
            yield path, invalid(shown(name), "must be a standard resource type or fully qualified")
        yield path, invalid(shown(name), "must be a standard resource for containers")
    if "/" in name and "kubernetes.io/" not in name and amount % NANO:
        yield path, invalid(_text(text), "must be an integer")
    if is_huge_checked:
        yield from _pages(path, name, amount, text)


def _pages(path: str, name: str, amount: int, text: Any) -> Problems:
    if not name.startswith(_HUGE):
        return
    try:
        size = parse_quantity(name.removeprefix(_HUGE))
    except ValueError:
        size = 0
    if size <= 0 or size % NANO or -(-amount // NANO) % (size // NANO):
        yield path, invalid(_text(text), f"{_text(text)} is not positive integer multiple of {shown(name)}")
