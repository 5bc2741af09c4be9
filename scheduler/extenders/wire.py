"""Requests to extenders and their answers, as in k8s.io/kube-scheduler/extender/v1 at v0.36.3.

The names of its fields are as Go spells them, with a capital, since they have no tags; those of pods and nodes are the
API's. A body is made of pieces, as nodes may be many megabytes: whole objects are passed on as they came.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from scheduler.api.decoding import QUICK_ERRORS, Decoder
from scheduler.extenders.go_json import (
    INT64,
    STRING,
    BadJson,
    Map,
    Pointer,
    Slice,
    Struct,
    decode,
    first_value,
)

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


_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Score(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="pascal", gc=False):
    """HostPriority."""

    host: str
    score: _Int64


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


# Results. Each raises BadJson.

_NODE: Final = Struct("Node", "v1.Node", metadata=Struct("ObjectMeta", "v1.ObjectMeta", name=STRING))
_FAILED_NODES: Final = Map(STRING, "v1.FailedNodesMap")
_FILTER_RESULT: Final = Struct(
    "ExtenderFilterResult",
    "v1.ExtenderFilterResult",
    Nodes=Pointer(Struct("NodeList", "v1.NodeList", items=Slice(_NODE))),
    NodeNames=Pointer(Slice(STRING)),
    FailedNodes=_FAILED_NODES,
    FailedAndUnresolvableNodes=_FAILED_NODES,
    Error=STRING,
)
_PRIORITIES: Final = Slice(Struct("HostPriority", "v1.HostPriority", Host=STRING, Score=INT64), "v1.HostPriorityList")
_META_VICTIMS: Final = Struct(
    "MetaVictims",
    "v1.MetaVictims",
    Pods=Slice(Pointer(Struct("MetaPod", "v1.MetaPod", UID=STRING))),
    NumPDBViolations=INT64,
)
_PREEMPTION_RESULT: Final = Struct(
    "ExtenderPreemptionResult", "v1.ExtenderPreemptionResult", NodeNameToMetaVictims=Map(Pointer(_META_VICTIMS))
)
_BINDING_RESULT: Final = Struct("ExtenderBindingResult", "v1.ExtenderBindingResult", Error=STRING)


def filter_result(body: bytes) -> FilterResult:
    found = decode(body, _FILTER_RESULT)
    nodes = found["Nodes"]
    return FilterResult(
        None if nodes is None else [node["metadata"]["name"] for node in nodes["items"]],
        found["NodeNames"],
        found["FailedNodes"],
        found["FailedAndUnresolvableNodes"],
        found["Error"],
    )


def priorities(body: bytes) -> Sequence[Score]:
    """HostPriorityList."""
    value = first_value(body)
    quick = _quick_priorities(value)
    return [Score(each["Host"], each["Score"]) for each in decode(value, _PRIORITIES)] if quick is None else quick


def preemption_result(body: bytes) -> dict[str, MetaVictims]:
    """Node → the victims that are to go there."""
    by_node = decode(body, _PREEMPTION_RESULT)["NodeNameToMetaVictims"]
    return {name: _meta_victims(name, victims) for name, victims in by_node.items()}


def binding_error(body: bytes) -> str:
    """The error in an ExtenderBindingResult; empty if there is none."""
    error: str = decode(body, _BINDING_RESULT)["Error"]
    return error


def _meta_victims(node: str, victims: Mapping[str, Any] | None) -> MetaVictims:
    if victims is None:
        raise BadJson(f"no victims, but null, for node {node!r}")  # kube-scheduler panics
    if None in victims["Pods"]:
        raise BadJson(f"no victim, but null, on node {node!r}")
    return MetaVictims([pod["UID"] for pod in victims["Pods"]], victims["NumPDBViolations"])


class _LowerScore(Score, frozen=True, rename="lower"):
    """In small letters."""

    host: str
    score: _Int64


_decoders: Final[tuple[Callable[[bytes], Sequence[Score]], ...]] = (
    Decoder[list[Score]](list[Score]).quick,
    Decoder[list[_LowerScore]](list[_LowerScore]).quick,
)


def _quick_priorities(value: bytes) -> Sequence[Score] | None:
    """Read a list as nearly everybody writes it; None for any other."""
    for read in _decoders:
        try:
            return read(value)
        except QUICK_ERRORS:
            continue
    return None
