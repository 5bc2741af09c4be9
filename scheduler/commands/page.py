"""`loadmaster page`: the scheduler's page for a browser of this machine; see `local_page.py`."""

import argparse
from typing import Final

from scheduler.commands.options import add_cluster_arguments, add_service_arguments, describe

DESCRIPTION: Final = """\
Show the page of the running scheduler: the cluster, the queue, decisions as they are made, why a pod is pending. The
command listens on this machine only, asks the scheduler through the API server as `loadmaster explain` does, and prints
an address for your browser. The scheduler has to be started with --page (in the chart: page.enabled=true).
"""

EPILOG: Final = """\
examples:
  loadmaster page
  loadmaster page --context staging --port 8259
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, DESCRIPTION, EPILOG)
    parser.add_argument("--port", type=_port, default=0, help="where it listens on 127.0.0.1; default: any free one")
    add_cluster_arguments(parser)
    add_service_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted. Raises ConfigError for what cannot be read, asked or listened on."""
    from scheduler.commands import local_page

    return local_page.run(options)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: expected a number from 0 to 65535")
    return int(text)
