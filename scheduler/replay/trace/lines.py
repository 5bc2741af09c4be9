"""The lines of a trace: a header, the state at the start, then what happened, in the order of the one event loop.

    {"loadmasterTrace": 1, …}                     the header
    ["layout"|"node"|"object"|"pod"|…, 0, …]      the state: what decisions read
    ["begin", 0]
    ["pod"|"count"|"decide"|…, milliseconds, …]   what happened, since the recording began
    ["end", milliseconds, why]                    the last line to be replayed; without it something is missing
    ["sum", milliseconds, checksum]               of all lines before it; older programs neither write nor read it

Each line is a JSON array: its kind, its time, then the fields of the class that has this kind as its tag. New fields go
to the end and have a default, so that older traces are read. Lines are in members of a gzip file, of whole lines each,
so that a file can be cut between two of them. A trace has what scheduling reads of objects, and no more: no
environment, no Secrets, no annotations of pods but those about groups, unless a plugin reads raw pods.
"""

from collections.abc import Mapping
from functools import cache, partial
from hashlib import blake2b
from typing import Annotated, Any, Final, TypeAlias
from zlib import adler32

import msgspec
import numpy as np

from scheduler.api.decoding import Decoder
from scheduler.api.pods.pod import Pod
from scheduler.api.read_only import plain
from scheduler.api.unstructured import Unstructured
from scheduler.api.wording.text import encodable_within
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.cycle_events import Call
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.extenders import ExtenderError
from scheduler.groups.reservations.reservation import Reservation
from scheduler.replay.trace.extender_answers import WrittenAnswer

FORMAT: Final = 1
"""Another number means that older programs cannot read it."""

MARK: Final = b'{"loadmasterTrace":'

Checksum: Final = partial(blake2b, digest_size=16)
"""Of the lines of a trace, with their ends. It reveals edits and damage, but no forgery."""

Number = Annotated[int, msgspec.Meta(ge=0, le=10**11)]
"""Of milliseconds, nodes, attempts. A clock would not bear more."""

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
    """The start of the next search, if it looks at a part of the nodes."""

    feature_gates: dict[str, bool] = {}
    """Those that were set."""

    bindings: Number = 0
    """Bindings under way at the start. Plugins' memory of them is not in the trace."""

    raw_pods: bool = False
    """Whether pods are in it as the API server sent them, too, for plugins that read it."""


class Decision(msgspec.Struct, array_like=True, frozen=True):
    """A decision, without anything that depends on the speed of the machine or on earlier decisions."""

    node: str = ""
    evaluated: int = 0
    feasible: int = 0
    scores: int = 0
    """A checksum of each node's distance to the best total score; 0 if there was no choice."""

    message: str = ""
    plugins: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    nominated: str | None = ""
    """The node that preemption nominated; None: the nomination stays as it is."""

    error: str = ""


NOTHING: Final = msgspec.Raw()
"""Written as nothing. Where a line may have a pod: the version that the watch has shown."""


class _Line(msgspec.Struct, array_like=True):
    milliseconds: Number


class Layout(_Line, tag="layout"):
    """The rows of the node table."""

    names: list[str]
    free: list[Number]
    """Rows without a node, in the order in which they became free."""


class SetNode(_Line, tag="node"):
    node: msgspec.Raw


class RemoveNode(_Line, tag="node gone"):
    name: str


class Quarantine(_Line, tag="rest"):
    """No pod is placed on the node until EndQuarantine."""

    name: str


class EndQuarantine(_Line, tag="no rest"):
    name: str


class SetObject(_Line, tag="object"):
    resource: str
    content: msgspec.Raw


class RemoveObject(_Line, tag="object gone"):
    resource: str
    uid: str


class SetPod(_Line, tag="pod"):
    """The watch has shown a version of a pod."""

    pod: msgspec.Raw


class RemovePod(_Line, tag="pod gone"):
    uid: str


class Count(_Line, tag="count"):
    """A pod counts on its node: the watch has confirmed it, or it is assumed at the start."""

    uid: str
    is_assumed: bool
    pod: msgspec.Raw = NOTHING


class Uncount(_Line, tag="uncount"):
    uid: str


class Nominate(_Line, tag="nominate"):
    uid: str
    node_name: str
    pod: msgspec.Raw = NOTHING


class EndNomination(_Line, tag="no nomination"):
    uid: str


class Preempt(_Line, tag="preempt"):
    """Others are leaving for a pod, or group, and the space that they free is kept for it."""

    uid: str
    pods: tuple[str, ...]
    """UIDs, as those of its victims."""

    victims: tuple[str, ...]


class Reserve(_Line, tag="reserve"):
    """Nodes are reserved for a group of pods, and no others."""

    reservation: Reservation


class EndReservation(_Line, tag="no reservation"):
    """No nodes are reserved."""


class Begin(_Line, tag="begin"):
    """The state at the start is whole."""


class Decide(_Line, tag="decide"):
    """A pod was decided about, without extenders."""

    uid: str
    profile: str
    attempt: Number
    start: Number
    """The start of the search, if it looked at a part of the nodes."""
    decision: Decision
    pod: msgspec.Raw = NOTHING


