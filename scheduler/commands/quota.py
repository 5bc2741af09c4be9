"""`loadmaster quota`: the shares of the cluster, as a tree or as JSON; `explaining.py` gets the answer."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scheduler.api.wording.spelling import spelled_for
from scheduler.api.wording.text import printable
from scheduler.commands.options import add_output_argument, add_source_arguments, describe
from scheduler.framework.errors import ConfigError
from scheduler.process.results import results

if TYPE_CHECKING:
    from scheduler.explain.documents import ShareReport, SharesReport

NOT_FOUND: Final = 1

DESCRIPTION: Final = """\
Show the shares of the cluster: what each is guaranteed, may use at most, uses, borrows and lends, and what its pods
wait for. A share includes all below it. The running scheduler is asked, through the API server; nothing is written.
"""

EPILOG: Final = """\
examples:
  loadmaster quota
  loadmaster quota team-a --watch
  loadmaster quota shop/quota -o json
  loadmaster quota --from-cluster --config new.yaml
  loadmaster quota --from dump.yaml --config new.yaml
"""

OFF: Final = "there are no shares: no profile has the plugin CapacityScheduling"

_HEAD: Final = (
    "SHARE",
    "PODS WAITING",
    "RESOURCE",
    "GUARANTEED",
    "MAXIMUM",
    "USED",
    "BORROWED",
    "LENT",
    "WAITING",
)


_STANDINGS: Final = {"DominantShare": "DOMINANT SHARE", "DecayedUsage": "DECAYED USAGE"}

INFINITE: Final = 2.0**63


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, DESCRIPTION, EPILOG)
    parser.add_argument(
        "share", nargs="?", default="", metavar="SHARE", help="only this one, with all below it; default: all"
    )
    add_source_arguments(parser)
    parser.add_argument("-w", "--watch", action="store_true", help="ask every 2 s, and show what has changed")
    add_output_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Show the shares; 1 if there are none. Raises ConfigError, ClusterError."""
    import asyncio

    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    from scheduler.commands.explaining import ABOUT_SHARES, explanations

    code, before = NOT_FOUND, None
    async with aclosing(explanations(options, lambda _: ABOUT_SHARES)) as documents:
        async for document in documents:
            if document == before:
                continue
            if before is not None and options.output == "text":
                print(file=results())
            code, before = _show(options, document), document
            if code:
                break
    return code


def _show(options: argparse.Namespace, document: Mapping[str, Any]) -> int:
    from scheduler.api.decoding import Unreadable, convert
    from scheduler.explain.documents import SharesReport

    try:
        report = convert(document, SharesReport)
    except (Unreadable, RecursionError) as error:
        raise ConfigError(
            [f"what the scheduler answered cannot be shown: {error}; is it of another version than this command?"]
        ) from error
    if not report.found:
        print(OFF, file=sys.stderr)
        return NOT_FOUND
    shares = list(_chosen(report.shares, options.share))
    if options.share and not shares:
        print(printable(f"there is no share {options.share}"), file=sys.stderr)
        return NOT_FOUND
    if options.output == "json":
        import msgspec

        report.shares = shares
        print(json.dumps(msgspec.to_builtins(report), indent=2), file=results())
    else:
        print("\n".join(_lines(report, shares)), file=results())
    return 0


def _chosen(shares: "Sequence[ShareReport]", name: str) -> "Iterator[ShareReport]":
    top: ShareReport | None = None
    for share in shares:
        if top is not None and (share.depth <= top.depth or share.source != top.source):
            top = None
        if not name or share.name == name or top is not None:
            top = top or share
            yield share


def _lines(report: "SharesReport", shares: "Sequence[ShareReport]") -> Iterator[str]:
    from scheduler.api.wording.text import aligned

    sound = [share for share in shares if not share.problem]
    top = min((share.depth for share in sound), default=0)
    orders = {share.standing.order for share in sound if share.standing is not None}
    standings = [_STANDINGS.get(order, order) for order in orders]
    if sound:
        head = (*_HEAD[:2], *standings, *_HEAD[2:])
        yield from aligned([head, *(row for share in sound for row in _rows(share, top, len(standings)))])
    elif not shares:
        yield "there are no shares yet"
    broken = [share for share in shares if share.problem]
    if broken:
        yield from ["", "CANNOT BE USED"] if sound else ["CANNOT BE USED"]
        for share in broken:
            waiting = f"; {share.waiting:,} pods wait" if share.waiting else ""
            yield printable(f"  {share.name}: {share.problem}{waiting}")
    if report.more:
        yield f"... and {report.more:,} more shares"


def _rows(share: "ShareReport", top: int, standings: int) -> Iterator[Sequence[str]]:
    """Yield a row for each resource; the first begins with the share. `standings`: how many columns there are of it."""
    head: tuple[str, ...] = ("  " * (share.depth - top) + share.name, f"{share.waiting:,}" if share.waiting else "-")
    if standings:
        value = None if share.standing is None else share.standing.value
        head += ("-" if value is None else "infinite" if value >= INFINITE else f"{value:.4g}",)
    if not share.resources:
        yield *head, "-"
    for each in share.resources:
        said = partial(spelled_for, share.source, each.resource)
        maximum = "-" if each.maximum is None else said(each.maximum)
        counts = (said(count) if count else "-" for count in (each.borrowed, each.lent, each.waiting))
        yield *head, each.resource, said(each.guaranteed), maximum, said(each.used), *counts
        head = ("",) * len(head)
