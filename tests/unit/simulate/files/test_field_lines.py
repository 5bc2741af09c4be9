"""A problem of a file that was written by hand has the line of its field."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.framework.errors import ConfigError
from scheduler.simulate.cluster import read_cluster
from scheduler.simulate.files import field_lines

POD = """\
kind: Pod
metadata:
  name: %s
spec:
  containers:
  - name: c
    resources:
      requests:
        cpu: many
"""


def problems(text: str, path: Path) -> list[str]:
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_cluster([str(path)])
    return [problem.replace(str(path), "f").partition(": Invalid")[0] for problem in caught.value.problems]


def test_lines_count_from_the_beginning_of_the_file(tmp_path: Path) -> None:
    text = f"# two pods\n---\n{POD % 'p'}---\n{POD % 'q'}"

    assert problems(text, tmp_path / "a: b") == [
        "f:11: spec.containers[0].resources.requests[cpu]",
        "f:21: spec.containers[0].resources.requests[cpu]",
    ]


@pytest.mark.parametrize("dump", [yaml.safe_dump, lambda value: json.dumps(value, indent=1)])
def test_items_of_lists_have_lines_too(dump: Any, tmp_path: Path) -> None:
    text = dump({"kind": "List", "items": [yaml.safe_load(POD % name) for name in "pq"]})

    found = problems(text, tmp_path / "f")

    lines = text.splitlines()
    for place, problem in enumerate(found):
        line = int(problem.split(":")[1])
        assert problem == f"f:{line}: items[{place}]: spec.containers[0].resources.requests[cpu]"
        assert "cpu" in lines[line - 1]


def test_a_dump_has_the_numbers_of_items_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_lines, "MAX_TEXT", 10)

    assert problems(POD % "p", tmp_path / "f") == ["f:1: spec.containers[0].resources.requests[cpu]"]


def test_what_a_controller_makes_has_the_line_of_the_template(tmp_path: Path) -> None:
    template = {"spec": {"containers": [{"name": "c"}], "tolerations": [{"operator": "Near"}]}}
    spec = {"replicas": 1, "template": template, "selector": {}}
    workload = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "w"}, "spec": spec}

    (problem,) = problems(f"\n\n{yaml.safe_dump(workload)}", tmp_path / "f")

    assert problem.startswith("f:15: spec.template.spec.tolerations[0].operator: ")
