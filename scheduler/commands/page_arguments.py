"""The options of `loadmaster page`; separate from the command, so that `--help` need not load it."""

import argparse

from scheduler.commands.cluster_arguments import add_cluster_arguments, add_service_arguments

DESCRIPTION = """\
Show the page of the running scheduler: the cluster, the queue, decisions as they are made, why a pod is pending. The
command listens on this machine only, asks the scheduler through the API server as `loadmaster explain` does, and prints
an address for your browser. The scheduler has to be started with --page (in the chart: page.enabled=true).
"""

EPILOG = """\
examples:
  loadmaster page
  loadmaster page --context staging --port 8259
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument("--port", type=_port, default=0, help="where it listens on 127.0.0.1; default: any free one")
    add_cluster_arguments(parser)
    add_service_arguments(parser)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: expected a number from 0 to 65535")
    return int(text)
