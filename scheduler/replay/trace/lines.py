"""The lines of a trace: a header, the state at the start, then what happened, in the order of the one event loop.

    {"loadmasterTrace": 1, …}                     the header
    ["row"|"node"|"object"|"pod"|"on"|…, 0, …]    the state: what decisions read
    ["begin", 0]
    ["pod"|"count"|"decide"|…, milliseconds, …]   what happened, since the recording began
    ["end", milliseconds, why]                    the last line to be replayed; without it something is missing
    ["sum", milliseconds, checksum]               of all lines before it; older programs neither write nor read it

Each line is JSON. Lines are in members of a gzip file, of whole lines each, so that a file can be cut between two of
them. A trace has what scheduling reads of objects, and no more: no environment, no Secrets, no annotations of pods.
"""

from collections.abc import Mapping
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, Final
from zlib import adler32

import msgspec
import numpy as np

from scheduler.api.read_only import plain
from scheduler.api.text import encodable_within
from scheduler.api.unstructured import Unstructured
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.extenders import ExtenderError

FORMAT: Final = 1
"""Another number means that older programs cannot read it."""

MARK: Final = b'{"loadmasterTrace":'

# The state at the start, and its changes.
LAYOUT, NODE, OBJECT, POD, COUNT, REST, NOMINATE, BEGIN = (
    "layout", "node", "object", "pod", "count", "rest", "nominate", "begin",
)  # fmt: skip
# Changes only.
NODE_GONE, OBJECT_GONE, POD_GONE, ASSUME, UNCOUNT, NO_REST, NO_NOMINATION = (
    "node gone", "object gone", "pod gone", "assume", "uncount", "no rest", "no nomination",
)  # fmt: skip
# What the cycle does.
DECIDE, PRE_BIND, BOUND, UNDO, ANSWER, END, SUM = (
    "decide", "prebind", "bound", "undo", "answer", "end", "sum",
)  # fmt: skip
# An attempt in which extenders are asked.
ASKING, SEARCH, EXTENDERS, DECIDED, GAVE_UP = (
    "asking", "search", "extenders", "decided", "gave up",
)  # fmt: skip


Checksum: Final = partial(blake2b, digest_size=16)
"""Of the lines of a trace, with their ends: it shows an edit, or damage, to nobody who wants to hide it."""

Number = Annotated[int, msgspec.Meta(ge=0, le=10**11)]
"""Of milliseconds, nodes, attempts: more there never was, and a clock would not bear it."""

Moment = Annotated[float, msgspec.Meta(ge=0, le=2**33)]
"""In seconds since 1970, for two centuries more."""


class Header(msgspec.Struct, rename="camel", kw_only=True):
    """The first line."""

    loadmaster_trace: int = FORMAT
    version: str
    """Of the program that recorded it."""

    recorded_at: Moment

    config: dict[str, Any]
    """The configuration in effect, as a file would have it."""

    next_start: Number = 0
    """Where a search begins that looks at a part of the nodes."""

    bindings: Number = 0
    """Bindings under way at the start: what plugins hold for them in memory is not in the trace."""

    needs: tuple[str, ...] = ()
    """What is decoded of pods because plugins need it."""


class Decision(msgspec.Struct, array_like=True, frozen=True):
    """What was decided, and nothing that depends on the speed of the machine, or on what was decided before."""

    node: str = ""
    evaluated: int = 0
    feasible: int = 0
    scores: int = 0
    """A checksum of what each node lacks of the best one's total score; 0 if there was nothing to choose."""

    message: str = ""
    plugins: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    nominated: str | None = ""
    """Where preemption makes room; None: as before."""

    error: str = ""


def decision_of(state: CycleState, decision: Placed | Unplaced | BaseException) -> Decision:
    """Reduce what an attempt has come to."""
    if isinstance(decision, Placed):
        lacking = _lacking(state)
        return Decision(decision.node_name, decision.evaluated_nodes, decision.feasible_nodes, lacking)
    if isinstance(decision, Unplaced):
        plugins, pending = (sorted(names) for names in (decision.unschedulable_plugins, decision.pending_plugins))
        nominated = decision.nominated_node_name
        return Decision(message=decision.message, plugins=tuple(plugins), pending=tuple(pending), nominated=nominated)
    kind = ExtenderError if isinstance(decision, ExtenderError) else type(decision)  # how it failed is not repeated
    return Decision(error=f"{kind.__name__}: {decision}")


def encoded(decision: Decision) -> bytes:
    """As it stands in a line."""
    return _encoder.encode(decision)


def _lacking(state: CycleState) -> int:
    # Not the totals themselves: what makes no difference between nodes is left out of those made of stored columns.
    scored = state.scored
    if scored is None:
        return 0
    rows, totals = scored.totals()
    if rows is None and totals.min() < 0:
        totals = totals[totals >= 0]
    # 32 bits are enough for weighted sums of scores, and half of the work.
    return adler32((totals.max() - totals).astype(np.int32).data) if len(totals) else 0


def encode(line: tuple[Any, ...]) -> bytes:
    """Return a line with its end."""
    try:
        return _encoder.encode(line) + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, in an object's odd part
        return _encoder.encode(encodable_within(msgspec.to_builtins(line, enc_hook=_content))) + b"\n"


def written(obj: Any) -> Any:
    """An object as it is written: without what was derived of it, or is kept beside it."""
    fields = _fields_of(type(obj))
    return obj if fields is None else {name: getattr(obj, attribute) for name, attribute in fields.items()}


def _fields_of(kind: type[Any]) -> Mapping[str, str] | None:
    known = _fields.get(kind, _UNKNOWN)
    if known is not _UNKNOWN:
        return known
    found = None
    if issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        if any(field.encode_name.startswith("(") for field in fields):
            found = {field.encode_name: field.name for field in fields if not field.encode_name.startswith("(")}
    _fields[kind] = found
    return found


def _content(value: Any) -> Any:
    if isinstance(value, Unstructured):
        return {"metadata": value.metadata, **value.content}
    return plain(value)


_UNKNOWN: Final[Mapping[str, str]] = {}
_fields: dict[type[Any], Mapping[str, str] | None] = {}
"""Type → name in JSON → attribute; None for those that are written as they are."""

_encoder: Final = msgspec.json.Encoder(enc_hook=_content)
