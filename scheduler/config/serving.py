"""The options of the port of `loadmaster run`: names, defaults and meanings are those of kube-scheduler's flags."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """The options of the port, and of access to it. Empty strings: not given."""

    secure_port: int = 10259
    """For HTTPS; 0 opens none."""

    bind_address: str = "0.0.0.0"
    """An IP address; an unspecified one (0.0.0.0, ::) means all addresses of both families."""

    cert_dir: str = ""
    """The directory of our own certificate, if none is given. Empty: in memory."""

    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    tls_min_version: str = ""
    """`VersionTLS12` or `VersionTLS13`. Empty: the former."""

    tls_cipher_suites: tuple[str, ...] = ()
    """IANA's names. Empty: Python's choice."""

    client_ca_file: str = ""
    """The authorities of clients' certificates. Empty: those of the cluster, see `authentication_skip_lookup`."""

    authentication_kubeconfig: str = ""
    """The kubeconfig for TokenReviews. Empty: the service account of our pod; without one, every client is
    anonymous."""

    authentication_skip_lookup: bool = False
    """Do not ask the cluster for its client CA."""

    authentication_tolerate_lookup_failure: bool = True
    """Start even if the cluster's client CA cannot be read."""

    authentication_token_webhook_cache_ttl: float = 10.0
    """Seconds for which an answer about a token is kept; 0: not at all."""

    authorization_kubeconfig: str = ""
    """The kubeconfig for SubjectAccessReviews. Empty: the service account of our pod; without one, no user
    has rights."""

    authorization_always_allow_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    """Paths that need no rights; `*` at the end means all that begin so."""

    authorization_webhook_cache_authorized_ttl: float = 10.0
    """Seconds for which a permission is kept; 0: not at all."""

    authorization_webhook_cache_unauthorized_ttl: float = 10.0
    """The same of a refusal."""

    page: bool = False
    """Serve the page about the cluster."""
