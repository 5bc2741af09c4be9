"""Answers `loadmaster explain` and `loadmaster quota`: asks the running scheduler, or decides in this process.

--from FILE ─────────────────────────────────────────────► decide here
--from-cluster ──────────────► read all that plugins look at ──► decide here
neither ──► the running scheduler ──(there is none)──────► as --from-cluster, and say so

With --watch, the question is repeated, also after a scheduler or an API server is replaced:

ASK ──answer──2 s──► ASK      until the pod has a node, or is gone
 │ ───no answer────► ASK      after a wait, a few times; then it fails
 └────not allowed──► (fails)

The code that decides here is loaded only if no running scheduler answers.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

import msgspec

from scheduler.api.groups.workloads import GangKind
from scheduler.api.labels import subdomain_problems
from scheduler.api.wording.text import printable
from scheduler.commands.options import feature_gates, registry
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.http.client import Client, connected
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.services.service_proxy import NotRunning, RunningScheduler

if TYPE_CHECKING:
    from scheduler.api.pods.pod import Pod
    from scheduler.config.types import Config
    from scheduler.explain.documents import GroupReport, PodReport, SharesReport
    from scheduler.runtime.registry import Registry
    from scheduler.simulate.cluster import SimulatedCluster

WATCH_SECONDS: Final = 2.0
OUTAGE: Final = RetryPolicy(first=2.0, limit=15.0, tries=10)
"""How long watching waits for the next answer: two minutes."""


_MAKERS: Final = ("CronJob", "RayJob", "RayService", "TrainJob")
"""Kinds of objects that make workloads."""

GROUP_KINDS: Final = frozenset(
    f"{kind.lower()}{plural}" for kind in ("PodGroup", *get_args(GangKind), *_MAKERS) for plural in ("", "s")
) | {"pg", "lws"}
"""Kinds that may stand before the name of a group, or of the workload whose pods it has, as kubectl has them."""

Document = Mapping[str, Any]


class Kind(Enum):
    POD = "pod"
    GROUP = "group of pods"
    SHARES = "shares of the cluster"


class Asked(NamedTuple):
    namespace: str
    name: str
    kind: Kind = Kind.POD

    @property
    def query(self) -> Mapping[str, str]:
        """The question to a running scheduler."""
        if self.kind is Kind.SHARES:
            return {"shares": "true"}
        return {"namespace": self.namespace, "podgroup" if self.kind is Kind.GROUP else "name": self.name}


ABOUT_SHARES: Final = Asked("", "", Kind.SHARES)


async def explanations(options: argparse.Namespace, asked_in: Callable[[str], Asked]) -> AsyncGenerator[Document, None]:
    """Yield an explanation; with --watch, yield more until the pod has a node or is gone.

    `asked_in`: returns what is asked about, given the namespace where none is named. Raises ClusterError, ConfigError.
    """
    if options.files:
        yield await _decided_by_files(options, asked_in("default"))
        return
    async with connected(options.kubeconfig, options.context) as client:
        question = _Question(options, client, asked_in(client.credentials.identity.namespace))
        document = await question.ask()
        yield document
        while options.watch and document["found"] and not document.get("node") and document["state"] != "placed":
            await asyncio.sleep(WATCH_SECONDS)
            document = await question.ask_patiently()
            yield document


class _Question:
    def __init__(self, options: argparse.Namespace, client: Client, asked: Asked) -> None:
        self._options, self._client = options, client
        self._registry: Registry | None = None  # loaded once, however often it is asked
        self._asked = asked
        self._scheduler = RunningScheduler(client, options.service_namespace, options.service)
        self._is_decided_here = options.from_cluster
        self._was_answered = False

    async def ask(self) -> Document:
        """Return the scheduler's answer, or one that is decided here. Raises ClusterError, ConfigError."""
        if not self._is_decided_here:
            try:
                document = await self._scheduler.explain(self._asked.query)
            except NotRunning as error:
                if self._was_answered:
                    raise
                _say(f"{error}; deciding here, by what the cluster has now")
                self._is_decided_here = True
            else:
                self._was_answered = True
                if document.get("leading") is False:
                    _say("no replica that was asked leads: none of them knows the pod's history")
                return document
        if self._registry is None:
            self._registry = registry(self._options)
        return await _decided_by_cluster(self._client, self._options, self._registry, self._asked)

    async def ask_patiently(self) -> Document:
        """The same, a few times where no answer comes."""
        for failures in range(OUTAGE.tries):
            try:
                return await self.ask()
            except ClusterError as error:
                if getattr(error, "status", 0) in (401, 403) or failures + 1 == OUTAGE.tries:
                    raise
                _say(f"{error}; asking again")
                await asyncio.sleep(OUTAGE.wait(failures))
        raise AssertionError("the last try returns or raises")


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr)


