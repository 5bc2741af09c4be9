import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler.__main__ import main

CLUSTER = """\
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}
---
kind: Pod
metadata: {name: fits}
spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}
---
kind: Pod
metadata: {name: large}
spec: {containers: [{name: c, resources: {requests: {cpu: 2}}}]}
---
kind: Pod
metadata: {name: strange}
spec: {schedulerName: other, containers: [{name: c}]}
---
kind: ConfigMap
"""


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)
    return str(path)


def test_simulate_says_where_pods_go(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", cluster]) == 0

    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "1 of 2 pods placed",
        "",
        "POD            NODE  MESSAGE",
        "default/fits   n1",
        "default/large  -     0/1 nodes are available: 1 Insufficient cpu. preemption: "
        "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
    ]
    assert err.splitlines() == [
        "left out 1 waiting pods of other schedulers: other; a --config with a profile of that name places them",
        "left out objects of kinds that do not count: 1 ConfigMap",
    ]


def test_simulate_reads_standard_input_and_takes_the_profiles_of_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CLUSTER.encode())))
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: first}, {schedulerName: other}]"
    )

    assert main(["simulate", "-", "--config", str(config)]) == 0

    assert capsys.readouterr().out.splitlines()[0] == "2 of 3 pods placed"


def test_each_pod_alone_is_placed_where_it_fits_and_the_document_has_the_notes(
    cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", cluster, "--each-alone", "--explain", "-o", "json"]) == 0

    out, err = capsys.readouterr()
    document = json.loads(out)
    assert [(pod["name"], pod["node"], pod["nodes"]["n1"]["code"]) for pod in document["pods"]] == [
        ("fits", "n1", "Success"),
        ("large", "n1", "Success"),
    ]
    assert document["notes"] == err.splitlines() != []


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["run", "--secure-port", "70000"], ["run", "--secure-port", "x"], ["simulate", "-o", "xml"]],
)
def test_wrong_arguments_exit_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: loadmaster")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["run", "--help"]])
def test_help_and_version_are_printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 0
    assert "loadmaster" in capsys.readouterr().out


def test_a_reader_that_has_seen_enough_is_no_error(cluster: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        [sys.executable, "-m", "scheduler", "simulate", cluster], stdout=writing, stderr=subprocess.PIPE, check=False
    )

    os.close(writing)
    assert (done.returncode, done.stderr) == (
        141,
        b"left out 1 waiting pods of other schedulers: other; a --config with a profile of that name places them\n"
        b"left out objects of kinds that do not count: 1 ConfigMap\n",
    )


def test_simulate_does_not_import_the_cluster_side(cluster: str) -> None:
    names = ("kopf", "kubernetes", "aiohttp")
    code = (
        f"import sys; from scheduler.__main__ import main; main(['simulate', {cluster!r}])\n"
        f"print([name for name in {names} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "there is nothing to simulate: give files, or --from-cluster"),
        (["f", "--kubeconfig", "k"], "--kubeconfig: says how to reach a cluster, and --from-cluster is missing"),
        (["f", "--context", "c"], "--context: says how to reach a cluster, and --from-cluster is missing"),
        (["--from-cluster", "--kubeconfig", "none"], "none: no such kubeconfig file"),
    ],
)
def test_a_simulation_needs_something_to_simulate(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *arguments]) == 2

    assert capsys.readouterr().err == f"{problem}\n"
