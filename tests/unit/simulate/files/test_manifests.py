"""Files of all kinds become the same documents."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.framework.errors import ConfigError
from scheduler.simulate.cluster import read_cluster
from scheduler.simulate.files import manifests

NODES = [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": f"n{i}", "labels": {"a": "b"}}} for i in range(3)]
LIST = {"apiVersion": "v1", "items": NODES, "kind": "List", "metadata": {"resourceVersion": ""}}


def names(path: Path) -> list[str]:
    return [node.name for node in read_cluster([str(path)]).nodes]


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_cluster([str(path)])
    return [problem.replace(f"{path}", "f") for problem in caught.value.problems]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(json.dumps(LIST, indent=4).encode(), id="JSON as kubectl prints it"),
        pytest.param(yaml.safe_dump(LIST).encode(), id="YAML as kubectl prints it"),
        pytest.param("---\n".join(map(yaml.safe_dump, NODES)).encode(), id="YAML one by one"),
        pytest.param("\n".join(map(json.dumps, NODES)).encode(), id="JSON one by one"),
        pytest.param(gzip.compress(json.dumps(LIST).encode()), id="packed"),
        pytest.param(gzip.compress(b"") + gzip.compress(yaml.safe_dump(LIST).encode()), id="packed in two pieces"),
        pytest.param(b"\xef\xbb\xbf" + json.dumps(LIST).encode(), id="with a byte order mark"),
        pytest.param(b"\n \t" + json.dumps(LIST).encode() + b"\n\n", id="with space around it"),
        pytest.param(yaml.safe_dump(LIST, default_flow_style=True).encode(), id="YAML in brackets"),
        pytest.param(
            yaml.safe_dump(LIST).replace("name: n1", 'name: "n\\u0031"').encode(),
            id="YAML with an item that is not plain",
        ),
        pytest.param(yaml.safe_dump(LIST).replace("a: b", "a: &x b", 1).encode(), id="YAML with an anchor"),
        pytest.param(json.dumps(LIST).replace('"b"', '"\\ud800"', 1).encode(), id="JSON with half a character"),
    ],
)
def test_all_forms_of_a_file_are_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(data)

    assert names(path) == ["n0", "n1", "n2"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(
            lambda text: text[:-20], "f: no JSON that can be read to its end: input data was truncated", id="cut"
        ),
        pytest.param(
            lambda text: text.replace('"kind"', "kind", 1), "f:4:13: JSON is malformed: expected '\"'", id="no quote"
        ),
    ],
)
def test_a_dump_that_is_no_json_is_not_read_as_yaml_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, problem: str
) -> None:
    monkeypatch.setattr(manifests, "MAX_HAND_WRITTEN", 10)
    path = tmp_path / "f"
    path.write_text(change(json.dumps({"items": NODES, "kind": "List"}, indent=4)))

    assert problems(path) == [problem]
