"""Our identity at the API server: from a kubeconfig's context, or from our pod's service account.

Rules: tools/clientcmd/client_config.go and rest/config.go (InClusterConfig) in client-go 0.36.3.
"""

import base64
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scheduler.framework.errors import ConfigError
from scheduler.kube.identity.exec_plugin import ExecCredential
from scheduler.kube.identity.kubeconfig import Context, Entry, decoded, id_token
from scheduler.kube.identity.tls_files import TlsFiles, read

REFRESH_SECONDS: Final = 60.0
"""Age at which an identity is read again. Service account tokens are replaced well before they expire."""

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The directory with the kubelet's token, authority and namespace."""

_TOLD: Final = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"

_HOST: Final = "KUBERNETES_SERVICE_HOST"
_PORT: Final = "KUBERNETES_SERVICE_PORT"


@dataclass(frozen=True, slots=True)
class Identity:
    """The API server's address, and the credentials on both sides."""

    server: str
    """The base URL, without a trailing slash."""
    server_hostname: str | None
    """The name that the server's certificate must carry, if not the host's."""
    proxy: str | None
    authorization: str | None
    """The Authorization header."""
    tls: TlsFiles
    names: tuple[str, str]
    """The sources of authority and client certificate, for messages."""
    namespace: str = "default"
    """The default."""
    fresh_for: float = REFRESH_SECONDS
    """Seconds after which to read again."""

    def __repr__(self) -> str:  # a secret must not get into a log by accident
        return f"Identity({self.server!r})"


def is_in_cluster() -> bool:
    """Return whether this runs in a pod, which has a service account."""
    return _HOST in os.environ


def of_service_account() -> Identity:
    """Return that of our pod. Raises ConfigError, OSError."""
    host, port = os.environ[_HOST], os.environ.get(_PORT)
    if not host or not port:
        raise ConfigError([f"{_PORT if host else _HOST} is not set"])
    token, authority = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
    if not token.is_file():
        hint = "is automountServiceAccountToken false for the pod or its service account?"
        raise ConfigError([f"no token at {token}: {hint}"])
    return Identity(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        server_hostname=None,
        proxy=None,
        authorization=f"Bearer {_text(token)}",
        tls=TlsFiles(_ascii(read(authority)), b"", b"", verifies=True),
        names=(f"certificate-authority {authority}", ""),
        namespace=namespace_in(SERVICE_ACCOUNT) or "default",
    )


def of_context(context: Context, given: ExecCredential | None) -> Identity:
    """Return that of a kubeconfig's context. `given`: by its plugin. Raises ConfigError, OSError."""
    cluster = context.cluster.content
    authority, where = _pem(context.cluster, "certificate-authority")
    certificate, key, whose = _client_certificate(context.user, given)
    return Identity(
        server=cluster["server"].rstrip("/"),
        server_hostname=cluster.get("tls-server-name") or None,
        proxy=cluster.get("proxy-url") or None,
        authorization=_authorization(context.user, given),
        tls=TlsFiles(_ascii(authority), certificate, key, verifies=not cluster.get("insecure-skip-tls-verify")),
        names=(where, whose),
        namespace=context.namespace,
    )


def cluster_info(cluster: Entry) -> dict[str, Any]:
    """Return what a plugin with `provideClusterInfo` learns of a kubeconfig's cluster. Raises ConfigError, OSError.

    Rule: ConfigToExecCluster in client-go's rest/exec.go, and the reserved extension in tools/clientcmd.
    """
    content, (authority, _) = cluster.content, _pem(cluster, "certificate-authority")
    info = {key: content[key] for key in _TOLD if content.get(key)}
    if authority:
        info["certificate-authority-data"] = base64.b64encode(authority).decode()
    return info | {"config": _extension(content.get("extensions"))}


def _extension(extensions: Any) -> Any:
    named = (each for each in extensions or () if isinstance(each, dict) and each.get("name") == _EXEC_EXTENSION)
    return next(named, {}).get("extension")


def _client_certificate(user: Entry | None, given: ExecCredential | None) -> tuple[bytes, bytes, str]:
    """Return certificate and key, both empty if there are none, and where they come from."""
    if given is not None and given.certificate:
        return given.certificate.encode(), given.key.encode(), "client-certificate of users[…].user.exec"
    if user is None:
        return b"", b"", ""
    certificate, name = _pem(user, "client-certificate")
    if not certificate:
        return b"", b"", ""
    key, name_of_key = _pem(user, "client-key")
    return certificate, key, f"{name}, {name_of_key}"


def _authorization(user: Entry | None, given: ExecCredential | None) -> str | None:
    if given is not None and given.token:
        return f"Bearer {given.token}"
    if user is None:
        return None
    content = user.content
    file = content.get("tokenFile")
    # A file counts more than a token, as it can be replaced.
    token = _text(user.directory / file) if file else content.get("token") or id_token(content)
    if token:
        return f"Bearer {token.strip()}"
    name, password = content.get("username") or "", content.get("password") or ""
    if name or password:
        return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
    return None


def _pem(entry: Entry, key: str) -> tuple[bytes, str]:
    """Return the content of a PEM file, or of the kubeconfig in its place, and where it is."""
    data, name = entry.content.get(f"{key}-data"), entry.content.get(key)
    if data:
        return decoded(data), f"{key}-data"
    path = entry.directory / name if name else None
    return read(path), f"{key} {path}"


def namespace_in(directory: Path) -> str:
    """Return our pod's namespace, from the directory of its service account; empty outside of a pod."""
    try:
        return _text(directory / "namespace")
    except (ConfigError, OSError):
        return ""


def _text(path: Path) -> str:
    return read(path).decode(errors="replace").strip()


def _ascii(pem: bytes) -> str:
    """Leave out comments, which may be in any language."""
    return pem.decode("ascii", "ignore")
