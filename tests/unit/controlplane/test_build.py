"""Which binaries are taken; nothing is built."""

from pathlib import Path

import pytest

from tests.controlplane import build
from tests.controlplane.build import KUBE_SCHEDULER, KUBECTL, KUBERNETES, MODULES, in_version
from tests.controlplane.daemon import Wishes
from tests.demo.command import needed


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(build, "build", lambda module: Path(module.target))


def test_an_api_server_of_another_version_has_the_kube_scheduler_that_we_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADMASTER_KUBERNETES", "1.34")

    found = build.find_binaries(["etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kube-scheduler"])

    older, own = in_version(KUBERNETES, "1.34").target, KUBE_SCHEDULER.target
    assert {name: path.parent.name for name, path in found.items()} == {
        "etcd": older,
        "kube-apiserver": older,
        "kube-controller-manager": older,
        "kubectl": in_version(KUBECTL, "1.34").target,
        "kube-scheduler": own,
    }


@pytest.mark.parametrize(
    "started",
    [needed(keep=False), needed(keep=True), Wishes().programs(), Wishes(kube_scheduler=True).programs()],
    ids=["make demo", "KEEP=1 make demo", "up", "up --kube-scheduler"],
)
def test_only_what_is_started_is_built(started: list[str]) -> None:
    found = build.find_binaries(started)

    targets = {path.parent.name for path in found.values()}
    assert {name for module in MODULES if module.target in targets for name in module.binaries} == set(started)
