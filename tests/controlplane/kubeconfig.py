"""Read a kubeconfig: enough of the format for the clusters that tests use."""

import base64
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class KubeconfigError(Exception):
    """The kubeconfig cannot be used. The text says which file and why."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The current context of a kubeconfig: where the API server is and who we are.

    Tokens and client certificates are supported; plugins (`exec`, `auth-provider`) and passwords are not.
    """

    server: str
    ca_pem: str
    """Empty: the system's certificates."""
    token: str = ""
    client_pem: str = ""
    """Certificate and key of the client, or empty."""

    @classmethod
    def load(cls, path: Path) -> "Connection":
        """Read the current context of the file at `path`. Raises KubeconfigError."""
        try:
            config = yaml.safe_load(path.read_text())
            context = named(config, "context", config["current-context"])
            cluster = named(config, "cluster", context["cluster"])
            user = named(config, "user", context["user"])
            connection = cls(
                server=cluster["server"].rstrip("/"),
                ca_pem=blob(cluster, "certificate-authority", path.parent),
                token=user.get("token", ""),
                client_pem=client_pem(user, path.parent),
            )
        except OSError as error:
            raise KubeconfigError(f"{path}: {error.strerror}") from error
        except (KeyError, TypeError, AttributeError, ValueError, yaml.YAMLError) as error:
            raise KubeconfigError(f"{path} has no usable current context: {error!r}") from error
        if not (connection.token or connection.client_pem):
            raise KubeconfigError(f"{path}: the current user has neither a token nor a client certificate")
        return connection

    def ssl_context(self) -> ssl.SSLContext:
        """TLS as the kubeconfig wants it: its CA, its client certificate."""
        context = ssl.create_default_context(cadata=self.ca_pem or None)
        if self.client_pem:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # the ssl module reads files only
                file.write(self.client_pem)
                file.flush()
                context.load_cert_chain(file.name)
        return context


def client_pem(user: Any, directory: Path) -> str:
    """The client's certificate and key in one text, as the ssl module reads them; empty if there is none."""
    parts = (blob(user, key, directory) for key in ("client-certificate", "client-key"))
    return "\n".join(part for part in parts if part)


def named(config: Any, kind: str, name: str) -> Any:
    """The entry `name` among a kubeconfig's clusters, users or contexts. Raises KeyError."""
    for entry in config[f"{kind}s"]:
        if entry["name"] == name:
            return entry[kind]
    raise KeyError(f"{kind} {name}")


def blob(entry: Any, key: str, directory: Path) -> str:
    """PEM text that a kubeconfig holds as `key-data` or names as a file with `key`; empty if neither."""
    if data := entry.get(f"{key}-data"):
        return base64.b64decode(data).decode()
    return (directory / entry[key]).read_text() if entry.get(key) else ""
