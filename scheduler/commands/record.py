"""`loadmaster record`: a trace of what a running scheduler sees and decides; see `recording.py`."""

import argparse
from typing import Final

from scheduler.commands.options import add_cluster_arguments, add_service_arguments, describe

MAX_SECONDS: Final = 86_400

DESCRIPTION: Final = """\
Record what the running scheduler sees and decides, into a file that `loadmaster replay` plays: until Ctrl-C, or for
--seconds. The leader is asked, through the API server; the scheduler works on as before. The file has what scheduling
reads of pods, nodes and other objects: names and labels among it, but no environment, annotations of pods or Secrets.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, DESCRIPTION)
    parser.add_argument("--out", metavar="FILE", required=True, help="where to; it must not exist")
    parser.add_argument("--seconds", type=_seconds, default=0, metavar="N", help="how long; default: until Ctrl-C")
    add_cluster_arguments(parser)
    add_service_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Record, and report the result. Raises ConfigError if the scheduler or the file fails."""
    from scheduler.commands import recording

    return recording.run(options)


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and 0 < int(text) <= MAX_SECONDS):
        raise argparse.ArgumentTypeError(f"expected a whole number of seconds, from 1 to {MAX_SECONDS}")
    return int(text)