class AskExtenders(_Line, tag="asking"):
    """An attempt began that asks extenders: Search and ExtenderAnswer lines follow, then Decided or GiveUp."""

    uid: str
    profile: str
    attempt: Number


class Search(_Line, tag="search"):
    """An attempt with extenders searched nodes."""

    uid: str
    start: Number
    pod: msgspec.Raw = NOTHING


class ExtenderAnswer(_Line, tag="extenders"):
    uid: str
    answer: WrittenAnswer


class Decided(_Line, tag="decided"):
    """An attempt with extenders ended in a decision."""

    uid: str
    decision: Decision


class GiveUp(_Line, tag="gave up"):
    """An attempt with extenders ended without a decision."""

    uid: str


class DecideGroup(_Line, tag="group"):
    """A decision about a group of pods begins. The outcomes follow, in the same order."""

    profile: str
    start: Number
    """The start of the first search, if searches look at a part of the nodes."""
    members: list[tuple[str, Number]]
    """UID and number of the attempt, in the order in which they are decided."""
    own: dict[str, msgspec.Raw] = {}
    """UID → pod, where it is another version than the watch has shown."""


class GroupSteps(_Line, tag="steps"):
    """So many steps of the last group's decision were taken when the next line happened."""

    count: Number


class DecideMember(_Line, tag="member"):
    """The outcome for one member of the last group."""

    uid: str
    decision: Decision


class Assume(_Line, tag="assume"):
    uid: str
    node_name: str


class PreBind(_Line, tag="prebind"):
    """PreBind plugins began to prepare a pod."""

    uid: str


class Bound(_Line, tag="bound"):
    uid: str


class Undo(_Line, tag="undo"):
    """An attempt failed after its pod was assumed."""

    uid: str


class Answer(_Line, tag="answer"):
    """A plugin's call to the API server, or to another server, was answered."""

    call: Call
    status: int | None
    """Of an error; None if there was none."""
    content: msgspec.Raw = NOTHING
    """The answer, or the error's message."""


class End(_Line, tag="end"):
    why: str


class Sum(_Line, tag="sum"):
    checksum: str


Line: TypeAlias = (
    Layout | SetNode | RemoveNode | Quarantine | EndQuarantine | SetObject | RemoveObject | SetPod | RemovePod
    | Count | Uncount | Nominate | EndNomination | Preempt | Reserve | EndReservation | Begin | Decide | AskExtenders
    | Search | ExtenderAnswer | Decided | GiveUp | DecideGroup | GroupSteps | DecideMember | Assume | PreBind | Bound
    | Undo | Answer | End | Sum
)  # fmt: skip

decode_line: Final = Decoder[Line](Line).quick


def kind_of(line: Line | type[Line]) -> str:
    return str(line.__struct_config__.tag)


def decision_of(state: CycleState, decision: Placed | Unplaced | BaseException) -> Decision:
    if isinstance(decision, Placed):
        lacking = _lacking(state)
        return Decision(decision.node_name, decision.evaluated_nodes, decision.feasible_nodes, lacking)
    if isinstance(decision, Unplaced):
        plugins, pending = (sorted(names) for names in (decision.unschedulable_plugins, decision.pending_plugins))
        nominated = decision.nominated_node_name
        return Decision(message=decision.message, plugins=tuple(plugins), pending=tuple(pending), nominated=nominated)
    kind = ExtenderError if isinstance(decision, ExtenderError) else type(decision)  # how it failed is not repeated
    return Decision(error=f"{kind.__name__}: {decision}")


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


def encode(line: Line) -> bytes:
    """Return a line as JSON, with its newline."""
    text = _encoded(line)
    return (text[:-2] + b"]\n") if text.endswith(b",]") else text + b"\n"  # its last field is NOTHING


def written(obj: Any) -> msgspec.Raw:
    """An object as a line has it: without the fields that were derived of it; a pod with its JSON, if that is kept."""
    fields = _fields_of(obj.__class__)
    content = obj if fields is None else {name: getattr(obj, attribute) for name, attribute in fields.items()}
    if isinstance(obj, Pod) and obj.raw_json:
        content["(raw)"] = obj.raw_json
    return msgspec.Raw(_encoded(content))


def _encoded(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:  # half a surrogate pair
        plain_value = msgspec.to_builtins(value, builtin_types=(msgspec.Raw,), enc_hook=_content)
        return _encoder.encode(encodable_within(plain_value))


@cache
def _fields_of(kind: type[Any]) -> Mapping[str, str] | None:
    """Return name in JSON → attribute; None for types that are written as they are."""
    fields = msgspec.structs.fields(kind) if issubclass(kind, msgspec.Struct) else ()
    own = {field.encode_name: field.name for field in fields if not field.encode_name.startswith("(")}
    return own if len(own) < len(fields) else None


def _content(value: Any) -> Any:
    if isinstance(value, Unstructured):
        return {"metadata": value.metadata, **value.content}
    return plain(value)


_encoder: Final = msgspec.json.Encoder(enc_hook=_content)
