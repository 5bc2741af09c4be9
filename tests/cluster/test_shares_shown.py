"""Shares as a user sees them who has the Role `loadmaster-explain` and nothing else, on a real API server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.__main__ import main
from scheduler.api.devices import IMPLICIT_PREFIX
from tests.cluster.loadmaster import metric, node_of
from tests.cluster.proxied import asker, proxied
from tests.controlplane import Client, Component, ControlPlane, a_node, a_pod, wait_until

GPU = f"{IMPLICIT_PREFIX}gpu"
PROFILE: dict[str, Any] = {
    "schedulerName": "loadmaster",
    "plugins": {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]}},
    "pluginConfig": [
        {
            "name": "CapacityScheduling",
            "args": {
                "elasticQuotas": False,
                "shares": [
                    {"name": "company"},
                    {"name": "red", "parent": "company", "minimum": {"cpu": 2}, "podLabels": {"team": "red"}},
                    {"name": "blue", "parent": "company", "minimum": {"cpu": 2}, "podLabels": {"team": "blue"}},
                    {
                        "name": "green",
                        "maximum": {"cpu": 8, GPU: 1},
                        "podLabels": {"team": "green"},
                    },
                ],
            },
        }
    ],
}


@pytest.fixture(scope="module")
def admin(own: ControlPlane) -> Iterator[Client]:
    with own.client() as client:
        yield client


@pytest.fixture(scope="module")
def loadmaster(
    own: ControlPlane, admin: Client, address: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Component]:
    config = tmp_path_factory.mktemp("shares") / "config.json"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**kind, "profiles": [PROFILE]}))
    with proxied(own, admin, address, f"--config={config}") as process:
        yield process


def asked(user: Path, capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    assert main([*command, f"--kubeconfig={user}", "-o=json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_tree_the_reason_and_the_metrics_agree(
    own: ControlPlane, admin: Client, loadmaster: Component, capsys: pytest.CaptureFixture[str]
) -> None:
    user = asker(own)
    admin.create(a_node("n1", cpu="16"))
    for number in range(4):
        pod = a_pod(f"red-{number}", cpu="1")
        admin.create({**pod, "metadata": {**pod["metadata"], "labels": {"team": "red"}}})
    wait_until(lambda: sum(bool(node_of(pod)) for pod in admin.list("Pod", "default")) == 4, 30, "red borrows it all")
    pod = a_pod("blue-0", cpu="1")
    admin.create({**pod, "metadata": {**pod["metadata"], "labels": {"team": "blue"}}})

    def waits() -> bool:
        return bool(asked(user, capsys, "explain", "default/blue-0").get("share"))

    wait_until(waits, 30, "blue waits for its share")

    tree = asked(user, capsys, "quota")["shares"]
    share = asked(user, capsys, "explain", "default/blue-0")["share"]

    assert [(each["name"], each["waiting"]) for each in tree] == [
        ("company", 1),
        ("red", 0),
        ("blue", 1),
        ("green", 0),
    ]
    (red,), (blue,) = tree[1]["resources"], tree[2]["resources"]
    assert (red["used"], red["borrowed"], blue["lent"], blue["waiting"]) == (4000, 2000, 2000, 1000)
    assert share["lacks"] == ["1 cpu more than company has: red borrows 2"]
    assert "delete 1 pod of red" in " ".join(each["text"] for each in share["suggestions"])
    wait_until(
        lambda: metric(loadmaster.port, "loadmaster_share_pending", share="blue", resource="cpu") == 1,
        60,
        "the metrics say so",
    )
