"""The command line's options for what-if: what makes no sense is told, all at once."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.__main__ import main
from tests.unit.simulate.what_if.world import Json, a_budget, a_node, a_pod, on


@pytest.fixture
def file(tmp_path: Path) -> str:
    return written(tmp_path, a_node("n1"), a_node("n2"), on("n1", "web-1", "ReplicaSet", "web"), a_pod("p", cpu=3))


def written(folder: Path, *objects: Json) -> str:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": objects}))
    return str(path)


@pytest.mark.parametrize(
    ("options", "problems"),
    [
        (["--count", "-1"], ["--count -1: must be at least 1"]),
        (["--count", "many"], ["--count many: expected a number"]),
        (["--count", "1" * 5000], ["a simulation takes 100,000 at most"]),
        (["--count", "100001"], ["--count 100001: a simulation takes 100,000 at most"]),
        (
            ["--count", "1", "--fill"],
            ["--count and --fill: one says how many copies, the other as many as fit; give one of them"],
        ),
        (["--of", "p"], ["--of p: says what --count or --fill copy, and neither is given"]),
        (["--add-nodes", "2"], ["--add-nodes: --like NODE says what they are like, and is missing"]),
        (["--like", "n1"], ["--like n1: says what the nodes of --add-nodes are like, and that is missing"]),
        (["--drain", "n1", "--remove", "n1"], ["--drain n1: --remove takes the same node away"]),
        (["--fill", "--each-alone"], ["it goes with neither --count, --fill nor --drain"]),
        (
            ["--add-nodes", "-3", "--count", "x", "--of", "p"],
            [
                "--count x: expected a number",
                "--add-nodes -3: must be at least 1",
                "--add-nodes: --like NODE says what they are like, and is missing",
            ],
        ),
        (["--drain", "n11"], ["--drain n11: there is no such node; did you mean n1?"]),
    ],
)
def test_nonsense_is_told_at_once_with_exit_code_2(
    file: str, options: list[str], problems: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", file, *options]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert len(err) < 1000 * len(problems)
    for problem in problems:
        assert problem in err


@pytest.mark.parametrize(
    ("objects", "options", "code"),
    [
        ([a_pod("p", cpu=3)], ["--count", "2"], 0),
        ([a_pod("p", cpu=3)], ["--count", "3"], 3),
        ([a_pod("p", cpu=3)], ["--fill"], 0),
        ([a_pod("p", cpu=3)], ["--drain", "n1"], 0),
        ([a_pod("p", cpu=3), a_pod("q", cpu=3)], ["--drain", "n1"], 3),
        ([on("n1", "web-1", "ReplicaSet", "web")], ["--drain", "n1"], 0),
        ([on("n1", "web-1", "ReplicaSet", "web"), a_budget("b", "web", minAvailable=1)], ["--drain", "n1"], 3),
        ([on("n1", "web-1", "ReplicaSet", "web")], ["--remove", "n1", "--remove", "n2"], 3),
    ],
)
def test_a_pipeline_can_stop_where_something_does_not_fit(
    tmp_path: Path, objects: list[Json], options: list[str], code: int
) -> None:
    file = written(tmp_path, a_node("n1"), a_node("n2"), *objects)

    assert main(["simulate", file, *options, "--fail-if-pending"]) == code


def test_the_answers_are_text_for_people(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--drain", "n1", "--add-nodes", "1", "--like", "n2", "--fill"]

    assert main(["simulate", file, *options]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["1 of 1 pods placed", ""]
    name = lines[3].split()[0]
    assert lines[3].split()[1:] == ["(for", "default/web-1", "of", "n1)", lines[3].split()[-1]]
    assert name.startswith("default/web-")
    assert lines[4:9] == [
        "",
        "added 1 node like n2: n2-added-1",
        "drained n1: 1 pod evicted, 1 of 1 replacement found a node",
        "  kubectl drain n1",
        "",
    ]
    assert lines[9] == "2 copies of pod/default/p fit"
    assert lines[10].split() == ["NODE", "COPIES"]
    assert any(line.startswith("the next one, default/p-3: 0/3 nodes are available:") for line in lines)
    assert any(line.startswith("UTILISATION") for line in lines)


@pytest.mark.parametrize(
    ("options", "start"),
    [
        (["--utilisation"], "UTILISATION"),
        (["--fill"], "2 copies of pod/default/p fit"),
        (["--remove", "n1"], "removed n1: 1 pod gone with it, 1 of 1 replacement found a node"),
    ],
)
def test_the_answers_begin_without_a_gap(
    file: str, options: list[str], start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", file, *options]) == 0

    lines = capsys.readouterr().out.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(start))
    assert first == 0 or (not lines[first - 1] and lines[first - 2])


def test_the_document_has_all_of_it(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", file, "--remove", "n1", "--count", "1", "-o", "json"]) == 0

    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert list(document) == ["notes", "whatIf", "pods"]
    assert list(document["whatIf"]) == ["removed", "copies", "utilisation"]
    assert document["whatIf"]["copies"]["nodes"] == {"n2": 1}
