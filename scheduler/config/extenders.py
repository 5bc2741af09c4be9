"""Extenders: webhooks that kube-scheduler calls. Read and checked as there, but not called yet.

Rule: Extender in k8s.io/kube-scheduler config/v1/types.go; validateExtenders in pkg/scheduler/apis/config/validation.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler.api.requests import is_extended_resource
from scheduler.framework.arguments import YAML, parse_arguments
from scheduler.framework.duration import Duration
from scheduler.framework.field_errors import invalid


@dataclass(frozen=True, slots=True)
class TLSConfig:
    """Certificates and keys of the connection. The `…_data` are base64 and take precedence over the files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


@dataclass(frozen=True, slots=True)
class ManagedResource:
    """An extended resource; only pods that ask for one are sent to the extender."""

    name: str
    ignored_by_scheduler: bool = False

    def problems(self) -> Iterator[tuple[str, str]]:
        if not is_extended_resource(self.name):
            yield "name", invalid(self.name, "is an invalid extended resource name")


@dataclass(frozen=True, slots=True)
class Extender:
    """One webhook. A verb that is empty is not called."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, metadata={YAML: "enableHTTPS"})
    tls_config: TLSConfig | None = None
    http_timeout: Duration = field(default=Duration(0))
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.prioritize_verb and self.weight <= 0:
            yield "weight", invalid(self.weight, "must have a positive weight applied to it")


def check_extenders(values: object, problems: list[str]) -> None:
    """Add what is wrong with a list of extenders: also that there are any, since none is called yet."""
    if values is None:
        return
    if not isinstance(values, list):
        problems.append("extenders: expected a list")
        return
    extenders = [parse_arguments(Extender, value, f"extenders[{i}]", problems) for i, value in enumerate(values)]
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        for j, resource in enumerate(extender.managed_resources if extender else ()):
            if resource.name in managed:
                path = f"extenders[{i}].managedResources[{j}].name"
                problems.append(f"{path}: {invalid(resource.name, 'duplicate extender managed resource name')}")
            managed.add(resource.name)
    binders = sum(bool(extender and extender.bind_verb) for extender in extenders)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        problems.append(f"extenders: {invalid(found, 'only one extender can implement bind')}")
    if extenders:
        problems.append("extenders: extenders are not available in this version of Loadmaster yet")
