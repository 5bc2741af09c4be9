"""`loadmaster explain`: asks the running scheduler, or decides here by a cluster's objects or by files.

--from FILE ─────────────────────────────────────────────► decide here
--from-cluster ──────────────► read all that plugins look at ──► decide here
neither ──► the running scheduler ──(there is none)──────► as --from-cluster, and say so
"""

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from scheduler.api.labels import subdomain_problems
from scheduler.api.text import encodable_within, printable
from scheduler.explain.screen import PLAIN, Screen, lines_of
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.client import Client
from scheduler.kube.credentials import load_credentials
from scheduler.kube.service_proxy import NotRunning, RunningScheduler
from scheduler.runtime.metrics import Metrics

if TYPE_CHECKING:
    from scheduler.runtime.registry import Registry

WATCH_SECONDS: Final = 2.0
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
        from scheduler.ask.here import decided_by_files

        namespace, name = _pod(options, "default")
        return _show(options, await decided_by_files(options.files, options.config, registry(), namespace, name))
    credentials = await load_credentials(options.kubeconfig, options.context)
    namespace, name = _pod(options, credentials.namespace)
    async with Client(credentials, Metrics()) as client:
        scheduler = RunningScheduler(client, options.service_namespace, options.service)
        from_cluster = options.from_cluster
        while True:
            if not from_cluster:
                try:
                    document = await scheduler.explain(namespace, name)
                    if document.get("leading") is False:
                        print("no replica that was asked leads: none of them knows the pod's history", file=sys.stderr)
                except NotRunning as error:
                    print(f"{error}; deciding here, by what the cluster has now", file=sys.stderr)
                    from_cluster = True
            if from_cluster:
                from scheduler.ask.here import decided_by_cluster

                document = await decided_by_cluster(client, options.config, registry(), namespace, name)
            code = _show(options, document) if from_cluster else _show_answer(options, document)
            if not options.watch or document.get("node") or not document["found"]:
                return code
            await asyncio.sleep(WATCH_SECONDS)


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


def _show_answer(options: argparse.Namespace, document: Document) -> int:
    """Show what somebody else has said. Raises ClusterError for what is no explanation as this version knows them."""
    try:
        return _show(options, document)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ClusterError(
            f"what the scheduler answered cannot be shown: {type(error).__name__}: {error}; "
            "is it of another version than this command? -o json prints it"
        ) from error


def _show(options: argparse.Namespace, document: Document) -> int:
    is_found, is_json = document["found"], options.output == "json"
    lines = [] if is_json and is_found else list(_lines(document))
    if is_json:
        print(orjson.dumps(encodable_within(dict(document)), option=orjson.OPT_INDENT_2).decode())
    _print(lines, to_stderr=not is_found)
    return 0 if is_found else NOT_FOUND


def _lines(document: Document) -> Iterable[str]:
    if document["found"]:
        return lines_of(document, _screen())
    near = f"; did you mean {' or '.join(document['near'])}?" if document.get("near") else ""
    return [printable(f"there is no pod {document['namespace']}/{document['name']}{near}")]


def _screen() -> Screen:
    """What standard output can show: colours, unless it is no terminal, or somebody wants none (no-color.org)."""
    if not sys.stdout.isatty():
        return PLAIN
    width = shutil.get_terminal_size((PLAIN.width, 24)).columns
    return Screen(width, colour=os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR"))


def _print(lines: Iterable[str], *, to_stderr: bool = False) -> None:
    """Print what the terminal's encoding may not have, too."""
    stream = sys.stderr if to_stderr else sys.stdout
    encoding = stream.encoding or "utf-8"
    for line in lines:
        stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
