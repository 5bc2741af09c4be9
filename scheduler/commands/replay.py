"""`loadmaster replay`: repeats the decisions of a trace; see `replaying.py`."""

import argparse
import logging
from typing import Any, Final

from scheduler.api.wording.text import encodable_within
from scheduler.commands.options import add_output_argument, add_plugin_arguments, describe, registry
from scheduler.process.ending import ended_by_interrupt
from scheduler.process.progress import on_stderr
from scheduler.process.results import results

DIFFERENT: Final = 1

DESCRIPTION: Final = """\
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, DESCRIPTION, EPILOG)
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
    add_output_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Replay, and print the differences; 1 if the recorded configuration decides otherwise. Raises ConfigError."""
    from scheduler.commands.replaying import replayed

    logging.basicConfig(level=logging.CRITICAL)  # plugins said it all when it was recorded
    progress = on_stderr()
    with ended_by_interrupt(), progress.shown():
        document = replayed(options, registry(options), progress)
    _print(options, document)
    return DIFFERENT if document["different"] and not options.config else 0


def _print(options: argparse.Namespace, document: dict[str, Any]) -> None:
    import orjson

    from scheduler.replay.report import lines_of

    if options.output == "json":
        print(orjson.dumps(encodable_within(document), option=orjson.OPT_INDENT_2).decode(), file=results())
        return
    encoding = results().encoding or "utf-8"
    for line in lines_of(document):
        results().write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
