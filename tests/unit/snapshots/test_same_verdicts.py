"""Pods go where they went, reduced to what a snapshot keeps, and with other names."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

import pytest

import plugins
from scheduler.config.documents import Document
from scheduler.config.load import load_config
from scheduler.simulate.cluster import cluster_of
from scheduler.simulate.engine import simulate
from scheduler.snapshots.aliases import Aliases
from scheduler.snapshots.kept_fields import KINDS
from scheduler.snapshots.reduction import Reduction
from tests.conformance.generate import generate

Json = dict[str, Any]
BY_LABEL = {(kind.api_version, kind.name): kind for kind in KINDS}


def a_cluster(seed: int) -> list[Json]:
    """A random cluster as an API server has it, with the objects in the order of snapshots; all pods are ours.

    Without pods that compete for the devices of several pools: these are taken by name, and names change.
    """
    objects = []
    for number, each in enumerate(generate(seed)["objects"]):
        if each["kind"] == "Pod" and any(_is_contested(claim) for claim in each["spec"].get("resourceClaims", ())):
            continue
        metadata = {"resourceVersion": "1", "uid": f"uid-{number}", **each["metadata"]}
        whole = with_uids({**each, "metadata": metadata})
        if each["kind"] == "Pod":
            whole["spec"] = {**each["spec"], "schedulerName": "loadmaster"}
        objects.append(whole)
    order = [kind.name for kind in KINDS]
    return sorted(objects, key=lambda each: order.index(each["kind"]) if each["kind"] in order else len(order))


def _is_contested(claim: Json) -> bool:
    return str(claim.get("resourceClaimName")).startswith("newer-")


def with_uids(value: Any) -> Any:
    """The same with UIDs as an API server makes them."""
    if isinstance(value, list):
        return [with_uids(each) for each in value]
    if isinstance(value, dict):
        uid = {"uid": str(uuid5(NAMESPACE_OID, value["uid"]))} if isinstance(value.get("uid"), str) else {}
        return {key: with_uids(each) for key, each in value.items()} | uid
    return value


def reduced(objects: list[Json], aliases: Aliases | None = None) -> list[Json]:
    reduction = Reduction(aliases)
    return [
        json.loads(reduction.reduced(json.dumps(each).encode(), BY_LABEL[each["apiVersion"], each["kind"]]))
        for each in objects
    ]


def verdicts(objects: list[Json]) -> Sequence[Mapping[str, Any]]:
    """What becomes of the pods that wait, in their order."""
    problems: list[str] = []
    cluster = cluster_of([Document("f", each) for each in objects], problems)
    config = load_config(None, plugins.IN_TREE)
    return simulate(cluster.nodes, cluster.pods, config, plugins.IN_TREE, cluster.others, explain=True)["pods"]


def nodes_of(objects: list[Json]) -> list[str]:
    return [each["metadata"]["name"] for each in objects if each["kind"] == "Node"]


CLUSTERS: Final = int(os.environ.get("ANONYMISED_CLUSTERS", "60"))


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_pods_go_where_they_went(seed: int) -> None:
    objects = a_cluster(seed)
    kept, other = reduced(objects), reduced(objects, Aliases())
    expected = verdicts(objects)

    assert verdicts(kept) == expected
    names = dict(zip(nodes_of(other), nodes_of(objects), strict=True))
    for ours, theirs in zip(verdicts(other), expected, strict=True):
        assert names.get(ours["node"]) == theirs["node"]
        assert len(ours["victims"]) == len(theirs["victims"])
        assert {names[node]: in_short(told) for node, told in ours["nodes"].items()} == {
            node: in_short(told) for node, told in theirs["nodes"].items()
        }


def in_short(verdict: Mapping[str, Any]) -> Mapping[str, Any]:
    """A verdict without its reasons, in which names may be."""
    return {key: value for key, value in verdict.items() if key != "reasons"}
