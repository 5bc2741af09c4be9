"""`loadmaster explain`: its options and its output; `explaining.py` gets the answer."""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.wording.text import printable
from scheduler.commands.options import add_output_argument, add_source_arguments, describe
from scheduler.explain.documents import GroupReport, PodReport
from scheduler.explain.screen import lines_of, lines_of_group, screen_of_output
from scheduler.framework.errors import ClusterError
from scheduler.process.results import results

NOT_FOUND: Final = 1

Document = Mapping[str, Any]

DESCRIPTION: Final = """\
Say why a pod is pending, and what would help: every obstacle on every node, the nearest miss first, and changes that
were tried out. The running scheduler is asked, through the API server; nothing is written.
"""

EPILOG: Final = """\
examples:
  loadmaster explain web-7d4b9
  loadmaster explain shop/web-7d4b9 --watch
  loadmaster explain podgroup/shop/training
  loadmaster explain shop/web-7d4b9 -o json
  loadmaster explain shop/web-7d4b9 --from-cluster --config new.yaml
  loadmaster explain shop/web-7d4b9 --from dump.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, DESCRIPTION, EPILOG)
    parser.add_argument(
        "pod",
        metavar="[NAMESPACE/]POD",
        help="the pod; or podgroup/[NAMESPACE/]NAME or job/[NAMESPACE/]NAME: a group of pods scheduled together",
    )
    parser.add_argument(
        "-n", "--namespace", default="", help="its namespace; default: that of the kubeconfig's context"
    )
    add_source_arguments(parser, " and decide")
    parser.add_argument("-w", "--watch", action="store_true", help="ask again every 2 s, until the pod has a node")
    add_output_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Explain, and print it; 1 if there is no such pod. Raises ConfigError, ClusterError."""
    import asyncio

    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    from scheduler.commands.explaining import explanations, object_of

    code = NOT_FOUND
    async with aclosing(explanations(options, partial(object_of, options))) as documents:
        async for document in documents:
            code = _show(options, document)
    return code


def _show(options: argparse.Namespace, document: Document) -> int:
    """Print what was answered. Raises ClusterError if it is not what this version knows."""
    is_found = bool(document["found"])
    try:
        if options.output == "json":
            # In ASCII, so that it is JSON whatever the terminal can show, and nothing in it that a terminal obeys.
            print(json.dumps(document, indent=2), file=results())
        if options.output != "json" or not is_found:
            text = "\n".join(_lines(_report(document)))
            print(text, file=results() if is_found else sys.stderr)
    except (Unreadable, RecursionError) as error:
        raise ClusterError(
            f"what the scheduler answered cannot be shown: {error}; "
            "is it of another version than this command? -o json prints it"
        ) from error
    return 0 if is_found else NOT_FOUND


def _report(document: Document) -> PodReport | GroupReport:
    is_group = document.get("kind") == "PodGroup"
    return convert(document, GroupReport) if is_group else convert(document, PodReport)


def _lines(report: PodReport | GroupReport) -> Iterable[str]:
    is_group = isinstance(report, GroupReport)
    if report.found:
        screen = screen_of_output()
        return lines_of_group(report, screen) if isinstance(report, GroupReport) else lines_of(report, screen)
    near = f"; did you mean {' or '.join(report.near)}?" if report.near else ""
    what = "no pod names the group" if is_group else "there is no pod"
    return [printable(f"{what} {report.namespace}/{report.name}{near}")]