def object_of(options: argparse.Namespace, default: str) -> Asked:
    """Return the pod or group that is asked about; `default`: the namespace of one that names none.

    Raises ConfigError for what cannot be the name of anything.
    """
    kind, slash, rest = options.pod.partition("/")
    is_group = bool(slash) and kind.lower().partition(".")[0] in GROUP_KINDS
    before, slash, after = (rest if is_group else options.pod).partition("/")
    namespace, name = (before, after) if slash else (options.namespace or default, before)
    if not namespace or not name:
        raise ConfigError([f"expected [NAMESPACE/]POD or podgroup/[NAMESPACE/]NAME, got {options.pod!r}"])
    parts = name.split("/", 2) if is_group else (name,)  # of a workload that is a gang: kind, name, and perhaps a part
    names = (
        *(("a group of pods" if is_group else "a pod", part) for part in parts),
        ("a namespace", namespace),
        ("a Service", options.service),
        ("a namespace", options.service_namespace),
    )
    problems = [
        f"{text[:100]!r} cannot be the name of {what}"
        for what, text in names
        if not text.isascii() or subdomain_problems(text)
    ]
    if problems:
        raise ConfigError(problems)
    return Asked(namespace, name, Kind.GROUP if is_group else Kind.POD)


async def _decided_by_files(options: argparse.Namespace, asked: Asked) -> Document:
    """Read files as `simulate` does, and explain. Raises ConfigError."""
    from scheduler.config.load import load_config
    from scheduler.simulate.cluster import read_cluster
    from scheduler.simulate.engine import adopted

    plugins = registry(options)
    config = load_config(options.config, plugins, gates=feature_gates(options))
    cluster = read_cluster(options.files, raw_pods=_raw_pods(config, plugins))
    cluster = replace(cluster, pods=tuple(adopted(cluster.pods, config)))
    return await decided(cluster, config, plugins, asked)


async def _decided_by_cluster(
    client: Client, options: argparse.Namespace, plugins: "Registry", asked: Asked
) -> Document:
    """Read all kinds that the plugins look at, and explain. Raises ConfigError, ClusterError."""
    from scheduler.assembly.cluster_objects import read_watched
    from scheduler.config.load import load_config
    from scheduler.simulate.cluster import cluster_of

    config = load_config(options.config, plugins, gates=feature_gates(options))
    documents = await read_watched(client, config, plugins)
    # The API server has accepted these objects: one that cannot be read here costs itself only.
    cluster = cluster_of((), [], raw_pods=_raw_pods(config, plugins), stored=documents)
    return await decided(cluster, config, plugins, asked)


async def decided(cluster: "SimulatedCluster", config: "Config", plugins: "Registry", asked: Asked) -> Document:
    """Explain an object of a cluster. Raises ConfigError."""
    from scheduler.explain.changes import WrittenPod
    from scheduler.explain.explainer import Explainer
    from scheduler.simulate.engine import engine_of
    from scheduler.simulate.other_objects import written_pod

    def written(pod: "Pod") -> WrittenPod | None:
        return written_pod(pod, cluster.written.get((pod.namespace, pod.name)))

    with engine_of(cluster, config, plugins) as engine:
        explainer = Explainer(engine, lambda: 0.0, written=written, tries_groups=True)
        report: PodReport | GroupReport | SharesReport
        match asked.kind:
            case Kind.SHARES:
                report = await explainer.about_shares()
            case Kind.GROUP:
                report = await explainer.about_group(asked.namespace, asked.name)
            case Kind.POD:
                report = await explainer.about_pod_or_group(asked.namespace, asked.name)
        document: Document = msgspec.to_builtins(report)
        return document


def _raw_pods(config: "Config", plugins: "Registry") -> bool:
    from scheduler.framework.nodes.resources import read_raw_pods

    return read_raw_pods(plugins[plugin] for profile in config.profiles for plugin in profile.enabled)
