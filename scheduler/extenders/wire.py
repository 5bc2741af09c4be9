"""What is sent to extenders and what they answer, in the words of k8s.io/kube-scheduler/extender/v1 at v0.36.3.

The names of its fields are as Go spells them, with a capital, since they have no tags; those of pods and nodes are the
API's. A body is made of pieces, as nodes may be many megabytes: whole objects are passed on as they came.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final, NamedTuple, cast

import msgspec

from scheduler.api.decoding import QUICK_ERRORS, Decoder
from scheduler.extenders import go_json
from scheduler.extenders.go_json import BadJson

Body = Sequence[bytes]
"""JSON in pieces."""

_FILTER_RESULT: Final = "v1.ExtenderFilterResult"
_PREEMPTION_RESULT: Final = "v1.ExtenderPreemptionResult"
_BINDING_RESULT: Final = "v1.ExtenderBindingResult"

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


class _Meta(msgspec.Struct, gc=False):
    name: str | None = None


class _Node(msgspec.Struct, gc=False):
    metadata: _Meta | None = None


def filter_result(body: bytes) -> FilterResult:
    fields = go_json.fields_of(go_json.first_value(body), _FILTER_RESULT)
    names: list[str | None] | None = go_json.read(
        fields.get("nodenames"), list[str | None], None, "ExtenderFilterResult.NodeNames of type []string"
    )
    nodes = fields.get("nodes")
    return FilterResult(
        None if nodes is None or bytes(nodes) == b"null" else _names_of(nodes),
        [name or "" for name in names] if names and None in names else cast("list[str] | None", names),
        _messages(fields.get("failednodes"), "ExtenderFilterResult.FailedNodes of type map[string]string"),
        _messages(
            fields.get("failedandunresolvablenodes"),
            "ExtenderFilterResult.FailedAndUnresolvableNodes of type map[string]string",
        ),
        go_json.read(fields.get("error"), str, "", "ExtenderFilterResult.Error of type string"),
    )


def priorities(body: bytes) -> Sequence[Score]:
    """HostPriorityList."""
    value = go_json.first_value(body)
    quick = _quick_priorities(value)
    if quick is not None:
        return quick
    entries = go_json.items_of(value, "v1.HostPriorityList")
    found = []
    for entry in entries:
        fields = go_json.fields_of(entry, "v1.HostPriority")
        host = go_json.read(fields.get("host"), str, "", "HostPriority.Host of type string")
        found.append(Score(host, go_json.int64(fields.get("score"), "HostPriority.Score")))
    return found


def preemption_result(body: bytes) -> dict[str, MetaVictims]:
    """Node → the victims that are to go there."""
    fields = go_json.fields_of(go_json.first_value(body), _PREEMPTION_RESULT)
    place = "ExtenderPreemptionResult.NodeNameToMetaVictims of type map[string]*v1.MetaVictims"
    by_node: dict[str, msgspec.Raw] = go_json.read(
        fields.get("nodenametometavictims"), dict[str, msgspec.Raw], {}, place
    )
    return {name: _meta_victims(name, victims) for name, victims in by_node.items()}


def binding_error(body: bytes) -> str:
    """What ExtenderBindingResult says went wrong; empty if nothing did."""
    fields = go_json.fields_of(go_json.first_value(body), _BINDING_RESULT)
    return go_json.read(fields.get("error"), str, "", "ExtenderBindingResult.Error of type string")


def _names_of(nodes: msgspec.Raw) -> list[str]:
    items = go_json.fields_of(nodes, "v1.NodeList").get("items")
    found: list[_Node | None] = go_json.read(items, list[_Node | None], [], "NodeList.Nodes.items of type []v1.Node")
    return [(node.metadata.name if node and node.metadata else None) or "" for node in found]


def _messages(value: msgspec.Raw | None, place: str) -> dict[str, str]:
    found: dict[str, str | None] = go_json.read(value, dict[str, str | None], {}, place)
    return {name: message or "" for name, message in found.items()}


def _meta_victims(node: str, value: msgspec.Raw) -> MetaVictims:
    if bytes(value) == b"null":
        raise BadJson(f"no victims, but null, for node {node!r}")  # kube-scheduler panics
    fields = go_json.fields_of(value, "v1.MetaVictims")
    pods: list[msgspec.Raw] = go_json.read(
        fields.get("pods"), list[msgspec.Raw], [], "MetaVictims.NodeNameToMetaVictims.Pods of type []*v1.MetaPod"
    )
    uids = []
    for pod in pods:
        if bytes(pod) == b"null":
            raise BadJson(f"no victim, but null, on node {node!r}")
        uids.append(
            go_json.read(
                go_json.fields_of(pod, "v1.MetaPod").get("uid"),
                str,
                "",
                "MetaPod.NodeNameToMetaVictims.Pods.UID of type string",
            )
        )
    return MetaVictims(uids, go_json.int64(fields.get("numpdbviolations"), "MetaVictims.NumPDBViolations"))


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
    for decode in _decoders:
        try:
            return decode(value)
        except QUICK_ERRORS:
            continue
    return None
