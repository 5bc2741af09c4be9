"""Keys, tokens and kubeconfigs: who may talk to a control plane, and how."""

import base64
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trustme
import yaml

USERS: Final = {
    "admin": "system:masters",
    # With --use-service-account-credentials its controllers would have an account each, and 35 token requests
    # would come before the first Deployment is seen.
    "system:kube-controller-manager": "system:masters",
    "system:kube-scheduler": "",  # RBAC's own binding for this user name, as in a real cluster
    "kwok": "system:masters",
}
"""User name to group."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The files of one control plane's identities, all in one directory, readable by the owner only."""

    directory: Path
    tokens: dict[str, str]

    @classmethod
    def create(cls, directory: Path) -> "Credentials":
        """Write a new CA, the certificate of a server, the service accounts' key and the users' tokens."""
        credentials = cls(directory, {user: secrets.token_hex(16) for user in USERS})
        ca = trustme.CA()
        server = ca.issue_cert("localhost", "127.0.0.1", "kubernetes.default.svc")
        write_private(credentials.ca, ca.cert_pem.bytes())
        write_private(credentials.server_cert, b"".join(blob.bytes() for blob in server.cert_chain_pems))
        write_private(credentials.server_key, server.private_key_pem.bytes())
        # Any private key will do, the API server derives the public one; trustme has made a fine one.
        write_private(credentials.service_account_key, trustme.CA().private_key_pem.bytes())
        write_private(credentials.token_file, token_file(credentials.tokens).encode())
        return credentials

    @property
    def ca(self) -> Path:
        """The certificate that signs all others."""
        return self.directory / "ca.pem"

    @property
    def server_cert(self) -> Path:
        """For every component that listens."""
        return self.directory / "server.pem"

    @property
    def server_key(self) -> Path:
        """For every component that listens."""
        return self.directory / "server-key.pem"

    @property
    def service_account_key(self) -> Path:
        """Signs and checks the tokens of service accounts."""
        return self.directory / "service-accounts-key.pem"

    @property
    def token_file(self) -> Path:
        """The tokens of all users."""
        return self.directory / "tokens.csv"

    def write_kubeconfig(self, server: str, user: str) -> Path:
        """Write the kubeconfig of a user, or find it written. Raises KeyError for one who has no token."""
        path = self.directory / f"{user.replace(':', '-')}.kubeconfig"
        write_private(path, kubeconfig(server, self.ca.read_bytes(), self.tokens[user], user).encode())
        return path


def token_file(tokens: Mapping[str, str]) -> str:
    """What `--token-auth-file` reads: token, user, uid, groups."""
    return "".join(f'{token},{user},{user},"{USERS[user]}"\n' for user, token in tokens.items())


def kubeconfig(server: str, ca_pem: bytes, token: str, user: str, namespace: str = "default") -> str:
    """The text of a kubeconfig with one context that needs no other file."""
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "loadmaster",
        "clusters": [
            {
                "name": "loadmaster",
                "cluster": {
                    "server": server,
                    "certificate-authority-data": base64.b64encode(ca_pem).decode(),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {"name": "loadmaster", "context": {"cluster": "loadmaster", "user": user, "namespace": namespace}}
        ],
    }
    return yaml.safe_dump(content, sort_keys=False)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_bytes(content)
