"""Builds the port: the pages of `scheduler.serve`, and the cluster's reviews, by `scheduler.kube`.

As in kube-scheduler, options name the clusters that review tokens and rights. Without them the pod's service account
asks; outside a cluster there is none, so tokens are ignored and everything except health is refused. These clients are
separate from those that schedule, since a replica that does not lead has to answer, too.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from importlib import metadata
from typing import Any, Final, Protocol

from scheduler.config.effective import as_shown
from scheduler.config.feature_gates import FeatureGates
from scheduler.config.options import RunOptions, ServingOptions
from scheduler.config.types import Config
from scheduler.engine.engine import Engine
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.http.client import Client
from scheduler.kube.identity.credentials import load_credentials
from scheduler.kube.identity.identity import is_in_cluster
from scheduler.kube.services.client_ca import ClusterClientCA
from scheduler.kube.services.reviews import Reviews
from scheduler.process.logs import Levels
from scheduler.process.metrics import Metrics
from scheduler.process.process_metrics import KUBERNETES
from scheduler.process.tasks import Tasks
from scheduler.runtime.registry import Registry
from scheduler.serve.access.authentication import Authentication
from scheduler.serve.access.authorization import Authorization
from scheduler.serve.endpoints.debug_pages import Memory, Profile
from scheduler.serve.endpoints.exposition import metric_pages
from scheduler.serve.endpoints.zpages import Configz, Flagz, Statusz, set_verbosity
from scheduler.serve.port.http import HttpServer, Page, Pages, QueriedPage, Setting

COMPONENT: Final = "loadmaster"
"""Our name in places where kube-scheduler uses its own."""

EMULATES: Final = ".".join(KUBERNETES[:2])
"""The version of kube-scheduler whose behaviour is ours."""

PROFILE: Final = "/debug/pprof/profile"

ALWAYS_THERE: Final = (
    "/debug/memory",
    "/healthz",
    "/livez",
    "/metrics",
    "/metrics/resources",
    "/metrics/slis",
    "/readyz",
)

_logger = logging.getLogger(__name__)


class HasConfig(Protocol):
    """Has the configuration in effect, and the plugins that it may name."""

    @property
    def config(self) -> Config: ...
    @property
    def registry(self) -> Registry: ...


class Shown:
    """The configuration in effect, without its secrets. It is written once, as that takes milliseconds."""

    def __init__(self, current: HasConfig) -> None:
        self._current = current
        self._written: tuple[Config, Registry, Mapping[str, Any]] | None = None

    def __call__(self) -> Mapping[str, Any]:
        config, registry = self._current.config, self._current.registry
        written = self._written
        if written is None or written[0] is not config or written[1] is not registry:
            self._written = written = config, registry, as_shown(config, registry)
        return written[2]


class Inside:
    """The debug pages of a running scheduler, and the settings that may be changed, by path."""

    def __init__(self, options: RunOptions, gates: FeatureGates, levels: Levels) -> None:
        self._flags = options.flags
        self._gates = gates
        self.settings: dict[str, Setting] = {"/debug/flags/v": partial(set_verbosity, levels.set)}

    def show_gates(self, metrics: Metrics) -> None:
        """Add the feature gates to the metrics, as kube-scheduler has them."""
        states = tuple(self._gates.states())
        metrics.watch_gauge(
            "kubernetes_feature_enabled",
            "The data about the stage and enablement of a k8s feature. Most are without effect here.",
            ("name", "stage"),
            lambda: states,
        )

    def queried(self, current: HasConfig) -> dict[str, QueriedPage]:
        """The pages about a scheduler that are asked for with a query."""
        return {PROFILE: Profile(lambda: current.config.enable_profiling)}

    def pages(self, shown: Shown, engine: Engine, metrics: Metrics, is_leading: Callable[[], bool]) -> dict[str, Page]:
        """The pages about a scheduler. They add metrics of the program: call it once."""
        pages: dict[str, Page] = {"/configz": Configz(shown)}
        if self._gates.component_flagz:
            pages["/flagz"] = Flagz(COMPONENT, self._flags)
        if self._gates.component_statusz:
            paths = ["/statusz", *pages, *self.settings, PROFILE, *ALWAYS_THERE]
            pages["/statusz"] = Statusz(COMPONENT, metadata.version(COMPONENT), EMULATES, paths)
        pages["/debug/memory"] = Memory(
            engine.cache_bytes, lambda: {**engine.cache.sizes(), **engine.queue.pending_counts()}
        )
        return {**metric_pages(metrics, engine.pods, is_leading), **pages}


async def open_port(
    stack: AsyncExitStack, options: ServingOptions, pages: Pages, metrics: Metrics, tasks: Tasks
) -> HttpServer | None:
    """Serve until `stack` ends; None if the options want no port. Raises ConfigError."""
    if not options.secure_port:
        return None
    about_tokens = await _client(stack, metrics, options.authentication_kubeconfig, "authentication")
    about_rights = about_tokens
    if options.authorization_kubeconfig != options.authentication_kubeconfig:
        about_rights = await _client(stack, metrics, options.authorization_kubeconfig, "authorization")
    authentication = Authentication(
        Reviews(about_tokens) if about_tokens else None, options.authentication_token_webhook_cache_ttl
    )
    authorization = Authorization(
        Reviews(about_rights) if about_rights else None,
        options.authorization_always_allow_paths,
        options.authorization_webhook_cache_authorized_ttl,
        options.authorization_webhook_cache_unauthorized_ttl,
    )
    server = await stack.enter_async_context(HttpServer(options, pages, authentication, authorization, metrics, tasks))
    if about_tokens and not options.client_ca_file and not options.authentication_skip_lookup:
        client_ca = ClusterClientCA(about_tokens, server.certificates.trust)
        if not options.authentication_tolerate_lookup_failure:
            await _must_have(client_ca)
        tasks.start("cluster's client CA", client_ca.follow())
    metrics.watch_gauge(
        "loadmaster_serving_connections",
        "Connections to the port: busy ones have a request under way, quiet ones do not.",
        ("state",),
        lambda: (((state,), count) for state, count in server.connections.items()),
    )
    _logger.info("Serving securely", extra={"port": server.port})
    return server


async def _must_have(client_ca: ClusterClientCA) -> None:
    try:
        await client_ca.read()
    except ClusterError as error:
        hint = "--authentication-tolerate-lookup-failure=true starts without client certificates"
        raise ConfigError([f"{error}: {hint}"]) from error


async def _client(stack: AsyncExitStack, metrics: Metrics, kubeconfig: str, what_for: str) -> Client | None:
    """The client of a kubeconfig, or of the pod's service account if that is empty; None if there is none."""
    if not kubeconfig and not is_in_cluster():
        fields = {"flag": f"--{what_for}-kubeconfig"}
        _logger.warning("Outside of a cluster nobody is asked who may see metrics; only health is served", extra=fields)
        return None
    try:
        credentials = await load_credentials(kubeconfig or None)
    except ConfigError as error:
        if kubeconfig:
            raise
        _logger.warning(
            "The pod's service account cannot be used to ask who may see metrics", extra={"err": str(error)}
        )
        return None
    return await stack.enter_async_context(Client(credentials, metrics))
