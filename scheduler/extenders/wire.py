"""Requests to extenders and their answers, as in k8s.io/kube-scheduler/extender/v1 at v0.36.3.

Field names are Go's, capitalised, since its structs have no tags; those of pods and nodes are the API's. A body is made
of pieces, as nodes may take many megabytes: whole objects are passed on as they came.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final, NamedTuple, TypeVar

import msgspec

from scheduler.api.decoding import Decoder, Unreadable

T = TypeVar("T")
Body = Sequence[bytes]
"""JSON in pieces."""

_encode = msgspec.json.encode


class FilterResult(NamedTuple):
    """ExtenderFilterResult."""

    nodes: list[str] | None
    """The names of the returned node objects; None if there is no such list."""
    node_names: list[str] | None
    failed: Mapping[str, str]
    """Node → message."""
    failed_for_good: Mapping[str, str]
    """The same where preemption would not help."""
    error: str


class Score(NamedTuple):
    """HostPriority."""

    host: str
    score: int


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


# Results. Each raises Unreadable.
#
# Fields are found whatever their case, as in Go; unknown ones are left out, and null is the same as nothing.

_Fields = dict[str, msgspec.Raw]
"""An object: name in small letters → value."""

_INT64: Final = Decoder[int | None](Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None)
_TEXT: Final = Decoder[str | None](str | None)
_TEXTS: Final = Decoder[list[str | None] | None](list[str | None] | None)
_TEXT_BY_NAME: Final = Decoder[dict[str, str | None] | None](dict[str, str | None] | None)
_ITEMS: Final = Decoder[list[msgspec.Raw] | None](list[msgspec.Raw] | None)
_MEMBERS: Final = Decoder[dict[str, msgspec.Raw] | None](dict[str, msgspec.Raw] | None)


def filter_result(body: bytes) -> FilterResult:
    found = _fields(body)
    nodes = _field(found, "nodes", _MEMBERS)
    names = _field(found, "nodenames", _TEXTS)
    return FilterResult(
        None if nodes is None else [_node_name(node) for node in _field(_folded(nodes), "items", _ITEMS) or ()],
        None if names is None else [name or "" for name in names],
        _messages(found, "failednodes"),
        _messages(found, "failedandunresolvablenodes"),
        _field(found, "error", _TEXT) or "",
    )


def priorities(body: bytes) -> list[Score]:
    """HostPriorityList."""
    each = map(_fields, _ITEMS.decode(body) or ())
    return [Score(_field(fields, "host", _TEXT) or "", _field(fields, "score", _INT64) or 0) for fields in each]


def preemption_result(body: bytes) -> dict[str, MetaVictims]:
    """Node → the victims that are to go there."""
    by_node = _field(_fields(body), "nodenametometavictims", _MEMBERS) or {}
    return {name: _meta_victims(name, victims) for name, victims in by_node.items()}


def binding_error(body: bytes) -> str:
    """The error in an ExtenderBindingResult; empty if there is none."""
    return _field(_fields(body), "error", _TEXT) or ""


def _meta_victims(node: str, value: msgspec.Raw) -> MetaVictims:
    """kube-scheduler panics if a victim is null, or there are none, but null."""
    victims = _MEMBERS.decode(value)
    if victims is None:
        raise Unreadable(f"no victims, but null, for node {node!r}")
    found = _folded(victims)
    pods = [_MEMBERS.decode(pod) for pod in _field(found, "pods", _ITEMS) or ()]
    if None in pods:
        raise Unreadable(f"no victim, but null, on node {node!r}")
    uids = [_field(_folded(pod), "uid", _TEXT) or "" for pod in pods if pod is not None]
    return MetaVictims(uids, _field(found, "numpdbviolations", _INT64) or 0)


def _node_name(node: msgspec.Raw) -> str:
    metadata = _field(_fields(node), "metadata", _MEMBERS) or {}
    return _field(_folded(metadata), "name", _TEXT) or ""


def _messages(found: _Fields, name: str) -> dict[str, str]:
    return {node: message or "" for node, message in (_field(found, name, _TEXT_BY_NAME) or {}).items()}


def _fields(value: bytes | msgspec.Raw) -> _Fields:
    return _folded(_MEMBERS.decode(value) or {})


def _folded(members: Mapping[str, msgspec.Raw]) -> _Fields:
    return {name.casefold(): value for name, value in members.items()}


def _field(fields: _Fields, name: str, decoder: Decoder[T | None]) -> T | None:
    """Return the value of a field, None if there is none. Raises Unreadable, with the field's name."""
    value = fields.get(name)
    if value is None:
        return None
    try:
        return decoder.decode(value)
    except Unreadable as error:
        raise Unreadable(f"{name}: {error}") from error
