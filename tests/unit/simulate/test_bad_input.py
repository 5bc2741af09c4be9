"""Whatever is in a file costs one clear line for each problem, exit code 2, and little memory."""

import gzip
import json
import os
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from scheduler.__main__ import main
from scheduler.framework.errors import ConfigError
from scheduler.simulate.cluster import read_cluster
from scheduler.simulate.files import manifests as files
from tests.unit.simulate.bad_input import BAD_INPUT, Bad

NODE = "kind: Node\nmetadata: {name: n}\nstatus: {capacity: {cpu: 1, pods: 9}}\n"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
POD = "kind: Pod\nmetadata: {name: p, labels: {a: %s}}\nspec: {containers: [{name: c}]}\n"


@pytest.mark.parametrize("case", [pytest.param(case, id=case.what) for case in BAD_INPUT])
def test_bad_input_is_told_in_one_line_for_each_problem(
    case: Bad, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "f"
    path.write_bytes(case.content if isinstance(case.content, bytes) else case.content.encode())

    code = main(["simulate", str(path)])

    out, err = capsys.readouterr()
    lines = [line.replace(str(path), "f") for line in err.splitlines()]
    assert (code, out, lines) == (2, "", list(case.problems))
    assert all(line.isprintable() and len(line) < 1000 for line in lines)


LONG = "x" * 100_000


@pytest.mark.parametrize(
    "spec",
    [
        {"tolerations": [{"key": "a", "operator": LONG}]},
        {"containers": [{"name": "c", "resources": {"requests": {LONG: "-1"}}}]},
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": LONG, "whenUnsatisfiable": LONG}] * 2},
        {"affinity": {"podAffinity": {REQUIRED: [{"labelSelector": {"matchLabels": {LONG: LONG}}}]}}},
    ],
)
def test_what_may_be_as_long_as_the_file_is_cut(spec: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text(json.dumps({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}))

    with pytest.raises(ConfigError) as caught:
        read_cluster([str(path)])

    assert all(len(line) < 1000 for line in caught.value.problems)


def simulated(
    *arguments: str,
    stdout: int = subprocess.PIPE,
    environment: Mapping[str, str] = MappingProxyType({}),
    memory: int = 3 << 29,
) -> tuple[int, bytes, bytes]:
    """Run it in a process that may have so many bytes of addresses, by default 1.5 GiB."""
    done = subprocess.run(
        [sys.executable, "-m", "scheduler", "simulate", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment},
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
    )
    return done.returncode, done.stdout, done.stderr


def test_little_input_takes_little_memory(tmp_path: Path) -> None:
    bombs = ("bombs", "a bomb of text", "a bomb of merged mappings", "lists in lists", "braces")
    cases = [case for case in BAD_INPUT if case.what in bombs]
    for number, case in enumerate(cases):
        content = case.content if isinstance(case.content, bytes) else case.content.encode()
        (tmp_path / f"{number}.yaml").write_bytes(content)

    code, _, err = simulated(str(tmp_path))

    told = [
        problem.replace("f:", f"{number}.yaml:", 1) for number, case in enumerate(cases) for problem in case.problems
    ]
    assert len(cases) == len(bombs)
    assert (code, err.decode().replace(f"{tmp_path}/", "").splitlines()) == (2, told)


def test_what_unpacks_to_too_much_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 1 << 20)
    path = tmp_path / "f.gz"
    path.write_bytes(gzip.compress(b" " * (2 << 20)))

    with pytest.raises(ConfigError, match="larger than 1048576 bytes once it is unpacked"):
        read_cluster([str(path)])


def a_bomb(path: Path) -> None:
    path.write_bytes(gzip.compress(b" " * (100 << 20), 9))


def a_sparse_file(path: Path) -> None:
    path.touch()
    os.truncate(path, 5 << 30)


def a_sparse_file_of_a_size_that_may_be(path: Path) -> None:
    path.touch()
    os.truncate(path, 500 << 20)


def a_pipe_in_a_directory(path: Path) -> None:
    path.mkdir()
    os.mkfifo(path / "a.json")


def a_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (a_bomb, "f: packed by gzip, but cannot be unpacked: unpacks to more than 400 times its size"),
        (a_sparse_file, "f: larger than"),
        (a_sparse_file_of_a_size_that_may_be, "f: not a text: there are only zeros in it"),
        (a_pipe_in_a_directory, "f/a.json: cannot be read: this is no ordinary file"),
        (a_link_to_a_device, "f: not a text: there are only zeros in it"),
    ],
)
def test_a_file_without_an_end_costs_a_line_and_little_memory(
    make: Callable[[Path], None], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 2 << 30)
    make(tmp_path / "f")
    tracemalloc.start()

    with pytest.raises(ConfigError) as caught:
        read_cluster([str(tmp_path / "f")])
    _, peak = tracemalloc.get_traced_memory()

    tracemalloc.stop()
    assert [line.replace(str(tmp_path / "f"), "f")[: len(problem)] for line in caught.value.problems] == [problem]
    assert peak < 40 << 20


