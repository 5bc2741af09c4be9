"""`loadmaster quota`: the tree as text and as JSON, of a running scheduler and of files."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from scheduler.__main__ import main
from scheduler.commands import explaining
from tests.unit.commands.scripted_api import served
from tests.unit.commands.test_explain import A_TOKEN, EXPLAIN, TOKEN
from tests.unit.kube.fake_api import Answer

CONFIG: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: CapacityScheduling
"""

CLUSTER: Final = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: quota, namespace: team-a}
spec: {min: {cpu: "2", memory: 4Gi}, max: {cpu: "6", memory: 8Gi}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: quota, namespace: team-b}
spec: {min: {cpu: "2", memory: 4Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: runs, namespace: team-a}
spec:
  nodeName: n1
  containers: [{name: c, image: i, resources: {requests: {cpu: "3", memory: 1Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: team-b}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]
"""


def share(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "source": "shares", **members}


SHARES: Final = {
    "kind": "Shares",
    "found": True,
    "state": "on",
    "leading": True,
    "shares": [
        share("all"),
        share("lab", parent="all", depth=1),
        share("lab-a", parent="lab", depth=2, waiting=1),
        share("shop", parent="all", depth=1),
        share("odd\x1b[31m", problem="its parent does not exist", waiting=3),
    ],
}


def of_files(tmp_path: Path, *options: str) -> int:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return main(["quota", "--from", str(tmp_path / "cluster.yaml"), f"--config={tmp_path / 'config.yaml'}", *options])


def asked(tmp_path: Path, answers: Answer | tuple[Answer, ...], *options: str) -> int:
    with served(tmp_path, {TOKEN: A_TOKEN, EXPLAIN: answers}) as (api, kubeconfig):
        code = main(["quota", f"--kubeconfig={kubeconfig}", *options])
    assert all(each.endswith("?shares=true") for each in api.asked if "explain?" in each)
    return code


def test_the_tree_of_files_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = of_files(tmp_path)

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[0].split() == (
        ["SHARE", "PODS", "WAITING", "RESOURCE", "GUARANTEED", "MAXIMUM", "USED", "BORROWED", "LENT", "WAITING"]
    )
    assert lines[1].split() == ["all", "elastic", "quotas", "1", "cpu", "4", "-", "3", "-", "-", "1.5"]
    assert lines[3].startswith("  team-a/quota")
    assert lines[3].split() == ["team-a/quota", "-", "cpu", "2", "6", "3", "1", "-", "-"]
    assert lines[5].split() == ["team-b/quota", "1", "cpu", "2", "-", "0", "-", "1", "1.5"]
    assert lines[6].split() == ["memory", "4Gi", "-", "0", "-", "-", "1Gi"]


@pytest.mark.parametrize(("order", "title"), [("DominantShare", "DOMINANT SHARE"), ("DecayedUsage", "DECAYED USAGE")])
def test_the_table_says_how_shares_stand_where_these_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: str, title: str
) -> None:
    stands = [
        share(name, standing={"order": order, "value": value}, depth=1, parent="all")
        for name, value in (("a", 123456.78), ("b", 0.25), ("c", 9223372036854775807))
    ]
    asked(tmp_path, Answer(200, {**SHARES, "shares": [share("all"), *stands]}))

    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split("  ")[:4] == ["SHARE", "PODS WAITING", title, "RESOURCE"]
    assert [row.split()[:3] for row in rows] == [
        ["all", "-", "-"],
        ["a", "-", "1.235e+05"],
        ["b", "-", "0.25"],
        ["c", "-", "infinite"],
    ]


def test_one_share_is_shown_with_all_below_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = asked(tmp_path, Answer(200, SHARES), "lab", "-o", "json")

    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [each["name"] for each in document["shares"]] == ["lab", "lab-a"]


def test_shares_that_cannot_be_used_are_told_below(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked(tmp_path, Answer(200, SHARES))

    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["CANNOT BE USED", "  odd\\x1b[31m: its parent does not exist; 3 pods wait"]


OFF: Final = Answer(404, {"kind": "Shares", "found": False, "state": "off"})
NO_SHARES: Final = "there are no shares: no profile has the plugin CapacityScheduling\n"


def test_the_shares_are_shown_again_when_they_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining, "WATCH_SECONDS", 0.01)
    answers = (Answer(200, SHARES), Answer(200, SHARES), Answer(200, {**SHARES, "shares": [share("all")]}), OFF)

    code = asked(tmp_path, answers, "lab", "--watch")
    assert (code, capsys.readouterr().err) == (1, "there is no share lab\n")

    code = asked(tmp_path, answers, "--watch")
    out, err = capsys.readouterr()
    assert (code, err) == (1, NO_SHARES)
    assert [each.split()[0] for each in out.splitlines() if each][-2:] == ["SHARE", "all"]
    assert sum(line.startswith("SHARE") for line in out.splitlines()) == 2


ODD: Final = (
    "what the scheduler answered cannot be shown: Expected `array`, got `int` - at `$.shares`; "
    "is it of another version than this command?\n"
)


@pytest.mark.parametrize(
    ("answer", "options", "said"),
    [
        pytest.param(Answer(200, SHARES), ("nobody",), (1, "there is no share nobody\n"), id="no such share"),
        pytest.param(OFF, (), (1, NO_SHARES), id="what turns them on"),
        pytest.param(Answer(200, {**SHARES, "shares": 7}), (), (2, ODD), id="of another version"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(
    answer: Answer, options: tuple[str, ...], said: tuple[int, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (asked(tmp_path, answer, *options), capsys.readouterr().err) == said
