"""Requests to extenders and their answers, as in k8s.io/kube-scheduler/extender/v1 at v0.36.3.

The names of its fields are as Go spells them, with a capital, since they have no tags; those of pods and nodes are the
API's. A body is made of pieces, as nodes may be many megabytes: whole objects are passed on as they came.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec

from scheduler.api.decoding import Decoder, Unreadable, convert

T = TypeVar("T")

Body = Sequence[bytes]
"""JSON in pieces."""

_encode = msgspec.json.encode


class FilterResult(NamedTuple):
    """ExtenderFilterResult."""

    nodes: list[str] | None
    """The names of the returned node objects; None if there is no such list."""
    node_names: list[str] | None
    failed: dict[str, str]
    """Node → message."""
    failed_for_good: dict[str, str]
    """The same where preemption would not help."""
    error: str


_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Score(msgspec.Struct, frozen=True, gc=False):
    """HostPriority."""

    host: str = ""
    score: _Int64 = 0


class MetaVictims(NamedTuple):
    """The victims on a node by UID."""

    uids: list[str]
    violations: int


# Arguments.


def arguments(pod: bytes, nodes: Sequence[bytes] | None, node_names: Sequence[str] | None) -> Body:
    """ExtenderArgs; `pod` and `nodes` as JSON."""
    names = b"null" if node_names is None else _encode(node_names)
    if nodes is None:
        return [b'{"Pod":', pod, b',"Nodes":null,"NodeNames":', names, b"}"]
    return [b'{"Pod":', pod, b',"Nodes":{"metadata":{},"items":[', *_joined(nodes), b']},"NodeNames":', names, b"}"]


def preemption_arguments(pod: bytes, victims: Mapping[str, tuple[Sequence[bytes], int]]) -> Body:
    """ExtenderPreemptionArgs with whole pods: node → victims as JSON, violated budgets."""
    nodes = [
        b"%b:%b" % (_encode(name), b'{"Pods":[%b],"NumPDBViolations":%d}' % (b",".join(pods), violations))
        for name, (pods, violations) in sorted(victims.items())
    ]
    return [b'{"Pod":', pod, b',"NodeNameToVictims":{', *_joined(nodes), b'},"NodeNameToMetaVictims":null}']


def meta_preemption_arguments(pod: bytes, victims: Mapping[str, MetaVictims]) -> Body:
    """ExtenderPreemptionArgs with UIDs."""
    nodes = {
        name: {"Pods": [{"UID": uid} for uid in each.uids], "NumPDBViolations": each.violations}
        for name, each in sorted(victims.items())
    }
    return [b'{"Pod":', pod, b',"NodeNameToVictims":null,"NodeNameToMetaVictims":', _encode(nodes), b"}"]


def binding_arguments(name: str, namespace: str, uid: str, node: str) -> Body:
    """ExtenderBindingArgs."""
    return [_encode({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node})]


def _joined(parts: Iterable[bytes]) -> Iterator[bytes]:
    for place, part in enumerate(parts):
        if place:
            yield b","
        yield part


# Results. Each raises Unreadable. As in Go, the fields of a struct are found whatever their case, and null is empty.


class _Meta(msgspec.Struct):
    name: str = ""


class _Node(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _NodeList(msgspec.Struct):
    items: list[_Node] | None = None


_struct: Final = Decoder[dict[str, msgspec.Raw] | None](dict[str, msgspec.Raw] | None)
_nodes: Final = Decoder[_NodeList | None](_NodeList | None)
_names: Final = Decoder[list[str] | None](list[str] | None)
_messages: Final = Decoder[dict[str, str] | None](dict[str, str] | None)
_message: Final = Decoder[str | None](str | None)
_scores: Final = Decoder[list[dict[str, Any]] | None](list[dict[str, Any]] | None)
_victims: Final = Decoder[dict[str, dict[str, msgspec.Raw]] | None](dict[str, dict[str, msgspec.Raw]] | None)
_pods: Final = Decoder[list[dict[str, Any]] | None](list[dict[str, Any]] | None)
_number: Final = Decoder[_Int64 | None](_Int64 | None)

_NULL: Final = msgspec.Raw(b"null")


def filter_result(body: bytes) -> FilterResult:
    fields = _fields(body)
    nodes = _field(fields, "Nodes", _nodes)
    return FilterResult(
        None if nodes is None else [node.metadata.name for node in nodes.items or ()],
        _field(fields, "NodeNames", _names),
        _messages_in(fields, "FailedNodes"),
        _messages_in(fields, "FailedAndUnresolvableNodes"),
        _field(fields, "Error", _message) or "",
    )


def priorities(body: bytes) -> Sequence[Score]:
    """HostPriorityList."""
    return convert([_folded(each) for each in _scores.decode(body) or ()], list[Score])


def preemption_result(body: bytes) -> dict[str, MetaVictims]:
    """Node → the victims that are to go there."""
    by_node = _field(_fields(body), "NodeNameToMetaVictims", _victims) or {}
    return {name: _meta_victims(victims) for name, victims in by_node.items()}


def binding_error(body: bytes) -> str:
    """The error in an ExtenderBindingResult; empty if there is none."""
    return _field(_fields(body), "Error", _message) or ""


class _Victim(msgspec.Struct):
    uid: str = ""


def _meta_victims(members: Mapping[str, msgspec.Raw]) -> MetaVictims:
    fields = _folded(members)
    pods = convert([_folded(each) for each in _field(fields, "Pods", _pods) or ()], list[_Victim])
    return MetaVictims([pod.uid for pod in pods], _field(fields, "NumPDBViolations", _number) or 0)


def _fields(body: bytes) -> dict[str, msgspec.Raw]:
    return _folded(_struct.decode(body) or {})


def _field(fields: Mapping[str, msgspec.Raw], name: str, decoder: Decoder[T]) -> T:
    try:
        return decoder.decode(fields.get(name.lower(), _NULL))
    except Unreadable as error:
        raise Unreadable(f"{name}: {error}") from error


def _messages_in(fields: Mapping[str, msgspec.Raw], name: str) -> dict[str, str]:
    return _field(fields, name, _messages) or {}


def _folded(members: Mapping[str, T]) -> dict[str, T]:
    return {name.lower(): value for name, value in members.items()}
