from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scheduler.config.documents import Document
from scheduler.framework.errors import ConfigError
from scheduler.simulate.cluster import STORED, cluster_of, read_cluster
from tests.unit.simulate.what_if.world import read

POD = {"kind": "Pod", "metadata": {"name": "p"}}
NODE = {"kind": "Node", "metadata": {"name": "n"}}


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([POD, NODE], id="one by one"),
        pytest.param([{"kind": "List", "apiVersion": "v1", "items": [POD, NODE]}], id="in a list"),
        pytest.param(
            [
                {"kind": "PodList", "items": [{"metadata": {"name": "p"}}]},
                {"kind": "NodeList", "items": [{"metadata": {"name": "n"}}]},
            ],
            id="in typed lists whose items have no kind",
        ),
        pytest.param([{"kind": "List", "items": [{"kind": "List", "items": [POD, NODE]}]}], id="in a list in a list"),
        pytest.param([POD, NODE, {"kind": "List", "items": None}], id="with an empty list"),
        pytest.param(
            [
                {**POD, "spec": {"hostNetwork": None, "containers": [{"image": None}]}, "status": None},
                {"kind": "Node", "metadata": {"name": "p"}},
                {"kind": "Pod", "metadata": {"name": "p", "namespace": "x"}},
            ],
            id="with names that are unique in their namespace and kind only, and nulls",
        ),
    ],
)
def test_pods_and_nodes_are_found(objects: list[Any]) -> None:
    cluster, problems = read(*objects)

    assert len(cluster.nodes) == 1
    assert str(cluster.pods[0]) == "default/p"
    assert not cluster.pods[0].spec.host_network
    assert problems == []


def test_other_kinds_are_counted() -> None:
    cluster, problems = read(
        {"kind": "Service"}, {"kind": "Service"}, {"kind": "Pod", "apiVersion": "metrics.k8s.io/v1", "metadata": {}}
    )

    assert Counter(each.label for each in cluster.others.left_out()) == {"Service": 2, "Pod (metrics.k8s.io/v1)": 1}
    assert problems == []


def test_a_uid_that_is_there_twice_is_refused() -> None:
    twins = ({"kind": "Pod", "metadata": {"name": name, "uid": "1"}} for name in "qr")

    assert read(POD, *twins)[1] == ["f:3: Pod uid 1 is there twice, first at f:2"]


def test_directories_are_read_in_order_with_all_below(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("b.yaml", "a.yml", "sub/c.json", ".hidden/d.yaml", "e.txt"):
        (tmp_path / name).write_text(f'{{"kind": "Node", "metadata": {{"name": "{name}"}}}}')

    cluster = read_cluster([str(tmp_path)])

    assert [node.name for node in cluster.nodes] == ["a.yml", "b.yaml", "sub/c.json"]


def test_problems_of_all_files_come_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: b: c")
    (tmp_path / "b.yaml").write_text("kind: Pod")
    (tmp_path / "c.json").write_bytes(b"\x80")
    (tmp_path / "empty").mkdir()

    with pytest.raises(ConfigError) as caught:
        read_cluster([str(tmp_path), str(tmp_path / "empty"), str(tmp_path / "missing")])

    assert [problem.replace(f"{tmp_path}/", "") for problem in caught.value.problems] == [
        "a.yaml:1:5: mapping values are not allowed in this context",
        "c.json: not a text: byte 0 is not UTF-8",
        "empty: no file in this directory ends in .yaml, .yml, .json, .yaml.gz, .yml.gz, .json.gz",
        "missing: cannot be read: No such file or directory",
        "b.yaml:1: metadata.name: Required value",
    ]


def test_a_running_cluster_may_be_newer_than_we_are() -> None:
    newer = {**POD, "metadata": {"name": "p", "resourceVersion": "1"}, "spec": {"unknown": 1}}
    problems: list[str] = []

    cluster = cluster_of((), problems, stored=[Document(f"{STORED}things", newer)])

    assert ([pod.name for pod in cluster.pods], problems) == (["p"], [])
