"""The options of `loadmaster run`: names, defaults and meanings are those of kube-scheduler's flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # loads numpy, which the command line's `--version` does without
    from scheduler.runtime.registry import Registry


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


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options take precedence over the configuration file. Names are kube-scheduler's flags."""

    registry: "Registry"
    """All plugins that the configuration may name."""

    config: str | None = None
    """Path of the configuration file. None: the default configuration."""

    kubeconfig: str | None = None
    """Path of a kubeconfig file. None: `clientConnection.kubeconfig`, then the usual places."""

    write_config_to: str | None = None
    """Path of a file into which to write the effective configuration, instead of scheduling."""

    shadow_of: str | None = None
    """The name of another scheduler: decide about its pods at the same time, and write nothing."""

    leader_election: Mapping[str, object] = field(default_factory=dict)
    """Fields of `leaderElection` that were given as flags, as a file spells them."""

    deprecated: Mapping[str, object] = field(default_factory=dict)
    """Path of a field of the configuration → its value, for those that were given as flags."""

    feature_gates: Sequence[str] = ()
    """`--feature-gates`, each time that it was given."""

    verbosity: int = 0
    """How much to log, as klog's -v: 2 adds a line for each pod's outcome, 4 the libraries' own lines."""

    modules: Sequence[tuple[str, int]] = ()
    """The same for some modules: pattern, level."""

    flags: Mapping[str, str] = field(default_factory=dict)
    """Name → value of all flags, to be shown."""

    logging_format: Literal["text", "json"] = "text"
    serving: ServingOptions = field(default_factory=ServingOptions)
    """The port for health and metrics."""
