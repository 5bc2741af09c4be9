"""Extenders: webhooks that are asked about pods, as a configuration describes them.

Rule: Extender in k8s.io/kube-scheduler config/v1/types.go; validateExtenders in pkg/scheduler/apis/config/validation.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

from scheduler.api.pods.requests import is_extended_resource
from scheduler.framework.arguments import YAML, parse_arguments
from scheduler.framework.duration import Duration
from scheduler.framework.field_errors import invalid
from scheduler.runtime.profile_spec import ProfileSpec

DEFAULT_TIMEOUT: Final = 5.0
"""Seconds for a call, where the configuration says nothing or 0."""

OMITTED: Final = "DATA+OMITTED"
"""Stands for a private key where a configuration is shown, as in `kubectl config view`."""

_FIT: Final = "NodeResourcesFit"


@dataclass(frozen=True, slots=True)
class TLSConfig:
    """Certificates and keys of the connection. The `…_data` are base64 and take precedence over the files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = field(default="", repr=False)
    key_data: str = field(default="", repr=False)
    ca_data: str = ""

    def problems(self) -> Iterator[tuple[str, str]]:
        for key, data in (("certData", self.cert_data), ("keyData", self.key_data), ("caData", self.ca_data)):
            if data == OMITTED:  # which would be base64
                yield key, f"{OMITTED} stands for what is not shown; the data itself is needed"
                continue
            try:
                base64.b64decode(data, validate=True)
            except (binascii.Error, ValueError) as error:
                yield key, f"not base64: {error}"


@dataclass(frozen=True, slots=True)
class ManagedResource:
    """An extended resource; only pods that ask for one are sent to the extender."""

    name: str
    ignored_by_scheduler: bool = False
    """Whether NodeResourcesFit leaves the resource to the extender."""

    def problems(self) -> Iterator[tuple[str, str]]:
        if not is_extended_resource(self.name):
            yield "name", invalid(self.name, "is an invalid extended resource name")


@dataclass(frozen=True, slots=True)
class Extender:
    """One webhook. A verb that is empty is not called."""

    url_prefix: str = ""
    """Its URL. kube-scheduler starts without one too; then every call fails."""

    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    """The factor for a node's score. More than 0 if there is a `prioritize_verb`."""

    bind_verb: str = ""
    enable_https: bool = field(default=False, metadata={YAML: "enableHTTPS"})
    """Whether an https address without an authority is called without looking at its certificate."""

    tls_config: TLSConfig | None = None
    http_timeout: Duration = field(default=Duration(0))
    """For one call, its answer included. 0 means DEFAULT_TIMEOUT."""

    node_cache_capable: bool = False
    """Whether it knows the nodes: then it is sent their names only."""

    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False
    """Whether pods are scheduled without it when it fails."""

    @property
    def name(self) -> str:
        """Its URL for logs and messages, without a password."""
        parts = urlsplit(self.url_prefix)
        if parts.password is None:
            return self.url_prefix
        host = parts.netloc.rpartition("@")[2]
        return parts._replace(netloc=f"{parts.username}:***@{host}").geturl()

    @property
    def timeout(self) -> float:
        """Seconds for one call."""
        return float(self.http_timeout) or DEFAULT_TIMEOUT

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.url_prefix and not _is_address(self.url_prefix):
            yield "urlPrefix", invalid(self.url_prefix, "must be the URL of a server, http://… or https://…")
        if self.prioritize_verb and self.weight <= 0:
            yield "weight", invalid(self.weight, "must have a positive weight applied to it")
        if self.http_timeout < 0:
            yield "httpTimeout", invalid(str(self.http_timeout), "must not be negative")
        tls = self.tls_config
        if tls is not None and tls.insecure and (tls.ca_file or tls.ca_data):
            yield "tlsConfig", "specifying a root certificates file with the insecure flag is not allowed"


def read_extenders(values: object, problems: list[str]) -> tuple[Extender, ...]:
    """Return the extenders of a configuration; add everything that is wrong to `problems`."""
    if values is None:
        return ()
    if not isinstance(values, list):
        problems.append("extenders: expected a list")
        return ()
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
    return tuple(extender for extender in extenders if extender is not None)


def leave_to_extenders(profiles: Sequence[ProfileSpec], extenders: Sequence[Extender]) -> tuple[ProfileSpec, ...]:
    """Return the profiles with NodeResourcesFit ignoring the resources that extenders want to count alone.

    These take the place of the resources that the plugin's own arguments name. Rule: buildExtenders in
    pkg/scheduler/scheduler.go at v1.36.3.
    """
    ignored = [
        resource.name for each in extenders for resource in each.managed_resources if resource.ignored_by_scheduler
    ]
    if not ignored:
        return tuple(profiles)
    return tuple(replace(profile, plugin_config=_ignoring(ignored, profile.plugin_config)) for profile in profiles)


def _ignoring(resources: Sequence[str], plugin_config: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    arguments = {key: value for key, value in plugin_config.get(_FIT, {}).items() if key != "ignored_resources"}
    return {**plugin_config, _FIT: {**arguments, "ignoredResources": list(resources)}}


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for one that is none
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and url.isascii() and url.isprintable()
