"""Snapshots among the files of a simulation."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.framework.errors import ConfigError
from scheduler.simulate import cluster as clusters
from scheduler.simulate.cluster import read_cluster

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "1"},
    "spec": {"containers": [{"name": "c"}]},
}
ODD = {**POD, "metadata": {**POD["metadata"], "name": "odd", "uid": "2"}, "spec": {"overhead": {"cpu": "many"}}}
REPLICA_SET: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "big", "namespace": "shop", "uid": "3", "resourceVersion": "1"},
    "spec": {
        "replicas": 1,
        "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9"}}}]}},
    },
}
LIMITS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "small", "namespace": "shop", "uid": "4", "resourceVersion": "1"},
    "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
}


def a_snapshot(path: Path, *items: Any, left_out: Any = (), **header: Any) -> str:
    snapshot = {"version": 1, "loadmaster": "9.9.9", **header}
    whole = {"apiVersion": "v1", "kind": "List", "snapshot": snapshot, "items": items, "leftOut": left_out}
    path.write_bytes(gzip.compress(json.dumps(whole, separators=(",", ":")).encode()))
    return str(path)


def test_what_was_left_out_is_noted(tmp_path: Path) -> None:
    path = a_snapshot(tmp_path / "s", POD, left_out=[{"kind": "Job", "why": "forbidden"}])

    assert f"{path}:1: left out of the snapshot: Job: forbidden" in read_cluster([path]).notes


def test_an_odd_object_of_a_snapshot_costs_itself_and_many_are_summed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "MAX_NOTED", 1)
    odd = [{**ODD, "metadata": {**ODD["metadata"], "name": f"odd-{i}", "uid": f"odd-{i}"}} for i in range(3)]
    cluster = read_cluster([a_snapshot(tmp_path / "s", POD, *odd)])

    assert [pod.name for pod in cluster.pods] == ["web"]
    assert any("items[1]: spec.overhead[cpu]: Invalid value" in note for note in cluster.notes)
    assert "and 2 more problems within snapshots" in cluster.notes


def test_pods_that_admission_refuses_are_missing_in_the_cluster_too(tmp_path: Path) -> None:
    path = a_snapshot(tmp_path / "s", POD, REPLICA_SET, LIMITS)
    cluster = read_cluster([path])

    assert [pod.name for pod in cluster.pods] == ["web"]
    assert any("its pods are forbidden: maximum cpu usage per Container is 1" in note for note in cluster.notes)


def test_what_is_wrong_in_other_files_is_an_error_still(tmp_path: Path) -> None:
    path = a_snapshot(tmp_path / "s", POD, ODD)
    other = tmp_path / "other.yaml"
    other.write_text("kind: Pod\nmetadata: {name: p}\nspec: {overhead: {cpu: many}}\n")

    with pytest.raises(ConfigError) as caught:
        read_cluster([path, str(other)])
    (problem,) = caught.value.problems
    assert problem.startswith(f"{other}:3: spec.overhead[cpu]")


UNREADABLE = "no snapshot that can be read: Expected"


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ({"version": 2}, "a snapshot of version 2, written by Loadmaster 9.9.9: this Loadmaster reads version 1"),
        ({"version": 0, "loadmaster": ""}, "a snapshot of version 0: this Loadmaster reads version 1"),
        ({"version": "one"}, f"{UNREADABLE} `int`, got `str` - at `$.snapshot.version`"),
        ({"server": 7}, f"{UNREADABLE} `str`, got `int` - at `$.snapshot.server`"),
    ],
)
def test_a_snapshot_that_cannot_be_read_is_one_sentence(tmp_path: Path, header: Any, problem: str) -> None:
    path = a_snapshot(tmp_path / "s", POD, **header)

    with pytest.raises(ConfigError) as caught:
        read_cluster([path])

    assert caught.value.problems == (f"{path}:1: {problem}",)


def test_half_a_snapshot_is_no_snapshot(tmp_path: Path) -> None:
    path = Path(a_snapshot(tmp_path / "s", POD))
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(ConfigError, match="packed by gzip, but its end is missing"):
        read_cluster([str(path)])


def test_a_list_of_somebody_else_is_no_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"snapshot": None, "apiVersion": "v1", "kind": "List", "items": [POD]}))

    assert [pod.name for pod in read_cluster([str(path)]).pods] == ["web"]
