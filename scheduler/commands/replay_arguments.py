"""The options of `loadmaster record` and `replay`; separate from the commands, so that `--help` need not load them."""

import argparse
from typing import Final

from scheduler.commands.cluster_arguments import add_cluster_arguments, add_service_arguments
from scheduler.commands.plugin_directories import add_plugin_arguments

RECORD: Final = """\
Record what the running scheduler sees and decides, into a file that `loadmaster replay` plays: until Ctrl-C, or for
--seconds. The leader is asked, through the API server; the scheduler works on as before. The file has what scheduling
reads of pods, nodes and other objects: names and labels among it, but no environment, annotations of pods or Secrets.
"""

REPLAY: Final = """\
Decide all that a trace has once more, in the states in which it was decided, and compare: the same configuration makes
the same decisions, byte for byte. With --config, say which decisions another configuration would make in these states.
"""

EPILOG: Final = """\
examples:
  loadmaster record --seconds 60 --out busy.trace
  loadmaster replay busy.trace
  loadmaster replay busy.trace --config new.yaml
  loadmaster replay busy.trace --plugin-dir plugins -o json

Exit code of replay: 0, or 1 if the recorded configuration makes other decisions now; 2 if that cannot be found out.
"""


def add_record_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of `record`."""
    parser.description = RECORD
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--out", metavar="FILE", required=True, help="where to; it must not exist")
    parser.add_argument("--seconds", type=_seconds, default=0, metavar="N", help="how long; default: until Ctrl-C")
    add_cluster_arguments(parser)
    add_service_arguments(parser)


def add_replay_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of `replay`."""
    parser.description, parser.epilog = REPLAY, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("trace", metavar="FILE", help="what `loadmaster record` has written")
    parser.add_argument("--config", metavar="FILE", help="decide by this KubeSchedulerConfiguration, too")
    add_plugin_arguments(parser)
    parser.add_argument(
        "--edited", action="store_true", help="replay it although its checksum shows that it was edited"
    )
    parser.add_argument(
        "--decisions",
        metavar="FILE",
        help="write each decision on a line, as it stands in a trace; the file must not exist",
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and 0 < int(text) <= MAX_SECONDS):
        raise argparse.ArgumentTypeError(f"expected a whole number of seconds, from 1 to {MAX_SECONDS}")
    return int(text)


MAX_SECONDS: Final = 86_400
