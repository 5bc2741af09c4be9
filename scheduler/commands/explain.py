"""`loadmaster explain`: asks the running scheduler, or decides here by a cluster's objects or by files.

--from FILE ─────────────────────────────────────────────► decide here
--from-cluster ──────────────► read all that plugins look at ──► decide here
neither ──► the running scheduler ──(there is none)──────► as --from-cluster, and say so

With --watch, whoever has answered is asked again, and that outlives a scheduler or an API server that is replaced:

ASK ──answer──2 s──► ASK      until the pod has a node, or is gone
 │ ───no answer────► ASK      after a wait, a few times; then it fails
 └────not allowed──► (fails)
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.labels import subdomain_problems
from scheduler.api.text import printable
from scheduler.commands.cluster_connection import connected
from scheduler.explain.documents import PodReport
from scheduler.explain.screen import PLAIN, Screen, lines_of
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.http.client import Client
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.services.service_proxy import NotRunning, RunningScheduler
from scheduler.process.results import results

if TYPE_CHECKING:
    from scheduler.runtime.registry import Registry

WATCH_SECONDS: Final = 2.0
OUTAGE: Final = RetryPolicy(first=2.0, limit=15.0, tries=10)
"""How long watching waits for the next answer: two minutes."""

NOT_FOUND: Final = 1

Document = Mapping[str, Any]


def run(options: argparse.Namespace, registry: "Callable[[], Registry]") -> int:
    """Explain, and print it; 1 if there is no such pod. Raises ConfigError for what cannot be read or asked.

    The plugins, and what it takes to decide here, are loaded only if no running scheduler does.
    """
    try:
        return asyncio.run(_run(options, registry))
    except ClusterError as error:
        raise ConfigError([str(error)]) from error


async def _run(options: argparse.Namespace, registry: "Callable[[], Registry]") -> int:
    if options.files:
        from scheduler.commands.offline_explanation import decided_by_files

        namespace, name = _pod(options, "default")
        return _show(options, await decided_by_files(options.files, options.config, registry(), namespace, name))
    async with connected(options.kubeconfig, options.context) as client:
        question = _Question(options, registry, client)
        document = await question.ask()
        code = _show(options, document)
        while options.watch and document["found"] and not document.get("node"):
            await asyncio.sleep(WATCH_SECONDS)
            document = await question.ask_patiently()
            code = _show(options, document)
        return code


class _Question:
    """About one pod of a cluster."""

    def __init__(self, options: argparse.Namespace, registry: "Callable[[], Registry]", client: Client) -> None:
        """Raises ConfigError for what cannot be asked about."""
        self._options, self._client = options, client
        self._registry = cache(registry)  # plugins are loaded once, however often it is asked
        self._pod = _pod(options, client.credentials.namespace)
        self._scheduler = RunningScheduler(client, options.service_namespace, options.service)
        self._is_decided_here = options.from_cluster
        self._was_answered = False

    async def ask(self) -> Document:
        """Return what the scheduler says, or what is decided here. Raises ClusterError, ConfigError."""
        if not self._is_decided_here:
            try:
                document = await self._scheduler.explain(*self._pod)
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
        from scheduler.commands.offline_explanation import decided_by_cluster

        return await decided_by_cluster(self._client, self._options.config, self._registry(), *self._pod)

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


def pod_reference(text: str, namespace: str) -> tuple[str, str]:
    """Return namespace and name of `[NAMESPACE/]POD`."""
    before, slash, after = text.partition("/")
    return (before, after) if slash else (namespace, before)


def _pod(options: argparse.Namespace, default: str) -> tuple[str, str]:
    """Return namespace and name. Raises ConfigError for what cannot be the name of anything."""
    namespace, name = pod_reference(options.pod, options.namespace or default)
    if not namespace or not name:
        raise ConfigError([f"expected [NAMESPACE/]POD, got {options.pod!r}"])
    names = (
        ("a pod", name),
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
    return namespace, name


def _show(options: argparse.Namespace, document: Document) -> int:
    """Print what was answered. Raises ClusterError if it is not what this version knows."""
    is_found = bool(document["found"])
    try:
        if options.output == "json":
            # In ASCII, so that it is JSON whatever the terminal can show, and nothing in it that a terminal obeys.
            print(json.dumps(document, indent=2), file=results())
        if options.output != "json" or not is_found:
            text = "\n".join(_lines(convert(document, PodReport)))
            print(text, file=results() if is_found else sys.stderr)
    except (Unreadable, RecursionError) as error:
        raise ClusterError(
            f"what the scheduler answered cannot be shown: {error}; "
            "is it of another version than this command? -o json prints it"
        ) from error
    return 0 if is_found else NOT_FOUND


def _lines(report: PodReport) -> Iterable[str]:
    if report.found:
        return lines_of(report, _screen())
    near = f"; did you mean {' or '.join(report.near)}?" if report.near else ""
    return [printable(f"there is no pod {report.namespace}/{report.name}{near}")]


def _screen() -> Screen:
    """What standard output can show: colours, unless it is no terminal, or somebody wants none (no-color.org)."""
    if not results().isatty():
        return PLAIN
    width = shutil.get_terminal_size((PLAIN.width, 24)).columns
    return Screen(width, colour=os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR"))
