"""`loadmaster simulate --from-cluster` against an API server that answers from a script."""

import json
from pathlib import Path

import pytest

from scheduler.__main__ import main
from tests.unit.commands.scripted_api import Script, a_list, served, status
from tests.unit.commands.test_snapshot import GOOD
from tests.unit.commands.test_snapshot import _impatient as _impatient
from tests.unit.kube.fake_api import Answer

PODS, NODES, SETS = "GET /api/v1/pods", "GET /api/v1/nodes", "GET /apis/apps/v1/replicasets"
NODE = {
    "metadata": {"name": "n1", "resourceVersion": "1", "uid": "n1"},
    "status": {"allocatable": {"cpu": "1", "pods": "9"}},
}
WAITS = {
    "metadata": {"name": "waits", "namespace": "shop", "resourceVersion": "1", "uid": "p"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
}
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "1", "uid": "w"},
    "spec": {"replicas": 2, "selector": {}, "template": {"spec": WAITS["spec"]}},
}
DEPLOYMENTS: Script = {"GET /apis/apps/v1/deployments": a_list("Deployment", WEB)}


def simulated(folder: Path, script: Script, *options: str) -> int:
    whole = {**GOOD, NODES: a_list("Node", NODE), PODS: a_list("Pod", WAITS), **script}
    with served(folder, whole) as (api, kubeconfig):
        code = main(["simulate", "--from-cluster", f"--kubeconfig={kubeconfig}", *options])
    assert len(set(api.asked)) == len(api.asked), "each kind is asked for once"
    return code


def test_what_the_cluster_has_is_simulated_and_files_come_on_top(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "more.json"
    file.write_text(json.dumps({"kind": "Pod", "metadata": {"name": "new"}, "spec": WAITS["spec"]}))

    assert simulated(tmp_path, {}, str(file)) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[3:]] == [["shop/waits", "n1"], ["default/new", "-"]]


def test_a_cron_job_of_the_cluster_can_be_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metadata = {"name": "nightly", "namespace": "shop", "resourceVersion": "1", "uid": "c"}
    job = {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}
    jobs = a_list(
        "CronJob", {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": {"jobTemplate": job}}
    )

    assert simulated(tmp_path, {"GET /apis/batch/v1/cronjobs": jobs}, "--of=cj/nightly", "--count=2") == 0

    assert "2 of 2 copies of cronjob/shop/nightly fit" in capsys.readouterr().out


@pytest.mark.parametrize(("sets", "pods"), [(a_list("ReplicaSet"), 3), (status(403, "no"), 1)])
def test_deployments_of_which_the_replica_sets_are_not_known_make_no_pods_anew(
    tmp_path: Path, sets: Answer, pods: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated(tmp_path, {**DEPLOYMENTS, SETS: sets}) == 0

    assert capsys.readouterr().out.splitlines()[0] == f"1 of {pods} pods placed"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ({PODS: status(403, "no")}, "listing pods: 403: no; a simulation needs pods"),
        ({NODES: Answer(body=b"\xff")}, "listing nodes: "),
        ({NODES: Answer(body={"kind": "Cat"})}, "listing nodes: this is no list: Cat"),
    ],
)
def test_what_goes_wrong_is_one_sentence(
    tmp_path: Path, script: Script, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated(tmp_path, script) == 2

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert problem in err


def test_an_object_that_cannot_be_read_costs_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = {**WAITS, "metadata": {"name": "odd", "resourceVersion": "1"}, "spec": {"priority": "high"}}

    assert simulated(tmp_path, {PODS: a_list("Pod", WAITS, odd)}) == 0

    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "1 of 1 pods placed"
    assert "the cluster's pods: items[1]: spec.priority: expected int | null, got str" in err
