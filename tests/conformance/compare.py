"""Compare two verdicts on the same cluster, node by node."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scheduler.api.quantities.quantity import parse_quantity

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the two do not agree on."""

    where: str
    expected: object
    actual: object

    def __str__(self) -> str:
        return f"{self.where}\n    kube-scheduler: {self.expected!r}\n    Loadmaster:     {self.actual!r}"


def differences(expected: Json, actual: Json) -> list[Difference]:
    """What `actual`, ours, says otherwise than `expected`, the oracle's."""
    if expected.get("error") or actual.get("error"):
        return list(unequal("error", expected.get("error"), actual.get("error")))
    theirs, ours = by_pod(expected), by_pod(actual)
    found = list(unequal("pods judged", sorted(theirs), sorted(ours)))
    for key in theirs.keys() & ours.keys():
        found += compare_pod(key, theirs[key], ours[key])
    return sorted(found, key=lambda difference: difference.where)


def by_pod(verdict: Json) -> dict[str, Json]:
    """The verdicts by namespace and name."""
    return {f"{pod['namespace']}/{pod['name']}": pod for pod in verdict["pods"]}


def compare_pod(key: str, expected: Json, actual: Json) -> Iterator[Difference]:
    """Any of the best nodes will do: kube-scheduler draws lots among them."""
    yield from unequal(f"{key} gated", expected.get("gated"), actual.get("gated"))
    if not {expected["message"], actual["message"]} <= errors(expected):
        yield from unequal(f"{key} message", steady(expected["message"]), steady(actual["message"]))
    yield from compare_preemption(key, expected, actual)
    if actual["node"] not in (expected["best"] or [None]):
        yield Difference(f"{key} node", expected["best"] or None, actual["node"])
    theirs, ours = expected["nodes"], actual["nodes"]
    yield from unequal(f"{key} nodes judged", sorted(theirs), sorted(ours))
    for name in theirs.keys() & ours.keys():
        yield from compare_node(f"{key} on {name}", theirs[name], ours[name])


def compare_preemption(key: str, expected: Json, actual: Json) -> Iterator[Difference]:
    """Any of the choices will do: kube-scheduler looks at the nodes in an order of its own, and draws lots."""
    node, victims = actual["nominatedNode"], sorted(actual["victims"])
    choices = expected.get("preemptions")
    if not choices:
        yield from unequal(f"{key} nominatedNode", expected["nominatedNode"], node)
        yield from unequal(f"{key} victims", sorted(expected["victims"]), victims)
    elif {"node": node, "victims": victims} not in choices:
        yield Difference(f"{key} preemption", choices, {"node": node, "victims": victims})


def compare_node(where: str, expected: Json, actual: Json) -> Iterator[Difference]:
    """The order of reasons is none in kube-scheduler either: NodeResourcesFit walks a map."""
    yield from unequal(f"{where}: code", expected["code"], actual["code"])
    yield from unequal(f"{where}: plugin", expected.get("plugin"), actual.get("plugin"))
    yield from unequal(f"{where}: reasons", sorted(expected.get("reasons") or ()), sorted(actual.get("reasons") or ()))
    scores, our_scores = expected.get("scores") or {}, actual.get("scores") or {}
    for plugin in sorted(scores.keys() | our_scores.keys()):
        yield from unequal(f"{where}: score of {plugin}", scores.get(plugin), our_scores.get(plugin))
    yield from unequal(f"{where}: total", expected.get("total"), actual.get("total"))
    if "claims" in expected and "claims" in actual:  # ours are left out where the plugin does not score
        yield from unequal(f"{where}: claims", plain(expected["claims"]), plain(actual["claims"]))
    if "amounts" in actual:
        yield from unequal(f"{where}: amounts", expected.get("amounts"), actual["amounts"])
    if "extended" in expected and "extended" in actual:
        yield from unequal(f"{where}: extended", plain(expected["extended"]), plain(actual["extended"]))


def unequal(where: str, expected: object, actual: object) -> Iterator[Difference]:
    """A difference, if there is one."""
    if expected != actual:
        yield Difference(where, expected, actual)


def plain(allocation: Any) -> Any:
    """Allocations without what is drawn by lot, what is empty, and how a quantity is spelled."""
    if isinstance(allocation, dict):
        return {
            key: {name: parse_quantity(value) for name, value in part.items()}
            if key == "consumedCapacity"
            else plain(part)
            for key, part in allocation.items()
            if key != "shareID" and part not in (None, {}, [])
        }
    return [plain(part) for part in allocation] if isinstance(allocation, list) else allocation


def errors(verdict: Json) -> set[str]:
    """What failed on single nodes. Any of it ends the attempt: which one depends on the node that is asked first."""
    nodes = verdict["nodes"].values()
    return {reason for node in nodes if node["code"] == "Error" for reason in node.get("reasons") or ()}


def steady(message: str) -> str:
    """A message without what depends on which node kube-scheduler happens to ask first."""
    message = re.sub(r"invalid score -?\d+", "invalid score", message)
    message = re.sub(r"(a potential placement for pod) on node \S+, preempting \d+ victims", r"\1", message)
    return re.sub(r"preemption: \[(running .*)\]", in_order, message)


def in_order(errors: re.Match[str]) -> str:
    """What failed in a preemption's dry runs, sorted: they run at the same time."""
    return "preemption: " + " | ".join(sorted(re.split(r", (?=running \")", errors[1])))
