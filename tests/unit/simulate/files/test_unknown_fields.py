"""Fields that objects do not have are told, with the nearest that they have."""

from pathlib import Path
from typing import Any

import pytest

from scheduler.__main__ import main
from tests.reference import known_fields
from tests.sizing.objects import Size, node
from tests.unit.simulate.what_if.world import read


def problems(obj: dict[str, Any]) -> list[str]:
    return [problem.removeprefix("f:1: ") for problem in read(obj)[1]]


def a_written_pod(**spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], **spec}}


@pytest.mark.parametrize(
    ("obj", "lines"),
    [
        (a_written_pod(nodeSelektor={}), ['spec.nodeSelektor: unknown field; did you mean "nodeSelector"?']),
        (
            a_written_pod(tolerations=[{"keys": "a", "operator": "Exists"}]),
            ['spec.tolerations[0].keys: unknown field; did you mean "key"?'],
        ),
        (a_written_pod(zzz=1, qqq=2), ["spec.zzz: unknown field", "spec.qqq: unknown field"]),
        ({**a_written_pod(), "spc": {}}, ['spc: unknown field; did you mean "spec"?']),
        (
            {"kind": "Node", "metadata": {"name": "n", "lables": {}}},
            ['metadata.lables: unknown field; did you mean "labels"?'],
        ),
        (
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "d"},
                "spec": {"replica": 1, "template": {"spec": {"containers": [{"resource": {}}]}}},
            },
            [
                'spec.replica: unknown field; did you mean "replicas"?',
                'spec.template.spec.containers[0].resource: unknown field; did you mean "resources"?',
            ],
        ),
        (
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": "s"},
                "spec": {"devices": [{"attributes": {"a": {"strng": "x"}}}]},
            },
            ['spec.devices[0].attributes[a].strng: unknown field; did you mean "string"?'],
        ),
        (
            a_written_pod(**{f"f{i}": 1 for i in range(25)}),
            [*(f"spec.f{i}: unknown field" for i in range(20)), "and 5 more such fields"],
        ),
    ],
)
def test_an_unknown_field_is_told_with_the_nearest_one(obj: dict[str, Any], lines: list[str]) -> None:
    assert problems(obj) == lines


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(node(1), id="a node as a kubelet reports it"),
        pytest.param(Size(1, 1).running_pod(0), id="a pod that runs"),
        pytest.param(a_written_pod(nodeSelector={"any": "x"}, overhead=None), id="a pod with labels and nulls"),
        pytest.param({"apiVersion": "x/v1", "kind": "Pod", "anything": 1}, id="a kind of others"),
        pytest.param(
            {**a_written_pod(), "metadata": {"name": "p", "managedFields": [{"fieldsV1": {"f:x": {}}}]}},
            id="managedFields",
        ),
    ],
)
def test_fields_that_there_are_are_no_problem(obj: dict[str, Any]) -> None:
    assert problems(obj) == []


def test_unknown_fields_are_noted_where_they_are_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f"
    path.write_text("kind: Node\nmetadata: {name: n, lable: {}}\n")

    assert main(["simulate", str(path)]) == 2
    assert main(["simulate", str(path), "--allow-unknown-fields"]) == 0
    line = f'{path}:2: metadata.lable: unknown field; did you mean "labels"?\n'
    assert capsys.readouterr().err == line * 2


def test_the_fields_are_those_of_the_api() -> None:
    assert known_fields.TARGET.read_text() == known_fields.text()