def test_all_files_together_may_have_so_many_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 3 * len(NODE))
    for name in "abcd":
        (tmp_path / f"{name}.yaml").write_text(NODE.replace("name: n", f"name: {name}"))

    with pytest.raises(ConfigError) as caught:
        read_cluster([str(tmp_path)])

    why = f"which is what the files before it leave of {3 * len(NODE)}"
    assert caught.value.problems == (f"{tmp_path}/d.yaml: larger than 0 bytes, {why}",)


def test_half_of_the_memory_is_the_bound_where_there_is_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "memory_of_process", lambda: 1 << 30)

    assert files.max_bytes() == 1 << 29


def test_a_cluster_that_does_not_fit_into_memory_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    pod = {"kind": "Pod", "spec": {"nodeName": "n", "containers": [{"name": "c"}]}}
    pods = [{**pod, "metadata": {"name": f"p{i}", "uid": f"u{i}", "resourceVersion": "1"}} for i in range(60_000)]
    path.write_text(json.dumps({"kind": "List", "items": pods}))

    code, out, err = simulated(str(path), memory=256 << 20)

    assert (code, out) == (2, b"")
    assert err == b"out of memory: this process may have 256 MiB, and needs more\n"


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_text(f"{NODE}---\n{POD % 'b'}")
    return str(path)


@pytest.mark.parametrize(
    ("output", "environment"),
    [("text", {"PYTHONIOENCODING": "ascii"}), ("json", {"LC_ALL": "C"}), ("text", {"LANG": "POSIX"})],
)
def test_any_terminal_will_do(tmp_path: Path, output: str, environment: dict[str, str]) -> None:
    path = tmp_path / "f"
    path.write_text(f"{NODE}---\n{POD % 'b'}".replace("name: p,", "name: p, namespace: 'ü\\u001b',"))

    code, out, err = simulated(str(path), "-o", output, environment=environment)

    assert (code, err) == (0, b"")
    assert b"\x1b" not in out


def test_a_closed_standard_input_is_said(cluster: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m scheduler simulate - <&-"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (2, "standard input: cannot be read: it is closed\n")


def test_a_closed_standard_output_does_no_harm(cluster: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m scheduler simulate {cluster} >&-"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["missing"], "missing: cannot be read: No such file or directory"),
        (["\udcff"], "\\udcff: cannot be read: No such file or directory"),
        (["a\nb"], "a\\nb: cannot be read: No such file or directory"),
        (["empty"], "empty: no file in this directory ends in .yaml, .yml, .json, .yaml.gz, .yml.gz, .json.gz"),
        (["/dev/null"], "/dev/null: there is nothing in it"),
        (["-"], "standard input: there is nothing in it"),
        (["-", "-"], "standard input: there is nothing in it\n-: standard input can be read once only"),
        (["x" * 5000], "x" * 450 + "…" + "x" * 414 + ": cannot be read: File name too long"),
        (["a\0b"], "a\\x00b: cannot be read: embedded null byte"),
    ],
)
def test_paths_of_no_use_are_said(
    arguments: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with Path("/dev/null").open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)

        assert main(["simulate", *arguments]) == 2

    assert capsys.readouterr() == ("", problem + "\n")


def test_pods_that_wait_are_an_error_by_choice(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large = tmp_path / "large.yaml"
    large.write_text(
        POD.replace("name: p", "name: q").replace("{name: c}", "{name: c, resources: {requests: {cpu: 9}}}") % "b"
    )

    assert main(["simulate", cluster, "--fail-if-pending"]) == 0
    assert main(["simulate", cluster, str(large)]) == 0
    assert main(["simulate", cluster, str(large), "--fail-if-pending"]) == 3
    assert capsys.readouterr().err == ""
