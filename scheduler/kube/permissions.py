"""The permissions that the scheduler needs: one table, and what its plugins watch and write.

A test compares the manifest's ClusterRole with what the default profile needs; at the start, our rights are compared
with what the configuration needs.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec
import orjson

from scheduler.api.decoding import Decoder
from scheduler.api.reviews import User
from scheduler.framework.awaited import together
from scheduler.framework.errors import ConfigError
from scheduler.framework.nodes.resources import NODES, PODS, ApiResource
from scheduler.kube.http.client import Client
from scheduler.kube.http.operations import CallLimit, Operation

HOW_TO_GRANT: Final = (
    "grant this account the ClusterRole NAMESPACE:RELEASE and the Role RELEASE of the Helm chart (loadmaster and "
    "kube-system:loadmaster in deploy/loadmaster.yaml); if it has these already, reapply them, or add what your own "
    "plugins need to rbac.extraRules"
)
"""Ends the list of missing permissions, and so the container's termination message."""


EMPTY: Final = '""'
"""The core group, in YAML."""

WITHOUT_A_LEASE: Final = "without other replicas no Lease is needed: --leader-elect=false"


class Permission(NamedTuple):
    """A resource and its verbs."""

    group: str
    """Empty for the core group."""

    resource: str
    """With its subresource, like `pods/binding`."""

    verbs: tuple[str, ...]
    namespace: str = ""
    """The namespace; empty for all."""

    name: str = ""
    """The only object that is meant, if not all."""


PERMISSIONS: Final = (
    Permission("", "nodes", ("list", "watch")),
    Permission("", "pods", ("get", "list", "watch")),
    Permission("", "pods/binding", ("create",)),
    Permission("", "pods/status", ("patch",)),
    Permission("events.k8s.io", "events", ("create", "patch")),
)
"""Least privilege: docs/permissions.md has the reason for each verb."""


def permissions_for(
    watched: Iterable[ApiResource], written: Iterable[tuple[ApiResource, str, Sequence[str]]] = ()
) -> tuple[Permission, ...]:
    """The table, plus the permissions to watch and write further resources.

    `written`: resource, subresource or empty, verbs.
    """
    verbs = {(each.group, each.resource): set(each.verbs) for each in PERMISSIONS}
    further: dict[tuple[str, str], set[str]] = {}
    for resource in watched:
        further.setdefault((resource.group, resource.plural), set()).update(("list", "watch"))
    for resource, subresource, these in written:
        key = resource.group, f"{resource.plural}/{subresource}" if subresource else resource.plural
        (verbs if key in verbs else further).setdefault(key, set()).update(these)
    verbs.update(sorted(further.items()))
    return tuple(Permission(*key, tuple(sorted(these))) for key, these in verbs.items())


def reading_permissions(watched: Iterable[ApiResource]) -> tuple[Permission, ...]:
    """Permissions to read: pods, nodes and further resources."""
    resources = sorted({(each.group, each.plural) for each in (PODS, NODES, *watched)})
    return tuple(Permission(group, plural, ("list", "watch")) for group, plural in resources)


def lease_permissions(namespace: str, name: str) -> tuple[Permission, ...]:
    """Permissions for leader election. A creation cannot be limited to a name."""
    group, resource = "coordination.k8s.io", "leases"
    return (
        Permission(group, resource, ("create",), namespace),
        Permission(group, resource, ("get", "list", "update", "watch"), namespace, name),
    )


async def check_permissions(client: Client, permissions: Sequence[Permission]) -> None:
    """Ask the API server about each permission. Raises ConfigError with those missing, or ClusterError.

    The rules to add come first, then a line for each resource: of the log of a container that ended, `kubectl describe`
    shows the last 2,048 bytes.
    """
    missing = await missing_permissions(client, permissions)
    if missing:
        lines = ["these rules are missing:", *rules_for(missing), *map(denial, missing)]
        if any(permission.resource == "leases" for permission in missing):
            lines.append(WITHOUT_A_LEASE)
        raise ConfigError([*lines, f"{client.credentials.source}: {HOW_TO_GRANT}"])


async def missing_permissions(
    client: Client, permissions: Sequence[Permission], user: User | None = None
) -> tuple[Permission, ...]:
    """Ask the API server which of these a user has not, or we have not; each has the missing verbs alone.

    It answers for resources that it does not serve yet, too. Raises ConfigError if it does not accept our credentials,
    otherwise ClusterError.
    """
    kind = "SelfSubjectAccessReview" if user is None else "SubjectAccessReview"
    operation = Operation("POST", f"{kind.lower()}s", CallLimit(10), fenced=False)
    asked = [(permission, verb) for permission in permissions for verb in permission.verbs]
    allowed = await together(*(_is_allowed(client, operation, kind, user, *each) for each in asked))
    missing: dict[Permission, list[str]] = {}
    for (permission, verb), is_allowed in zip(asked, allowed, strict=True):
        if not is_allowed:
            missing.setdefault(permission, []).append(verb)
    return tuple(permission._replace(verbs=tuple(verbs)) for permission, verbs in missing.items())


def denial(permission: Permission) -> str:
    """Say that all verbs of a permission are missing."""
    where = f" in namespace {permission.namespace}" if permission.namespace else ""
    named = f" named {permission.name}" if permission.name else ""
    return f"may not {', '.join(permission.verbs)} {permission.resource} ({permission.group or 'core'}){where}{named}"


def rules_for(permissions: Iterable[Permission]) -> list[str]:
    """Rules of a ClusterRole or a Role in YAML, a line each: resources of which the same is missing share one."""
    shared: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = {}
    for each in permissions:
        shared.setdefault((each.namespace, each.name, each.group, each.verbs), []).append(each.resource)
    return [
        f"- {{apiGroups: [{group or EMPTY}], resources: [{', '.join(resources)}], "
        + (f"resourceNames: [{name}], " if name else "")
        + f"verbs: [{', '.join(verbs)}]}}"
        + (f"  # a Role in {namespace}" if namespace else "")
        for (namespace, name, group, verbs), resources in shared.items()
    ]


async def _is_allowed(
    client: Client, operation: Operation, kind: str, user: User | None, permission: Permission, verb: str
) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    attributes = {
        "verb": verb,
        "group": permission.group,
        "resource": resource,
        "subresource": subresource,
    }
    if permission.namespace:
        attributes |= {"namespace": permission.namespace, "name": permission.name}
    spec: dict[str, object] = {"resourceAttributes": attributes}
    if user is not None:
        spec |= {"user": user.username, "groups": user.groups}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    reply = await client.call(operation, f"/apis/authorization.k8s.io/v1/{operation.resource}", orjson.dumps(review))
    if reply.status == 401:
        raise ConfigError([f"{client.credentials.source}: the API server does not accept the credentials"])
    return reply.read(_review_decoder, "asking for permissions").status.allowed


class _ReviewStatus(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _ReviewStatus


_review_decoder: Decoder[_Review] = Decoder(_Review)
